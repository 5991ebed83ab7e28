"""Subset searches for a replaced record: above the exact loss, the smaller of a chain and of known
membership."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees.neighboring_relations import ChangedRecord
from sklearn_dpsearch.privacy._selection.subset import ReplacedInSubset
from tests.privacy import brute_force
from tests.privacy.brute_force import Mechanism, exact_pair, hockey_stick

EPSILONS = np.linspace(0.0, 4.0, 41)
VARIANTS = ("rest", "all")
ONE_RUN = dp.PureDP(epsilon=0.5, neighboring="zero_out")


def three_data_sets(rng: np.random.Generator) -> tuple[np.ndarray, dp.ProfileDP]:
    """Distributions on nothing, on one record and on another in its place; the guarantee for the
    presence of either."""
    size = int(rng.integers(2, 5))
    nothing = rng.dirichlet(np.ones(size))
    tilted = nothing * np.exp(rng.normal(size=(2, size)) * rng.choice([0.1, 0.5, 2.0]))
    found = np.vstack([nothing, tilted / tilted.sum(axis=1, keepdims=True)])
    pairs = [exact_pair(Mechanism(one, nothing, np.arange(size))) for one in found[1:]]
    return found, dp.envelope([dp.ProfileDP.from_pair(pair, "zero_out") for pair in pairs])


def release(
    tune: np.ndarray, train: np.ndarray, record: int, fraction: float, train_on: str
) -> np.ndarray:
    """Probabilities of both results where the slot holds a record (1 or 2); its coin is thrown."""
    if train_on == "all":
        return np.outer(fraction * tune[record] + (1 - fraction) * tune[0], train[record]).ravel()
    inside, outside = np.outer(tune[record], train[0]), np.outer(tune[0], train[record])
    return (fraction * inside + (1 - fraction) * outside).ravel()


@pytest.mark.slow
@pytest.mark.parametrize("train_on", VARIANTS)
def test_bound_is_never_below_the_exact_loss(train_on: str) -> None:
    rng = np.random.default_rng(3)
    tightest = 0.0
    for _ in range(brute_force.size(400, 6)):
        (tune, tuning), (train, training) = three_data_sets(rng), three_data_sets(rng)
        fraction = float(rng.choice([0.02, 0.1, 0.3, 0.7]))
        bound = dp.as_replace_one(dp.subset_then_train(tuning, training, fraction, train_on))
        one, other = (release(tune, train, record, fraction, train_on) for record in (1, 2))
        stated = np.array([part._profile(EPSILONS) for part in bound.bounds.values()])
        for p, q in ((one, other), (other, one)):
            exact = np.array([hockey_stick(p, q, epsilon) for epsilon in EPSILONS])
            assert np.all(stated >= exact - 1e-12)
            tightest = max(
                tightest,
                float(np.max(exact[exact > 1e-6] / stated.min(axis=0)[exact > 1e-6], initial=0.0)),
            )
    assert tightest > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("run", "fraction", "rest", "everything"), [
    (
        dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000, neighboring="zero_out"), 0.1,
        3.01, 3.37,
    ),
    (dp.GaussianDP(mu=0.3, neighboring="zero_out"), 0.1, 2.33, None),
    (ONE_RUN, 0.1, None, None),
])  # fmt: skip
def test_a_chain_is_smaller_where_membership_is_secret(run, fraction, rest, everything) -> None:
    search = dp.best_of(run, dp.Geometric(10))
    for train_on, stated in (("rest", rest), ("all", everything)):
        total = dp.as_replace_one(dp.subset_then_train(search, run, fraction, train_on))
        assert total.tightest(1e-5) == "chain"
        if stated is not None:
            assert total.epsilon_at(1e-5) == pytest.approx(stated, rel=0.02)
        assert total.epsilon_at(1e-5) < 0.86 * total.bounds["known membership"].epsilon_at(1e-5)


def cells_of_the_largest(mu: float, runs: int) -> np.ndarray:
    """Distributions of the largest of some normals, in 400 cells, on nothing and on records that
    pull to both sides."""
    cuts = np.linspace(-8.0, 8.0, 399) - mu * np.array([[0.0], [1.0], [-1.0]])
    ends = np.pad(norm.cdf(cuts), ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
    return np.diff(ends**runs, axis=1)


@pytest.mark.parametrize("runs", [1, 2])
def test_half_of_the_loss_for_each_step_is_stated_within_a_percent_of_the_exact_loss(runs: int):
    """Normals of both signs, μ = .5 for a replaced record: a total 1 % smaller would be below the
    exact loss."""
    run = dp.GaussianDP(mu=0.25, neighboring="zero_out")
    assert dp.as_replace_one(run) == dp.GaussianDP(mu=0.5, neighboring="replace_one")
    for fraction, train_on in ((0.02, "rest"), (0.1, "all")):
        stated = dp.as_replace_one(
            dp.subset_then_train(dp.best_of(run, dp.Fixed(runs)), run, fraction, train_on)
        ).epsilon_at(1e-5)
        tune, train = cells_of_the_largest(0.25, runs), cells_of_the_largest(0.25, 1)
        one, other = (release(tune, train, record, fraction, train_on) for record in (1, 2))

        def exact(epsilon: float) -> float:
            return max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))  # noqa: B023

        assert exact(stated) <= 1e-5 < exact(0.99 * stated)


@pytest.mark.slow
def test_scores_on_the_rest_are_carried_over_too() -> None:
    run = dp.GaussianDP(mu=0.3, neighboring="zero_out")
    search = dp.best_of(run, dp.Geometric(10))
    scores = dp.best_of(dp.GaussianDP(mu=0.04, neighboring="zero_out"), dp.Geometric(10))
    presence = dp.subset_then_train(search, run, 0.1, validate=scores)
    total = dp.as_replace_one(presence)
    assert set(total.bounds) == {"chain", "known membership"}
    assert total.epsilon_at(1e-5) == min(bound.epsilon_at(1e-5) for bound in total.bounds.values())
    assert total.epsilon_at(1e-5) <= ChangedRecord(presence=presence).epsilon_at(1e-5)


def test_a_statement_is_written_down_and_read_back() -> None:
    total = dp.as_replace_one(
        dp.subset_then_train(dp.best_of(ONE_RUN, dp.Geometric(10)), ONE_RUN, 0.1)
    )
    assert dp.from_dict(json.loads(json.dumps(total.to_dict()))) == total
    with pytest.raises(TypeError, match="search on a subset"):
        ReplacedInSubset(presence=ONE_RUN)
