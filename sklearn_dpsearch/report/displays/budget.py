"""Accuracy over the total ε: the user's results side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .drawing import Display, looks, plain_ticks
from .rows import fields_of


class Result(NamedTuple):
    """Score of one way to spend a budget.

    Parameters
    ----------
    label : str
    epsilon : float
        The total.
    mean : float
        Of the score, over repetitions.
    spread : float
        Drawn as an error bar to both sides, such as a standard error.
    """

    label: str
    epsilon: float
    mean: float
    spread: float = 0.0


@dataclass(kw_only=True, eq=False)
class BudgetDisplay(Display):
    """Scores over the total ε.

    Parameters
    ----------
    results : tuple of Result
        Label, total ε, mean score and its spread.
    reference : float or None
        The score without privacy, drawn as a line.

    Attributes
    ----------
    lines_ : dict of str to matplotlib container
    ax_, figure_ : matplotlib axes and figure

    Notes
    -----
    Scores on private records are secret, and so is a picture of them: use public or other people's records.

    Examples
    --------
    >>> display = BudgetDisplay.from_results([("one fit", 1.0, 0.81, 0.01), ("search", 1.0, 0.83, 0.01)])
    >>> display.results[1].mean
    0.83
    """

    results: tuple[Result, ...]
    reference: float | None = None

    @classmethod
    def from_results(
        cls, results: Iterable[Mapping[str, Any] | tuple[Any, ...]], *, reference: float | None = None
    ) -> BudgetDisplay:
        """Take results as they are.

        Parameters
        ----------
        results : iterable of tuple or mapping
            (label, epsilon, mean) or (label, epsilon, mean, spread) each; or mappings with these keys.
        reference : float, optional
            The score without privacy.

        Returns
        -------
        BudgetDisplay
        """
        return cls(results=tuple(Result(**fields_of(row, Result)) for row in results), reference=reference)

    def plot(self, ax: Any = None, *, score: str = "accuracy") -> BudgetDisplay:
        """Draw a line for each label.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.
        score : str, default="accuracy"
            What the scores are.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        self.lines_ = {}
        for label, look in zip(dict.fromkeys(one.label for one in self.results), looks()):
            own = sorted((one for one in self.results if one.label == label), key=lambda one: one.epsilon)
            _, epsilons, means, spreads = zip(*own)
            shown = {"marker": look.marker, "capsize": 3, **look.line}
            self.lines_[label] = ax.errorbar(epsilons, means, spreads, label=label, **shown)
        if self.reference is not None:
            ink = ax.xaxis.label.get_color()
            ax.axhline(self.reference, color=ink, linestyle=":", label="without privacy")
        ax.set(xlabel="total ε", ylabel=score, xscale="log")
        plain_ticks(ax.xaxis, sorted({one.epsilon for one in self.results}))
        ax.legend()
        return self
