"""What a scheduler sees of a search does not depend on how many runs there are."""

from __future__ import annotations

import itertools

import pytest

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.privacy import Geometric
from sklearn_dpsearch.search import _threshold_search as _threshold
from sklearn_dpsearch.search._execution.workers import Threads, block_sizes, number_of_tasks

from .toys import NoisyCentroids, two_blobs

X, y = two_blobs(400)


@pytest.fixture
def tasks_of(monkeypatch, in_place):
    """Search and number of runs to the number of tasks, as the scheduler of a cluster counts
    them."""
    seen = []

    def run(workers, tasks, counter):
        seen[-1] += len(tasks)
        return [task() for task in tasks]

    def number_of_tasks_of(search, number):
        monkeypatch.setattr(Geometric, "sample", lambda self, rng=None: number)
        coins = itertools.cycle([False] * number + [True])  # all is drawn once before it is drawn
        monkeypatch.setattr(_threshold, "bernoulli", lambda probability, rng: next(coins))
        seen.append(0)
        search.fit(X, y)
        return seen[-1]

    monkeypatch.setattr(Threads, "run", run)
    return number_of_tasks_of


@pytest.mark.slow
@pytest.mark.parametrize("search", [
    DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=10, n_jobs=3),
    DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=10, n_jobs=3, refit=True),
    DPSubsetSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=10, subset_fraction=0.5, n_jobs=3),
    DPThresholdSearchCV(NoisyCentroids(), {"shrink": [0.0]}, threshold=-1e9, n_iter=10, n_jobs=3),
    DPThresholdSearchCV(NoisyCentroids(), {"shrink": [0.0]}, threshold=1e9, n_iter=10, n_jobs=3),
])  # fmt: skip
def test_the_number_of_tasks_does_not_depend_on_the_number_of_runs(search, tasks_of):
    counts = {tasks_of(search, number) for number in (1, 2, 7, 40, 90)}
    assert len(counts) == 1
    assert counts.pop() > 1


def test_a_threshold_that_is_reached_or_not_makes_as_many_tasks(tasks_of):
    searched = (NoisyCentroids(), {"shrink": [0.0]})
    counts = {
        tasks_of(DPThresholdSearchCV(*searched, threshold=threshold, n_iter=10, n_jobs=3), 20)
        for threshold in (-1e9, 1e9)
    }
    assert len(counts) == 1


def test_no_worker_is_without_a_task_and_none_has_too_many():
    assert number_of_tasks(10, 1, together=False) == 8
    assert number_of_tasks(1, 1, together=False) == 2
    assert number_of_tasks(1000, 1, together=True) == 1
    assert sum(block_sizes(10, 1)) >= 30
    assert len(block_sizes(1000, 1)) < 20
