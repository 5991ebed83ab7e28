"""Audits: run the real search on neighbouring data and estimate ε from below; a broken build must be exposed.

Each event's probabilities get Clopper–Pearson bounds, together at 99.9 % confidence; log((p_low − δ)/p'_high) is then a
lower bound on ε. At full size (SKLEARN_DPSEARCH_FULL=1) the searches run ten times as often.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.stats import beta

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed, Geometric, PureDP
from sklearn_dpsearch.scoring import DiscreteLaplaceNoise, MeanScorer, make_private_scorer
from sklearn_dpsearch.search import _base, _runs

from .toys import RandomizedResponse

RUNS = 20_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 2_000
QUIET = np.full((8, 1), -1.0)  # no record with a positive first feature
LOUD = np.vstack([QUIET[1:], [[1.0]]])  # one record replaced
LABELS = np.zeros(8, dtype=int)


def epsilon_from_below(events, others, delta=0.0, confidence=0.999):
    """Largest certified ε over the events that the outcomes suggest, both ways round."""
    outcomes = sorted(set(events) | set(others))
    level = (1 - confidence) / (4 * len(outcomes))

    def bound(first, second):
        n, m = len(first), len(second)
        best = 0.0
        for outcome in outcomes:
            a, b = sum(one == outcome for one in first), sum(one == outcome for one in second)
            low = beta.ppf(level, a, n - a + 1) if a else 0.0
            high = beta.ppf(1 - level, b + 1, m - b) if b < m else 1.0
            if low > delta:
                best = max(best, float(np.log((low - delta) / high)))
        return best

    return max(bound(events, others), bound(others, events))


def answer_low(estimator, X, y):
    """A public score that prefers the answer 0."""
    return -estimator.answer_


def released(search, X, runs=RUNS, **fit_params):
    """Seeded: the same result in every run of the tests."""
    fits = (search.set_params(random_state=seed).fit(X, LABELS, **fit_params) for seed in range(runs))
    return [fit.best_estimator_.answer_ for fit in fits]


def public_search(epsilon=0.5, n_iter=5, **kwargs):
    estimator = RandomizedResponse(epsilon=epsilon, **kwargs)
    return DPRandomSearchCV(estimator, {"label": [0, 1]}, n_iter=n_iter, scoring=answer_low)


PUBLIC = {"X_public": QUIET.copy(), "y_public": LABELS.copy()}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_no_more_than_the_reported_epsilon_is_found(epsilon):
    search = public_search(epsilon)
    found = epsilon_from_below(released(search, QUIET, **PUBLIC), released(search, LOUD, **PUBLIC))
    assert epsilon / 2 < found <= search.privacy_spent_.epsilon


@pytest.mark.slow
def test_a_fixed_number_of_runs_is_exposed(monkeypatch):
    monkeypatch.setattr(Geometric, "sample", lambda self, rng=None: 3)
    search = public_search(1.0, n_iter=2)
    found = epsilon_from_below(released(search, QUIET, **PUBLIC), released(search, LOUD, **PUBLIC))
    assert found > search.privacy_spent_.epsilon


@pytest.mark.slow
def test_a_revealed_number_of_runs_is_exposed(monkeypatch):
    drawn = []
    honest = Geometric.sample

    def revealing(self, rng=None):
        drawn.append(honest(self, rng))
        return drawn[-1]

    monkeypatch.setattr(Geometric, "sample", revealing)
    search = public_search(1.0, n_iter=2)

    def outcomes(X):
        drawn.clear()
        answers = released(search, X, 3 * RUNS, **PUBLIC)
        return [(answer, k >= 3) for answer, k in zip(answers, drawn)]

    assert epsilon_from_below(outcomes(QUIET), outcomes(LOUD)) > search.privacy_spent_.epsilon


def hits(y_true, y_pred):
    return (y_true == y_pred).astype(float)


def private_search(epsilon=1.0):
    """Scores on private records; the answer is about the training half, the score about the held-out half."""
    scorer = make_private_scorer(hits, lower=0, upper=1, resolution=1)
    return DPRandomSearchCV(Constant(epsilon=epsilon), {"label": [0]}, n_iter=2, scoring=scorer, cv=0.5)


class Constant(RandomizedResponse):
    """Predicts 0 whatever it sees; its score tells how many held-out labels are 0."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def scores(search, y):
    return [search.set_params(random_state=seed).fit(QUIET, y).best_score_ for seed in range(RUNS)]


OTHER = np.array([0] * 7 + [1])


@pytest.mark.slow
def test_noised_private_scores_stay_below_the_reported_epsilon():
    search = private_search()
    above, others = ([score >= 1.0 for score in scores(search, y)] for y in (LABELS, OTHER))
    assert epsilon_from_below(above, others) <= search.fit(QUIET, LABELS).privacy_spent_.epsilon


@pytest.mark.slow
def test_scores_without_noise_are_exposed(monkeypatch):
    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", lambda self, rng=None: 0)
    search = private_search(0.3)
    right, others = ([score == 1.0 for score in scores(search, y)] for y in (LABELS, OTHER))
    found = epsilon_from_below(right, others)
    assert isinstance(search.scorer_, MeanScorer)
    assert found > search.privacy_cost(8).epsilon


@pytest.mark.slow
def test_candidates_that_keep_a_seed_are_exposed(monkeypatch):
    def keeping(job, candidate, seed):
        return _runs.clone(job.estimator).set_params(**candidate)

    monkeypatch.setattr(_runs, "fresh", keeping)
    search = public_search(random_state=0)
    found = epsilon_from_below(released(search, QUIET, **PUBLIC), released(search, LOUD, **PUBLIC))
    assert found > search.privacy_spent_.epsilon


def test_the_audit_itself_finds_the_epsilon_of_randomised_response():
    rng = np.random.default_rng(0)
    truth = 1 / (1 + np.exp(-2.0))
    yes, no = rng.uniform(size=20_000) < truth, rng.uniform(size=20_000) < 1 - truth
    assert 1.8 < epsilon_from_below(yes.tolist(), no.tolist()) <= 2.0


def test_best_of_one_run_reveals_no_more_than_the_run():
    search = DPRandomSearchCV(RandomizedResponse(), {"label": [0]}, n_iter=Fixed(1), scoring=answer_low)
    assert search.privacy_cost(8, public=True).guarantee == PureDP(epsilon=1.0, neighboring="replace_one")
    assert _base.BasePrivateSearch in DPRandomSearchCV.__mro__
