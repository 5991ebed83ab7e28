"""Fits of single models in a ledger: each is entered before it uses a record, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..privacy.spent import PrivacySpent
from ..privacy.statement.content import Release
from .ledger_context import is_counted, ledger_here

#: Attribute of an unfitted model that travels to a worker process (skorch takes others for
#: arguments).
TRAVELLING = "_ledger_"
#: Most columns that an entry names.
MOST_NAMED = 3


def enter_fit(model: Any, spent: PrivacySpent, columns: Sequence[str] | int | None = None) -> None:
    """Enter the fit of a model in the ledger of the block around it; without one, nothing is done.

    Parameters
    ----------
    model : estimator
    spent : PrivacySpent
        Cost of this fit alone.
    columns : sequence of str, int or None
        Names of the columns that it reads, or their number.

    Raises
    ------
    BudgetExceededError
        If it would cost more than the budget allows; no record was used then.
    """
    travelled = vars(model).pop(TRAVELLING, None)
    ledger = ledger_here() or (None if is_counted() else travelled)
    if ledger is not None:
        ledger._spend_fit(type(model).__name__, spent, about=in_words(columns))


def state_in_block(state: dict[str, Any]) -> dict[str, Any]:
    """State of a model for pickles, with its ledger: worker processes do not see blocks."""
    if "privacy_spent_" in state or (ledger := ledger_here()) is None:
        return state
    return {**state, TRAVELLING: ledger}


def in_words(columns: Sequence[str] | int | None) -> str:
    """Text that names columns: ``age, job, ward, … (14 columns)``; empty if nothing is known."""
    if columns is None:
        return ""
    if isinstance(columns, int):
        return f"{columns} columns"
    named = ", ".join(columns[:MOST_NAMED])
    return named if len(columns) <= MOST_NAMED else f"{named}, … ({len(columns)} columns)"


def model_in_words(release: Release | None) -> str:
    """Text that names a tuned model and its columns: ``LogisticRegression: age, job``."""
    if release is None:
        return ""
    return ": ".join(filter(None, (release.model, in_words(release.columns))))
