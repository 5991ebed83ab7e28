"""Ledgers of a search: the ledger that counts a fit, and earlier fits in its statement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..ledger import PrivacyLedger
from ..ledger._ledger_context import is_counted, ledger_here, own_block
from ..privacy import PrivacyError
from ..privacy._spent import PrivacySpent
from ._planning.checks import nested_values, values_of_space

REPEATED_FIT = (
    "This search was fitted {} before. The cost of earlier fits, on the same records, is not "
    "included: {}"
)
MANUAL_TOTAL = "add it (privacy.compose), or let a PrivacyLedger count."
LEDGER_TOTAL = "ledger.spent() is the total of all entries."


def ledger_of(search: Any) -> PrivacyLedger | None:
    """Ledger in which a fit is entered: the search's own, or that of the block around it.

    None without a ledger, and inside another search, whose entry covers the inner fits.

    Raises
    ------
    PrivacyError
        If both ledgers are given and differ, or a search inside this one has another ledger.
    """
    parameter: PrivacyLedger | None = search.ledger
    if is_counted():
        return None
    around = ledger_here() if parameter is None else own_block()
    if parameter is not None and around is not None and parameter != around:
        raise PrivacyError(
            f"Found ledger={parameter!r} for a fit inside of a block of {around!r}; one ledger is "
            "needed for one data set. Leave one of them out."
        )
    ledger = around if parameter is None else parameter
    space = getattr(search, "param_distributions", None) or getattr(search, "param_grid", None)
    listed = list(values_of_space(space))
    inner = [value for part in (search.estimator, *listed) for value in nested_values(part)]
    ledgers = [value for value in (*listed, *inner) if isinstance(value, PrivacyLedger)]
    different = [other for other in ledgers if other != ledger]
    if different:  # a candidate that is a search never writes into its ledger
        raise PrivacyError(
            f"Found {different[0]!r} inside of the search, and {ledger!r} for the search itself, "
            "whose ledger covers all inner fits. Give the same ledger to the outer search."
        )
    return ledger


def with_earlier_fits(
    search: Any, spent: PrivacySpent, ledger: PrivacyLedger | None
) -> PrivacySpent:
    """Add the number of earlier fits, which is public, to the statement of a fit."""
    if not hasattr(search, "privacy_spent_"):
        return spent
    search._fits_before = getattr(search, "_fits_before", 0) + 1
    times = "once" if search._fits_before == 1 else f"{search._fits_before} times"
    text = REPEATED_FIT.format(times, MANUAL_TOTAL if ledger is None else LEDGER_TOTAL)
    return replace(spent, assumptions=(*spent.assumptions, text))
