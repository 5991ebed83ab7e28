"""Privacy profiles: δ over ε of one run, of a search, of published bounds, and of a lower bound on the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..privacy import Guarantee, envelope, mixture, verify
from ..privacy._types import Array
from ..privacy.guarantees.base import SmallestOf, Statement, as_guarantee
from ..privacy.guarantees.composition import Composition, Envelope, Mixture
from ..privacy.selection.best_of import BestOf
from .drawing import SearchDisplay, cycle_looks

#: Smallest δ of drawn profiles, and factor on the total's ε at this δ up to which profiles are drawn.
SMALLEST, BEYOND = 1e-10, 1.3
#: Prefixes of the names of bounds published by others.
PUBLISHED = ("PS22", "KRW24", "KK23")
#: Number of ε at which a certificate is computed, which takes most of a second each; and the smallest δ.
CERTIFIED, FAINT = 6, 1e-8
#: Relative distance below the bound at which a certificate is tried.
CLOSE = 1e-6
#: Attributes in which a guarantee holds the guarantee of one of its runs.
INSIDE = ("one_run", "tune")
TOTAL, ONE_RUN = "everything released", "one run"


@dataclass(kw_only=True, eq=False)
class PrivacyProfileDisplay(SearchDisplay):
    """Display of privacy profiles side by side: δ over ε.

    Parameters
    ----------
    epsilons : ndarray of shape (n,)
    curves : dict of str to ndarray of shape (n,)
        Name ↦ δ at ``epsilons``, upper bounds; the first is the total.
    certificate : pair of ndarray or None
        ε, and a δ that some search with the same runs really has there: no true bound lies below.

    Attributes
    ----------
    lines_ : dict of str to matplotlib line
    line_ : matplotlib line
        The total's.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import PureDP, best_of
    >>> display = PrivacyProfileDisplay.from_guarantee(best_of(PureDP(epsilon=0.5), 10), certificate=False)
    >>> list(display.curves)
    ['everything released', 'one run', 'PS22 Lemma 7']
    >>> display.plot()  # doctest: +SKIP
    """

    epsilons: Array
    curves: dict[str, Array]
    certificate: tuple[Array, Array] | None = None

    @classmethod
    def from_guarantee(
        cls,
        guarantee: Guarantee | Statement,
        *,
        published: bool = True,
        certificate: bool = True,
        epsilons: Any = None,
        n_points: int = 150,
    ) -> PrivacyProfileDisplay:
        """Compute the profiles.

        Parameters
        ----------
        guarantee : Guarantee or PrivacySpent
            The total. Of a search the profile of one run is drawn too.
        published : bool, default=True
            Whether published bounds on the same search are drawn.
        certificate : bool, default=True
            Whether it is worked out what some search really loses. That is known for the best of K runs alone.
        epsilons : array-like, optional
            Where; None: up to where δ is negligible.
        n_points : int, default=150

        Returns
        -------
        PrivacyProfileDisplay
        """
        total = as_guarantee(guarantee)
        at = _epsilon_grid(total, n_points) if epsilons is None else np.asarray(epsilons, dtype=float)
        drawn = {TOTAL: total, **_curves_beside(total, published)}
        return cls(
            epsilons=at,
            curves={name: np.asarray(one.delta_at(at)) for name, one in drawn.items()},
            certificate=_certificate(total) if certificate and isinstance(total, BestOf) else None,
        )

    _from = from_guarantee

    def plot(self, ax: Any = None) -> PrivacyProfileDisplay:
        """Draw the profiles, δ on a logarithmic scale.

        Parameters
        ----------
        ax : matplotlib axes, optional
            None: new ones.

        Returns
        -------
        self : object
        """
        ax = self._start(ax)
        self.lines_ = {}
        for (name, deltas), look in zip(self.curves.items(), cycle_looks()):
            shown = np.where(deltas > 0, deltas, np.nan)  # beyond the largest loss of a pure guarantee
            (self.lines_[name],) = ax.plot(self.epsilons, shown, label=name, **look.line)
        self.line_ = self.lines_[TOTAL]
        self.line_.set(linewidth=2.5, zorder=3)
        if self.certificate is not None:
            ink = ax.xaxis.label.get_color()
            ax.plot(*self.certificate, "x", color=ink, label="some search really loses this much")
        ax.set(xlabel="ε", ylabel="δ", yscale="log", ylim=(SMALLEST, 2.0), xlim=(0.0, float(self.epsilons[-1])))
        ax.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False
        )  # inside, the legend would cover lines
        return self


def _epsilon_grid(total: Guarantee, number: int) -> Array:
    """Values of ε up to where δ is negligible."""
    far = float(total.epsilon_at(SMALLEST))
    return np.linspace(0.0, BEYOND * (far if 0 < far < np.inf else 1.0), number)


def _curves_beside(total: Guarantee, published: bool) -> dict[str, Guarantee]:
    """Guarantees of one run, and bounds on a search by others."""
    run = _pick_from_parts(total, _one_run)
    found = {} if run is None else {ONE_RUN: run}
    for name in _published(total) if published else ():
        bound = _pick_from_parts(total, partial(_bound_by_name, name=name))
        found |= {} if bound is None else {name: bound}
    return found


def _pick_from_parts(guarantee: Guarantee, pick: Callable[[Guarantee], Guarantee | None]) -> Guarantee | None:
    """Pick a guarantee inside each part of a mixture or envelope.

    Where a coin or a public split decides whether a record trains or validates, a search has a part for each.
    """
    if not isinstance(guarantee, Mixture | Envelope):
        return pick(guarantee)
    parts = [found for part in guarantee.parts if (found := _pick_from_parts(part, pick)) is not None]
    if len(parts) < len(guarantee.parts):
        return None
    return mixture(parts, guarantee.weights) if isinstance(guarantee, Mixture) else envelope(parts)


def _one_run(guarantee: Guarantee) -> Guarantee | None:
    """Guarantee of one run of the innermost search; of several parts, the first that has one."""
    if isinstance(guarantee, Composition):
        return next((run for part in guarantee.parts if (run := _pick_from_parts(part, _one_run)) is not None), None)
    inner = next((getattr(guarantee, name) for name in INSIDE if hasattr(guarantee, name)), None)
    return inner if inner is None else _pick_from_parts(inner, _one_run) or inner


def _published(guarantee: Guarantee) -> list[str]:
    """Names of published bounds on any part of a guarantee."""
    if isinstance(guarantee, Mixture | Envelope):
        return list(dict.fromkeys(name for part in guarantee.parts for name in _published(part)))
    bounds = guarantee.bounds if isinstance(guarantee, SmallestOf) else {}
    return [name for name in bounds if name.startswith(PUBLISHED)]


def _bound_by_name(guarantee: Guarantee, name: str) -> Guarantee | None:
    """Bound of a search by its name, or None."""
    return guarantee.bounds.get(name) if isinstance(guarantee, SmallestOf) else None


def _certificate(total: BestOf) -> tuple[Array, Array]:
    """Values of ε, and certified lower bounds on δ there.

    From a mechanism with the guarantee of one run; empty if no such mechanism is known.
    """
    far = float(total.epsilon_at(FAINT))
    places = np.linspace(0.0, far if far < np.inf else 1.0, CERTIFIED + 2)[1:-1]
    claims = np.asarray(total.delta_at(places)) * (1.0 - CLOSE)  # just refutable, so that witnesses are found
    found = [
        verify(total.one_run, total.count, float(epsilon), float(claim)).witness
        for epsilon, claim in zip(places, claims)
    ]
    known = np.array(found) > 0
    return places[known], np.array(found)[known]
