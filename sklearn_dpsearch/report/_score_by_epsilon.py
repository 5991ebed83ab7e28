"""Smallest ε that reaches a score, from fits on public or made-up records.

These records are as many as there will be private ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_random_state

from ..ledger._ledger_context import counted
from ..privacy._checks import Array, plain_number, require_whole
from ._drawing import LOOKS, Display

#: Share of the fits that must reach a score.
SHARE_OF_FITS = 0.8
CAVEAT = "From public or made-up records: how much private ones differ from them it cannot know."


@dataclass(kw_only=True, eq=False)
class NeededEpsilon(Display):
    """Display of a model's scores at several ε, and the smallest ε that reaches the wanted one.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Rising.
    scores : ndarray of shape (n_epsilons, n_fits)
    at_least : float
        Score that is wanted.
    n_samples : int
        Number of records of each fit.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    epsilons: Array
    scores: Array
    at_least: float
    n_samples: int

    @property
    def epsilon(self) -> float:
        """Smallest ε from which four of five fits reach the score.

        It is inf where none does.
        """
        reached = np.mean(self.scores >= self.at_least, axis=1) >= SHARE_OF_FITS
        failed = np.flatnonzero(~reached)
        first = int(failed[-1]) + 1 if failed.size else 0
        return float(self.epsilons[first]) if first < len(self.epsilons) else math.inf

    def __str__(self) -> str:
        rows = [
            f"{epsilon:>10.3g}  {np.mean(row):.4f}  {np.min(row):.4f}  {np.max(row):.4f}"
            for epsilon, row in zip(self.epsilons, self.scores)
        ]
        sufficient = f"epsilon = {self.epsilon:.3g} is needed"
        needed = "no epsilon here suffices" if math.isinf(self.epsilon) else sufficient
        score, n = f"{self.at_least:g}", f"{self.n_samples:,}"
        title = f"{needed} for a score of {score} in four of five fits on {n} records."
        heading = f"{'epsilon':>10}  {'mean':<6}  {'worst':<6}  best"
        return "\n".join([title, heading, *rows, CAVEAT])

    def plot(self, ax: Any = None, *, name: str = "mean") -> NeededEpsilon:
        """Draw scores over ε, and the score that is wanted.

        The line is the mean, the band reaches from the worst to the best fit.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.
        name : str
            Of the mean, in the legend.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        look = LOOKS[0]
        worst, best = self.scores.min(axis=1), self.scores.max(axis=1)
        ax.fill_between(self.epsilons, worst, best, color=look.color, alpha=0.2)
        mean = self.scores.mean(axis=1)
        ax.plot(self.epsilons, mean, marker=look.marker, label=name, **look.line)
        style = {"color": ax.xaxis.label.get_color(), "linestyle": ":"}
        ax.axhline(self.at_least, label=f"{self.at_least:g} is wanted", **style)
        ax.set(xscale="log", xlabel="ε", ylabel="score on other records")
        ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        ax.set_xticks([], minor=True)
        ax.legend(loc="lower right")
        return self


def needed_epsilon(
    estimator: Any,
    X_public: Any,
    y_public: Any,
    *,
    n_samples: int,
    at_least: float,
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    n_fits: int = 5,
    scoring: Any = None,
    random_state: Any = None,
) -> NeededEpsilon:
    """Smallest ε with which a model reaches a score, from public or made-up records alone.

    Each fit has a split of its own: two thirds of the records are drawn from, with replacement,
    until there are ``n_samples``; on the last third the fit is scored. Nothing private is read, and
    nothing is spent. Records that are drawn several times are fewer than they seem, so the score of
    a flexible model is a little too low.

    Parameters
    ----------
    estimator : estimator
        Model with ``target_epsilon``, or a search with ``epsilon``.
    X_public : array-like or data frame of shape (n_public, n_features)
        Public or made-up records.
    y_public : array-like of shape (n_public,)
        Their labels or numbers.
    n_samples : int
        Number of private records that there will be.
    at_least : float
        Score that is wanted.
    epsilons : sequence of float
        ε that are tried.
    n_fits : int, default=5
        Number of fits with each.
    scoring : str or callable, optional
        As in scikit-learn. None: the estimator's own score.
    random_state : int, RandomState or None
        Of the splits and draws.

    Returns
    -------
    NeededEpsilon

    Raises
    ------
    ValueError, TypeError
        For an estimator without a target for ε, and for numbers that cannot be.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn_dpsearch import needed_epsilon
    >>> from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> schema = {"worst radius": (0, 50), "worst concave points": (0, 0.4)}
    >>> model = DPGradientBoostingClassifier(schema, classes=[0, 1], target_delta=1e-5)
    >>> needed_epsilon(
    ...     model, X, y, n_samples=5000, at_least=0.9, epsilons=[0.01, 1.0], random_state=0
    ... ).epsilon
    1.0
    """
    require_whole(1, n_samples=n_samples, n_fits=n_fits)
    n_samples, n_fits = int(n_samples), int(n_fits)
    at_least, name = plain_number("at_least", at_least), _epsilon_parameter(estimator)
    values = np.sort(np.asarray(epsilons, dtype=float))
    rng = check_random_state(random_state)
    with counted():
        models = [clone(estimator).set_params(**{name: float(epsilon)}) for epsilon in values]
        splits = _splits(X_public, y_public, n_samples, n_fits, is_classifier(estimator), rng)
        scores = [
            [check_scoring(model, scoring)(clone(model).fit(X, y), *test) for model in models]
            for X, y, *test in splits
        ]
    by_epsilon = np.asarray(scores, float).T
    return NeededEpsilon(epsilons=values, scores=by_epsilon, at_least=at_least, n_samples=n_samples)


def _epsilon_parameter(estimator: Any) -> str:
    """Name of the parameter that sets ε of an estimator."""
    parameters = estimator.get_params(deep=False)
    for name in ("target_epsilon", "epsilon"):
        if name in parameters:
            return name
    raise ValueError(
        f"Found {type(estimator).__name__} without target_epsilon= or epsilon=; a model whose ε "
        "can be set is needed. Give a model of this library, one of diffprivlib, or a search."
    )


def _splits(
    X: Any, y: Any, n_samples: int, n_fits: int, stratified: bool, rng: np.random.RandomState
) -> Iterator[tuple[Any, ...]]:
    """Splits of public records for fitting and scoring: X and y of both.

    ``n_samples`` records are there to fit on; if ``stratified``, classes are spread evenly.
    """
    places, labels = np.arange(len(y)), np.asarray(y)
    stratify = labels if stratified else None
    for _ in range(n_fits):
        pool, test = train_test_split(places, test_size=1 / 3, stratify=stratify, random_state=rng)
        drawn = rng.choice(pool, n_samples)
        yield _safe_indexing(X, drawn), labels[drawn], _safe_indexing(X, test), labels[test]
