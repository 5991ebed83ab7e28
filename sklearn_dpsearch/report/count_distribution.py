"""Distributions of the number of runs K: probabilities, and the chance of a good winner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy import CountDistribution
from ..privacy._types import Array
from ..privacy.count_distributions.distributions import as_count_distribution
from .drawing import Display, cycle_looks, plain_ticks

#: Quantile of the distribution at which the plot of K ends.
MOST = 0.99
#: Shares of good candidates for which the chance to find one is computed.
SHARES = np.geomspace(1e-3, 0.5, 120)


@dataclass(kw_only=True, eq=False)
class CountDistributionDisplay(Display):
    """Display of the number of runs K and of success.

    The chance that one of the best candidates is among the runs.

    Parameters
    ----------
    runs : ndarray of shape (n,)
        1, 2, …
    probabilities : dict of str to ndarray of shape (n,)
        Distribution ↦ P[K = k] at ``runs``.
    shares : ndarray of shape (m,)
    success : dict of str to ndarray of shape (m,)
        Distribution ↦ chance that the winner is among the best candidates of a share, ranked by score.
    quantiles : dict of str to float
        Distribution ↦ expected quantile of the winner.

    Attributes
    ----------
    lines_ : dict of str to matplotlib line
    line_ : matplotlib line
        Line of the first distribution.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import Geometric, Poisson
    >>> display = CountDistributionDisplay.from_distribution([Geometric(10), Poisson(10)])
    >>> {name: round(one, 3) for name, one in display.quantiles.items()}
    {'Geometric(mean=10)': 0.827, 'Poisson(mean=10)': 0.9}
    """

    runs: Array
    probabilities: dict[str, Array]
    shares: Array
    success: dict[str, Array]
    quantiles: dict[str, float]

    @classmethod
    def from_distribution(
        cls, distribution: CountDistribution | float | Sequence[CountDistribution | float]
    ) -> CountDistributionDisplay:
        """Compute the display of one distribution, or of several.

        Parameters
        ----------
        distribution : CountDistribution, float or sequence of these
            As ``n_iter`` of a search: used given that there is a run.

        Returns
        -------
        CountDistributionDisplay
        """
        several = distribution if isinstance(distribution, Sequence) else [distribution]
        distributions = {repr(as_count_distribution(one)): as_count_distribution(one).at_least_one() for one in several}
        runs = np.arange(1, max(one.quantile(MOST) for one in distributions.values()) + 1)
        return cls(
            runs=runs.astype(float),
            probabilities={name: np.asarray(one.pmf(runs)) for name, one in distributions.items()},
            shares=SHARES,
            success={name: _success(one) for name, one in distributions.items()},
            quantiles={name: one.expected_quantile() for name, one in distributions.items()},
        )

    def plot(self, ax: Any = None, *, kind: str = "pmf") -> CountDistributionDisplay:
        """Draw the number of runs, or the chance of success.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.
        kind : {"pmf", "success"}, default="pmf"
            The probability of each number of runs, or the chance to find one of the best candidates.

        Returns
        -------
        self : object
        """
        if kind not in KINDS:
            raise ValueError(f"Found kind={kind!r}; one of {', '.join(map(repr, KINDS))} is needed.")
        ax = self._start(ax)
        self.lines_: dict[str, Any] = {}
        KINDS[kind](self, ax)
        self.line_ = next(iter(self.lines_.values()))
        ax.legend()
        return self

    def _pmf(self, ax: Any) -> None:
        """Draw the probability of each number of runs."""
        for (name, values), look in zip(self.probabilities.items(), cycle_looks()):
            label = f"{name}, expected quantile {self.quantiles[name]:.3f}"
            shown = {"marker": look.marker, "markersize": 4, **look.line}
            (self.lines_[name],) = ax.plot(self.runs, values, label=label, **shown)
        ax.set(xlabel="number of runs K", ylabel="probability", ylim=(0.0, None))

    def _success(self, ax: Any) -> None:
        """Draw the chance to find one of the best candidates."""
        for (name, values), look in zip(self.success.items(), cycle_looks()):
            (self.lines_[name],) = ax.plot(self.shares, values, label=name, **look.line)
        ax.set(
            xlabel="share of good candidates", ylabel="chance that the winner is one", xscale="log", ylim=(0.0, 1.02)
        )
        plain_ticks(ax.xaxis)


def _success(distribution: CountDistribution) -> Array:
    """Chances that the winner is among the best candidates."""
    return np.array([distribution.success_probability(float(share)) for share in SHARES])


#: Kind of plot ↦ function that draws it.
KINDS = {"pmf": CountDistributionDisplay._pmf, "success": CountDistributionDisplay._success}
