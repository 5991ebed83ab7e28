"""Statement of the privacy cost: the number to publish, and its assumptions."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from datetime import date as Date
from typing import Any

from ..errors import PrivacyError
from ._checks import Neighboring
from ._guarantees.base import Guarantee, Statement
from ._guarantees.neighboring_relations import for_group
from ._statement.content import Release, json_number, short_up, up
from ._statement.report import Report
from ._statement.sections import budget_in_words, content_of, risk_in_words, tightest_theorem

#: δ at which a fit states ε where no ``target_delta`` was given; ``epsilon_at`` gives any other.
STATED_DELTA = 1e-5
#: Assumption of a fit with a ``noise_seed``.
SEEDED_NOISE = "noise_seed was given, which voids the guarantee for everybody: it is for tests."


@dataclass(frozen=True, kw_only=True)
class Component(Statement):
    """Named part of a composition, with its guarantee.

    Parameters
    ----------
    name : str
        Name of the released part.
    guarantee : Guarantee
        Guarantee of this part alone.
    """

    name: str
    guarantee: Guarantee

    def to_dict(self, delta: float) -> dict[str, Any]:
        """Convert to plain values, with ε alone at a δ."""
        alone = json_number(self.epsilon_at(delta))
        return {"name": self.name, "epsilon_alone": alone, "guarantee": repr(self.guarantee)}


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacySpent(Statement):
    """Privacy cost of one ``fit``; unpacks as ``(epsilon, delta)``.

    Parameters
    ----------
    guarantee : Guarantee
        The total.
    delta : float
        The δ at which ``epsilon`` is stated.
    components : tuple of Component
        The composed parts.
    assumptions : tuple of str
        Assumptions of the statement, as plain sentences.
    unit : str
        Unit of privacy: "record", "person" (all records of one person), or a number of records of
        one person.
    release : Release, optional
        Public facts of the release, if a fit made the statement.
    budget : float, optional
        ε that may be spent at ``delta``, if a ledger made the statement.

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
    release: Release | None = None
    budget: float | None = None

    @property
    def epsilon(self) -> float:
        """ε of the total at ``delta``, rounded up."""
        return float(self.guarantee.epsilon_at(self.delta))

    @property
    def bound(self) -> str:
        """The theorem that gave the search's part of the number."""
        return tightest_theorem((component.guarantee for component in self.components), self.delta)

    @property
    def neighboring(self) -> Neighboring:
        """The neighbouring relation."""
        return self.guarantee.neighboring

    def for_group(self, records: int) -> PrivacySpent:
        """Restate the cost for persons who have several records each.

        Parameters
        ----------
        records : int
            The largest number of records of one person, ≥ 1. It must be a public fact.

        Returns
        -------
        PrivacySpent
            At the same δ, of the same components; its assumptions say that no person has more
            records.
        """
        if self.unit != "record":
            raise PrivacyError(
                f"Found a statement whose unit is {self.unit!r}; one whose unit is a record is "
                "needed. Call for_group on the statement of the fit itself."
            )
        groups = [for_group(component.guarantee, records) for component in self.components]
        parts = zip(self.components, groups)
        return replace(
            self,
            guarantee=for_group(self.guarantee, records),
            components=tuple(replace(part, guarantee=of_group) for part, of_group in parts),
            assumptions=(*self.assumptions, f"No person has more than {records} of the records."),
            unit=f"{records} records of one person",
        )

    def __iter__(self) -> Iterator[float]:
        return iter((self.epsilon, self.delta))

    def to_dict(self) -> dict[str, Any]:
        """Convert the statement to plain values for JSON; an infinite ε becomes None.

        ``privacy.from_dict`` rebuilds the guarantee from the entry ``"guarantee"``. This entry is
        None if a profile in the total is known only as a function.
        """
        try:
            total = self.guarantee.to_dict()
        except PrivacyError:
            total = None
        return {
            "epsilon": json_number(self.epsilon),
            "delta": self.delta,
            "neighboring": self.neighboring,
            "unit": self.unit,
            "bound": self.bound,
            "components": [component.to_dict(self.delta) for component in self.components],
            "assumptions": list(self.assumptions),
            "release": None if self.release is None else self.release.to_dict(),
            "budget": self.budget,
            "guarantee": total,
        }

    def report(
        self,
        format: str = "html",
        *,
        about: Mapping[str, str] | None = None,
        date: Date | str | None = None,
    ) -> Report:
        """The statement in full, for people who must decide about it.

        Parameters
        ----------
        format : {"html", "markdown", "deployment"}
            A complete page, a text, or an entry of OpenDP's registry of deployments as YAML: what
            only a person can say stays a question there.
        about : mapping of str to str, optional
            Facts that only the curator knows: "Curator", "Data set, and who is in it", "Intended
            use of the release", "Who gets the release", "Why this ε and δ", "Contact"; for a
            registry also "Name", "Region", "Sector", "Sources", "Author of this entry". What is
            left out is marked as not stated.
        date : date or str, optional
            Of the statement, and published with it. None: today's, in coordinated universal time.

        Returns
        -------
        Report
            ``save(path)`` writes it, ``str()`` gives the text, and notebooks show it.

        Raises
        ------
        ValueError
            For a field of ``about`` that a statement has no place for.

        Examples
        --------
        >>> from sklearn_dpsearch.privacy import GaussianDP
        >>> spent = PrivacySpent(guarantee=GaussianDP(mu=0.5), delta=1e-6)
        >>> spent.report("markdown", date="2026-01-31").save("statement.md")  # doctest: +SKIP
        >>> spent.report(date="2026-01-31")
        <Privacy statement, 2026-01-31, as html: save(path), or str() for the text>
        """
        when = datetime.now(UTC).date() if date is None else date
        return Report(content=content_of(self, about or {}, when), form=format)

    def __repr__(self) -> str:
        number = f"epsilon={self.epsilon:.6g}, delta={self.delta:g}"
        terms = f"neighboring={self.neighboring!r}, bound={self.bound!r}"
        unit = "" if self.unit == "record" else f", unit={self.unit!r}"
        return f"PrivacySpent({number}, {terms}{unit})"

    def __str__(self) -> str:
        basis = f"({self.neighboring} neighbours; unit: {self.unit}; {self.bound})"
        lines = [f"epsilon = {up(self.epsilon)} at delta = {short_up(self.delta)} {basis}"]
        alone = [(part.name, up(part.epsilon_at(self.delta))) for part in self.components]
        lines += [f"  {name}: alone epsilon = {epsilon}" for name, epsilon in alone]
        lines += [f"  {text}" for text in (*budget_in_words(self), risk_in_words(self))]
        lines += [f"  assumes: {text}" for text in self.assumptions]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def cost_of_fit(
    model: Any, part: Component, assumptions: tuple[str, ...], unit: str, **public: Any
) -> PrivacySpent:
    """Cost of one fit of a model, outside of a search.

    Parameters
    ----------
    model : estimator with ``target_delta`` and ``noise_seed``
    part : Component
        The training.
    assumptions : tuple of str
    unit : str
    **public : dict
        Public facts of the release, besides those that the model has.
    """
    name = type(model).__name__
    return PrivacySpent(
        guarantee=part.guarantee,
        delta=STATED_DELTA if model.target_delta is None else float(model.target_delta),
        components=(part,),
        assumptions=assumptions,
        unit=unit,
        release=Release(
            made_by=name,
            model=name,
            attributes=("best_estimator_",),
            tuned=False,
            seeded=model.noise_seed is not None,
            target=getattr(model, "target", None),
            **public,
        ),
    )
