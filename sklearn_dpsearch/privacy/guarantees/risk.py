"""What a guarantee says about attacks: error rates, advantage, success with a prior, and the closest Gaussian one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import overload

import numpy as np

from .._checks import require
from .._types import Array, ArrayLike, Numbers
from ..numerics.trade_off import GaussianFit, TradeOff


class Risk(ABC):
    """What has a trade-off curve, and so bounds every attack (docs/theory/risk.md)."""

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
            In [0, 1]: how often the attack says that a record was used although it was not; or the other way round, the
            curve is the same.

        Returns
        -------
        float or ndarray
            How often the attack then misses it, at least. Rounded down, in [0, 1].
        """
        rates = np.asarray(false_positive_rate, dtype=float)
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
        """The largest probability with which an attack is right that was right with ``prior`` before the release.

        Parameters
        ----------
        prior : float or array-like
            Probability, in [0, 1], of the best guess without the release.
        attack : {"any", "membership"}
            ``"any"``: whatever is guessed about one record, such as a reconstruction that comes close enough, the value
            of an attribute, or whether the record was used. ``"membership"``: the last of these only, prior the
            probability that it was; the bound is the smaller one.

        Returns
        -------
        float or ndarray
            Rounded up, in [prior, 1].

        Notes
        -----
        With f the trade-off curve: 1 − f(prior); for membership max over α of (1 − prior)·(1 − α) + prior·(1 − f(α)).
        Hayes, Mahloujifar & Balle (2023), Kulynych et al. (2025); proofs in docs/theory/risk.md.
        """
        priors = np.asarray(prior, dtype=float)
        _check_probabilities(priors, "prior")
        require(attack in ATTACKS, f"attack to be one of {tuple(ATTACKS)}", attack=attack)
        values = np.array([ATTACKS[attack](self._trade_off, float(one)) for one in priors.ravel()])
        return float(values[0]) if priors.ndim == 0 else values.reshape(priors.shape)

    def gaussian_mu(self, slack: float = 1e-9) -> GaussianFit:
        """The smallest μ whose μ-Gaussian guarantee, but for a probability ``slack``, covers the whole profile.

        Parameters
        ----------
        slack : float
            Probability, 0 ≤ slack < 1, of an open failure that is allowed besides. With 0 there is no μ for most
            profiles that are known numerically, such as that of DP-SGD: their far tail is a mass at infinity.

        Returns
        -------
        GaussianFit
            ``mu`` (infinite if none covers), ``regret`` (how far the Gaussian curve is from the one here: below 0.01
            it says nearly the same) and ``slack``.
        """
        require(0 <= slack < 1, "0 <= slack < 1", slack=slack)
        return self._trade_off.gaussian(slack)


#: What bounds the probability of being right, by the kind of attack.
ATTACKS = {"any": TradeOff.true_positive_rate, "membership": TradeOff.right_guess}


def _check_probabilities(values: Array, name: str) -> None:
    require(bool(np.all((values >= 0) & (values <= 1))), f"0 <= {name} <= 1", **{name: values})
