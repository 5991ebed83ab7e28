"""How long a plan takes. CPU seconds of this process, against those of a fixed piece of work on the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def a_second_of_a_common_machine() -> None:
    """What takes about a second of a core of 2023."""
    numbers = np.random.default_rng(0).random(2**20)
    for _ in range(16):
        np.fft.irfft(np.fft.rfft(numbers) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most"), [(DPSubsetSearchCV, 3.0), (DPRandomSearchCV, 1.0), (DPGridSearchCV, 1.0)])
def test_a_plan_for_a_net_takes_seconds_and_the_second_next_to_nothing(kind: type, most: float) -> None:
    nets = pytest.importorskip("sklearn_dpsearch.nets")
    DPGridSearchCV(nets.DPMLPClassifier(), "auto", epsilon=8.0, delta=1e-6).privacy_cost(n_samples=1000)  # imports

    def plan() -> None:
        kind(nets.DPMLPClassifier(), "auto", epsilon=3.001, delta=1e-6).privacy_cost(n_samples=32561)

    unit = seconds(a_second_of_a_common_machine)
    assert seconds(plan) < most * unit
    assert seconds(plan) < 0.1 * unit
