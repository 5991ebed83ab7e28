r"""Noise for scores: integers added to integers, and what that promises.

A score is computed from a vector of integers (counts, or sums of quantised values) in which one record can
change only so much. Independent noise of one law is added to every component; everything after that is
arithmetic on public numbers.

**Lemma (one component is the worst).** Let the components of X be independent with one symmetric log-concave
law on the integers, and v an integer vector with Σ|v_i| ≤ n. Then X + v is no easier to tell from X than
X₁ + n from X₁.

*Proof.* Let Γ_k(q) be the largest probability under X₁ + k of an event of probability q under X₁ (events may
be randomised); Γ_k is concave and nondecreasing. Walk from 0 to v in Σ|v_i| unit steps. Given all components
but the one that moves, a step changes the probability q of any event to at most Γ₁(q); by concavity this is
still so on average over the other components. So an event of probability q ends at Γ₁(Γ₁(…q)) at most. By
log-concavity the best events are tails, randomised at one integer: Γ_k is linear between the points (P[X₁ ≥
m], P[X₁ ≥ m − k]), Γ₁ carries the pieces of Γ_k onto pieces of Γ_{k+1}, and therefore Γ₁∘…∘Γ₁ = Γ_n. ∎
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, nextafter
from operator import index
from typing import Any

import numpy as np

from ..privacy import ZCDP, Guarantee, ProfileDP, PureDP, compose
from ..privacy.mechanisms.exact_sampling import SYSTEM, IntegerSource, discrete_gaussian, discrete_laplace
from .tails import shifted_profile

#: ρ beyond which losses are too large to be worth convolving.
MOST_CONVOLVED = 100.0


@dataclass(frozen=True)
class Sensitivity:
    """How much one record can change a vector of integers.

    Parameters
    ----------
    l1 : int
        Bound on the sum of the components' absolute changes, ≥ 1.
    l2_squared : int
        Bound on the sum of their squares, between ``l1`` and ``l1**2`` (as it is for integers).
    parts : tuple of int
        If given: every change splits into changes of disjoint components, the i-th with an l1 norm of at most
        ``parts[i]``. Gaussian noise is then accounted part by part, which is tighter than ``l1`` alone.
    """

    l1: int
    l2_squared: int
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("l1", "l2_squared"):  # integers of NumPy would wrap around
            object.__setattr__(self, name, _whole(getattr(self, name), name))
        object.__setattr__(self, "parts", tuple(_whole(part, "parts") for part in self.parts))
        if any(part < 1 for part in self.parts):
            raise ValueError(f"Expected parts >= 1, got parts={self.parts!r}.")
        if not 1 <= self.l1 <= self.l2_squared <= self.l1**2:
            raise ValueError(
                f"Expected 1 <= l1 <= l2_squared <= l1**2, got l1={self.l1!r}, l2_squared={self.l2_squared!r}."
            )


class Noise(ABC):
    """A law on the integers, drawn exactly."""

    @abstractmethod
    def sample(self, rng: IntegerSource = SYSTEM) -> int:
        """One draw."""

    @abstractmethod
    def guarantee(self, sensitivity: Sensitivity, neighboring: str) -> Guarantee:
        """What adding an independent draw to every component of a statistic promises, rounded up."""


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
        _set_positive_fraction(self, "scale")

    def sample(self, rng: IntegerSource = SYSTEM) -> int:
        return discrete_laplace(self.scale, rng)

    def guarantee(self, sensitivity: Sensitivity, neighboring: str) -> PureDP:
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
    >>> one = DiscreteGaussianNoise(Fraction(4)).guarantee(Sensitivity(1, 1), "add_remove")
    >>> round(one.epsilon_at(1e-6), 3), float(one.renyi(2.0))
    (2.276, 0.25)
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        _set_positive_fraction(self, "sigma_squared")

    def sample(self, rng: IntegerSource = SYSTEM) -> int:
        return discrete_gaussian(self.sigma_squared, rng)

    def guarantee(self, sensitivity: Sensitivity, neighboring: str) -> DiscreteGaussianDP:
        return DiscreteGaussianDP(sigma_squared=self.sigma_squared, sensitivity=sensitivity, neighboring=neighboring)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianDP(Guarantee):
    """Discrete Gaussian noise on every component of a statistic of integers.

    Two bounds hold, and the smaller is reported at each ε. One is the exact profile of a single component
    that moves by ``l1``: by the lemma above the worst case for that ``l1``, and hence exact where
    ``l2_squared == l1**2``. The other is the composition of the ``parts``, or, where none are known,
    ρ-zero-concentrated DP with ρ = l2²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4).

    Parameters
    ----------
    sigma_squared : Fraction
        σ² of the noise on every component.
    sensitivity : Sensitivity
        How far one record moves the statistic.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        How neighbours differ.
    """

    sigma_squared: Fraction
    sensitivity: Sensitivity

    @property
    def concentrated(self) -> ZCDP:
        """The same promise as a single number ρ."""
        return ZCDP(
            rho=float_above(self.sensitivity.l2_squared / (2 * self.sigma_squared)),
            neighboring=self.neighboring,
        )

    @property
    def has_renyi(self) -> bool:
        return True

    def renyi(self, order: Any) -> Any:
        """ρ·α."""
        return self.concentrated.renyi(order)

    def _profile(self, epsilon: Any) -> Any:
        exact = shifted_profile(float(self.sigma_squared), self.sensitivity.l1, epsilon)
        if self.sensitivity.l2_squared == self.sensitivity.l1**2:
            return exact
        return np.minimum(exact, self._several_components.delta_at(epsilon))

    @cached_property
    def _several_components(self) -> Guarantee:
        """A bound that knows that not everything happens to one component."""
        if not self.sensitivity.parts or self.concentrated.rho > MOST_CONVOLVED:
            return self.concentrated
        return compose(*[replace(self, sensitivity=Sensitivity(part, part**2)) for part in self.sensitivity.parts])

    def _pair(self) -> Any:
        return ProfileDP(profile=self._profile, neighboring=self.neighboring).pair


def float_above(value: Fraction) -> float:
    """The least double that is not below ``value``."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)


def _whole(value: Any, name: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"Expected {name} as an int, got {value!r} ({type(value).__name__}).") from None


def _set_positive_fraction(noise: Any, name: str) -> None:
    value = getattr(noise, name)
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        raise TypeError(f"Expected {name} as a Fraction or an int, got {value!r} ({type(value).__name__}).")
    if value <= 0:
        raise ValueError(f"Expected {name} > 0, got {name}={value}.")
    object.__setattr__(noise, name, Fraction(int(value.numerator), int(value.denominator)))  # no integers of NumPy
