r"""Best of K runs, followed by another mechanism on the same records, such as one more training of the winner.

**Theorem 1, continued.** For every release of the search, let the later mechanism have a dominating pair with the
hockey-stick curve H′. In the terms of Theorem 1 both together satisfy, for every ε ≥ 0,

    δ(ε) ≤ E_{L~P} φ(e^{ε−L}) + f(0)·H′(e^ε),     φ(z) = max_q f'(q)·H′( z·f'(q_min(q))/f'(q) ).

Composing the two profiles would let every outcome choose another quantile q for each result of what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .._cached_property import cached_property
from .._checks import check_kind
from .._types import Array
from ..guarantees.base import Guarantee, Statement, as_guarantee, check_parts, pair_through, steps_of
from ..guarantees.composition import Envelope, Mixture, compose, envelope, mixture, same_neighbors
from ..guarantees.tightest import SmallestOf
from ..guarantees.values import NonPrivate
from ..numerics.loss_distribution import ROUNDING, DominatingPair, LossDistribution
from .best_of import POINTS, THINNED, BestOf, TheoremOne
from .hinges import CHUNK, AffineLines, Hinges, through

#: Number of points z at which φ is computed, and the largest |log z|: beyond, doubles overflow.
PLACES, FURTHEST_LOG = 700, 700.0


def followed_by(search: Guarantee | Statement, *later: Guarantee | Statement) -> Guarantee:
    """Guarantee of a search and of all later mechanisms, each chosen in view of the earlier releases.

    Like ``compose``, but a little tighter because the search comes first. The search must not depend on the later
    results.

    Parameters
    ----------
    search : Guarantee or PrivacySpent
        The first mechanism, e.g. ``best_of(one_run, count)``.
    *later : Guarantee or PrivacySpent
        Mechanisms run after the search on the same records.

    Returns
    -------
    Guarantee
        Never above ``compose(search, *later)``.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP, Geometric, best_of, compose
    >>> one_run = GaussianDP(mu=0.5)
    >>> search = best_of(one_run, Geometric(10))
    >>> [round(total(search, one_run).epsilon_at(1e-6), 3) for total in (compose, followed_by)]
    [4.365, 4.348]
    """
    first = as_guarantee(search, "search")
    rest = [as_guarantee(one, "later") for one in later]
    same_neighbors([first, *rest])
    return _followed_by(first, compose(*rest)) if rest else first


def _followed_by(first: Guarantee, after: Guarantee) -> Guarantee:
    if isinstance(first, Envelope):
        return envelope([_followed_by(part, after) for part in first.parts])
    if isinstance(first, Mixture):
        return mixture([_followed_by(part, after) for part in first.parts], first.weights)
    if isinstance(first, BestOf) and not isinstance(after, NonPrivate):
        return SearchThen(search=first, after=after, neighboring=first.neighboring)
    return compose(first, after)


@dataclass(frozen=True, kw_only=True)
class TheoremOneThen(Guarantee):
    """The guarantee of Theorem 1, continued."""

    first: TheoremOne
    after: Guarantee

    def _check(self) -> None:
        check_kind("first", self.first, TheoremOne, "a TheoremOne")
        check_parts(self, first=self.first, after=self.after)

    @cached_property
    def _directions(self) -> tuple[tuple[LossDistribution, LossDistribution, AffineLines], ...]:
        """Losses of one run and of the later mechanism, and the lines of Theorem 1, for a record removed and added."""
        run, after = self.first.one_run.pair, self.after.pair
        symmetric = len(run.directions) == len(after.directions) == 1
        found = []
        for index, name in enumerate(("removed",) if symmetric else ("removed", "added")):
            hinges = self.first._hinges[min(index, len(run.directions) - 1)]
            found.append((getattr(run, name), getattr(after, name), hinges.thinned(THINNED).lines()))
        return tuple(found)

    @cached_property
    def _hinges(self) -> tuple[Hinges, ...]:
        return tuple(continued(lines, after) for _, after, lines in self._directions)

    def in_direction(self, index: int, epsilon: Array) -> Array:
        """δ(ε) for a record removed (0) or added (1)."""
        run, after, _ = self._directions[index]
        none = self.first.count.probability_of_none * after.delta_at(epsilon)
        return np.minimum((self._hinges[index].delta_at(run, epsilon) + none) * (1.0 + ROUNDING), 1.0)

    def _profile(self, epsilon: Array) -> Array:
        values: Array = np.max([self.in_direction(i, epsilon) for i in range(len(self._directions))], axis=0)
        return values

    def _pair(self) -> DominatingPair:
        removed = partial(self.in_direction, 0)
        return pair_through(removed, removed if len(self._directions) == 1 else partial(self.in_direction, 1), POINTS)


def continued(lines: AffineLines, after: LossDistribution) -> Hinges:
    """φ from above, by chords: max over the lines of height·H′(z·fall/height), convex in z."""
    kept = lines.height > 0
    height, fall = lines.height[kept], lines.fall[kept]
    with np.errstate(divide="ignore"):
        moved = np.log(fall) - np.log(height)

    def largest(log_z: Array) -> Array:
        rows = max(1, CHUNK // height.size)
        chunks = [log_z[i : i + rows, None] + moved for i in range(0, log_z.size, rows)]
        return np.concatenate([np.max(height * after.delta_at(chunk), axis=1) for chunk in chunks])

    reach = float(np.max(np.abs(after.losses), initial=1.0))
    away = float(np.max(-moved[np.isfinite(moved)], initial=0.0))
    log_z = steps_of(largest, -min(reach, FURTHEST_LOG), min(reach + away, FURTHEST_LOG), PLACES)
    values = np.append(float(height.max()), largest(log_z))
    floor = values[-1]  # φ never rises: beyond the last point it is at most this
    falling = through(np.append(0.0, np.exp(log_z)), values - floor)
    return Hinges(np.append(falling.weights, floor), np.append(falling.ends, np.inf))


@dataclass(frozen=True, kw_only=True)
class SearchThen(SmallestOf):
    """A search and a later mechanism: at each ε the smaller of Theorem 1, continued, and the composition of both.

    Parameters
    ----------
    search : BestOf
        The first mechanism.
    after : Guarantee
        The later mechanism, for every fixed release of the search.
    """

    search: BestOf
    after: Guarantee
    pair_of_all = False

    def _check(self) -> None:
        check_kind("search", self.search, BestOf, "what best_of returned")
        check_parts(self, search=self.search, after=self.after)

    def _bounds(self) -> dict[str, Guarantee]:
        first = self.search.bounds["Theorem 1"]
        assert isinstance(first, TheoremOne)
        continued_ = TheoremOneThen(first=first, after=self.after, neighboring=self.neighboring)
        return {"Theorem 1": continued_, "composition": compose(self.search, self.after)}
