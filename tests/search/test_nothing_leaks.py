"""Nothing but the release is on the fitted object, its pickle, repr, HTML, output, warnings, log or
exceptions."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_dpsearch import (
    DPGridSearchCV,
    DPRandomSearchCV,
    DPSubsetSearchCV,
    DPThresholdSearchCV,
    NoModelError,
)
from sklearn_dpsearch.adapters._adapter import ProtocolAdapter
from sklearn_dpsearch.privacy import Fixed

from .toys import NoisyCentroids, Talkative, doubling, two_blobs

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = [pytest.mark.usefixtures("unrehearsed"), pytest.mark.processes]

X, y = two_blobs(120)

BACKENDS = ["loky", "threading", pytest.param("multiprocessing", marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_are_as_silent_as_the_parent(backend, capfd):
    with parallel_config(backend=backend, n_jobs=2):
        DPRandomSearchCV(Talkative(), {"shrink": [0.0]}, n_iter=Fixed(4)).fit(X, y)
    captured = capfd.readouterr()
    assert "token" not in captured.out + captured.err


class PastPython(NoisyCentroids):
    """Writes as compiled code, child processes and loggers with a stream of their own do."""

    def fit(self, X, y):
        os.write(1, b"token")
        os.write(2, b"token")
        ctypes.CDLL(None).printf(b"token")
        for stream in (sys.__stdout__, sys.__stderr__):
            stream.write("token")
        subprocess.run(["echo", "token"], check=True)
        return super().fit(X, y)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="calls C's printf")
@pytest.mark.parametrize("backend", ["sequential", "threading", "multiprocessing"])
def test_nothing_is_written_past_python(backend, capfd):
    searches = [
        DPRandomSearchCV(PastPython(), {"shrink": [0.0]}, n_iter=Fixed(3), refit=True),
        DPGridSearchCV(PastPython(), {"shrink": [0.0, 0.1]}, selection_epsilon=1.0, n_parts=3),
    ]
    os.write(1, b"before ")
    with parallel_config(backend=backend, n_jobs=2):
        for one in searches:
            one.fit(X, y)
    os.write(1, b"after")
    assert capfd.readouterr() == ("before after", "")


@pytest.mark.slow
def test_whether_columns_are_joined_as_sparse_ones_does_not_tell_how_many_zeros_the_records_hold():
    """scikit-learn decides by their exact number, and keeps the decision: one record could be read
    from it."""
    columns = ColumnTransformer(
        [("one", OneHotEncoder(categories=[[1.0, 2.0, 3.0]], handle_unknown="ignore"), [0])]
    )
    decided = set()
    for known in (107, 108):  # of 120 records: densities 0.297 and 0.3, the default threshold
        records = np.where(np.arange(120) < known, 1 + np.arange(120) % 3, 0)[:, None].astype(float)
        search = DPRandomSearchCV(
            make_pipeline(columns, NoisyCentroids()), {"noisycentroids__shrink": [0.0]}, n_iter=1
        )
        search.fit(records, y, X_public=records.copy(), y_public=y.copy())
        decided.add(search.best_estimator_[0].sparse_output_)
    assert decided == {False}


class Writing(NoisyCentroids):
    """Writes on the object that it was given as a parameter, as training a module of torch does."""

    def __init__(self, notes=None):
        super().__init__()
        self.notes = notes

    def fit(self, X, y):
        self.notes.append(len(self.notes))
        return super().fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("search", [
    DPRandomSearchCV(Writing(), {}, n_iter=Fixed(4), refit=True),
    DPSubsetSearchCV(Writing(), {}, n_iter=Fixed(4), subset_fraction=0.5),
    DPGridSearchCV(Writing(), {}, selection_epsilon=1.0, n_parts=2),
])  # fmt: skip
def test_values_that_are_searched_are_copied_for_every_candidate(search):
    notes: list[int] = []
    space = {"notes": [notes, notes]}
    name = "param_grid" if isinstance(search, DPGridSearchCV) else "param_distributions"
    search.set_params(**{name: space}).fit(X, y)
    assert notes == search.best_params_["notes"] == []
    assert search.best_estimator_.notes == [0]


@pytest.mark.slow
def test_trainings_that_fail_together_are_failing_candidates_too():
    class Together(NoisyCentroids):
        @staticmethod
        def fit_together(models, X, y):
            raise KeyError(f"the first record is {X[0]}")

    one = DPRandomSearchCV(Together(), {"shrink": [0.0]}, n_iter=Fixed(3))
    with pytest.raises(NoModelError) as caught:
        one.fit(X, y)
    assert caught.value.__context__ is None
    assert one.privacy_spent_.epsilon > 0


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("make", [DPRandomSearchCV, DPGridSearchCV])
def test_what_an_adapter_does_after_training_fails_for_one_alone(make, together, monkeypatch):
    def finish(self, model):
        if model.shrink > 0:
            raise KeyError(f"the first centroid is {model.centroids_[0]}")

    def fit_together(self, models, X, y):
        return [model.fit(X, y) for model in models]

    monkeypatch.setattr(ProtocolAdapter, "trains_together", lambda self, estimator: together)
    monkeypatch.setattr(ProtocolAdapter, "fit_together", fit_together)
    monkeypatch.setattr(ProtocolAdapter, "finish", finish)
    runs, choice = {"n_iter": Fixed(12), "random_state": 0}, {"selection_epsilon": 1e4}
    number = runs if make is DPRandomSearchCV else choice
    one = make(NoisyCentroids(epsilon=100.0), {"shrink": [0.0, 0.5]}, **number).fit(X, y)
    assert one.best_params_ == {"shrink": 0.0}


class Panic(BaseException):
    """Not an Exception: handlers for those let it pass."""


class Raising(NoisyCentroids):
    """Raises something that is no Exception, with a record in its text."""

    def __init__(self, kind=Panic, late=False, shrink=0.0):
        super().__init__(shrink=shrink)
        self.kind = kind
        self.late = late

    def fit(self, X, y):
        if len(X) == len(y_all) or not self.late:
            raise self.kind(f"the first record is {X[0]}")
        return super().fit(X, y)


y_all = y
KINDS = [Panic, KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration]


SEARCHES = {
    "random": (DPRandomSearchCV, {"n_iter": Fixed(3)}),
    "refit": (DPRandomSearchCV, {"n_iter": Fixed(3), "refit": True}),
    "subset": (DPSubsetSearchCV, {"n_iter": Fixed(3), "subset_fraction": 0.5}),
    "grid": (DPGridSearchCV, {"selection_epsilon": 1.0, "n_parts": 2}),
    # some coins allow no run
    "threshold": (DPThresholdSearchCV, {"threshold": 0.1, "n_iter": 50, "random_state": 0}),
    "doubling": (doubling, {"round_epsilon": 1e3, "n_parts": 2}),
}


def search_of(which, estimator, **more):
    kind, needed = SEARCHES[which]
    space = {"shrink": [0.0, 0.1] if which == "grid" else [0.0]}
    return kind(estimator, space, **needed, **more)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("which", SEARCHES)
def test_whatever_a_candidate_raises_is_a_failing_candidate(which, kind, late):
    one = search_of(which, Raising(kind, late))
    try:
        one.fit(X, y)
    except NoModelError as error:
        assert error.__context__ is None  # noqa: PT017 - searches that may end with nothing raise nothing
    assert one.privacy_spent_.epsilon > 0
    if which in ("threshold", "doubling") and not late:
        assert one.found_ is False


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), *BACKENDS[1:]])
def test_whatever_a_candidate_raises_in_a_worker_is_a_failing_candidate(backend):
    for kind in KINDS:
        with pytest.raises(NoModelError), parallel_config(backend=backend, n_jobs=2):
            DPRandomSearchCV(Raising(kind), {"shrink": [0.0]}, n_iter=Fixed(2)).fit(X, y)


class Waiting(NoisyCentroids):
    """Waits until the process is ended."""

    def fit(self, X, y):
        time.sleep(600)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("which", ["random", "subset", "grid", "threshold", "doubling"])
def test_an_interrupt_of_the_caller_passes_and_leaves_what_was_spent(which, n_jobs):
    one = search_of(which, Waiting(), n_jobs=n_jobs)
    interrupting = threading.Thread(target=_interrupt_when_spent, args=(one,))
    interrupting.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        one.fit(X, y)
    interrupting.join()
    assert caught.value.args == ()
    assert caught.value.__context__ is None
    assert set(vars(one)) - set(one.get_params(deep=False)) == {"privacy_spent_"}
    with pytest.raises(NotFittedError, match="privacy_spent_"):
        one.predict(X)


def _interrupt_when_spent(search, earlier=None):
    latest = time.monotonic() + 20  # by then it is spent, or never will be
    while getattr(search, "privacy_spent_", None) is earlier and time.monotonic() < latest:
        time.sleep(0.01)
    time.sleep(0.2)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [partial(DPRandomSearchCV, n_iter=2), partial(DPGridSearchCV, selection_epsilon=1.0)]
)
def test_a_failed_fit_takes_the_earlier_release_away(made):
    one = made(NoisyCentroids(epsilon=0.5), {"shrink": [0.0]}).fit(X, y)
    with pytest.raises(NoModelError) as caught:
        one.fit(X, np.zeros_like(y))
    assert "secret" not in str(caught.value)
    assert not hasattr(one, "best_estimator_")
    assert one.privacy_spent_.epsilon > 0
    with pytest.raises(AttributeError):
        one.predict(X)


@pytest.mark.slow
def test_a_failure_is_the_worst_run_whatever_score_it_is_given():
    class Failing(NoisyCentroids):
        def fit(self, X, y):
            if self.shrink > 0:
                raise ValueError
            return super().fit(X, y)

    space = {"shrink": [0.0, 0.5]}
    one = DPRandomSearchCV(Failing(), space, n_iter=Fixed(30), error_score=-5.0).fit(X, y)
    assert one.best_params_ == {"shrink": 0.0}
    # above every score: a failure is the worst run all the same
    one.set_params(error_score=5.0).fit(X, y)
    assert one.best_params_ == {"shrink": 0.0}
