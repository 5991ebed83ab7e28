"""Scripts that start a cluster, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def told_by(script, library="distributed"):
    """What a script that starts clusters prints last, and under "written" all that its processes
    write."""
    pytest.importorskip(library)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.{script}"],
        capture_output=True, text=True, cwd=ROOT, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return {**json.loads(run.stdout.splitlines()[-1]), "written": run.stdout + run.stderr}


def error(work):
    """What some work raises, as text."""
    try:
        work()
    except Exception as found:
        return f"{type(found).__name__}: {found}"
    return None
