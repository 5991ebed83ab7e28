r"""Bounds on attacks, from a profile: error rates, advantage, success with a prior.

An attack decides between two neighbours. Its false positive rate is α, its false negative rate β.
If a mechanism is (ε, δ)-DP in both orders of the neighbours, then

    β ≥ max( 0,  1 − δ − e^ε·α,  e^{−ε}·(1 − δ − α) )

(Wasserman & Zhou 2010; Dong, Roth & Su 2022, Proposition 2.4). Each point (ε, δ) of a profile is a
line below the curve f of the mechanism, and the largest of finitely many lines is below it too: no
point in between is ever needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from .._checks import Array, ArrayLike, Numbers, as_numbers, cached_property, require
from .._numerics.basic_mechanisms import LARGEST_LOSS, negligible_from
from .._numerics.loss_distribution import ROUNDING, lower_hull

#: δ and true positive rates below this count as 0: no lines are added for them.
NEGLIGIBLE_RATE = 1e-13
#: Lines are added until none lowers the true positive rate by more than this share of it.
TOLERANCE = 1e-4
#: Cells with which the search for lines begins, and how often they are halved at most.
CELLS, HALVINGS = 64, 24


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Trade-off curve as the largest of lines and their mirror images.

    Parameters
    ----------
    epsilons : ndarray of shape (n,)
        0 = ε_1 < … < ε_n.
    deltas : ndarray of shape (n,)
        Upper bounds on δ(ε), falling.
    """

    epsilons: Array
    deltas: Array

    def false_negative_rate(self, false_positive_rate: float) -> float:
        """Smallest false negative rate at a false positive rate, rounded down."""
        alpha, c = false_positive_rate, np.exp(self.epsilons)
        steep = (1.0 - self.deltas) - c * alpha * (1.0 + ROUNDING)
        flat = (1.0 - self.deltas - alpha) / c
        return float(np.clip(max(np.max(steep), np.max(flat)) - ROUNDING, 0.0, 1.0))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Largest true positive rate at a false positive rate, rounded up.

        It has all digits where it is small.
        """
        alpha, c = false_positive_rate, np.exp(self.epsilons)
        steep = self.deltas + c * alpha
        flat = 1.0 - (1.0 - self.deltas - alpha) / c + ROUNDING
        return float(min(min(np.min(steep), np.min(flat)) * (1.0 + ROUNDING), 1.0))

    def advantage(self) -> float:
        """Largest true minus false positive rate, rounded up.

        It is max 1 − α − f(α) = δ(0), or less where the bounds on δ are not convex together.

        It is reached where α = f(α): a line and its mirror image meet at α = (1 − δ)/(1 + e^ε).
        """
        part = np.exp(-self.epsilons)
        values = (-np.expm1(-self.epsilons) + 2.0 * self.deltas * part) / (1.0 + part)
        return float(min(np.min(values) * (1.0 + ROUNDING), 1.0))

    @cached_property
    def corners(self) -> tuple[Array, Array]:
        """False and true positive rates at the corners of the curve, from α = β on to α = 0."""
        hull = lower_hull(self.epsilons, self.deltas)
        epsilons, deltas = self.epsilons[hull], self.deltas[hull]
        c = np.exp(epsilons)  # neighbouring lines meet at:
        alpha = -np.diff(deltas) / (c[:-1] * np.expm1(np.diff(epsilons)))
        power = deltas[:-1] + c[:-1] * alpha
        lower_half = alpha + power < 1.0  # beyond α = β follows the mirror image
        middle = 0.5 * (1.0 - self.advantage())
        rates = np.concatenate([[middle], alpha[lower_half], [0.0]])
        return rates, np.concatenate([[1.0 - middle], power[lower_half], deltas[-1:]])

    def right_guess(self, prior: float) -> float:
        """Largest probability of a right guess about membership, rounded up.

        max (1 − prior)·(1 − α) + prior·(1 − f(α)) is linear, so it is largest at a corner.
        """
        likely, unlikely = max(prior, 1.0 - prior), min(prior, 1.0 - prior)
        alpha, power = self.corners  # where α ≤ β, which is better for guessing what is likely
        return float(min(np.max(likely * (1.0 - alpha) + unlikely * power) + ROUNDING, 1.0))


def trade_off(profile: Callable[[Array], Array], largest: float | None = None) -> TradeOff:
    """Trade-off curve of a privacy profile, refined where it matters.

    Parameters
    ----------
    profile : callable
        ε ↦ an upper bound on δ(ε), on arrays of ε ≥ 0.
    largest : float, optional
        The ε at which the profile becomes 0, where it is known.
    """
    if largest is None:  # a power of two has its cells where round ε are: profiles may bend there
        largest = 2.0 ** np.ceil(np.log2(negligible_from(profile, NEGLIGIBLE_RATE)))
    reach = min(largest, LARGEST_LOSS)
    epsilons = np.unique(np.append(np.linspace(0.0, reach, CELLS + 1), 0.0))
    deltas = profile(epsilons)
    cells = np.arange(epsilons.size - 1)
    for _ in range(HALVINGS):
        middles = 0.5 * (epsilons[cells] + epsilons[cells + 1])
        middle_deltas = profile(middles) if middles.size else middles
        # cells in which another line lowers the curve
        c, gaps = np.exp(epsilons[cells]), epsilons[cells + 1] - epsilons[cells]
        alpha = (deltas[cells] - deltas[cells + 1]) / (c * np.expm1(gaps))
        power = deltas[cells] + c * alpha
        lower = power - (middle_deltas + np.exp(middles) * alpha)
        worth = (power > NEGLIGIBLE_RATE) & (lower > TOLERANCE * power)
        epsilons = np.insert(epsilons, cells + 1, middles)
        deltas = np.insert(deltas, cells + 1, middle_deltas)
        first = (cells + np.arange(cells.size))[worth]  # where the left half of a cell is now
        cells = np.sort(np.concatenate([first, first + 1]))
    return TradeOff(epsilons, np.minimum.accumulate(deltas))


class Accounted(ABC):
    """Base class of values with a guarantee: ε, δ, bounds on attacks (docs/theory/risk.md)."""

    @property
    @abstractmethod
    def _total(self) -> Any:
        """Guarantee of everything together, whose file imports this one."""

    @overload
    def delta_at(self, epsilon: float) -> float: ...
    @overload
    def delta_at(self, epsilon: Numbers) -> Array: ...
    def delta_at(self, epsilon: ArrayLike) -> float | Array:
        """δ(ε): the least δ for which the total implies (ε, δ)-DP.

        Parameters
        ----------
        epsilon : float or array-like
            ε ≥ 0.

        Returns
        -------
        float or ndarray
            Rounded up, in [0, 1].
        """
        epsilon = as_numbers("epsilon", epsilon)
        require(bool(np.all(epsilon >= 0)), "epsilon >= 0", epsilon=epsilon)
        values = self._total._delta(np.atleast_1d(epsilon))
        return float(values[0]) if epsilon.ndim == 0 else values.reshape(epsilon.shape)

    @overload
    def epsilon_at(self, delta: float) -> float: ...
    @overload
    def epsilon_at(self, delta: Numbers) -> Array: ...
    def epsilon_at(self, delta: ArrayLike) -> float | Array:
        """ε(δ): the least ε for which the total implies (ε, δ)-DP.

        Parameters
        ----------
        delta : float or array-like
            0 ≤ δ < 1.

        Returns
        -------
        float or ndarray
            Rounded up; infinite where no finite ε exists.
        """
        delta = as_numbers("delta", delta)
        require(bool(np.all((delta >= 0) & (delta < 1))), "0 <= delta < 1", delta=delta)
        values = np.array([self._total._known_epsilon(float(value)) for value in delta.ravel()])
        return float(values[0]) if delta.ndim == 0 else values.reshape(delta.shape)

    @overload
    def trade_off(self, false_positive_rate: float) -> float: ...
    @overload
    def trade_off(self, false_positive_rate: Numbers) -> Array: ...
    def trade_off(self, false_positive_rate: ArrayLike) -> float | Array:
        """Smallest false negative rate of any attack with this false positive rate.

        Parameters
        ----------
        false_positive_rate : float or array-like
            In [0, 1]: share of unused records that the attack calls used. For the opposite error
            the curve is the same.

        Returns
        -------
        float or ndarray
            Smallest false negative rate of the attack. Rounded down, in [0, 1].
        """
        bound = self._total._trade_off.false_negative_rate
        return _at_probabilities(bound, "false_positive_rate", false_positive_rate)

    def advantage(self) -> float:
        """Largest true minus false positive rate of any attack, rounded up.

        It is the total variation distance.
        """
        return float(self._total._trade_off.advantage())

    @overload
    def bayes_risk(self, prior: float, attack: str = "any") -> float: ...
    @overload
    def bayes_risk(self, prior: Numbers, attack: str = "any") -> Array: ...
    def bayes_risk(self, prior: ArrayLike, attack: str = "any") -> float | Array:
        """Largest probability of a right guess after the release.

        The guess was right with ``prior`` before.

        Parameters
        ----------
        prior : float or array-like
            Probability, in [0, 1], of the best guess without the release.
        attack : {"any", "membership"}
            ``"any"``: any guess about one record, such as a close reconstruction, the value of an
            attribute, or its membership. ``"membership"``: only whether the record was used, which
            has probability ``prior``; this bound is never larger.

        Returns
        -------
        float or ndarray
            Rounded up, in [prior, 1].

        Notes
        -----
        With f the trade-off curve: 1 − f(prior); for membership max over α of (1 − prior)·(1 − α) +
        prior·(1 − f(α)). Hayes, Mahloujifar & Balle (2023), Kulynych et al. (2025); proofs in
        docs/theory/risk.md.
        """
        valid = isinstance(attack, str) and attack in ATTACKS
        require(valid, f"attack to be one of {tuple(ATTACKS)}", attack=attack)
        return _at_probabilities(partial(ATTACKS[attack], self._total._trade_off), "prior", prior)


#: Bound on the probability of being right, by the kind of attack.
ATTACKS = {"any": TradeOff.true_positive_rate, "membership": TradeOff.right_guess}


def _at_probabilities(
    bound: Callable[[float], float], name: str, rates: ArrayLike
) -> float | Array:
    """Values of a bound at one or several checked probabilities."""
    checked = as_numbers(name, rates)
    require(bool(np.all((checked >= 0) & (checked <= 1))), f"0 <= {name} <= 1", **{name: checked})
    bounds = np.array([bound(float(rate)) for rate in checked.ravel()])
    return float(bounds[0]) if checked.ndim == 0 else bounds.reshape(checked.shape)
