"""Classes and functions of a script go to private processes once, and come back as the user's
own."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
from copy import copy
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.search._checkpoint_folder import RUN_PREFIX
from sklearn_dpsearch.search._pickling import Code, code_of, pickled, unpickled
from sklearn_dpsearch.search._private_process import PrivateProcessError, in_own_process, privately

from .toys import NoisyCentroids, fit_of_runs, holds_a_release_alone, refuses_to_fit, two_blobs

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
X, y = two_blobs(60)
#: Lists that functions of the tests use as globals.
SEEN, NAMES = [], []


def test_numbers_of_other_modules_have_another_mark():
    marks = {Code([ModuleType(name)]).mark for name in ("a", "b")}
    assert len(marks) == 2


def script():
    """Code as a script has it: nothing of it can be imported."""
    memo = {}

    @functools.lru_cache
    def named(number):
        NAMES.append(number)
        return f"model_{number}"

    def scaled(X):
        memo[len(memo)] = X[0].copy()
        SEEN.append(X[0].copy())
        scaled.calls = getattr(scaled, "calls", 0) + 1
        return X

    class Counting(NoisyCentroids):
        """Counts, caches and changes its own class."""

        made, cache = 0, {}

        def fit(self, X, y):
            kind = type(self)
            kind.made += 1
            kind.cache[len(kind.cache)] = X[0].copy()
            kind.extra = lambda self: "changed"
            self.name_, self.kept_, self.before_ = named(kind.made), scaled, len(SEEN) + len(memo)
            return super().fit(X, y)

    copy(Counting())  # Python notes the names of slots on a class
    return Counting, scaled, named, memo


def state(Counting, scaled, named, memo):
    """All that a run could have changed."""
    return {
        "class": dict(vars(Counting)),
        "attributes": (Counting.made, dict(Counting.cache)),
        "globals": (list(SEEN), list(NAMES), Counting.fit.__globals__ is globals()),
        "closure": dict(memo),
        "cache": named.cache_info(),
        "function": dict(vars(scaled)),
    }


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_no_run_changes_the_users_code_or_that_of_another_run(n_jobs):
    code = script()
    Counting, scaled, *_ = code
    before = state(*code)
    for runs in (2, 9):
        model = fit_of_runs(Counting(), runs, n_jobs=n_jobs).best_estimator_
        assert state(*code) == before
        assert type(model) is Counting
        assert (model.name_, model.before_) == ("model_1", 0)
        assert model.kept_ is scaled


@pytest.mark.slow
def test_the_released_model_holds_no_memo_of_a_function():
    _, scaled, _, memo = script()
    search = fit_of_runs(make_pipeline(FunctionTransformer(scaled), NoisyCentroids()), 3)
    assert search.best_estimator_[0].func is scaled
    assert memo == {}
    assert SEEN == []
    assert X[0].tobytes() not in pickle.dumps(search.best_estimator_[1])


class Memo:
    """A function that keeps the records that it has seen."""

    def __init__(self):
        self.seen = []

    def __call__(self, X, memo=None):
        self.seen.append(X[0].copy())
        return X


def keeps(X, memo=None, shift=0.0):
    return X + shift


@pytest.mark.parametrize("given", [
    {"func": Memo()}, {"func": Memo().__call__}, {"func": functools.partial(keeps, memo=[])},
    {"func": keeps, "kw_args": {"memo": {}}}, {"inverse_func": [].append},
])  # fmt: skip
def test_a_step_that_learns_nothing_keeps_no_state_that_would_be_released(given):
    model = make_pipeline(FunctionTransformer(**given), NoisyCentroids())
    search = DPRandomSearchCV(model, {}, n_iter=2)
    refuses_to_fit(search, PrivacyError, "no object with a state", X, y)


@pytest.mark.parametrize(
    "func", [keeps, functools.partial(keeps, shift=1.0), np.clip, np.log1p, np.nan_to_num, abs]
)
def test_functions_with_constants_are_such_steps(func):
    kw_args = {"a_min": np.zeros(2), "a_max": None} if func is np.clip else None
    model = make_pipeline(FunctionTransformer(func, kw_args=kw_args), NoisyCentroids())
    assert DPRandomSearchCV(model, {}, n_iter=2).privacy_cost(60).epsilon > 0


def test_runs_do_not_get_what_another_run_has_made_of_a_class():
    Counting, *_ = script()

    def change():
        Counting.made += 1
        return Counting(), Counting.made

    def runs():
        return [in_own_process(change)[1] for _ in range(3)] + [
            change()[1],
            in_own_process(change)[1],
        ]

    assert privately(runs) == [1, 1, 1, 1, 1]
    assert Counting.made == 0


def test_a_class_that_is_made_in_a_run_cannot_travel():
    class Making(NoisyCentroids):
        def fit(self, X, y):
            self.scale_ = lambda value: value + X[0]
            return super().fit(X, y)

    def makes():
        return type("Secret", (), {})

    with pytest.raises(PrivateProcessError, match="made inside of a function") as told:
        privately(makes)
    assert "Secret" not in str(told.value)
    message = "made inside of a function"
    refuses_to_fit(DPRandomSearchCV(Making(), {}, n_iter=2), PrivacyError, message, X, y)


@pytest.mark.slow
def test_finished_runs_and_the_release_of_a_scripts_class_are_kept(tmp_path):
    """And read by the same script in another process, without any further training."""
    folder = tmp_path / "checkpoint"
    assert _script(folder, DIES="1") == ("", 3)
    assert sum(path.name.startswith(RUN_PREFIX) for path in folder.iterdir()) == 4
    told = ("True (1, 1) 0 0\n", 0)
    assert [_script(folder, FAILS="1") for _ in range(2)] == [told, told]
    assert holds_a_release_alone(folder)


def _script(folder, **environment):
    script = Path(__file__).with_name("classes_of_a_script.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    assert not done.stderr
    return done.stdout, done.returncode


# --- numbers --------------------------------------------------------------------------------------


def test_code_is_numbered_with_all_that_it_uses():
    Counting, scaled, named, _ = script()
    code = code_of(Counting, ())
    assert {id(one) for one in code.objects} >= {id(Counting), id(scaled), id(named)}
    assert NoisyCentroids not in code.objects
    assert code.mark == code_of(Counting, ()).mark != code_of(scaled, ()).mark


def test_what_is_named_by_number_is_not_sent():
    Counting, *_ = script()
    code = code_of(Counting, ())
    assert len(pickled(Counting(), (), code)) < 500
    assert type(unpickled(pickled(Counting(), (), code), (), code)) is Counting


def test_closed_code_takes_no_more():
    code = Code(closed=True)
    assert pickled(np.zeros, (), code)
    with pytest.raises(PrivacyError, match="made inside"):
        pickled(lambda: None, (), code)
