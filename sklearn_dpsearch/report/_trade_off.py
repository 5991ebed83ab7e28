"""The trade-off curve: bounds on attacks, with common readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy import Guarantee
from ..privacy._checks import Array
from ..privacy._guarantees.base import Statement, as_guarantee
from ..privacy._statement.content import Curve, percent_up
from ..search import BasePrivateSearch
from ._drawing import LOOKS, Display

#: The smallest rate on a logarithmic scale.
LEAST_RATE = 1e-4


@dataclass(kw_only=True, eq=False)
class TradeOffDisplay(Display):
    """Display of the largest true positive rate of any attack over its false positive rate.

    The trade-off curve upside down, in the form of scikit-learn's ROC curves: guessing lies on the
    diagonal.

    Parameters
    ----------
    false_positive_rates, true_positive_rates : ndarray of shape (n,)
        The corners of the curve.
    readings : dict of float to float
        False positive rate ↦ the largest true positive rate there.
    advantage : float
        The largest difference of both rates.

    Attributes
    ----------
    line_ : matplotlib line
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> display = TradeOffDisplay.from_guarantee(GaussianDP(mu=0.5))
    >>> round(display.readings[0.01], 3), round(display.advantage, 3)
    (0.034, 0.197)
    """

    false_positive_rates: Array
    true_positive_rates: Array
    readings: dict[float, float]
    advantage: float

    @classmethod
    def from_guarantee(
        cls, guarantee: Guarantee | Statement, *, rates: Sequence[float] = (0.01,)
    ) -> TradeOffDisplay:
        """Compute the curve.

        Parameters
        ----------
        guarantee : Guarantee or PrivacySpent
        rates : sequence of float, default=(0.01,)
            False positive rates at which it is read.

        Returns
        -------
        TradeOffDisplay
        """
        total = as_guarantee(guarantee)
        curve, power = Curve.of(total._trade_off), total._trade_off.true_positive_rate
        return cls(
            false_positive_rates=curve.false_positive_rates,
            true_positive_rates=curve.true_positive_rates,
            readings={float(rate): power(float(rate)) for rate in rates},
            advantage=total.advantage(),
        )

    @classmethod
    def from_estimator(
        cls, search: BasePrivateSearch, *, rates: Sequence[float] = (0.01,)
    ) -> TradeOffDisplay:
        """Compute the curve of what a search spent, or before ``fit`` of what it will cost.

        Parameters
        ----------
        search : search
        rates : sequence of float, default=(0.01,)
            False positive rates at which it is read.

        Returns
        -------
        TradeOffDisplay
        """
        spent = getattr(search, "privacy_spent_", None)
        return cls.from_guarantee(search.privacy_cost() if spent is None else spent, rates=rates)

    def plot(
        self, ax: Any = None, *, name: str = "no attack lies above", log: bool = False
    ) -> TradeOffDisplay:
        """Draw the curve, the diagonal of guessing and the readings.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones. Curves drawn on the same axes can be compared.
        name : str
            Of the curve, in the legend.
        log : bool, default=False
            Whether both rates are on a logarithmic scale, to see where few are accused.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        look = LOOKS[len(ax.get_lines()) // 3 % len(LOOKS)]
        rates = (self.false_positive_rates, self.true_positive_rates)
        (self.line_,) = ax.plot(*rates, label=name, **look.line)
        self._draw_diagonal(ax)
        self._draw_readings(ax, look.color)
        ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
        if log:
            ax.set(xscale="log", yscale="log")
        low = LEAST_RATE if log else -0.01
        ax.set(xlim=(low, 1.01), ylim=(low, 1.01))
        ax.legend(loc="lower right")
        return self

    def _draw_diagonal(self, ax: Any) -> None:
        """Draw the diagonal of pure guessing."""
        rates, ink = np.geomspace(LEAST_RATE, 1.0, 50), ax.xaxis.label.get_color()
        named = any(line.get_label() == "guessing" for line in ax.get_lines())
        label = "_" if named else "guessing"
        ax.plot(rates, rates, color=ink, linestyle=":", linewidth=1, label=label)

    def _draw_readings(self, ax: Any, color: str) -> None:
        """Mark readings on the curve, with text in the legend, where no line crosses it."""
        pairs = self.readings.items()
        lines = [f"{percent_up(power)} found, {100 * rate:g} % accused" for rate, power in pairs]
        lines.append(f"advantage {percent_up(self.advantage)}")
        rates, powers = list(self.readings), list(self.readings.values())
        ax.plot(rates, powers, "o", color=color, label="\n".join(lines))
