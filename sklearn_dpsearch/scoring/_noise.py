r"""Integer noise for scores, with its guarantee.

A score is computed from a vector of integers (counts, or sums of quantised values) of bounded
sensitivity. Independent noise of one distribution is added to every component; everything after
that is arithmetic on public numbers.

**Lemma (one component is the worst).** Let the components of X be independent with one symmetric
log-concave distribution on the integers, and v an integer vector with Σ|v_i| ≤ n. Then X + v is no
easier to tell from X than X₁ + n from X₁.

*Proof.* Let Γ_k(q) be the largest probability under X₁ + k of an event of probability q under X₁
(events may be randomised); Γ_k is concave and nondecreasing. Walk from 0 to v in Σ|v_i| unit steps.
Given all components but the one that moves, a step changes the probability q of any event to at
most Γ₁(q); by concavity this is still so on average over the other components. So an event of
probability q ends at Γ₁(Γ₁(…q)) at most. By log-concavity the best events are tails, randomised at
one integer: Γ_k is linear between the points (P[X₁ ≥ m], P[X₁ ≥ m − k]), Γ₁ carries the pieces of
Γ_k onto pieces of Γ_{k+1}, and therefore Γ₁∘…∘Γ₁ = Γ_n. ∎
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

from ..privacy import ZCDP, Guarantee, ProfileDP, PureDP, compose
from ..privacy._checks import (
    Array,
    ArrayLike,
    Neighboring,
    cached_property,
    check_kind,
    require,
    require_whole,
)
from ..privacy._mechanisms.exact_sampling import (
    SYSTEM_RANDOMNESS,
    IntegerSource,
    discrete_gaussian,
    discrete_laplace,
)
from ..privacy._numerics.arithmetic import float_above, positive_fraction
from ..privacy._numerics.loss_distribution import DominatingPair
from ..privacy._serialization import part_of_guarantees

#: Relative error that a tail may have; both ways of computing it below stay under a fifth of it.
TAIL_ERROR = 1e-12
#: σ up to which a tail is summed. For larger σ it is an integral with the Euler–Maclaurin
#: correction.
LARGEST_SUM = 1000.0
#: Standard deviations beyond which exp(−z²/2) is below 1e-300.
REACH = 38.6


def shifted_profile(variance: float, shift: int, epsilon: ArrayLike) -> Array:
    r"""Profile δ(ε) of a shifted discrete Gaussian, rounded up.

    δ(ε) = P[X > εσ²/Δ − Δ/2] − e^ε·P[X > εσ²/Δ + Δ/2].

    The hockey-stick divergence of the discrete Gaussian and its shift by Δ (Canonne, Kamath &
    Steinke 2020, Theorem 7). The likelihood ratio grows with k, so the best event is a tail. The
    tails that begin one integer earlier and one later are tried too, because rounding may have
    moved its first integer by one.

    Parameters
    ----------
    variance : float
        σ² > 0.
    shift : int
        Δ ≥ 1.
    epsilon : array-like
        ε ≥ 0.

    Returns
    -------
    ndarray
        In [0, 1], of the shape of ``epsilon``.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    first = np.floor(epsilon * (variance / shift) - 0.5 * shift) + 1.0
    odds = np.exp(np.minimum(epsilon, 700.0))
    events = [
        upper_tail(variance, first + step) * (1 + TAIL_ERROR)
        + 1e-300
        - odds * upper_tail(variance, first + step + shift) * (1 - TAIL_ERROR)
        for step in (-1.0, 0.0, 1.0)
    ]
    profile: Array = np.clip(np.max(events, axis=0), 0.0, 1.0)
    return profile


def upper_tail(variance: float, first: ArrayLike) -> Array:
    """Upper tail of the discrete Gaussian at integers.

    P[X ≥ first], with a relative error below ``TAIL_ERROR``.
    """
    first = np.asarray(first, dtype=float)
    beyond_zero = np.where(first > 0, first, 1.0 - first)
    sigma = float(np.sqrt(variance))
    summed = sigma <= LARGEST_SUM
    tail = _summed_tail(variance, beyond_zero) if summed else _integrated_tail(sigma, beyond_zero)
    return np.asarray(np.where(first > 0, tail, 1.0 - tail))


def _summed_tail(variance: float, first: Array) -> Array:
    """Upper tail of the discrete Gaussian by summation."""
    table = _tail_table(variance)
    return np.asarray(table[np.minimum(first, table.size - 1.0).astype(np.int64)])


@lru_cache(maxsize=32)
def _tail_table(variance: float) -> Array:
    """P[X ≥ k] for k = 0, 1, … until it vanishes, summed from the far end."""
    k = np.arange(int(np.ceil(REACH * np.sqrt(variance))) + 3)
    weights = np.exp(-(k.astype(float) ** 2) / (2.0 * variance))
    weights[-1] = 0.0
    above = np.cumsum(weights[::-1])[::-1]
    return np.asarray(above / (2.0 * above[0] - 1.0))


def _integrated_tail(sigma: float, first: Array) -> Array:
    r"""Upper tail of the discrete Gaussian by Euler–Maclaurin.

    Σ_{k ≥ m} f(k) = ∫_m^∞ f + f(m)/2 − f'(m)/12 + f'''(m)/720 − f⁗'(m)/30240, f(x) =
    exp(−x²/(2σ²)).

    The error is at most ∫|f⁽⁶⁾|/30240, some z⁶/(30240·σ⁶) of the sum for z = m/σ: below 2e-13 where
    f does not vanish. The sum over all integers is σ√(2π) up to a factor 1 + 2·exp(−2π²σ²).
    """
    z = first / sigma
    third, fifth = z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z
    boundary = 0.5 + z / (12 * sigma) - third / (720 * sigma**3) + fifth / (30240 * sigma**5)
    tail = special.ndtr(-z) + np.exp(-0.5 * z**2) * boundary / (sigma * np.sqrt(2 * np.pi))
    return np.asarray(np.where(z < REACH, tail, 0.0))


#: Above this ρ the loss is too large to be worth a convolution.
LARGEST_RHO = 100.0


@part_of_guarantees
@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a vector of integers: largest change by one record.

    Parameters
    ----------
    l1 : int
        Bound on the sum of the components' absolute changes, ≥ 1.
    l2_squared : int
        Bound on the sum of their squares, between ``l1`` and ``l1**2`` (as it is for integers).
    l1_of_blocks : tuple of int
        If given: the components fall into disjoint blocks, and one record changes the i-th block by
        at most ``l1_of_blocks[i]`` in l1. Gaussian noise is then accounted block by block, which is
        tighter than ``l1`` alone.
    """

    l1: int
    l2_squared: int
    l1_of_blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_whole(1, l1=self.l1, l2_squared=self.l2_squared)
        check_kind("l1_of_blocks", self.l1_of_blocks, tuple, "a tuple of integers")
        for l1 in self.l1_of_blocks:
            require_whole(1, l1_of_blocks=l1)
        for name in ("l1", "l2_squared"):  # integers of NumPy would wrap around
            object.__setattr__(self, name, int(getattr(self, name)))
        object.__setattr__(self, "l1_of_blocks", tuple(map(int, self.l1_of_blocks)))
        possible = 1 <= self.l1 <= self.l2_squared <= self.l1**2
        require(possible, "1 <= l1 <= l2_squared <= l1**2", l1=self.l1, l2_squared=self.l2_squared)


class Noise(ABC):
    """Base class of noise on integers, drawn exactly."""

    #: Norm of the distance between statistics by which its guarantee goes.
    norm = 2

    @abstractmethod
    def sample(self, rng: IntegerSource = SYSTEM_RANDOMNESS) -> int:
        """Draw one integer of noise."""

    @abstractmethod
    def times(self, factor: int) -> Noise:
        """Noise with a multiple of the standard deviation, exact."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation, in steps of one; at most this."""

    @abstractmethod
    def guarantee(self, sensitivity: Sensitivity, neighboring: Neighboring) -> Guarantee:
        """Guarantee of adding noise to every component of a statistic.

        Draws are independent, and the guarantee is rounded up.
        """


@dataclass(frozen=True)
class DiscreteLaplaceNoise(Noise):
    """Discrete Laplace noise, P[k] ∝ exp(−|k|/scale).

    It gives pure differential privacy with ε = l1/scale.

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
    norm = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_fraction(self.scale, "scale"))

    def sample(self, rng: IntegerSource = SYSTEM_RANDOMNESS) -> int:
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
    """Discrete Gaussian noise, P[k] ∝ exp(−k²/(2σ²)).

    See ``DiscreteGaussianDP``.

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
        sigma_squared = positive_fraction(self.sigma_squared, "sigma_squared")
        object.__setattr__(self, "sigma_squared", sigma_squared)

    def sample(self, rng: IntegerSource = SYSTEM_RANDOMNESS) -> int:
        return discrete_gaussian(self.sigma_squared, rng)

    def times(self, factor: int) -> DiscreteGaussianNoise:
        return DiscreteGaussianNoise(self.sigma_squared * factor**2)

    @property
    def std(self) -> float:
        """σ, that of the continuous distribution; the discrete one has a little less."""
        return math.sqrt(self.sigma_squared)

    def guarantee(self, sensitivity: Sensitivity, neighboring: Neighboring) -> DiscreteGaussianDP:
        return DiscreteGaussianDP(
            sigma_squared=self.sigma_squared, sensitivity=sensitivity, neighboring=neighboring
        )


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianDP(Guarantee):
    """Guarantee of discrete Gaussian noise on every component of a statistic of integers.

    Two bounds hold, and the smaller is reported at each ε. One is the exact profile of a single
    component that moves by ``l1``: by the lemma above the worst case for that ``l1``, and hence
    exact where ``l2_squared == l1**2``. The other is the composition of the blocks, or, where none
    are known, ρ-zero-concentrated DP with ρ = l2²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem
    4).

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
    has_renyi = True

    def _check(self) -> None:
        sigma_squared = positive_fraction(self.sigma_squared, "sigma_squared")
        object.__setattr__(self, "sigma_squared", sigma_squared)
        check_kind(
            "sensitivity", self.sensitivity, Sensitivity, "a Sensitivity, e.g. Sensitivity(1, 1),"
        )

    @property
    def concentrated(self) -> ZCDP:
        """Number ρ of zero-concentrated DP of one draw."""
        rho = float_above(self.sensitivity.l2_squared / (2 * self.sigma_squared))
        return ZCDP(rho=rho, neighboring=self.neighboring)

    def renyi(self, order: ArrayLike) -> Array:
        """Rényi divergence ρ·α."""
        return self.concentrated.renyi(order)

    def _profile(self, epsilon: Array) -> Array:
        exact = shifted_profile(float(self.sigma_squared), self.sensitivity.l1, epsilon)
        if self.sensitivity.l2_squared == self.sensitivity.l1**2:
            return exact
        return np.asarray(np.minimum(exact, self._several_components.delta_at(epsilon)))

    @cached_property
    def _several_components(self) -> Guarantee:
        """Bound on δ for changes of several components."""
        blocks = self.sensitivity.l1_of_blocks
        if not blocks or self.concentrated.rho > LARGEST_RHO:
            return self.concentrated
        return compose(*[replace(self, sensitivity=Sensitivity(l1, l1**2)) for l1 in blocks])

    def _pair(self) -> DominatingPair:
        return ProfileDP(profile=self._profile, neighboring=self.neighboring).pair
