"""What a search has to do with ledgers: which one counts a fit, and what a statement says of fits before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .._process import born_silent
from ..ledger import PrivacyLedger, is_counted, ledger_here, own_block
from ..privacy import PrivacyError
from ..privacy.spent import PrivacySpent
from .planning.arguments import nested, values_of

BEFORE = (
    "This search was fitted {} before. What that cost, on the same records, is not in this number: add it "
    "(privacy.compose), or let a PrivacyLedger count."
)
BEFORE_WITH_LEDGER = (
    "This search was fitted {} before. What that cost, on the same records, is not in this number: ledger.spent() "
    "says the total of all that was entered."
)


def ledger_of(search: Any) -> PrivacyLedger | None:
    """The ledger in which a fit is entered: the search's own, or that of the block it is fitted in.

    None where there is none, and inside of another search, whose entry counts for all that it does.

    Raises
    ------
    PrivacyError
        If it is not clear which one is meant, or a search inside of this one has another.
    """
    if is_counted():
        return None
    given: PrivacyLedger | None = search.ledger
    around = ledger_here() if given is None else own_block()
    if given is not None and around is not None and given != around:
        raise PrivacyError(
            f"Found ledger={given!r} for a fit inside of a block of {around!r}; one ledger is needed for one data set. "
            "Leave one of them out."
        )
    found = around if given is None else given
    _check_inside(search, found)
    if found is not None and born_silent():
        raise PrivacyError(
            "Found a fit in a thread that a search's candidate may have started: its entry would tell how many "
            "candidates there are. Fit the inner search in the thread in which the candidate itself is fitted."
        )
    return found


def _check_inside(search: Any, found: PrivacyLedger | None) -> None:
    """A ledger inside of a search, for a search that is a candidate, would never be written into."""
    others = [one for one in _inside(search) if one != found]
    if others:
        raise PrivacyError(
            f"Found {others[0]!r} inside of the search, and {found!r} for the search itself; its own counts for all "
            "that it does, and is needed. Give the same ledger to the outer search."
        )


def _inside(search: Any) -> Iterable[PrivacyLedger]:
    """Ledgers among the parameters of the estimator, of the values in the space, and of what is in these."""
    space = getattr(search, "param_distributions", None) or getattr(search, "param_grid", None)
    listed = [value for _, value in values_of(space)]
    inner = [value for part in (search.estimator, *listed) for value in _parameters(part)]
    return [value for value in (*listed, *inner) if isinstance(value, PrivacyLedger)]


def _parameters(part: Any) -> Iterable[Any]:
    """Values of the parameters of an object, at any depth; a class has none."""
    return () if isinstance(part, type) else (value for _, value in nested(part))


def with_those_before(search: Any, spent: PrivacySpent, ledger: PrivacyLedger | None) -> PrivacySpent:
    """The statement of a fit, which says whether there were others before; their number is public."""
    if not hasattr(search, "privacy_spent_"):
        return spent
    search._fits_before = getattr(search, "_fits_before", 0) + 1
    times = "once" if search._fits_before == 1 else f"{search._fits_before} times"
    text = (BEFORE if ledger is None else BEFORE_WITH_LEDGER).format(times)
    return replace(spent, assumptions=(*spent.assumptions, text))


def taken_along(state: dict[str, Any]) -> dict[str, Any]:
    """What a search is pickled as: inside of a ledger's block it takes the ledger along as its parameter.

    Worker processes know nothing of the block.
    """
    if state.get("ledger") is None and (ledger := ledger_here()) is not None:
        return {**state, "ledger": ledger}
    return state
