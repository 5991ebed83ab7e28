"""DPThresholdSearchCV: both modes, what they cost, what they draw, what they release, and walks by
the caller."""

from __future__ import annotations

import itertools
import os
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import Doubling, DPThresholdSearchCV
from sklearn_dpsearch.privacy._selection.doubling import AboveThreshold, default_max_rounds
from sklearn_dpsearch.search import _threshold_search as _threshold
from sklearn_dpsearch.search._doubling import PrivateWalk, Rounds
from sklearn_dpsearch.search._execution.job import Job
from tests.audit.toys import PUBLIC, answer_low, audited
from tests.audit.toys import QUIET as QUIET_8

from .toys import (
    NoisyCentroids,
    RandomizedResponse,
    Untouchable,
    doubling,
    refuses_to_fit,
    some_labels,
    two_blobs,
)
from .utilities_toys import LABELS, LOUD, QUIET, Adversary, Seeing, by_label, seen

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

FULL = bool(os.environ.get("SKLEARN_DPSEARCH_FULL"))
RUNS = 4000 if FULL else 120
X, y = two_blobs(200)
SHRINK = {"shrink": [0.0, 0.2, 0.5]}


def until(estimator=None, space=None, **kwargs):
    estimator = NoisyCentroids(epsilon=1.0) if estimator is None else estimator
    return DPThresholdSearchCV(
        estimator, SHRINK if space is None else space, **{"threshold": 0.6, **kwargs}
    )


def walk(estimator=None, space=None, **kwargs):
    estimator = NoisyCentroids(epsilon=1.0) if estimator is None else estimator
    price = {} if "epsilon" in kwargs else {"round_epsilon": 0.1}
    return doubling(
        estimator, SHRINK if space is None else space, **{"n_parts": 4, **price, **kwargs}
    )


def labelled(levels=3, **kwargs):
    """A walk over candidates with utilities 0.2, 0.5 and 0.9, and so little noise that it goes as
    it should."""
    one = {"scoring": by_label, "round_epsilon": 1e4, "n_parts": 2}
    return walk(RandomizedResponse(), {"label": list(range(levels))}, **{**one, **kwargs})


# --- a number: what it costs ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n_iter", [2, 10])
def test_the_total_is_that_of_stopping_at_the_first_above(n_iter):
    base = dp.GaussianDP(mu=0.4)
    one = until(LogisticRegression(), {"C": [1.0]}, guarantee=base, delta=1e-6, n_iter=n_iter)
    expected = dp.until_above(base, 1 / (1 + n_iter))
    assert one.privacy_cost(public=True).epsilon == expected.epsilon_at(1e-6)
    assert one.privacy_cost(public=True).bound == expected.tightest(1e-6)
    pure = until(n_iter=n_iter).privacy_cost(public=True).epsilon
    assert pure == dp.until_above(dp.PureDP(epsilon=1.0), 1 / (1 + n_iter)).epsilon_at(0.0) < 2.0


def test_folds_that_train_and_score_are_composed_before_they_are_searched():
    score = dp.PureDP(epsilon=0.25, neighboring="replace_one")
    one = until(cv=3, score_noise=score)
    base = dp.compose(*[dp.PureDP(epsilon=1.0, neighboring="replace_one")] * 2, score)
    assert one.privacy_cost(200).epsilon == dp.until_above(base, 1 / 11).epsilon_at(0.0)


def test_a_secret_coin_of_the_record_averages_both_uses():
    score = dp.PureDP(epsilon=0.25, neighboring="replace_one")
    found = until(cv=0.5, score_noise=score, delta=0.001).privacy_cost(200).epsilon
    both = [
        dp.until_above(dp.PureDP(epsilon=one, neighboring="replace_one"), 1 / 11)
        for one in (1.0, 0.25)
    ]
    assert found == dp.mixture(both, [0.5, 0.5]).epsilon_at(0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    "threshold", [0.6, Doubling(), Doubling(n_parts=4, threshold_noise="once")]
)
def test_a_target_is_met_and_nearly_reached(threshold):
    options = {"threshold": threshold, "epsilon": 4.0, "delta": 1e-6}
    one = DPThresholdSearchCV(NoisyCentroids(), SHRINK, **options)
    one.fit(X, y)
    assert 3.95 < one.privacy_spent_.epsilon <= 4.0
    assert tuple(one.privacy_spent_) == tuple(one.privacy_cost(200))


def test_a_refit_is_composed():
    expected = pytest.approx(1.0 + until().privacy_cost(200).epsilon)
    assert until(refit=True).privacy_cost(200).epsilon == expected


# --- a number: what it does -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"] if FULL else ["threading"])
def test_running_ahead_changes_nothing_but_time(backend):
    """The first success in the order of drawing is released, however many workers found one."""

    def released(seed, n_jobs):
        one = until(space={"shrink": list(np.linspace(0, 0.9, 30))}, threshold=0.8, n_jobs=n_jobs)
        with parallel_config(backend=backend):
            one.set_params(random_state=seed).fit(X, y)
        if one.found_:
            return one.best_params_, one.best_score_, one.best_estimator_.centroids_.tolist()

    alone = [released(seed, 1) for seed in range(4)]
    for n_jobs in (2, 5):
        assert [released(seed, n_jobs) for seed in range(4)] == alone
    assert len({str(one) for one in alone}) > 1


class Counting(NoisyCentroids):
    """Counts trainings."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        return super().fit(X, y)


@pytest.mark.slow
def test_nothing_runs_after_the_first_success():
    Counting.fits = 0
    one = until(Counting(), threshold=-1e9, n_iter=1e3, random_state=0).fit(X, y)
    assert Counting.fits == 1
    assert one.found_ is True
    assert one.best_score_ >= -1e9


@pytest.mark.slow
def test_the_chance_of_nothing_is_that_of_the_coin():
    """Half of the runs reach the threshold, and the coin comes first: p/(p + (1 − p)/2)."""
    runs = 4000 if FULL else 120
    options = {"scoring": answer_low, "n_iter": 4}
    one = until(RandomizedResponse(epsilon=1e-9), {"label": [0]}, threshold=0.0, **options)
    fits = (
        one.set_params(random_state=seed).fit(QUIET_8, np.zeros(8), **PUBLIC)
        for seed in range(runs)
    )
    counts = Counter(fit.found_ for fit in fits)
    chance = 0.25 / (0.25 + 0.75 / 2)
    assert abs(counts[False] / runs - chance) < 4.5 * np.sqrt(chance * (1 - chance) / runs)


def test_candidates_that_fail_never_succeed_whatever_the_error_score():
    one = until(
        Adversary(fails=1.0), {"label": [0]}, threshold=0.5, error_score=9.0, scoring="accuracy"
    ).fit(X, y)
    assert one.found_ is False


# --- stopped without success ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "score"])
def test_without_success_there_is_no_model_and_the_error_says_why(method):
    one = until(threshold=1e9).fit(X, y)
    assert one.found_ is False
    expected = {"found_", "privacy_spent_", "scorer_", "n_splits_"}
    assert set(vars(one)) - set(one.get_params(deep=False)) == expected
    match = "stopped before a candidate reached.*Give a lower threshold"
    with pytest.raises(AttributeError, match=match) as caught:
        getattr(one, method)(*(X,) if method == "predict" else (X, y))
    assert "no model to" in str(caught.value)


def test_stopping_without_success_is_the_same_whatever_else_happened(monkeypatch):
    """No run, nine runs, nine runs that fail, another data set: one and the same object."""

    def trace(number, estimator=None, target=y):
        coins = itertools.cycle([False] * number + [True])  # all is drawn once before it is drawn
        monkeypatch.setattr(_threshold, "bernoulli", lambda p, bits: next(coins))
        one = until(estimator, threshold=1e9).fit(X, target)
        one.estimator = None
        return pickle.dumps(one)

    assert len({trace(0), trace(9), trace(9, target=np.zeros_like(y)), trace(3, target=1 - y)}) == 1


# --- Doubling: what it costs ----------------------------------------------------------------------


@pytest.mark.parametrize("threshold_noise", ["fresh", "once"])
def test_the_walk_costs_its_worst_case_and_one_training(threshold_noise):
    base = dp.GaussianDP(mu=0.3)
    options = {"delta": 1e-6, "threshold_noise": threshold_noise}
    one = walk(LogisticRegression(), {"C": [0.1, 1.0]}, guarantee=base, **options)
    cost = dp.doubling_search(0.1, 50, default_max_rounds(50), threshold_noise=threshold_noise)
    expected = pytest.approx(dp.compose(cost, base).epsilon_at(1e-6), rel=1e-12)
    assert one.privacy_cost().epsilon == expected
    assert "the worst case" in one.privacy_cost().components[0].name


def test_the_cost_is_the_same_for_walks_of_one_round_and_of_many():
    """A build that reports the rounds that ran fails here: its number would depend on the data."""
    spent, rounds = set(), set()
    for top in (0.2, 0.9):
        one = labelled(scoring=lambda estimator, X, y, top=top: top).fit(X, y)
        spent.add(one.privacy_spent_.epsilon)
        rounds.add(one.n_rounds_)
    assert len(rounds) == 2
    assert spent == {one.privacy_cost(200).epsilon}
    assert spent == {dp.doubling_search(1e4, 50).epsilon_at(0.0) + 1.0}


# --- Doubling: what it does -----------------------------------------------------------------------


@pytest.mark.slow
def test_the_threshold_that_is_released_is_never_above_one():
    for noise in ("fresh", "once"):
        options = {"round_epsilon": 5.0, "threshold_noise": noise, "granularity": 0.09}
        one = labelled(scoring=lambda *_: 1.0, **options)
        assert all(
            fit.best_score_ <= 1.0 for fit in (one.fit(X, y) for _ in range(8)) if fit.found_
        )


def test_every_round_draws_its_threshold_anew_unless_it_is_drawn_once(monkeypatch):
    drawn = []
    honest = AboveThreshold.draw_threshold_noise

    def counting(self, *args):
        drawn.append(honest(self, *args))
        return drawn[-1]

    monkeypatch.setattr(AboveThreshold, "draw_threshold_noise", counting)
    one = labelled().fit(X, y)
    assert len(drawn) == one.n_rounds_ > 1
    drawn.clear()
    labelled(threshold_noise="once").fit(X, y)
    assert len(drawn) == 1


# --- candidates batch by batch --------------------------------------------------------------------


def test_batches_may_follow_what_was_kept():
    one, said = labelled(), []

    def batches():
        yield [{"label": 0}]
        yield [{"label": 0}, {"label": 1}]
        while True:
            yield [{"label": min(2, said[-1].params["label"] + 1)}]

    for kept in one.rounds(X, y, batches()):
        said.append(kept)
        assert one.privacy_spent_.epsilon == one.privacy_cost(200).epsilon
        assert not {"found_", "scorer_", "best_estimator_"} & set(vars(one))
    assert said[0].params == {"label": 0}
    assert said[-1].params == one.best_params_ == {"label": 2}
    assert one.best_score_ == said[-1].utility <= 0.9
    assert one.n_rounds_ == len(said)
    assert one.predict(X).shape == y.shape
    assert tuple(one.privacy_spent_) == tuple(one.privacy_cost(200))


def test_an_estimator_that_is_changed_before_the_first_round_is_not_the_one_that_runs():
    """Its noise was accounted for when the rounds were asked for."""
    one = labelled()
    steps = one.rounds(X, y, iter([[{"label": 2}]] * 9))
    one.set_params(estimator__epsilon=1e6)
    assert len(list(steps)) > 1
    assert one.best_estimator_.epsilon == 1.0
    assert one.privacy_spent_.epsilon == dp.doubling_search(1e4, 50).epsilon_at(0.0) + 1.0


def test_what_was_kept_may_be_changed_by_the_caller_and_is_trained_as_it_was():
    one = walk(NoisyCentroids(), {"shrink": [0.0]}, round_epsilon=1e4, max_rounds=2)
    proposed = {"shrink": 0.0}
    for kept in one.rounds(X, y, [[proposed], [proposed]]):
        kept.params["epsilon"] = proposed["epsilon"] = 1e6
        del proposed["epsilon"]
    assert one.best_params_ == {"shrink": 0.0}
    assert one.best_estimator_.epsilon == 1.0


def test_a_walk_that_is_left_has_spent_its_budget_and_has_no_model():
    one = labelled()
    steps = one.rounds(X, y, iter([[{"label": 2}]] * 9))
    assert not hasattr(one, "privacy_spent_")
    next(steps)
    steps.close()
    assert list(steps) == []
    assert one.privacy_spent_.epsilon == one.privacy_cost(200).epsilon
    assert not hasattr(one, "found_")
    with pytest.raises(NotFittedError, match="ended without a result.*spent"):
        one.predict(X)


@pytest.mark.parametrize(("batch", "error", "match"), [
    ([], ValueError, "empty batch; at least one candidate.*end the batches"),
    ({"shrink": 0.1}, TypeError, "Found the batch.*a list of dicts"),
    ([0.1], TypeError, "a list of dicts"),
    (
        [{"epsilon": 5.0}], dp.PrivacyError,
        "which no point of param_distributions does.*Add its values",
    ),
    ([{"shrnk": 5.0}], ValueError, "Invalid parameter 'shrnk'"),
])  # fmt: skip
def test_batches_that_cannot_be_used_are_refused_before_they_run(batch, error, match):
    Counting.fits = 0
    one = walk(Counting())
    with pytest.raises(error, match=match):
        list(one.rounds(X, y, [batch]))
    assert Counting.fits == 0
    assert not hasattr(one, "privacy_spent_")


def test_between_rounds_nothing_shows_a_utility_a_part_or_a_record():
    steps = walk(NoisyCentroids()).rounds(X, y, iter([[{"shrink": 0.0}]] * 3))
    next(steps)
    for value in steps.gi_frame.f_locals.values():
        assert not isinstance(value, (Rounds, np.ndarray, Fraction, Job))
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(steps)


def test_a_walk_that_has_ended_gives_no_other_model():
    one = walk(NoisyCentroids(), max_rounds=3, round_epsilon=1e4)
    there = PrivateWalk(one._prepared(X, y, None, None, {})[0])
    there([{"shrink": 0.0}])
    assert there(None)
    for batch in (None, [{"shrink": 0.0}]):
        with pytest.raises(dp.PrivacyError, match="has ended"):
            there(batch)


def test_rounds_check_everything_before_the_first_step():
    with pytest.raises(ValueError, match="rounds.. with threshold=0.6.*threshold=Doubling"):
        until().rounds(X, y, [])
    with pytest.raises(ValueError, match="requires y"):
        walk(LogisticRegression(), {"C": [1.0]}, guarantee=dp.PureDP(epsilon=1.0)).rounds(
            X, None, []
        )
    with pytest.raises(TypeError, match="needs dense data"):
        walk().rounds(csr_array(X), y, [])
    with pytest.raises(dp.PrivacyError, match="n_parts of at most 6"):
        walk(n_parts=7).rounds(Untouchable(), some_labels(), [])
    assert list(walk().rounds(X, y, [])) == []


# --- audits ---------------------------------------------------------------------------------------


def audited_walk():
    """One round over one candidate, whose utility is 1 without the record and 1/2 with it."""
    given = {"n_parts": 2, "round_epsilon": 3.0, "granularity": 0.75, "max_rounds": 1}
    one = walk(Seeing(epsilon=0.1), {"label": [0]}, scoring=seen, **given)
    public = {"X_public": QUIET[:2].copy(), "y_public": LABELS[:2].copy()}
    options = {"data": (QUIET, LABELS), "other": (LOUD, LABELS), "fit_params": public}
    return audited(one, was_found, RUNS, **options)


def was_found(one):
    return one.found_


@pytest.mark.slow
def test_no_more_than_the_reported_epsilon_of_a_walk_is_found():
    found = audited_walk()
    assert (0.05 if FULL else 0.0) <= found.epsilon_lower <= found.stated_epsilon


@pytest.mark.slow
def test_no_more_than_the_reported_epsilon_of_stopping_is_found():
    one = until(RandomizedResponse(), {"label": [0]}, threshold=0.0, scoring=answer_low, n_iter=9)
    found = audited(one, was_found, 4 * RUNS, confidence=0.95, fit_params=PUBLIC)
    assert (0.1 if FULL else 0.0) < found.epsilon_lower <= found.stated_epsilon < 1.8


# --- bad input: before any data is read -----------------------------------------------------------


@pytest.mark.parametrize(("given", "match"), [
    ({"refit": False}, "refit=False where the threshold doubles.*Leave refit='winner'"),
    ({"cv": 5}, "cv=5 where the threshold doubles.*set n_parts"),
    (
        {"score_noise": dp.PureDP(epsilon=1.0)},
        "score_noise=PureDP.*the threshold doubles.*Leave score_noise out",
    ),
    ({"n_iter": 20}, "n_iter=20 where the threshold doubles.*every candidate of the grid runs"),
])  # fmt: skip
def test_what_a_walk_cannot_use_is_named_with_the_remedy(given, match):
    one = walk(**given)
    refuses_to_fit(one, ValueError, match, Untouchable(), some_labels())
    assert set(vars(one)) == set(one.get_params(deep=False))
