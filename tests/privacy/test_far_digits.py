"""ε at a tiny δ, after very many steps, and of searches inside searches: close to what is
certified, and consistent."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._guarantees.single_mechanisms import ORDERS
from sklearn_dpsearch.privacy._numerics.loss_distribution import LossDistribution

DELTAS = (1e-5, 1e-8, 1e-10, 1e-12)


def sgd(noise: float, rate: float, steps: int) -> dp.DPSGD:
    return dp.DPSGD(noise_multiplier=noise, sample_rate=rate, steps=steps)


#: From the issue, a light and a heavy tail, and a million steps.
RUNS = [
    pytest.param(sgd(1.0, 1e-4, 10**5), dp.Geometric(100), marks=pytest.mark.slow),
    pytest.param(sgd(2.0, 0.01, 5000), dp.Geometric(100), marks=pytest.mark.slow),
    pytest.param(sgd(1.0, 1e-4, 10**6), dp.Geometric(100), marks=pytest.mark.slow),
    pytest.param(sgd(0.6, 1e-3, 10**5), dp.Geometric(10), marks=pytest.mark.slow),
]


def lost_by_an_order(
    run: LossDistribution, distribution: dp.CountDistribution, epsilon: float
) -> float:
    """δ of one mechanism with this pair.

    Outcomes that gain are put each where it gains most, by rising ratio; the others come by falling
    ratio.
    """
    p, q = run.masses / run.masses.sum(), run.masses * np.exp(-run.losses)
    q /= max(q.sum(), 1.0)
    lack = max(0.0, 1.0 - q.sum())
    above = np.geomspace(1e-16, 1.0, 4000)
    above_q = np.minimum(np.interp(above, *_from_below(p, q, lack)), 1.0)
    gain = np.exp(distribution.log_slope(1 - above, above))
    cost = np.exp(distribution.log_slope(1 - above_q, above_q))
    tried = np.linspace(epsilon - 0.3, run.losses[-1], 500)
    values = np.exp(tried[:, None] - epsilon) * gain - cost
    chosen = np.flatnonzero(run.losses > tried[np.argmax(values.max(axis=1) > 0)])
    places = np.exp(np.interp(run.losses[chosen], tried, np.log(above[values.argmax(axis=1)])))
    rest = np.ones(p.size, bool)
    rest[chosen] = False
    steps = _from_below(np.where(rest, p, 0.0), np.where(rest, q, 0.0), lack)
    order = np.lexsort((run.losses[chosen], -places))
    chosen, places = chosen[order], np.minimum(places[order], steps[0][-1])
    top = places + _after(p[chosen]), np.interp(places, *steps) + _after(q[chosen])
    bottom = np.minimum(top[0] + p[chosen], 1.0)
    ours = np.exp(distribution.log_slope(1 - bottom, bottom)) * p[chosen]
    theirs = (
        np.exp(distribution.log_slope(1 - np.minimum(top[1], 1.0), np.minimum(top[1], 1.0)))
        * q[chosen]
    )
    return float(np.sum(ours - np.exp(epsilon) * theirs)) * (1 - 1e-9)


def _from_below(p: np.ndarray, q: np.ndarray, lack: float) -> tuple[np.ndarray, np.ndarray]:
    return np.append(0.0, np.cumsum(p)), lack + np.append(0.0, np.cumsum(q))


def _after(masses: np.ndarray) -> np.ndarray:
    return np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)


@pytest.mark.parametrize(("run", "distribution"), RUNS)
def test_a_search_is_close_to_what_a_mechanism_loses_at_every_delta(run, distribution):
    search = dp.best_of(run, distribution)
    for delta in DELTAS:
        certain = search.epsilon_at(delta) / 1.02
        assert (
            lost_by_an_order(run.pair.removed, distribution, certain) > delta
            or dp.witness_epsilon(run, distribution, delta) > certain
        )


@pytest.mark.parametrize(("run", "distribution"), RUNS)
def test_epsilon_is_never_above_the_renyi_route(run: dp.DPSGD, distribution: dp.CountDistribution):
    route = RdpAccountant(ORDERS)
    events = dp_event.PoissonSampledDpEvent(
        run.sample_rate, dp_event.GaussianDpEvent(run.noise_multiplier)
    )
    route.compose(events, int(run.steps))
    search = dp.best_of(run, distribution)
    own, ours = (dp.RenyiDP(orders=ORDERS, epsilons=one.renyi(ORDERS)) for one in (run, search))
    for delta in (*DELTAS, 1e-15, 1e-20, 1e-30):
        assert run.epsilon_at(delta) <= own.epsilon_at(delta) * (1 + 1e-6)
        assert run.epsilon_at(delta) <= route.get_epsilon(delta) * (1 + 1e-6) or delta < 1e-20
        assert search.epsilon_at(delta) <= ours.epsilon_at(delta) * (1 + 1e-6)


def test_where_dp_accounting_has_digits_they_are_the_same() -> None:
    run = sgd(2.0, 0.01, 5000)
    event = dp_event.PoissonSampledDpEvent(
        run.sample_rate, dp_event.GaussianDpEvent(run.noise_multiplier)
    )
    theirs = PLDAccountant(value_discretization_interval=1e-4).compose(event, int(run.steps))
    for delta in (1e-5, 1e-7, 1e-9):
        assert run.epsilon_at(delta) == pytest.approx(theirs.get_epsilon(delta), rel=2e-3)


def test_composed_gaussian_steps_are_right_at_every_delta() -> None:
    """A sampling rate of 1 has a closed form."""
    run, exact = sgd(50.0, 1.0, 10**4), dp.GaussianDP(mu=2.0)
    for delta in (*DELTAS, 1e-15, 1e-18):
        actual = exact.epsilon_at(delta) * (1 - 1e-9)
        assert actual <= run.epsilon_at(delta) <= exact.epsilon_at(delta) * 1.002


@pytest.mark.parametrize("mu", [28.0, 40.0, 100.0])
def test_a_search_that_hardly_protects_still_has_an_epsilon(mu: float) -> None:
    run = dp.GaussianDP(mu=mu)
    for delta in (1e-6, 1e-12):
        one, search = run.epsilon_at(delta), dp.best_of(run, dp.Geometric(10)).epsilon_at(delta)
        assert one < search < 1.2 * one


BASES: list[dp.Guarantee] = [
    dp.GaussianDP(mu=0.5), dp.PureDP(epsilon=0.5), dp.ApproxDP(epsilon=0.4, delta=1e-9),
    dp.ZCDP(rho=0.05), sgd(2.0, 0.01, 5000),
]  # fmt: skip
DISTRIBUTIONS = [dp.Geometric(10), dp.Poisson(10).at_least_one(), dp.Fixed(3), dp.Logarithmic(30)]


@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
@pytest.mark.parametrize("base", BASES, ids=lambda one: type(one).__name__)
def test_nesting_never_makes_epsilon_smaller(base, distribution):
    search, nothing = dp.best_of(base, distribution), dp.PureDP(epsilon=0.0)
    hardly_any = dp.FromPMF(np.array([0.0, 1 - 1e-9, 1e-9]))
    inside = (
        dp.compose(search, nothing),
        dp.compose(search, dp.GaussianDP(mu=0.01)),
        dp.best_of(search, hardly_any),
        dp.best_of(search, dp.Geometric(2)),
    )
    for delta in (1e-2, 1e-4, *DELTAS):
        epsilon = search.epsilon_at(delta)
        assert epsilon >= base.epsilon_at(delta) * (1 - 1e-8)
        for one in inside:
            assert one.epsilon_at(delta) >= epsilon * (1 - 1e-8)
