"""Audits of the subset search: neighbouring data, both variants, and broken builds that must be
exposed.

Released are the tuned answer (through a public score) and the final one. At full size
(SKLEARN_DPSEARCH_FULL=1) the searches run some thirty times as often.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.privacy import Fixed, PureDP
from sklearn_dpsearch.scoring._noise import DiscreteLaplaceNoise

from ..audit.toys import PUBLIC, answer_low, audited
from .toys import RandomizedResponse

pytestmark = pytest.mark.slow
FULL = bool(os.environ.get("SKLEARN_DPSEARCH_FULL"))
RUNS = 8_000 if FULL else 160
QUIET = np.full((30, 1), -1.0)  # no record with a positive first feature: they count as absent
LOUD = np.vstack([QUIET[1:], [[1.0]]])


def search(epsilon=1.5, n_iter=2, neighboring="zero_out", **kwargs):
    estimator = RandomizedResponse(epsilon=epsilon, neighboring=neighboring)
    return DPSubsetSearchCV(
        estimator, {"label": [0, 1]}, n_iter=n_iter, scoring=answer_low,
        **{"subset_fraction": 0.5, **kwargs},
    )  # fmt: skip


def both(model):
    return model.best_score_, model.best_estimator_.answer_


def found(one, X, other, runs=RUNS, confidence=0.999):
    labels = np.zeros(30, dtype=int)
    absent = one.estimator.neighboring == "zero_out"
    more = {"confidence": confidence, "fit_params": PUBLIC, "absent": absent}
    return audited(one, both, runs, data=(X, labels), other=(other, labels), **more)


@pytest.mark.parametrize("train_on", ["rest", "all"])
@pytest.mark.parametrize("fraction", [0.1, 0.5] if FULL else [0.5])
def test_no_more_than_the_reported_epsilon_is_found(train_on, fraction):
    one = search(train_on=train_on, subset_fraction=fraction)
    certain = found(one, QUIET, LOUD, confidence=0.999 if FULL else 0.95)
    assert 0.1 * certain.stated_epsilon < certain.epsilon_lower <= certain.stated_epsilon


@pytest.mark.parametrize("train_on", ["rest", "all"] if FULL else ["all"])
def test_a_changed_record_costs_no_more_than_reported(train_on):
    one = search(1.0, neighboring="replace_one", train_on=train_on, subset_fraction=0.6)
    certain = found(one, QUIET, LOUD, 2 * RUNS)
    actual = (0.2 if FULL else 0.05) * certain.stated_epsilon
    assert actual < certain.epsilon_lower <= certain.stated_epsilon


# --- validated on the rest ------------------------------------------------------------------------


def found_on_the_rest(train_on, epsilon):
    """Records say 0 or 1, predictions too, and the noisy counts of both make the score."""
    estimator = RandomizedResponse(epsilon=epsilon, neighboring="replace_one")
    noise = PureDP(epsilon=2 * epsilon)
    given = {
        "subset_fraction": 0.5, "train_on": train_on, "validate_on": "rest", "score_noise": noise,
    }  # fmt: skip
    one = DPSubsetSearchCV(estimator, {"label": [0]}, n_iter=Fixed(1), **given)
    data, other = (QUIET[:24], np.zeros(24, dtype=int)), (LOUD[-24:], np.arange(24) // 23)
    return audited(
        one, lambda model: (round(model.best_score_, 1), model.best_estimator_.answer_), RUNS,
        data=data, other=other, confidence=0.95,
    )  # fmt: skip


@pytest.mark.parametrize("train_on", ["rest", "all"] if FULL else ["rest"])
def test_no_more_than_the_reported_epsilon_is_found_where_others_validate(train_on):
    certain = found_on_the_rest(train_on, 1.0)
    assert 0.1 * certain.stated_epsilon < certain.epsilon_lower <= certain.stated_epsilon


def test_scores_without_their_noise_are_exposed(monkeypatch):
    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", lambda *_: 0)
    assert not found_on_the_rest("rest", 0.25).consistent
