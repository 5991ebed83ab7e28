"""Capacity: what follows from the start, at no further cost, and what arguments set."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting._capacity import (
    CLASS_PACE,
    LARGE_SIGNAL,
    NUMBER_PACE,
    parts_by_cell_width,
    parts_by_rule,
    rounds_by_rule,
    step_by_rule,
)

SCHEMA = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
rng = np.random.default_rng(0)


def fitted(n, mu, share=0.5, **changed):
    """Fit to records of which ``share`` are positive."""
    X = np.random.default_rng(0).uniform(size=(n, 2))
    options = {"classes": [0, 1], "target_mu": mu, "noise_seed": 0}
    model = DPGradientBoostingClassifier(SCHEMA, **options, **changed)
    return model.fit(X, (X[:, 0] < share).astype(int))


@pytest.mark.parametrize("pace", [CLASS_PACE, NUMBER_PACE])
def test_rounds_grow_with_what_can_be_learned_and_their_steps_shrink(pace):
    found = [rounds_by_rule(size / 4, size, pace) for size in np.geomspace(1, 1e8, 60)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (pace.minimum, pace.maximum)
    assert rounds_by_rule(LARGE_SIGNAL / 4, LARGE_SIGNAL, pace) == pace.usual
    assert rounds_by_rule(LARGE_SIGNAL, 2 * LARGE_SIGNAL, pace) == 2 * pace.usual
    # few of the rarer class, whatever their number
    assert rounds_by_rule(pace.usual / 2, 1e9, pace) <= pace.usual
    steps = [step_by_rule(rounds, pace) for rounds in found]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] * found[-1] == pytest.approx(pace.path)


def test_cells_are_finer_the_more_information_there_is_for_each_feature():
    found = [parts_by_rule(information, 5) for information in np.geomspace(0.1, 1e8, 60)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (8, 128)
    assert parts_by_rule(-5.0, 10) == 8  # noise may be larger than what it hides
    assert parts_by_rule(1e4, 10) == parts_by_rule(5e3, 5) == int(1.2 * math.sqrt(1000))
    # each of many features has few rounds
    assert (parts_by_rule(1e8, 20), parts_by_rule(1e8, 500)) == (32, 8)


def test_rounds_of_several_features_begin_where_each_of_them_has_two_parts():
    assert parts_by_cell_width(8, 4) == {1: 8, 2: 3}
    assert parts_by_cell_width(16, 4) == {1: 16, 2: 5, 3: 2, 4: 2}
    assert parts_by_cell_width(64, 4) == {1: 64, 2: 17, 3: 7, 4: 5}
    assert parts_by_cell_width(64, 2) == {1: 64, 2: 17}
    assert parts_by_cell_width(2, 4) == {1: 2}


@pytest.mark.slow
def test_a_fit_follows_the_rule_and_arguments_override_it():
    few, many = fitted(300, 0.1), fitted(4000, 20.0)
    assert (few.n_iter_, many.n_iter_) == (CLASS_PACE.minimum, CLASS_PACE.maximum)
    # bins, and missing values
    assert max(len(lookup) for one in many.partitions_[1:] for lookup in one[1]) == 129
    widest = [max(one[2] for one in model.partitions_ if len(one[0]) == 1) for model in (few, many)]
    assert widest == [9, 1 + parts_by_rule(20.0 * 2000, 2)]
    given = fitted(4000, 20.0, max_iter=30, parts=4)
    assert given.n_iter_ == 30
    assert max(one[2] for one in given.partitions_) == 5


@pytest.mark.slow
def test_what_can_be_learned_is_counted_by_the_rarer_class():
    """A table of few positives has fewer rounds than one of as many records that are half of each
    class."""
    assert fitted(4000, 0.15, share=0.05).n_iter_ < fitted(4000, 0.15).n_iter_


@pytest.mark.slow
def test_the_number_of_rounds_is_a_function_of_the_noisy_start_alone(monkeypatch):
    """With one noise, neighbours have starts that differ by one record, and rounds that hardly
    do."""
    X = rng.uniform(size=(1000, 2))
    y = X[:, 0]
    model = DPGradientBoostingRegressor(SCHEMA, bounds_y=(0, 1), target_mu=0.6, random_state=0)
    monkeypatch.setattr(
        DPGradientBoostingRegressor, "_noise_source", lambda *given: np.random.RandomState(0).bytes
    )
    one, other = (model.fit(X[:n], y[:n]).n_iter_ for n in (1000, 999))
    assert NUMBER_PACE.minimum < one < NUMBER_PACE.usual
    assert abs(one - other) <= 1
