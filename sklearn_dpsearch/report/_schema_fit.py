"""Report on how well a schema fits the records, at a price.

It states the shares of missing, unknown and clipped values.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data._persons import number_of_persons, one_of_each, persons_in
from ..ledger import PrivacyLedger
from ..ledger._ledger_context import ledger_here
from ..preprocessing import Schema
from ..preprocessing._columns import FITS
from ..privacy import GaussianDP, Guarantee, PureDP, _checks, calibrate
from ..privacy._checks import Neighboring
from ..privacy._mechanisms.release_sum import release_sum
from ..privacy._spent import Component, PrivacySpent
from ..privacy._statement.content import short_up, up
from ..scoring import Noise, Sensitivity
from ..scoring._noise_matching import matched_noise

PUBLIC_FACTS = (
    "The schema was not taken from the records, and the names and types of their columns are "
    "public."
)


@dataclass(frozen=True, kw_only=True)
class SchemaReport:
    """Report of noisy shares of values that a schema lacks.

    Attributes
    ----------
    shares : dict of str to dict
        Column ↦ "missing", "unknown", "below" or "above" ↦ share of the records, from 0 to 1.
    std : float
        Approximate standard deviation of the noise in a share.
    privacy_spent_ : PrivacySpent
        The cost of the report.
    """

    shares: Mapping[str, Mapping[str, float]]
    std: float
    privacy_spent_: PrivacySpent

    def to_frame(self) -> Any:
        """The shares as a pandas data frame, one row for each column of the schema.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame.from_dict(dict(self.shares), orient="index")

    def __str__(self) -> str:
        spent = self.privacy_spent_
        cost = f"epsilon = {up(spent.epsilon)} at delta = {short_up(spent.delta)}"
        lines = [f"shares of the records, ± {self.std:.2g}; the report costs {cost}"]
        for name, kinds in self.shares.items():
            shares = ", ".join(f"{kind} {share:.3f}" for kind, share in kinds.items())
            lines.append(f"{name}: {shares}")
        return "\n".join(lines)


def schema_report(
    X: Any,
    schema: Schema | Mapping[str, Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    neighboring: Neighboring = "zero_out",
    ledger: PrivacyLedger | None = None,
    groups: Any = None,
) -> SchemaReport:
    """Estimate shares of missing, unknown or clipped values of each column, with privacy.

    Encoders and nets take every value without an error, because an error would reveal the value. So
    a schema that does not fit the records goes unnoticed: values that the schema spells otherwise
    all count as unknown. This report tells, for a small part of the budget.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_columns)
        Private records; an array has the schema's columns in its order.
    schema : Schema or mapping
        The public schema.
    epsilon : float
        The cost, ε > 0.
    delta : float, default=0.0
        0: discrete Laplace noise. Above: discrete Gaussian noise, which is smaller for many
        columns.
    neighboring : {"zero_out", "add_remove", "replace_one"}, default="zero_out"
        Neighbouring relation.
    ledger : PrivacyLedger, optional
        Ledger in which the cost is entered before a value is used. None: the ledger of the block
        ``with ledger:``.
    groups : array-like of shape (n_samples,), optional
        Person of each record. The cost is then for persons: of each one's records one is drawn and
        counted, and shares are means over persons.

    Returns
    -------
    SchemaReport

    Raises
    ------
    ValueError, TypeError
        For columns that are missing, or of a type that cannot fit: names and types are public.
    BudgetExceededError
        If the ledger's budget allows no more. No value was used then.

    Notes
    -----
    In each column a record is in one cell of a histogram (the value fits, is missing, unknown,
    below or above the range). With d columns one record present or absent moves d counts by 1: l1 =
    l2² = d, and twice as much if it is replaced. Shares are noisy counts over the column's noisy
    total, so the number of records is not used. The noise is drawn exactly (Canonne, Kamath &
    Steinke 2020).

    Examples
    --------
    >>> import pandas as pd
    >>> ages, jobs = [30, 40, None, 210] * 5000, ["Clerk", "nurse"] * 10000
    >>> people = pd.DataFrame({"age": ages, "job": jobs})
    >>> report = schema_report(people, {"age": (17, 90), "job": ["clerk", "nurse"]}, epsilon=0.5)
    >>> round(report.shares["job"]["unknown"], 1), round(report.shares["age"]["missing"], 2)
    (0.5, 0.25)
    """
    epsilon = _checks.number_in("(0, inf)", epsilon=epsilon)
    delta = _checks.number_in("[0, 1)", delta=delta)
    _checks.check_neighboring(neighboring)
    checked = Schema.of(schema)
    columns = checked.read_columns(X)
    number = len(next(iter(columns.values())).values)
    unit = "record" if groups is None else "person"
    persons = np.arange(number) if groups is None else persons_in(groups, number)
    if neighboring != "add_remove":
        _checks.check_size_of_delta("delta", delta, max(number_of_persons(persons), 1), unit)

    noise, guarantee = _count_noise(len(checked), epsilon, delta, neighboring)
    part = Component(name=f"report on {len(checked)} columns of a schema", guarantee=guarantee)
    spent = PrivacySpent(
        guarantee=guarantee, delta=delta, components=(part,), assumptions=(PUBLIC_FACTS,), unit=unit
    )
    book = ledger_here() if ledger is None else ledger
    if book is not None:
        _checks.check_kind("ledger", book, PrivacyLedger, "a PrivacyLedger")
        book._spend_fit("schema_report", spent)

    counted = slice(None) if groups is None else one_of_each(persons, secrets.token_bytes)
    squared = Fraction(2 if neighboring == "replace_one" else 1)  # of one of the columns

    def add_noise(exact: NDArray[np.int64]) -> list[int]:
        return [int(count) + noise.sample() for count in exact]

    shares, totals = dict[str, dict[str, float]](), list[float]()
    for name, column in checked.columns.items():
        kinds = column.misfits(columns[name].values[counted])
        cells = (FITS, *column.ways_to_misfit)
        counts = np.bincount(kinds, minlength=len(cells))
        noisy = dict(zip(cells, release_sum(f"column {name}", counts, squared, add_noise)))
        totals.append(max(sum(noisy.values()), 1))
        shares[name] = {cell: min(max(noisy[cell] / totals[-1], 0.0), 1.0) for cell in cells[1:]}
    std = noise.std / float(np.median(totals))
    return SchemaReport(shares=shares, std=std, privacy_spent_=spent)


def _count_noise(
    columns: int, epsilon: float, delta: float, neighboring: Neighboring
) -> tuple[Noise, Guarantee]:
    """Noise of one count, and the guarantee of all counts."""
    # two neighbours differ in this many counts, in each by 1
    moved = (2 if neighboring == "replace_one" else 1) * columns
    sensitivity = Sensitivity(moved, moved, (1,) * moved)
    wanted: Guarantee = PureDP(epsilon=epsilon, neighboring=neighboring)
    if delta > 0:
        mu = calibrate(lambda mu: GaussianDP(mu=mu), epsilon, delta)
        wanted = GaussianDP(mu=mu, neighboring=neighboring)
    noise = matched_noise(wanted, sensitivity)
    return noise, noise.guarantee(sensitivity, neighboring)
