"""Bounds on attacks: error rates, advantage, and success with a prior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import overload

import numpy as np

from .._checks import as_numbers, require
from .._types import Array, ArrayLike, Numbers
from ..numerics.trade_off import TradeOff


class Risk(ABC):
    """Bounds on every attack, from a trade-off curve (docs/theory/risk.md)."""

    @property
    @abstractmethod
    def _trade_off(self) -> TradeOff:
        """The trade-off curve, from below."""

    @overload
    def trade_off(self, false_positive_rate: float) -> float: ...
    @overload
    def trade_off(self, false_positive_rate: Numbers) -> Array: ...
    def trade_off(self, false_positive_rate: ArrayLike) -> float | Array:
        """The least false negative rate of any attack with this false positive rate.

        Parameters
        ----------
        false_positive_rate : float or array-like
            In [0, 1]: share of unused records that the attack calls used. For the opposite error the curve is the same.

        Returns
        -------
        float or ndarray
            Smallest false negative rate of the attack. Rounded down, in [0, 1].
        """
        rates = as_numbers("false_positive_rate", false_positive_rate)
        _check_probabilities(rates, "false_positive_rate")
        values = np.array([self._trade_off.false_negative_rate(float(rate)) for rate in rates.ravel()])
        return float(values[0]) if rates.ndim == 0 else values.reshape(rates.shape)

    def advantage(self) -> float:
        """The largest true minus false positive rate of any attack, rounded up: the total variation distance."""
        return self._trade_off.advantage()

    @overload
    def bayes_risk(self, prior: float, attack: str = "any") -> float: ...
    @overload
    def bayes_risk(self, prior: Numbers, attack: str = "any") -> Array: ...
    def bayes_risk(self, prior: ArrayLike, attack: str = "any") -> float | Array:
        """Largest probability of a right guess after the release, for a guess that was right with ``prior`` before.

        Parameters
        ----------
        prior : float or array-like
            Probability, in [0, 1], of the best guess without the release.
        attack : {"any", "membership"}
            ``"any"``: any guess about one record, such as a close reconstruction, the value of an attribute, or its
            membership. ``"membership"``: only whether the record was used, which has probability ``prior``; this bound
            is never larger.

        Returns
        -------
        float or ndarray
            Rounded up, in [prior, 1].

        Notes
        -----
        With f the trade-off curve: 1 − f(prior); for membership max over α of (1 − prior)·(1 − α) + prior·(1 − f(α)).
        Hayes, Mahloujifar & Balle (2023), Kulynych et al. (2025); proofs in docs/theory/risk.md.
        """
        priors = as_numbers("prior", prior)
        _check_probabilities(priors, "prior")
        require(isinstance(attack, str) and attack in ATTACKS, f"attack to be one of {tuple(ATTACKS)}", attack=attack)
        values = np.array([ATTACKS[attack](self._trade_off, float(one)) for one in priors.ravel()])
        return float(values[0]) if priors.ndim == 0 else values.reshape(priors.shape)


#: Bound on the probability of being right, by the kind of attack.
ATTACKS = {"any": TradeOff.true_positive_rate, "membership": TradeOff.right_guess}


def _check_probabilities(values: Array, name: str) -> None:
    require(bool(np.all((values >= 0) & (values <= 1))), f"0 <= {name} <= 1", **{name: values})
