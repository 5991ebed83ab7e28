"""Errors of the library: each message says what was found, what is needed and the remedy."""

import difflib
from collections.abc import Iterable
from typing import Any


class PrivacyError(ValueError):
    """A stated guarantee would be false, or cannot be stated.

    Attributes
    ----------
    listed : tuple of str
        The single refusals, where the message lists several.
    """

    listed: tuple[str, ...] = ()


class UnknownGuaranteeError(PrivacyError):
    """The guarantee of one training run of an estimator is unknown."""


class LeakingEstimatorError(PrivacyError):
    """An estimator is configured so that it would read something from the data without noise."""


class MixedNeighborsError(PrivacyError):
    """Guarantees under different neighbouring relations cannot be combined."""


class UnknownSensitivityError(PrivacyError):
    """A score on private records has no known sensitivity."""


class BudgetUnreachableError(PrivacyError):
    """No base parameter in reach meets the target."""


class BudgetExceededError(PrivacyError):
    """The total cost with earlier entries on the same records would exceed the budget of a ledger.

    Attributes
    ----------
    forecast : Forecast
        The numbers: the cost so far, the cost of this fit alone, the total, and the budget.
    """

    forecast: Any = None


class MissingDeltaError(PrivacyError):
    """A δ is needed, because the guarantee is not pure."""


def did_you_mean(found: object, known: Iterable[str]) -> str:
    """A suggestion to end an error message with, or nothing."""
    close = difflib.get_close_matches(str(found), list(known), 1, 0.5)
    return f" Did you mean {close[0]!r}?" if close else ""
