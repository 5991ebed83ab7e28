"""Searches and the ledger: every fit is entered before its first record is used, and once."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch import (
    BudgetExceededError,
    DPRandomSearchCV,
    NoModelError,
    PrivacyError,
    PrivacyLedger,
)
from sklearn_dpsearch.privacy import Fixed, PureDP, compose
from sklearn_dpsearch.privacy._statement.content import up

from ..ledger.dying import DEATHS, POSIX, died, use, uses
from .toys import SEARCHES, NoisyCentroids, doubling, search_of, two_blobs

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

FULL = pytest.mark.skipif(
    not os.environ.get("SKLEARN_DPSEARCH_FULL"), reason="takes long: SKLEARN_DPSEARCH_FULL=1"
)
X, y = two_blobs(120)
FORK = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@pytest.fixture
def ledger(begin):
    return begin()


class Marking(NoisyCentroids):
    """Leaves a mark when it uses records."""

    marks = Path()

    def fit(self, X, y):
        use(self.marks)
        return super().fit(X, y)


def random_search(estimator=None, **given):
    return DPRandomSearchCV(
        estimator or NoisyCentroids(), {"shrink": [0.0, 0.1]}, n_iter=2, **given
    )


# --- one fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("way", ["given", "block"])
def test_every_kind_of_search_enters_what_it_states(kind, way, ledger):
    if way == "given":
        one = search_of(kind, NoisyCentroids(), {"shrink": [0.0, 0.1]}, ledger=ledger.label("here"))
        one.fit(X, y)
    else:
        one = search_of(kind, NoisyCentroids(), {"shrink": [0.0, 0.1]})
        with ledger.label("here"):
            one.fit(X, y)
    (entry,) = ledger.entries()
    assert entry.guarantee == one.privacy_spent_.guarantee
    assert (entry.name, entry.label) == (type(one).__name__, "here (NoisyCentroids)")
    assert set(one.privacy_spent_.assumptions) <= set(ledger.spent().assumptions)


def test_nothing_is_entered_for_what_uses_no_records(ledger):
    with ledger:
        one = random_search(random_search(), ledger=ledger)
        one.set_params(param_distributions={"estimator__shrink": [0.0]})
        one.privacy_cost()
        one.dry_run(X, y)
        with pytest.raises(PrivacyError, match="Nothing was spent"):
            one.fit(X, y, groups=y)
    assert ledger.entries() == ()


def test_a_fit_beyond_the_budget_is_refused_before_it_uses_a_record(begin, tmp_path):
    Marking.marks = tmp_path / "marks"
    ledger = begin(epsilon=2.0)
    one = random_search(Marking(epsilon=1.0), ledger=ledger)
    alone = one.privacy_cost(len(X)).epsilon_at(1e-5)
    one.fit(X, y)
    used, released = uses(Marking.marks), one.best_estimator_
    match = rf"spent before \(ε = {up(alone)}\).*at most ε = 2 in total"
    with pytest.raises(BudgetExceededError, match=match):
        one.fit(X, y)
    assert uses(Marking.marks) == used
    assert one.best_estimator_ is released
    assert len(ledger.entries()) == 1


def test_a_fit_that_cannot_be_entered_uses_no_record(ledger, tmp_path):
    Marking.marks = tmp_path / "marks"
    one = random_search(Marking(), ledger=ledger)
    Path(ledger.path).unlink()
    with pytest.raises(PrivacyError, match="No record was used"):
        one.fit(X, y)
    assert uses(Marking.marks) == 0
    assert not hasattr(one, "privacy_spent_")


class Failing(NoisyCentroids):
    def fit(self, X, y):
        raise ValueError("secret")


class Interrupted(NoisyCentroids):
    def fit(self, X, y):
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [Failing, Interrupted])
def test_what_fails_stays_spent_and_looks_like_what_does_not(kind, begin):
    good, bad = begin("good"), begin("bad")
    random_search(ledger=good).fit(X, y)
    with pytest.raises(NoModelError):
        random_search(kind(), ledger=bad).fit(X, y)
    entries = [one.entries()[0] for one in (good, bad)]
    # it names the class
    one, other = ({**json.loads(each.written()), "id": "", "label": ""} for each in entries)
    assert one == {**other, "assumptions": one["assumptions"]}


def test_what_the_data_and_the_runs_did_is_not_in_the_entry(begin):
    """Other records, another K and another winner: the same line."""
    lines = []
    for number, (count, some) in enumerate([(Fixed(3), 120), (Fixed(3), 60)]):
        ledger = begin(str(number))
        one = DPRandomSearchCV(
            NoisyCentroids(), {"shrink": [0.0, 0.1, 0.2]}, n_iter=count, ledger=ledger
        )
        one.fit(X[:some], y[:some])
        body = json.loads(Path(ledger.path).read_text().splitlines()[1])
        lines.append({name: value for name, value in body.items() if name not in ("id", "digest")})
    assert lines[0] == lines[1]
    expected = {"name", "label", "guarantee", "delta", "assumptions", "day", "library", "unit"}
    assert set(lines[0]) == expected


def test_rounds_count_in_the_block_in_which_they_were_asked_for(ledger):
    one = doubling(NoisyCentroids(), {}, round_epsilon=1.0, n_parts=3, max_rounds=2)
    with ledger:
        steps = one.rounds(X, y, ([{"shrink": 0.1 * i}] for i in range(9)))
    assert ledger.entries() == ()
    next(steps)
    assert len(ledger.entries()) == 1
    list(steps)
    assert [entry.guarantee for entry in ledger.entries()] == [one.privacy_spent_.guarantee]


# --- fits inside of others ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "backend", ["sequential", "threading", pytest.param("loky", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("way", ["given", "block"])
def test_every_fold_is_an_entry_wherever_it_runs(backend, way, ledger):
    one = random_search(ledger=ledger if way == "given" else None)
    with parallel_config(backend, n_jobs=2):
        if way == "given":
            cross_val_score(one, X, y, cv=KFold(3), error_score="raise")
        else:
            with ledger:
                cross_val_score(one, X, y, cv=KFold(3), error_score="raise")
    cost = random_search().privacy_cost(80).guarantee
    assert [entry.guarantee for entry in ledger.entries()] == [cost] * 3
    # never in parallel: folds overlap
    assert ledger.spent().epsilon == compose(cost, cost, cost).epsilon_at(1e-5)


@pytest.mark.processes
@pytest.mark.parametrize(("kind", "backend"), [
    *((kind, "sequential") for kind in SEARCHES), ("random", "threading"),
    *(
        pytest.param(kind, "threading", marks=pytest.mark.slow)
        for kind in SEARCHES
        if kind != "random"
    ),
    pytest.param("random", "loky", marks=pytest.mark.slow),
    *(
        pytest.param(kind, "loky", marks=[pytest.mark.slow, FULL])
        for kind in SEARCHES
        if kind != "random"
    ),
])  # fmt: skip
def test_the_entry_of_a_search_is_for_the_searches_inside_of_it_too(kind, backend, ledger):
    """As many entries as inner fits would tell K."""
    inner = random_search(ledger=ledger)
    with parallel_config(backend, n_jobs=2), ledger:
        one = search_of(kind, inner, {"estimator__shrink": [0.0, 0.1]}).fit(X, y)
    assert [entry.guarantee for entry in ledger.entries()] == [one.privacy_spent_.guarantee]


class InAWorker(NoisyCentroids):
    """Fits a search in processes that it starts."""

    def __init__(self, search=None, shrink=0.0):
        super().__init__(shrink=shrink)
        self.search = search

    def fit(self, X, y):
        self.inner_ = Parallel(n_jobs=2, backend="loky")(
            [delayed(_fit_a_copy)(self.search, X, y)] * 2
        )
        return super().fit(X, y)


def _fit_a_copy(search, X, y):
    return clone(search).fit(X, y)


@pytest.mark.processes
@pytest.mark.parametrize(
    "way", ["parameter", pytest.param("block", marks=[pytest.mark.slow, FULL])]
)
def test_processes_of_candidates_enter_nothing_either(way, ledger):
    """Nor do the ones that joblib hands their work in a thread of its own; a released model enters
    what it fits."""
    inner = InAWorker(random_search(ledger=ledger if way == "parameter" else None))
    # its threads are there before the search
    Parallel(n_jobs=2, backend="loky")([delayed(abs)(-1)] * 2)
    one = DPRandomSearchCV(inner, {"shrink": [0.0]}, n_iter=Fixed(1), ledger=ledger)
    with ledger if way == "block" else contextlib.nullcontext():
        one.fit(X, y)
        assert [entry.guarantee for entry in ledger.entries()] == [one.privacy_spent_.guarantee]
        for model in (one.best_estimator_, pickle.loads(pickle.dumps(one.best_estimator_))):
            before = len(ledger.entries())
            model.fit(X, y)
            assert len(ledger.entries()) == before + 2


def test_a_ledger_inside_of_a_search_must_be_its_own(begin):
    mine, other = begin("mine"), begin("other")
    space = {"estimator__shrink": [0.0]}
    for outer in (None, mine):
        with pytest.raises(PrivacyError, match="Give the same ledger to the outer search"):
            DPRandomSearchCV(random_search(ledger=other), space, n_iter=2, ledger=outer).fit(X, y)
        listed = {"ledger": [other]}, {"estimator": [random_search(ledger=other)]}
        for space_of_ledgers in listed:
            with pytest.raises(PrivacyError, match="inside of the search"):
                DPRandomSearchCV(random_search(), space_of_ledgers, n_iter=2, ledger=outer).fit(
                    X, y
                )
    with other, pytest.raises(PrivacyError, match="Leave one of them out"):
        random_search(ledger=mine).fit(X, y)
    assert mine.entries() == other.entries() == ()


# --- copies ---------------------------------------------------------------------------------------


def test_what_is_pickled_inside_of_a_block_takes_the_ledger_along(ledger):
    """Worker processes know nothing of the block."""
    one = random_search()
    with ledger:
        inside = pickle.loads(pickle.dumps(make_pipeline(one)))
    assert inside[-1].ledger == ledger
    assert one.ledger is None
    assert pickle.loads(pickle.dumps(one)).ledger is None


# --- without a ledger -----------------------------------------------------------------------------


def test_a_second_fit_says_that_the_first_is_not_in_its_number(ledger):
    one = random_search()
    first = one.fit(X, y).privacy_spent_.assumptions
    assert one.fit(X, y).privacy_spent_.assumptions[:-1] == first
    assert "fitted once before" in one.privacy_spent_.assumptions[-1]
    assert "a PrivacyLedger" in one.privacy_spent_.assumptions[-1]
    one.set_params(ledger=ledger).fit(X, y)
    assert "fitted 2 times before" in one.privacy_spent_.assumptions[-1]
    assert "ledger.spent()" in one.privacy_spent_.assumptions[-1]
    assert one.privacy_cost(len(X)).assumptions == first
    assert clone(one).fit(X, y).privacy_spent_.assumptions == first


# --- dying ----------------------------------------------------------------------------------------


@POSIX
@FORK
@pytest.mark.parametrize(
    "death", ["while it writes", pytest.param("before a call", marks=pytest.mark.slow)]
)
def test_a_search_that_is_killed_has_entered_all_that_it_used(death, tmp_path):
    rng = np.random.default_rng(0)
    for number in range(1, 300):
        Marking.marks, path = tmp_path / f"{number}.marks", tmp_path / f"{number}.ledger"
        ledger = PrivacyLedger(path, epsilon=math.inf, delta=0)
        one = DPRandomSearchCV(
            Marking(), {"shrink": [rng.random()]}, n_iter=Fixed(1), ledger=ledger
        )

        def work(one=one):
            one.fit(X, y)
            one.fit(X, y)

        if not died(work, number, *DEATHS[death]):
            break
        assert uses(Marking.marks) <= len(PrivacyLedger(path).entries()) <= uses(Marking.marks) + 1
        PrivacyLedger(path).spend(PureDP(epsilon=1.0, neighboring="replace_one"))
    assert number > 2
