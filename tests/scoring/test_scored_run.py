"""One run is a model and its score together; a record pays for how it is used."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from sklearn_dpsearch.privacy import GaussianDP, Geometric, PureDP, best_of, compose, envelope
from sklearn_dpsearch.scoring._validation import (
    Exposure,
    HoldOut,
    PublicValidation,
    RandomFolds,
    run_guarantee,
    search_guarantee,
)

TRAIN, SCORE = PureDP(epsilon=1.0), PureDP(epsilon=0.4)
DISTRIBUTION = Geometric(5)


def test_a_held_out_score_less_clear_than_the_training_is_free():
    assert run_guarantee(TRAIN, SCORE, HoldOut().exposures()) == TRAIN


def test_a_clearer_score_counts_instead_of_the_training():
    assert run_guarantee(SCORE, TRAIN, HoldOut().exposures()).epsilon_at(0.0) == 1.0


def test_folds_compose_trainings_and_one_score():
    one = run_guarantee(TRAIN, SCORE, RandomFolds(3).exposures())
    assert one.epsilon_at(0.0) == pytest.approx(2.4)


def test_public_scores_leave_the_training_alone():
    assert run_guarantee(TRAIN, None, PublicValidation().exposures()) == TRAIN


@pytest.mark.slow
def test_averaging_over_the_coin_is_never_more_than_the_worse_use():
    train, score = GaussianDP(mu=0.5), GaussianDP(mu=0.8)
    averaged = search_guarantee(
        train, score, HoldOut(0.2).exposures(), partial(best_of, count=DISTRIBUTION)
    )
    worst = best_of(envelope([train, score]), DISTRIBUTION)
    grid = np.linspace(0.0, 6.0, 40)
    assert np.all(averaged.delta_at(grid) <= worst.delta_at(grid) * (1 + 1e-9) + 1e-12)
    assert averaged.epsilon_at(1e-3) < worst.epsilon_at(1e-3)


def _release(first, second, distribution):
    """Distribution of the winner of a good and a bad outcome, for a run that is good with a given
    probability."""
    pgf = distribution.pgf
    return {True: pgf(1.0) - pgf(1.0 - first), False: pgf(1.0 - second)}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_brute_force_of_a_hold_out_is_never_above_the_stated_profile(share):
    """A record that trains moves the training's bit, one that validates the score's; the winner
    reveals it."""
    truth = {"train": 1 / (1 + np.exp(-1.0)), "score": 1 / (1 + np.exp(-0.4))}
    stated = search_guarantee(
        TRAIN, SCORE, HoldOut(share).exposures(), partial(best_of, count=DISTRIBUTION)
    )
    for epsilon in np.linspace(0, 3, 13):
        exact = 0.0
        for use, weight in (("train", 1 - share), ("score", share)):
            ours = _release(truth[use], truth[use], DISTRIBUTION)
            theirs = _release(1 - truth[use], 1 - truth[use], DISTRIBUTION)
            cases = ((ours, theirs), (theirs, ours))
            both = [sum(max(0.0, a[k] - np.exp(epsilon) * b[k]) for k in a) for a, b in cases]
            exact += weight * max(both)
        assert exact <= stated.delta_at(epsilon) * (1 + 1e-9)


def test_a_record_that_is_never_used_costs_nothing():
    assert run_guarantee(TRAIN, SCORE, [Exposure(1, 0), Exposure(0, 0)]) == TRAIN
    assert compose(TRAIN) == TRAIN
