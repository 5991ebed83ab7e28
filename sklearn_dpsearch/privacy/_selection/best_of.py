r"""Best of K runs: Theorem 1, its exact form for pure runs, and the smallest of all bounds.

**Theorem 1.** Let K have the generating function f, let Q be one run with a dominating pair (P,
P'), loss L, and testing region with lower edge q_min. The best of K independent runs of Q
satisfies, for every ε ≥ 0,

    δ(ε) ≤ E_{L~P} φ(e^{ε−L}),     φ(z) = max_q ( f'(q) − z·f'(q_min(q)) )₊ .

φ is a maximum of lines, hence convex, decreasing and a sum of hinges: φ(z) = Σ_k w_k·(1 − z/z_k)₊.
The expectation is then Σ_k w_k·H(e^ε/z_k), with H the hockey-stick curve of the pair: no second
discretisation is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from .._checks import Array, ArrayLike, cached_property, check_kind
from .._count_distributions.base import A_DISTRIBUTION, CountDistribution
from .._count_distributions.distributions import Fixed, as_count_distribution
from .._guarantees.base import (
    WORTHWHILE_DELTA,
    Guarantee,
    SmallestOf,
    Statement,
    as_guarantee,
    built_once,
    check_parts,
    discretize_profiles,
    smallest_epsilon,
)
from .._guarantees.composition import compose
from .._guarantees.pure import PureDP, only_largest_loss
from .._guarantees.single_mechanisms import NonPrivate
from .._numerics.basic_mechanisms import LARGEST_LOSS, randomized_response
from .._numerics.loss_distribution import DominatingPair, LossDistribution
from . import testing_region
from .potentials import theorem_5
from .prices_on_places import FACTORS, PAIR_FACTORS, Anchors, Quantiles, prices_may_pay
from .published_bounds import BEST_OF, pure_negative_binomial
from .testing_region import SLACK, AffineLines, Hinges, Nodes

#: A search that is composed with something else is evaluated at POINTS points, from every
#: THINNING-th hinge.
POINTS, THINNING = 500, 4
#: In a composition only every PLACES_APART-th place of Theorem 6 is used.
PLACES_APART = 4
#: Prices vary in quality between places. Raised by this factor, chords lie above the places in
#: between.
MARKUP = 1.01
#: Theorem 5 is used where the δ of Theorem 1 is above WORTHWHILE_DELTA, with bounds at
#: ANCHORS − 1 places.
ANCHORS = 4


def theorem_1(pld: LossDistribution, count: CountDistribution) -> Hinges:
    """Hinges of φ in Theorem 1 for one direction, from above."""
    lines = zip(*testing_region.cell_lines(pld, count, testing_region.nodes()))
    return testing_region.upper_envelope(AffineLines(*map(np.concatenate, lines)))


@lru_cache(maxsize=256)
def best_of_pure(epsilon: float, count: CountDistribution) -> float:
    r"""Largest loss of the best of K pure runs, exact.

    It is ε + sup_q log f'(q)/f'(q_min(q)), q_min(q) = max(e^{−ε}q, 1 − e^ε(1 − q)).

    Theorem 1 for a base of which only the largest loss ε is known.
    """
    if epsilon == 0:
        return 0.0
    if epsilon > LARGEST_LOSS:
        return epsilon + _largest_slope_ratio(epsilon, count)
    return best_of_bounded(epsilon, randomized_response(epsilon, 0.0), count)


def best_of_bounded(epsilon: float, base: LossDistribution, count: CountDistribution) -> float:
    r"""Largest loss of the best of K runs with a known pair.

    It is ε + sup_q log f'(q)/f'(q_min(q)), with q_min of the whole loss distribution, whose largest
    loss is ε.

    Theorem 1 at δ = 0, one direction. Branch and bound: cells whose upper bound does not exceed the
    best value found are dropped, the others split, until both agree to 1e-7. Rounded up.
    """
    grid, dropped = testing_region.nodes(spacing=1.02), 0.0
    while True:
        ends = Nodes(grid.q[1:], grid.u[1:])
        slopes = count.log_slope(*ends)
        # near 0, where f' may vanish: (elasticity of f' at the cell's end)·log(q/q_min) ≤ that·ε
        with np.errstate(divide="ignore"):
            elasticity = np.exp(np.log(ends.q) + count.log_curvature(*ends) - slopes)
        upper = np.fmin(testing_region.slope_ratio(base, count, grid), elasticity * epsilon)
        edge, _ = testing_region.lower_edge(base, ends)
        reached = slopes - count.log_slope(*edge)
        best, bound = float(np.max(reached)), float(np.max(upper))
        if bound <= best + 1e-7 or grid.q.size > 2**20:
            return float(epsilon + max(bound, dropped))
        open_cells = upper > best + 1e-8
        dropped = max(dropped, float(np.max(upper, where=~open_cells, initial=0.0)))
        grid = _split_cells(grid, open_cells)


def _largest_slope_ratio(epsilon: float, count: CountDistribution) -> float:
    """Bound on log f'(q)/f'(q_min) that needs no testing region.

    It is log f'(1)/f'(0) or, where f' vanishes at 0, (elasticity of f' at 1)·ε.
    """
    at_one, at_zero = np.array([1.0]), np.array([0.0])
    with np.errstate(divide="ignore"):
        ratio = count.log_slope(at_one, at_zero) - count.log_slope(at_zero, at_one)
        elasticity = np.exp(count.log_curvature(at_one, at_zero) - count.log_slope(at_one, at_zero))
    return float(np.minimum(ratio, elasticity * epsilon)[0])


def _split_cells(grid: Nodes, cells: npt.NDArray[np.bool_]) -> Nodes:
    """Grid of q with the chosen cells split, the others merged away."""
    chosen = np.flatnonzero(cells)
    parts = np.linspace(0.0, 1.0, 9)
    q = (grid.q[chosen, None] + parts * (grid.q[chosen + 1] - grid.q[chosen])[:, None]).ravel()
    u = (grid.u[chosen, None] + parts * (grid.u[chosen + 1] - grid.u[chosen])[:, None]).ravel()
    return Nodes(q, u)


@dataclass(frozen=True, kw_only=True)
class _OfManyRuns(Guarantee):
    """Base class of guarantees of the best of K runs."""

    one_run: Guarantee
    count: CountDistribution

    def _check(self) -> None:
        check_parts(self, one_run=self.one_run)
        check_kind("count", self.count, CountDistribution, A_DISTRIBUTION)


@dataclass(frozen=True, kw_only=True)
class TheoremOne(_OfManyRuns):
    """Guarantee of the best of K runs by Theorem 1 alone."""

    @property
    def pure_epsilon(self) -> float | None:
        return None if self.one_run.pure_epsilon is None else self._exact

    @cached_property
    def _exact(self) -> float:
        """Largest loss of the best of K runs, by three bounds.

        They are the published one, one from the largest loss alone, and one from the whole testing
        region. The first is the smallest if ε is so small that the others have no digits.
        """
        epsilon, count = float(self.one_run.pure_epsilon or 0.0), self.count
        alone = min(best_of_pure(epsilon, count), pure_negative_binomial(epsilon, count))
        if isinstance(self.one_run, PureDP) or not 0 < epsilon <= LARGEST_LOSS:
            return alone
        sides = self.one_run.pair.directions
        return min(alone, max(best_of_bounded(epsilon, pld, count) for pld in sides))

    @cached_property
    def _hinges(self) -> tuple[Hinges, ...]:
        return tuple(theorem_1(pld, self.count) for pld in self.one_run.pair.directions)

    def in_direction(self, index: int, epsilon: Array, every: int = 1) -> Array:
        """δ(ε) for a record removed (0) or added (1), from one hinge in ``every``."""
        hinges = self._hinges[index] if every == 1 else self._hinges[index].thinned(every)
        return hinges.delta_at(self.one_run.pair.directions[index], epsilon)

    def _profile(self, epsilon: Array) -> Array:
        values = np.max([self.in_direction(i, epsilon) for i in range(len(self._hinges))], axis=0)
        return self._zero_beyond_largest_loss(epsilon, values)

    def _pair(self) -> DominatingPair:
        sides = range(len(self._hinges))
        curves = (partial(self.in_direction, side, every=THINNING) for side in sides)
        return discretize_profiles(*curves, number=POINTS, adaptive=True)


@dataclass(frozen=True, kw_only=True)
class _KnownAtPlaces(Guarantee):
    """Base class of bounds known at a few ε, with chords between."""

    first: TheoremOne

    def _check(self) -> None:
        check_kind("first", self.first, TheoremOne, "a TheoremOne")
        check_parts(self, first=self.first)

    def _pair(self) -> DominatingPair:
        return self.first.pair


@dataclass(frozen=True, kw_only=True)
class TheoremFive(_KnownAtPlaces):
    """Guarantee of Theorem 5 (potentials), which is better near ε = 0.

    Theorem 1 is weak there. The bound is convex in e^ε, so below its chords.
    """

    def _profile(self, epsilon: Array) -> Array:
        if not np.any(self.first._profile(epsilon) > WORTHWHILE_DELTA):
            return np.full(np.shape(epsilon), WORTHWHILE_DELTA)
        at, values = self._anchors
        chords: Array = np.interp(np.exp(np.minimum(epsilon, at[-1])), np.exp(at), values)
        return np.minimum(chords * (1.0 + SLACK), 1.0)

    @cached_property
    def _anchors(self) -> tuple[Array, Array]:
        """Values of ε, and bounds on δ there by potentials.

        They go up to where Theorem 1 reaches ``WORTHWHILE_DELTA``, and the bounds never rise.
        """
        end = smallest_epsilon(self.first._profile, WORTHWHILE_DELTA)
        pair, count = self.first.one_run.pair, self.first.count
        at = np.linspace(0.0, min(end, LARGEST_LOSS), ANCHORS)
        sides = range(len(pair.directions))
        values = [[theorem_5(pair, side, count, float(e)) for side in sides] for e in at[:-1]]
        bounds = np.minimum(np.max(values, axis=1), self.first._profile(at[:-1]))
        # where Theorem 1 reaches it, which may be beyond
        last = WORTHWHILE_DELTA if end <= LARGEST_LOSS else bounds[-1]
        return at, np.append(np.maximum(np.minimum.accumulate(bounds), WORTHWHILE_DELTA), last)

    def _far_profile(self, epsilon: Array) -> Array:
        return np.ones(np.shape(epsilon))


@dataclass(frozen=True, kw_only=True)
class TheoremSix(_KnownAtPlaces):
    """Guarantee of the best of K runs by Theorem 6 (prices)."""

    @cached_property
    def anchors(self) -> tuple[Anchors, ...]:
        """Computed bounds of Theorem 6, for each direction."""
        first = self.first
        directions = zip(first.one_run.pair.directions, first._hinges)
        return tuple(Anchors(Quantiles.of(pld, first.count, phi)) for pld, phi in directions)

    def gains(self, factors: dict[int, float]) -> bool:
        """Return whether Theorem 6 is worth its time, some hundredths of a second for each ε."""
        return any(anchors.gains(factors) for anchors in self.anchors)

    def _profile(self, epsilon: Array) -> Array:
        flat = np.ravel(epsilon)
        values: Array = np.max([anchors.profile(flat) for anchors in self.anchors], axis=0)
        return self.first._zero_beyond_largest_loss(epsilon, np.reshape(values, np.shape(epsilon)))

    def _far_profile(self, epsilon: Array) -> Array:
        return self._profile(epsilon) if self.gains(FACTORS) else np.ones(np.shape(epsilon))

    def _epsilon(self, delta: float) -> float:
        return np.inf if delta == 0 else smallest_epsilon(self._profile, delta)


@dataclass(frozen=True, kw_only=True)
class BestOf(SmallestOf, _OfManyRuns):
    """Guarantee of the best of K runs: the smallest of all bounds.

    The bounds are those of Theorems 1, 5 and 6 and the published ones; the smallest counts at each
    ε.

    Parameters
    ----------
    one_run : Guarantee
        Guarantee of one run, training and score together.
    count : CountDistribution
        Distribution of the number of runs, independent of the data and never released.
    """

    def _bounds(self) -> dict[str, Guarantee | None]:
        first = TheoremOne(one_run=self.one_run, count=self.count, neighboring=self.neighboring)
        fixed = "composition" in self.count.theorems
        sixth = TheoremSix(first=first, neighboring=self.neighboring)
        return {
            "Theorem 1": first,
            "Theorem 5": TheoremFive(first=first, neighboring=self.neighboring),
            "Theorem 6": sixth if prices_may_pay(self.count) else None,
            "Theorem 1 (pure)": only_largest_loss(first),
            **{name: bound(self.one_run, self.count) for name, bound in BEST_OF.items()},
            "composition": compose(*[self.one_run] * int(self.count.mean)) if fixed else None,
        }

    def _roughly(self) -> Guarantee:
        """Theorem 1 in place of Theorem 6, which takes some hundredths of a second for each ε."""
        return self.bounds["Theorem 1"] if prices_may_pay(self.count) else self

    def renyi(self, order: ArrayLike) -> Array:
        """Smallest Rényi curve of the bounds, with "no run" as an outcome.

        A moment e^{(α−1)ρ} becomes e^{(α−1)ρ} + P[K = 0] where no run at all is possible.

        The published curves are those of the outcomes of a run (Papernot & Steinke 2022, footnote
        9); "no run" is one more outcome, equally probable on all data sets.
        """
        order = np.asarray(order, dtype=float)
        curve = super().renyi(order)
        none = self.count.probability_of_none
        if none > 0:
            curve = np.logaddexp((order - 1) * curve, np.log(none)) / (order - 1)
        return np.asarray(curve)

    @cached_property
    def _bounds_cross(self) -> bool:
        """True also if Theorem 6 pays.

        Chords of the pair may be a little below those of Theorem 6.
        """
        sixth = self.bounds.get("Theorem 6")
        return (isinstance(sixth, TheoremSix) and sixth.gains(FACTORS)) or super()._bounds_cross

    @property
    def _bounds_of_pair(self) -> list[Guarantee]:
        """Bounds that make up the pair: without Theorems 5 and 6.

        Theorems 5 and 6 are known at few ε. The largest loss is left out too: Theorem 1 has it.

        The pair includes Theorem 6 separately.
        """
        apart = (TheoremFive, TheoremSix, PureDP)
        return [bound for bound in self.bounds.values() if not isinstance(bound, apart)]

    def _pair(self) -> DominatingPair:
        first, *published = self._bounds_of_pair
        assert isinstance(first, TheoremOne)
        sixth = self.bounds.get("Theorem 6")

        def curve(index: int, epsilon: Array) -> Array:
            bounds = [first.in_direction(index, epsilon, every=THINNING)]
            if isinstance(sixth, TheoremSix) and sixth.gains(PAIR_FACTORS):
                bounds.append(sixth.anchors[index].profile(epsilon, every=PLACES_APART) * MARKUP)
            values = np.min([*bounds, *(bound._profile(epsilon) for bound in published)], axis=0)
            return np.asarray(values)

        curves = (partial(curve, index) for index in range(len(self.one_run.pair.directions)))
        return discretize_profiles(*curves, number=POINTS, adaptive=True)


def best_of(one_run: Guarantee | Statement, count: CountDistribution | float) -> Guarantee:
    """Guarantee of releasing only the best of K independent runs.

    Candidates are drawn with replacement from a distribution independent of the data, and so is K;
    "best" is by a total order on the run's own (private) output. Nothing else is released: not K,
    not the losers.

    Parameters
    ----------
    one_run : Guarantee or PrivacySpent
        One run, the choice of its hyperparameters and its score included.
    count : CountDistribution or float
        Distribution of K; a bare number stands for ``Geometric(mean)``.

    Returns
    -------
    Guarantee
        With ``bounds`` (all that apply) and ``tightest(delta)`` (the name of the one reported).

    Notes
    -----
    Theorem 1 of this library (docs/theory/best_of.md); Papernot & Steinke (2022); Koskela, Redberg
    & Wang (2024).

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP, Geometric, PureDP
    >>> search = best_of(GaussianDP(mu=0.2**0.5), Geometric(10))
    >>> round(search.epsilon_at(1e-6), 2), search.tightest(1e-6)
    (2.89, 'Theorem 1')
    >>> round(best_of(PureDP(epsilon=0.1), Geometric(10)).epsilon_at(0.0), 4)
    0.2636
    """
    one_run, distribution = as_guarantee(one_run, "one_run"), as_count_distribution(count)
    if isinstance(one_run, NonPrivate) or distribution == Fixed(1):
        return one_run
    return built_once(BestOf, one_run=one_run, count=distribution, neighboring=one_run.neighboring)
