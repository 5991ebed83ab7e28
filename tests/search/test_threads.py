"""Searches that overlap in threads: no loser is heard, and afterwards the process is as it was."""

from __future__ import annotations

import contextlib
import logging
import random
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_score

from sklearn_dpsearch import Doubling, DPGridSearchCV, DPRandomSearchCV, DPThresholdSearchCV, NoModelError
from sklearn_dpsearch.privacy import Fixed, PrivacyError

from .._process.toys import hearing, state
from .toys import NoisyCentroids, two_blobs

X, y = two_blobs(120)


class Slow(NoisyCentroids):
    """Says its parameter everywhere, slowly."""

    def fit(self, X, y):
        for _ in range(3):
            time.sleep(0.005)
            print(f"secret {self.shrink}")
            print(f"secret {self.shrink}", file=sys.stderr)
            logging.getLogger("slow").warning("secret %s", self.shrink)
            warnings.warn(f"secret {self.shrink}", stacklevel=1)
        if self.shrink > 0.8:
            raise ValueError("secret")
        return super().fit(X, y)


def fitted(number):
    with contextlib.suppress(NoModelError):
        DPRandomSearchCV(Slow(), {"shrink": [0.0, 0.1, 0.9]}, n_iter=Fixed(number)).fit(X, y)


@pytest.mark.parametrize("number", [2, 8])
def test_searches_that_overlap_are_silent_and_leave_everything_as_it_was(number):
    rng = random.Random(number)
    numpy_state = np.random.get_state()[1].tolist()
    plans = [(rng.random() / 20, rng.randint(1, 6)) for _ in range(number)]

    def one(delay, runs):
        time.sleep(delay)
        fitted(runs)

    printed = 0
    with hearing() as heard:
        threads = [threading.Thread(target=one, args=plan) for plan in plans]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            print("public")
            printed += 1
            time.sleep(0.001)
    assert "secret" not in heard.getvalue()
    assert heard.getvalue().count("public") == printed > 0
    assert np.random.get_state()[1].tolist() == numpy_state


def test_cross_validation_in_threads_is_silent():
    """All but the filters of warnings are what they were.

    scikit-learn 1.9 runs each of its tasks in ``warnings.catch_warnings``; threads that overlap put the filters back in
    the wrong order. It does so around any estimator.
    """
    before = state(filters=False)
    with hearing(filters=False) as heard, parallel_config(backend="threading", n_jobs=2):
        search = DPRandomSearchCV(Slow(), {"shrink": [0.0, 0.1]}, n_iter=Fixed(3))
        assert len(cross_val_score(search, X, y, cv=4)) == 4
    assert not heard.getvalue()
    assert state(filters=False) == before


class WarnsOfRecords(NoisyCentroids):
    def fit(self, X, y):
        warnings.warn("one of the records is odd", stacklevel=1)
        np.float64(1.0) / np.zeros(1)
        return super().fit(X, y)


@pytest.mark.parametrize("make", [DPRandomSearchCV, DPGridSearchCV])
def test_warnings_that_the_user_made_errors_do_not_make_candidates_fail(make):
    """They could be raised because of a record; so could NumPy's."""
    more = {"selection_epsilon": 1.0, "n_parts": 2} if make is DPGridSearchCV else {}
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert make(WarnsOfRecords(), {"shrink": [0.0, 0.1]}, **more).fit(X, y).predict(X).shape == (120,)


class Waits(NoisyCentroids):
    """Fits once an event is set, and says that it has begun."""

    def fit(self, X, y):
        BEGUN.set()
        GO_ON.wait(60)
        return super().fit(X, y)


BEGUN, GO_ON = threading.Event(), threading.Event()


@pytest.mark.parametrize(("running", "later"), [(None, 0), (0, None)])
def test_searches_with_and_without_a_seed_do_not_overlap(running, later):
    """They share the global generators: noise from a known seed would reach the search without one."""
    BEGUN.clear()
    GO_ON.clear()
    search = DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=Fixed(2))
    slow = DPRandomSearchCV(Waits(), {}, n_iter=Fixed(1), random_state=running, rehearse=False)
    thread = threading.Thread(target=slow.fit, args=(X, y))
    thread.start()
    try:
        assert BEGUN.wait(60)
        with pytest.raises(PrivacyError, match="share the generators of the process"):
            search.set_params(random_state=later).fit(X, y)
        assert not hasattr(search, "privacy_spent_")
        search.set_params(random_state=running).fit(X, y)
    finally:
        GO_ON.set()
        thread.join()
    search.set_params(random_state=later).fit(X, y)


def test_a_step_of_a_seeded_walk_does_not_overlap_with_a_search_without_a_seed():
    BEGUN.clear()
    GO_ON.clear()
    slow = DPRandomSearchCV(Waits(), {}, n_iter=Fixed(1), rehearse=False)
    doubling = Doubling(round_epsilon=1.0, n_parts=4, max_rounds=2)
    walking = DPThresholdSearchCV(NoisyCentroids(), {}, threshold=doubling, random_state=0, rehearse=False)
    thread = threading.Thread(target=slow.fit, args=(X, y))
    thread.start()
    try:
        assert BEGUN.wait(60)
        with pytest.raises(PrivacyError, match="share the generators of the process"):
            next(walking.rounds(X, y, [[{"shrink": 0.0}]]))
        assert not hasattr(walking, "privacy_spent_")
    finally:
        GO_ON.set()
        thread.join()
    assert len(list(walking.rounds(X, y, [[{"shrink": 0.0}]]))) <= 2
