r"""Integer noise for scores, with its guarantee.

A score is computed from a vector of integers (counts, or sums of quantised values) of bounded sensitivity.
Independent noise of one distribution is added to every component; everything after that is arithmetic on public
numbers.

**Lemma (one component is the worst).** Let the components of X be independent with one symmetric log-concave
distribution on the integers, and v an integer vector with Σ|v_i| ≤ n. Then X + v is no easier to tell from X than
X₁ + n from X₁.

*Proof.* Let Γ_k(q) be the largest probability under X₁ + k of an event of probability q under X₁ (events may
be randomised); Γ_k is concave and nondecreasing. Walk from 0 to v in Σ|v_i| unit steps. Given all components
but the one that moves, a step changes the probability q of any event to at most Γ₁(q); by concavity this is
still so on average over the other components. So an event of probability q ends at Γ₁(Γ₁(…q)) at most. By
log-concavity the best events are tails, randomised at one integer: Γ_k is linear between the points (P[X₁ ≥
m], P[X₁ ≥ m − k]), Γ₁ carries the pieces of Γ_k onto pieces of Γ_{k+1}, and therefore Γ₁∘…∘Γ₁ = Γ_n. ∎
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import index

import numpy as np

from ..privacy import ZCDP, Guarantee, ProfileDP, PureDP, compose
from ..privacy._cached_property import cached_property
from ..privacy._checks import check_kind, require
from ..privacy._types import Array, ArrayLike, Neighboring
from ..privacy.dictionaries import part_of_guarantees
from ..privacy.mechanisms.exact_sampling import SYSTEM, IntegerSource, discrete_gaussian, discrete_laplace
from ..privacy.numerics.exact_numbers import float_above, positive_fraction
from ..privacy.numerics.loss_distribution import DominatingPair
from .discrete_gaussian_profile import shifted_profile

#: Above this ρ the loss is too large to be worth a convolution.
MOST_CONVOLVED = 100.0


@part_of_guarantees
@dataclass(frozen=True)
class Sensitivity:
    """Largest change of a vector of integers by one record.

    Parameters
    ----------
    l1 : int
        Bound on the sum of the components' absolute changes, ≥ 1.
    l2_squared : int
        Bound on the sum of their squares, between ``l1`` and ``l1**2`` (as it is for integers).
    l1_of_blocks : tuple of int
        If given: the components fall into disjoint blocks, and one record changes the i-th block by at most
        ``l1_of_blocks[i]`` in l1. Gaussian noise is then accounted block by block, which is tighter than ``l1`` alone.
    """

    l1: int
    l2_squared: int
    l1_of_blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared"):  # integers of NumPy would wrap around
            object.__setattr__(self, name, _whole(getattr(self, name), name))
        check_kind("l1_of_blocks", self.l1_of_blocks, tuple, "a tuple of integers")
        blocks = tuple(_whole(l1, "l1_of_blocks") for l1 in self.l1_of_blocks)
        object.__setattr__(self, "l1_of_blocks", blocks)
        require(all(l1 >= 1 for l1 in blocks), "l1_of_blocks >= 1", l1_of_blocks=blocks)
        possible = 1 <= self.l1 <= self.l2_squared <= self.l1**2
        require(possible, "1 <= l1 <= l2_squared <= l1**2", l1=self.l1, l2_squared=self.l2_squared)


class Noise(ABC):
    """Distribution on the integers, drawn exactly."""

    @abstractmethod
    def sample(self, rng: IntegerSource = SYSTEM) -> int:
        """One draw."""

    @abstractmethod
    def times(self, factor: int) -> Noise:
        """Noise of the same kind with ``factor`` times the standard deviation, in exact arithmetic."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation, in steps of one; at most this."""

    @abstractmethod
    def guarantee(self, sensitivity: Sensitivity, neighboring: Neighboring) -> Guarantee:
        """Guarantee of adding an independent draw to every component of a statistic, rounded up."""


@dataclass(frozen=True)
class DiscreteLaplaceNoise(Noise):
    """P[k] ∝ exp(−|k|/scale): pure differential privacy with ε = l1/scale.

    Parameters
    ----------
    scale : Fraction
        In steps of one, > 0.

    Examples
    --------
    >>> DiscreteLaplaceNoise(Fraction(2)).guarantee(Sensitivity(1, 1), "replace_one")
    PureDP(neighboring='replace_one', epsilon=0.5)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_fraction(self.scale, "scale"))

    def sample(self, rng: IntegerSource = SYSTEM) -> int:
        return discrete_laplace(self.scale, rng)

    def times(self, factor: int) -> DiscreteLaplaceNoise:
        return DiscreteLaplaceNoise(self.scale * factor)

    @property
    def std(self) -> float:
        """√2·scale, that of the continuous distribution; the discrete one has a little less."""
        return math.sqrt(2.0) * float(self.scale)

    def guarantee(self, sensitivity: Sensitivity, neighboring: Neighboring) -> PureDP:
        return PureDP(epsilon=float_above(sensitivity.l1 / self.scale), neighboring=neighboring)


@dataclass(frozen=True)
class DiscreteGaussianNoise(Noise):
    """P[k] ∝ exp(−k²/(2σ²)): see ``DiscreteGaussianDP``.

    Parameters
    ----------
    sigma_squared : Fraction
        σ² > 0, in steps of one.

    Examples
    --------
    >>> scoring = DiscreteGaussianNoise(Fraction(4)).guarantee(Sensitivity(1, 1), "zero_out")
    >>> round(scoring.epsilon_at(1e-6), 3), float(scoring.renyi(2.0))
    (2.276, 0.25)
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", positive_fraction(self.sigma_squared, "sigma_squared"))

    def sample(self, rng: IntegerSource = SYSTEM) -> int:
        return discrete_gaussian(self.sigma_squared, rng)

    def times(self, factor: int) -> DiscreteGaussianNoise:
        return DiscreteGaussianNoise(self.sigma_squared * factor**2)

    @property
    def std(self) -> float:
        """σ, that of the continuous distribution; the discrete one has a little less."""
        return math.sqrt(self.sigma_squared)

    def guarantee(self, sensitivity: Sensitivity, neighboring: Neighboring) -> DiscreteGaussianDP:
        return DiscreteGaussianDP(sigma_squared=self.sigma_squared, sensitivity=sensitivity, neighboring=neighboring)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianDP(Guarantee):
    """Discrete Gaussian noise on every component of a statistic of integers.

    Two bounds hold, and the smaller is reported at each ε. One is the exact profile of a single component
    that moves by ``l1``: by the lemma above the worst case for that ``l1``, and hence exact where
    ``l2_squared == l1**2``. The other is the composition of the blocks, or, where none are known,
    ρ-zero-concentrated DP with ρ = l2²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4).

    Parameters
    ----------
    sigma_squared : Fraction
        σ² of the noise on every component.
    sensitivity : Sensitivity
        Sensitivity of the statistic to one record.
    neighboring : {"zero_out", "replace_one"}
        Neighbouring relation.
    """

    sigma_squared: Fraction
    sensitivity: Sensitivity

    def _check(self) -> None:
        object.__setattr__(self, "sigma_squared", positive_fraction(self.sigma_squared, "sigma_squared"))
        check_kind("sensitivity", self.sensitivity, Sensitivity, "a Sensitivity, e.g. Sensitivity(1, 1),")

    @property
    def concentrated(self) -> ZCDP:
        """Guarantee of one draw as a single number ρ."""
        return ZCDP(
            rho=float_above(self.sensitivity.l2_squared / (2 * self.sigma_squared)),
            neighboring=self.neighboring,
        )

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: ArrayLike) -> Array:
        """ρ·α."""
        return self.concentrated.renyi(order)

    def _profile(self, epsilon: Array) -> Array:
        exact = shifted_profile(float(self.sigma_squared), self.sensitivity.l1, epsilon)
        if self.sensitivity.l2_squared == self.sensitivity.l1**2:
            return exact
        return np.asarray(np.minimum(exact, self._several_components.delta_at(epsilon)))

    @cached_property
    def _several_components(self) -> Guarantee:
        """A bound for changes that are spread over several components."""
        blocks = self.sensitivity.l1_of_blocks
        if not blocks or self.concentrated.rho > MOST_CONVOLVED:
            return self.concentrated
        return compose(*[replace(self, sensitivity=Sensitivity(l1, l1**2)) for l1 in blocks])

    def _pair(self) -> DominatingPair:
        return ProfileDP(profile=self._profile, neighboring=self.neighboring).pair


def _whole(value: int, name: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"Expected {name} as an int, got {value!r} ({type(value).__name__}).") from None
