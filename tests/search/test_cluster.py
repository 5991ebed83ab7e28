"""A search on a cluster is the same search, and sends the records once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sklearn_dpsearch.search.execution.tasks import configured

ROOT = Path(__file__).parents[2]


def test_what_tasks_share_is_handed_over_as_one_object():
    """Clusters send each argument of a task once, if they see that it is the same; nested ones go with every task."""
    X, y = np.zeros((5, 2)), np.zeros(5)
    found = list(configured((len, (X, y), {"more": X}) for _ in range(3)))
    assert all(given[0] is X and given[1] is y and named["more"] is X for _, given, named in found)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes as Linux does")
def test_a_search_on_two_worker_processes_is_the_same_search_and_sends_records_once():
    pytest.importorskip("distributed")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.search.on_a_cluster"],
        capture_output=True, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["same"] == {"random": True, "subset": True, "grid": True}
    assert told["after a loss"]
    assert told["sent"] < 5  # times the records: to two workers, and what else goes over the line; 16 tasks and more
    assert told["left"] == 0
    assert "shrink" not in told["logs"]
