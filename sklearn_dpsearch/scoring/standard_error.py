"""Standard error of a released score, from its noise and from a number of records that is only expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..privacy._types import Neighboring
from .base import PrivateScorer


def standard_error(
    scorer: PrivateScorer,
    noisy: Sequence[int],
    n_scored: int,
    neighboring: Neighboring,
    *,
    noise_std: float,
    size_std: float = 0.0,
) -> float:
    """The standard error of ``scorer.score(noisy, n_scored, neighboring)``, as a function of the same numbers.

    Each noisy integer, and the number of records, is moved up and down by its standard deviation; half the differences
    of the score add up in squares. This reads nothing but noisy integers and public numbers: post-processing.

    Parameters
    ----------
    scorer : PrivateScorer
        Scorer that made the score.
    noisy : sequence of int
        Statistic plus noise.
    n_scored : int
        The public number of scored records, as given to the score.
    neighboring : {"zero_out", "replace_one"}
        The relation, as given to the score.
    noise_std : float
        Of the noise on every integer.
    size_std : float
        Of the difference between ``n_scored`` and the number of records that were scored.

    Returns
    -------
    float
        Not a number where the score cannot be computed next to its arguments.
    """

    def moved(place: int, by: int) -> float:
        return scorer.score([value + by * (i == place) for i, value in enumerate(noisy)], n_scored, neighboring)

    def resized(by: int) -> float:
        return scorer.score(noisy, max(n_scored + by, 1), neighboring)

    try:
        errors = [_half_of(lambda by, i=i: moved(i, by), noise_std) for i in range(len(noisy))]  # type: ignore[misc]
        errors.append(_half_of(resized, size_std))
    except Exception:  # a user's scorer may refuse other integers; its score remains valid
        return math.nan
    return math.hypot(*errors)


def _half_of(score: Callable[[int], float], std: float) -> float:
    """Half the difference of the score between one standard deviation above and below."""
    step = max(round(std), 1)
    return 0.5 * (score(step) - score(-step)) * std / step
