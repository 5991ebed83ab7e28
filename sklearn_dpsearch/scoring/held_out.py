"""Default number of validation records: a rule of public numbers."""

from __future__ import annotations

from ..privacy.mechanisms.bernoulli import RandomBytes
from .validation import Exposure, Fold, HoldOut, Validation, validation_of

#: The usual share, and the largest.
USUAL, LARGEST = 0.1, 0.3
#: Fewest validation records, and a sufficient number at ε ≥ 1. A smaller ε needs 1/ε times as many.
LEAST, ENOUGH = 40, 3000


def default_share(n_records: float, epsilon: float | None) -> float:
    """Share of the records that validates: a tenth; less of many records, more of few.

    Parameters
    ----------
    n_records : float
        A public number.
    epsilon : float or None
        Total of the search; None counts as 1.

    Examples
    --------
    >>> [default_share(n, 1.0) for n in (100, 200, 400, 10_000, 60_000)]
    [0.3, 0.2, 0.1, 0.1, 0.05]
    >>> default_share(100_000, 0.5)
    0.06
    """
    n, enough = max(n_records, 1), ENOUGH / min(1.0 if epsilon is None else float(epsilon), 1.0)
    return min(max(min(USUAL, enough / n), LEAST / n), LARGEST)


class UnknownShare(Validation):
    """Hold-out with a share that depends on the number of records, not yet known; its cost covers every share."""

    def exposures(self) -> tuple[Exposure, ...]:
        """Both uses without a probability: the worse use counts at every ε."""
        return (Exposure(1, 0), Exposure(0, 1))

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        raise AssertionError("Records are split only after their number was planned for.")


def validation_for(cv: object, n_samples: int | None, public: bool, epsilon: float | None) -> Validation:
    """Validation for ``cv``; None stands for a hold-out by the rule.

    Parameters
    ----------
    cv : object
        As the user gave it.
    n_samples : int or None
        Number of records, where known.
    public : bool
        Whether scores are on public data.
    epsilon : float or None
        Total of the search.
    """
    if cv is not None or public:
        return validation_of(cv, n_samples, public)
    return UnknownShare() if n_samples is None else HoldOut(default_share(n_samples, epsilon))
