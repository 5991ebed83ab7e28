"""Audits: run the real search on neighbouring data and bound ε from below; a broken build must be
exposed.

At 99.9 % confidence. At full size (SKLEARN_DPSEARCH_FULL=1) the searches run twenty times as often.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Geometric
from sklearn_dpsearch.scoring import DiscreteLaplaceNoise
from sklearn_dpsearch.scoring._mean import MeanScorer
from sklearn_dpsearch.search._execution import models as _models

from ..audit.toys import LABELS, PUBLIC, QUIET, answer_low, audited
from .subset_toys import HITS
from .toys import RandomizedResponse

FULL = os.environ.get("SKLEARN_DPSEARCH_FULL")
RUNS, FEW = (20_000, 20_000) if FULL else (500, 250)
#: Made-up records, which each fit would try first, are not audited.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unrehearsed")]


def answer(model):
    return model.best_estimator_.answer_


def public_search(epsilon=0.5, n_iter=5, **kwargs):
    estimator = RandomizedResponse(epsilon=epsilon, **kwargs)
    return DPRandomSearchCV(estimator, {"label": [0, 1]}, n_iter=n_iter, scoring=answer_low)


@pytest.mark.parametrize("epsilon", [0.5, 1.5] if FULL else [1.5])
def test_no_more_than_the_reported_epsilon_is_found(epsilon):
    runs = 2 * RUNS if epsilon < 1 else FEW  # little is seen of a little
    found = audited(public_search(epsilon), answer, runs, fit_params=PUBLIC)
    assert epsilon / 2 < found.epsilon_lower
    assert found.consistent


def test_a_fixed_number_of_runs_is_exposed(monkeypatch):
    monkeypatch.setattr(Geometric, "sample", lambda self, rng=None: 3)
    assert not audited(
        public_search(1.0, n_iter=2), answer, RUNS, confidence=0.95, fit_params=PUBLIC
    ).consistent


def test_a_revealed_number_of_runs_is_exposed(monkeypatch):
    drawn = []
    honest = Geometric.sample

    def revealing(self, rng=None):
        drawn.append(honest(self, rng))
        return drawn[-1]

    monkeypatch.setattr(Geometric, "sample", revealing)
    one, told = public_search(1.0, n_iter=4), lambda model: (answer(model), drawn[-1] >= 3)
    assert not audited(one, told, 2 * RUNS, confidence=0.95, fit_params=PUBLIC).consistent


class Constant(RandomizedResponse):
    """Predicts 0 whatever it sees; its score tells how many held-out labels are 0."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


OTHER = np.array([0] * 7 + [1])


def private_search(epsilon=1.0):
    """Scores on private records; the answer is about the training half, the score about the
    held-out half."""
    options = {"n_iter": 2, "scoring": HITS, "cv": 0.5}
    return DPRandomSearchCV(Constant(epsilon=epsilon), {"label": [0]}, **options)


def audited_scores(search):
    return audited(search, lambda model: model.best_score_, FEW, other=(QUIET, OTHER))


def test_noised_private_scores_stay_below_the_reported_epsilon():
    assert audited_scores(private_search()).consistent


def test_scores_without_noise_are_exposed(monkeypatch):
    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", lambda self, rng=None: 0)
    search = private_search(0.3)
    assert not audited_scores(search).consistent
    assert isinstance(search.fit(QUIET, LABELS).scorer_, MeanScorer)


def test_candidates_that_keep_a_seed_are_exposed(monkeypatch):
    def keeping(job, candidate, seed):
        return clone(job.estimator).set_params(**candidate, random_state=0)

    monkeypatch.setattr(_models, "unfitted_model", keeping)
    assert not audited(public_search(), answer, FEW, fit_params=PUBLIC).consistent
