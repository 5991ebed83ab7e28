"""The statement of what was spent: the number to publish, and what it rests on."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, overload

from ._types import Array, Neighboring, Numbers
from .errors import PrivacyError
from .guarantees.base import Guarantee, Statement
from .guarantees.person import OfPerson, for_person
from .guarantees.risk import Risk
from .guarantees.tightest import SmallestOf
from .numerics.trade_off import TradeOff


@dataclass(frozen=True, kw_only=True)
class Component(Statement):
    """One part of a composition.

    Parameters
    ----------
    name : str
        What was released.
    guarantee : Guarantee
        What this part alone promises.
    """

    name: str
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacySpent(Statement, Risk):
    """What everything that one ``fit`` released costs. Unpacks as ``(epsilon, delta)``.

    Parameters
    ----------
    guarantee : Guarantee
        The total.
    delta : float
        The δ at which ``epsilon`` is stated.
    components : tuple of Component
        What was composed.
    assumptions : tuple of str
        What the statement rests on, as plain sentences.
    unit : str
        Whose presence or change the statement is about: a record, or so many records of one person.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> spent = PrivacySpent(guarantee=PureDP(epsilon=1.0), delta=0.0)
    >>> epsilon, delta = spent
    >>> epsilon, delta, spent.neighboring
    (1.0, 0.0, 'add_remove')
    """

    guarantee: Guarantee
    delta: float
    components: tuple[Component, ...] = ()
    assumptions: tuple[str, ...] = ()
    unit: str = "record"

    @property
    def epsilon(self) -> float:
        """ε of the total at ``delta``, rounded up."""
        return float(self.guarantee.epsilon_at(self.delta))

    @property
    def bound(self) -> str:
        """The theorem that gave the search's part of the number."""
        searches = [found for component in self.components for found in _searches(component.guarantee)]
        return searches[0].tightest(self.delta) if searches else "composition"

    @property
    def neighboring(self) -> Neighboring:
        """The neighbouring relation."""
        return self.guarantee.neighboring

    @overload
    def epsilon_at(self, delta: float) -> float: ...
    @overload
    def epsilon_at(self, delta: Numbers) -> Array: ...
    def epsilon_at(self, delta: float | Numbers) -> float | Array:
        """ε of the total at another δ."""
        return self.guarantee.epsilon_at(delta)

    @overload
    def delta_at(self, epsilon: float) -> float: ...
    @overload
    def delta_at(self, epsilon: Numbers) -> Array: ...
    def delta_at(self, epsilon: float | Numbers) -> float | Array:
        """δ of the total at an ε."""
        return self.guarantee.delta_at(epsilon)

    @property
    def _trade_off(self) -> TradeOff:
        return self.guarantee._trade_off

    def for_person(self, records: int) -> PrivacySpent:
        """The same statement for persons who have several records each.

        Parameters
        ----------
        records : int
            The largest number of records of one person, ≥ 1. It must be a public fact.

        Returns
        -------
        PrivacySpent
            At the same δ, of the same components; what it rests on says that nobody has more records.
        """
        if self.unit != "record":
            raise PrivacyError(
                f"Found a statement whose unit is {self.unit!r}; one whose unit is a record is needed. Call for_person "
                "on the statement of the fit itself."
            )
        return replace(
            self,
            guarantee=for_person(self.guarantee, records),
            components=tuple(replace(one, guarantee=for_person(one.guarantee, records)) for one in self.components),
            assumptions=(*self.assumptions, f"No person has more than {records} of the records."),
            unit=f"{records} records of one person",
        )

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON (an infinite ε as None).

        Of the total under ``"guarantee"`` ``privacy.from_dict`` makes the guarantee again. It is None where a profile
        in it is known only as a function.
        """
        epsilon = self.epsilon
        return {
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "delta": self.delta,
            "neighboring": self.neighboring,
            "unit": self.unit,
            "bound": self.bound,
            "components": [
                {
                    "name": component.name,
                    "epsilon_alone": self._alone(component),
                    "guarantee": repr(component.guarantee),
                }
                for component in self.components
            ],
            "assumptions": list(self.assumptions),
            "guarantee": self._written_total(),
        }

    def _written_total(self) -> dict[str, Any] | None:
        try:
            return self.guarantee.to_dict()
        except PrivacyError:
            return None

    def _alone(self, component: Component) -> float:
        return float(component.guarantee.epsilon_at(self.delta))

    def __repr__(self) -> str:
        number = f"epsilon={self.epsilon:.6g}, delta={self.delta:g}"
        unit = "" if self.unit == "record" else f", unit={self.unit!r}"
        return f"PrivacySpent({number}, neighboring={self.neighboring!r}, bound={self.bound!r}{unit})"

    def __str__(self) -> str:
        basis = f"({self.neighboring} neighbours; unit: {self.unit}; {self.bound})"
        lines = [f"epsilon = {_up(self.epsilon)} at delta = {self.delta:g} {basis}"]
        lines += [f"  {component.name}: alone epsilon = {_up(self._alone(component))}" for component in self.components]
        lines += [f"  {_in_words(self.epsilon, self.delta)}"]
        lines += [f"  assumes: {text}" for text in self.assumptions]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(component.name)}</td><td>{_up(self._alone(component))}</td></tr>"
            for component in self.components
        )
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in self.assumptions)
        basis = f"({html.escape(self.neighboring)} neighbours, unit: {self.unit}, {html.escape(self.bound)})"
        words = _in_words(self.epsilon, self.delta)
        return (
            f"<div><b>ε = {_up(self.epsilon)}</b> at δ = {self.delta:g} {basis}"
            f"<table><tr><th>released</th><th>ε alone</th></tr>{rows}</table><p>{words}</p><ul>{notes}</ul></div>"
        )


def _searches(guarantee: Guarantee) -> list[SmallestOf]:
    """The searches inside a guarantee: what has several bounds."""
    if isinstance(guarantee, SmallestOf):
        return [guarantee]
    if isinstance(guarantee, OfPerson):
        return _searches(guarantee.one_record)
    return [found for part in getattr(guarantee, "parts", ()) for found in _searches(part)]


def _in_words(epsilon: float, delta: float) -> str:
    """What (ε, δ) alone says about attacks; the whole profile, which takes longer, may say less."""
    part = math.exp(-epsilon)
    advantage = (1.0 - part + 2.0 * delta * part) / (1.0 + part)
    return f"no attack's true positive rate is above its false positive rate by more than {_up(advantage)}"


def _up(epsilon: float) -> str:
    """Three decimals, rounded up."""
    return f"{math.ceil(epsilon * 1000) / 1000:.3f}" if math.isfinite(epsilon) else "infinity"
