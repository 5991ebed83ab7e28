"""Ledger of a fit: that of the surrounding block, or none where another entry counts the fit.

A block belongs to the thread that is in it (a context variable). Threads that a library starts
inside of a block, as joblib does, do not see the variable. So a thread without a block of its own
takes part in the one block that is open in the process: at worst an unrelated fit is entered.
Several open blocks are ambiguous, which is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeAlias

from .._process import flagged, is_private
from ..privacy import PrivacyError
from ..privacy._spent import PrivacySpent
from ..privacy._statement.content import Release

#: A ``PrivacyLedger``, whose file imports this one.
Ledger: TypeAlias = Any

#: The blocks that this thread, or this task, is in: the innermost is last.
_CURRENT_LEDGERS: ContextVar[tuple[Ledger, ...]] = ContextVar("ledgers", default=())
#: Whether the work done here uses no private records.
_COUNTED_WORK: ContextVar[bool] = ContextVar("counted", default=False)
#: The blocks that are open anywhere in this process. It has no lock, which a forked child could
#: find held.
_OPEN_LEDGERS: list[Ledger] = []


def enter_block(ledger: Ledger) -> None:
    """Open a block, ``with ledger:``, in which fits count in a ledger.

    Raises
    ------
    PrivacyError
        Inside of a block of another ledger.
    """
    around = own_block()
    if around is not None and around != ledger:
        raise PrivacyError(
            f"Found a block of {ledger!r} inside of one of {around!r}; one ledger is needed for "
            "one data set. End the outer block first, or give the searches of the inner one "
            "ledger= themselves."
        )
    _OPEN_LEDGERS.append(ledger)
    _CURRENT_LEDGERS.set((*_CURRENT_LEDGERS.get(), ledger))


def leave_block(ledger: Ledger) -> None:
    """Close a ledger's block."""
    _OPEN_LEDGERS.remove(ledger)
    _CURRENT_LEDGERS.set(_CURRENT_LEDGERS.get()[:-1])


def own_block() -> Ledger | None:
    """Ledger of the block that this thread itself is in."""
    blocks = _CURRENT_LEDGERS.get()
    return blocks[-1] if blocks else None


def ledger_here() -> Ledger | None:
    """Ledger of the surrounding block, in which a fit counts here, or None.

    Raises
    ------
    PrivacyError
        In a thread without a block, while blocks of several ledgers are open in others.
    """
    if is_counted():
        return None
    if (ledger := own_block()) is not None:
        return ledger
    opened = list(dict.fromkeys(tuple(_OPEN_LEDGERS)))
    if len(opened) > 1:
        raise PrivacyError(
            f"Found a thread outside of every ledger's block while blocks of {len(opened)} ledgers "
            "are open in others; which one is meant is needed. Give the search ledger=, also where "
            "workers fit it."
        )
    return opened[0] if opened else None


def refuse_in_block(name: str) -> None:
    """Raise in a ledger's block, for work whose result is not private.

    Raises
    ------
    PrivacyError
    """
    if (ledger := ledger_here()) is not None:
        raise PrivacyError(
            f"Found {name} in a block of {ledger!r}; its result is not private, so no entry could "
            "cover it. Give it public or made-up records, outside of the block."
        )


def counted() -> AbstractContextManager[None]:
    """Count no fit inside in any ledger, because its records are public or made up."""
    return flagged(_COUNTED_WORK)


def is_counted() -> bool:
    """Return whether fits here need no ledger entry.

    They use no private records, or are part of a search, whose entry covers them.
    """
    return _COUNTED_WORK.get() or is_private()


# --- fits of single models: each is entered before it uses a record, once -------------------------

#: Attribute of a model that travels to a worker process (skorch takes others for arguments).
LEDGER_ATTRIBUTE = "_ledger_"
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
    if (ledger := ledger_of_fit(model)) is not None:
        ledger._spend_fit(type(model).__name__, spent, about=in_words(columns))


def ledger_of_fit(model: Any) -> Ledger | None:
    """Ledger in which a fit of a model counts: of the block around, or of one that travelled."""
    return None if is_counted() else ledger_here() or vars(model).get(LEDGER_ATTRIBUTE)


class EntersFits:
    """Mixin of models whose fits are entered: worker processes do not see blocks."""

    def __getstate__(self) -> dict[str, Any]:
        """State for pickles, with the ledger of a block.

        A fitted model has it in a block alone, as it may be fitted again in a worker. It never has
        the noise seed, which would be enough to undo noise.
        """
        state: Any = super().__getstate__()
        ledger = ledger_here()
        if "privacy_spent_" in state:
            state = {name: value for name, value in state.items() if name != LEDGER_ATTRIBUTE}
            state["noise_seed"] = None
        return state if ledger is None else {**state, LEDGER_ATTRIBUTE: ledger}

    def __sklearn_clone__(self) -> Any:
        """Clone, with the ledger that travels: ensembles clone in worker processes."""
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        vars(clone).update({k: v for k, v in vars(self).items() if k == LEDGER_ATTRIBUTE})
        return clone


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
