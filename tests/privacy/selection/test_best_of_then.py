"""A search and what follows it: above the exact loss of both together, below composing them, and close."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.errors import MixedNeighborsError
from sklearn_dpsearch.privacy import (
    DPSGD,
    CountDistribution,
    Fixed,
    FromPMF,
    GaussianDP,
    Geometric,
    Guarantee,
    NonPrivate,
    Poisson,
    ProfileDP,
    PureDP,
    best_of,
    compose,
    envelope,
    followed_by,
    mixture,
)
from sklearn_dpsearch.privacy.numerics.loss_distribution import LossDistribution
from sklearn_dpsearch.privacy.selection.best_of_then import SearchThen
from tests.privacy import brute_force
from tests.privacy.brute_force import exact_pair, hockey_stick, random_distribution, random_mechanism

EPSILONS = np.array([0.0, 0.1, 0.4, 1.0, 2.0, 3.5, 6.0])


def together(
    distribution: CountDistribution,
    p: np.ndarray,
    scores: np.ndarray,
    after: np.ndarray,
    told: np.ndarray,
    none: bool = True,
) -> np.ndarray:
    """Probabilities of (released outcome, result of what follows); where not ``told``, the latter says nothing."""
    released = np.append(
        brute_force.release(distribution, p, scores), distribution.probability_of_none if none else 0.0
    )
    silent = np.append(1.0, np.zeros(after.size - 1))
    return np.concatenate([one * (after if tells else silent) for one, tells in zip(released, told)])


def exact(distribution: CountDistribution, one, after, told: np.ndarray, epsilon: float, reverse: bool) -> float:
    sides = [
        together(distribution, side, one.scores, then, told) for side, then in ((one.p, after.p), (one.q, after.q))
    ]
    return hockey_stick(*(sides[::-1] if reverse else sides), epsilon)


def stated(one, distribution: CountDistribution, after) -> Guarantee:
    return followed_by(
        best_of(ProfileDP.from_pair(exact_pair(one)), distribution), ProfileDP.from_pair(exact_pair(after))
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_bound_is_never_below_the_exact_loss_of_search_and_what_follows(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    tightest = 0.0
    for _ in range(brute_force.size(400, 15)):
        one, after, distribution = random_mechanism(rng), random_mechanism(rng), random_distribution(rng)
        if distribution == Fixed(1):
            continue
        bound = stated(one, distribution, after).bounds["Theorem 1"]
        told = rng.random(one.p.size + 1) > rng.choice([0.0, 0.3])
        for reverse in (False, True):
            loss = np.array([exact(distribution, one, after, told, e, reverse) for e in EPSILONS])
            said = bound.delta_at(EPSILONS)
            assert np.all(loss <= said + 1e-14 * np.exp(EPSILONS))
            tightest = max(tightest, float(np.max(loss / said, where=loss > 1e-9, initial=0.0)))
    assert tightest > 0.95


def test_what_follows_a_search_without_runs_still_loses_something() -> None:
    """K is 0 almost always: what is left is the loss of what follows."""
    distribution, after = FromPMF(np.array([1 - 1e-9, 1e-9])), PureDP(epsilon=1.0)
    total = followed_by(best_of(PureDP(epsilon=0.5), distribution), after)
    assert total.delta_at(0.3) >= after.delta_at(0.3) * (1 - 1e-8)


#: Distribution of K, and how far the bound may be above the certificate.
SETTINGS = [
    (DPSGD(noise_multiplier=2.0, sample_rate=0.02, steps=1500), Geometric(10), 1.01),
    (DPSGD(noise_multiplier=1.1, sample_rate=256 / 60000, steps=14062), Geometric(30), 1.01),
    (DPSGD(noise_multiplier=2.0, sample_rate=0.02, steps=1500), Poisson(10).at_least_one(), 1.01),
    (GaussianDP(mu=0.5), Geometric(10), 1.01),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "distribution", "most"),
    SETTINGS,
    ids=[f"{distribution!r}-{i}" for i, (_, distribution, _) in enumerate(SETTINGS)],
)
def test_one_more_training_costs_what_some_mechanism_loses(
    base: Guarantee, distribution: CountDistribution, most: float
) -> None:
    total = followed_by(best_of(base, distribution), base)
    epsilon = total.epsilon_at(1e-6)
    assert lost_by_an_order(base.pair.removed, distribution, epsilon / most) > 1e-6
    assert epsilon < compose(best_of(base, distribution), base).epsilon_at(1e-6) * (1 - 1e-3)


def lost_by_an_order(run: LossDistribution, distribution: CountDistribution, epsilon: float) -> float:
    """δ of one search and one more run: outcomes with a gain come by rising ratio, each where it gains most, the others
    by falling ratio."""
    p, q = run.masses / run.masses.sum(), run.masses * np.exp(-run.losses)
    q /= max(q.sum(), 1.0)
    below_p, below_q = np.append(0.0, np.cumsum(p)), max(0.0, 1.0 - q.sum()) + np.append(0.0, np.cumsum(q))
    above = np.geomspace(1e-8, 1.0, 800)
    gain = distribution.log_slope(1 - above, above)
    above_q = np.minimum(np.interp(above, below_p, below_q), 1.0)
    cost = distribution.log_slope(1 - above_q, above_q)
    counting = np.flatnonzero(run.losses > 0.2 * epsilon)
    tried = np.linspace(run.losses[counting[0]], run.losses[-1], 100)
    best = [above[np.argmax(gain + np.log(run.delta_at(epsilon - loss + cost - gain) + 1e-300))] for loss in tried]
    places = np.exp(np.interp(run.losses[counting], tried, np.log(best)))
    rest = np.flatnonzero(run.losses <= 0.2 * epsilon)
    keys = np.concatenate([np.cumsum(p[rest]) - 0.5 * p[rest], places])
    order = np.concatenate([rest, counting])[np.lexsort((np.append(np.zeros(rest.size), -run.losses[counting]), keys))]
    ours, theirs = (
        _released(distribution, side[order], lack) for side, lack in ((p, 0.0), (q, max(0.0, 1.0 - q.sum())))
    )
    told = (ours > 1e-30) & (theirs > 1e-30)
    return float(ours[told] @ (run.delta_at(epsilon + np.log(theirs[told] / ours[told])) * (1 - 1e-9)))


def _released(distribution: CountDistribution, masses: np.ndarray, lack: float) -> np.ndarray:
    """Masses of the best of K, for outcomes from the best on; ``lack`` is above them all."""
    above = np.minimum(lack + np.append(0.0, np.cumsum(masses)), 1.0)
    values = distribution.generating(1 - above, above)
    middle = 0.5 * (above[1:] + above[:-1])
    return np.where(masses < 1e-6, np.exp(distribution.log_slope(1 - middle, middle)) * masses, -np.diff(values))


# --- what kind of guarantee it is ---------------------------------------------------------------------------------


def test_the_order_counts_for_a_search_alone() -> None:
    one, search = GaussianDP(mu=0.5), best_of(GaussianDP(mu=0.5), Geometric(5))
    assert isinstance(followed_by(search, one, one), SearchThen)
    assert followed_by(search) is search
    assert followed_by(one, search) == compose(one, search)
    assert followed_by(one, one) == compose(one, one)
    assert followed_by(search, NonPrivate()) == NonPrivate()
    total = followed_by(search, PureDP(epsilon=1.0), one)
    assert total.tightest(1e-6) == "Theorem 1"
    assert total.epsilon_at(1e-6) <= compose(search, PureDP(epsilon=1.0), one).epsilon_at(1e-6)


def test_parts_of_one_of_several_searches_are_followed_one_by_one() -> None:
    one, other = best_of(GaussianDP(mu=0.5), Geometric(5)), best_of(GaussianDP(mu=0.2), Geometric(5))
    after = GaussianDP(mu=0.3)
    apart = [followed_by(search, after) for search in (one, other)]
    assert followed_by(envelope([one, other]), after) == envelope(apart)
    assert followed_by(mixture([one, other], [0.3, 0.7]), after) == mixture(apart, [0.3, 0.7])


def test_a_pure_search_and_a_pure_training_add_up_where_nothing_may_fail() -> None:
    search, after = best_of(PureDP(epsilon=0.5), Geometric(5)), PureDP(epsilon=1.0)
    assert followed_by(search, after).epsilon_at(0.0) == compose(search, after).epsilon_at(0.0)


def test_pair_is_above_the_profile_and_composes_further() -> None:
    search = best_of(GaussianDP(mu=0.5), Geometric(5))
    total, grid = followed_by(search, GaussianDP(mu=0.3)), np.linspace(0.0, 6.0, 25)
    assert np.all(total.pair.delta_at(grid) >= total.delta_at(grid) * (1 - 1e-9))
    assert compose(total, GaussianDP(mu=0.1)).epsilon_at(1e-6) > total.epsilon_at(1e-6)


def test_relations_do_not_mix() -> None:
    with pytest.raises(MixedNeighborsError):
        followed_by(best_of(GaussianDP(mu=0.5), Geometric(5)), PureDP(epsilon=1.0, neighboring="replace_one"))


@pytest.mark.slow
@pytest.mark.parametrize("mu", [28.0, 45.0])
def test_hardly_private_parts_have_numbers_too(mu):
    """Calibrations ask for them; chords between places that are no numbers would be none."""
    run = GaussianDP(mu=mu)
    total = followed_by(best_of(run, Geometric(10)), run)
    found = np.array([bound.delta_at(np.array([0.0, 50.0, 800.0, 3000.0, 1e5])) for bound in total.bounds.values()])
    assert np.isfinite(found).all()
    assert total.epsilon_at(1e-5) <= compose(best_of(run, Geometric(10)), run).epsilon_at(1e-5) * (1 + 1e-9)
