"""Clopper–Pearson bounds on ε: right as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dpsearch.audit import largest_provable_epsilon, lower_bound, runs_needed
from sklearn_dpsearch.audit._bounds import certified_epsilon


@pytest.mark.parametrize(
    ("p", "q", "delta"), [(0.6, 0.25, 0.0), (0.05, 0.01, 0.0), (0.5, 0.02, 0.01), (0.3, 0.3, 0.0)]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_bound_holds_with_at_least_the_stated_probability(p, q, delta, confidence) -> None:
    """Over all counts of 60 and 60 runs, by their exact probabilities."""
    n = 60
    a, b = np.arange(n + 1)[:, None], np.arange(n + 1)[None, :]
    truth = max(np.log((p - delta) / q), 0.0)
    wrong = certified_epsilon(a, n, b, n, delta, confidence) > truth
    probability = binom.pmf(a, n, p) * binom.pmf(b, n, q)
    assert float(probability[wrong].sum()) <= 1 - confidence


def test_the_bound_is_not_kept_by_proving_nothing() -> None:
    assert 1.9 < certified_epsilon(900, 1000, 100, 1000) < np.log(9)
    bound = certified_epsilon(900, 1000, 100, 1000)
    assert certified_epsilon(900, 1000, 100, 1000, delta=0.1) < bound


def test_the_largest_provable_epsilon_is_that_of_a_perfect_attack() -> None:
    found = lower_bound(["yes"] * 500, ["no"] * 500, confidence=0.95)
    assert found.epsilon_lower == pytest.approx(largest_provable_epsilon(500), abs=1e-12)
    assert found.counts == (250, 250, 0, 250)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_fewer_runs_than_needed_cannot_prove_it(epsilon, delta) -> None:
    needed = runs_needed(epsilon, delta)
    actual = largest_provable_epsilon(needed - 1, delta)
    assert largest_provable_epsilon(needed, delta) >= epsilon > actual


def test_runs_needed_refuses_what_no_number_of_runs_could_prove() -> None:
    with pytest.raises(ValueError, match="0 <= epsilon < 30"):
        runs_needed(-1.0)
    with pytest.raises(ValueError, match="0 < confidence < 1"):
        runs_needed(1.0, confidence=2)


@pytest.mark.parametrize(
    "change", [{"n_runs": 0}, {"n_runs": 2.5}, {"delta": 1.0}, {"confidence": 2}]
)
def test_the_largest_provable_epsilon_is_of_levels_and_runs_that_exist(change) -> None:
    (name,) = change
    with pytest.raises(ValueError, match=f"{name}.*, got {name}="):
        largest_provable_epsilon(**{"n_runs": 100, **change})
