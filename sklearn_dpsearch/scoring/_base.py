"""Base class of private scorers: scores computed from integers of bounded sensitivity."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..privacy._checks import Neighboring, plain_number, require
from ._noise import Sensitivity


class PrivateScorer(ABC):
    """Scorer of fitted models on private records.

    A score follows from a vector of integers of known sensitivity.

    The search computes ``statistic``, adds noise drawn for ``sensitivity`` to each integer, and
    passes the noisy integers to ``score``, which sees nothing else of the data. All three receive
    the neighbouring relation of the whole search, under which the number of records is public.

    A record's contribution must depend on that record and the model alone. Sample weights are not
    supported: they change the sensitivity.
    """

    @property
    def several_targets(self) -> bool:
        """True if records may have several targets, or labels."""
        return False

    @abstractmethod
    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        """Integers of the score before noise: NOT private.

        A record that cannot be scored, or not with finite numbers, contributes the worst value.
        """

    @abstractmethod
    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        """Sensitivity of the statistics to one record."""

    @abstractmethod
    def score(self, noisy: Sequence[int], n_scored: int, neighboring: Neighboring) -> float:
        """Score from noisy integers and public numbers.

        A greater score is better, and it is always finite.

        Parameters
        ----------
        noisy : sequence of int
            Statistic plus noise.
        n_scored : int
            The public number of scored records.
        neighboring : {"zero_out", "replace_one"}
            The relation given to ``statistic``.
        """

    @abstractmethod
    def __call__(self, estimator: object, X: Any, y: Any) -> float:
        """Metric without noise or rounding, for public data: NOT private. Greater is better.

        The bounds of the private score apply, so that public data rank candidates by the requested
        metric.
        """

    def plain(self, estimator: object, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Metric without noise and bounds, as ``search.score`` reports it for test data.

        NOT private: the test data are the caller's own. Scorers that clip values to public bounds
        or support weights override this method; by default the scorer itself is called.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (n_samples, n_features)
            Records to predict for.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights in the metric.
        """
        if sample_weight is not None:
            raise TypeError(
                f"Found sample_weight for {type(self).__name__}, whose metric is not defined with "
                "weights. Leave it out, or compute the weighted metric from search.predict."
            )
        return float(self(estimator, X, y))


def is_additive(scorer: PrivateScorer) -> bool:
    """Return whether the statistic of a score is a sum over records.

    Every scorer of this library sums contributions of single records. Other scorers count as not
    additive: a maximum, say, would move more if blocks were added up.
    """
    return type(scorer).__module__.startswith(f"{__package__}.")


def check_relation(neighboring: object) -> None:
    """Raise unless the relation makes the number of records public."""
    why = "under which the number of scored records is public"
    expected = f"neighboring='zero_out' or 'replace_one', {why}"
    require(neighboring in ("zero_out", "replace_one"), expected, neighboring=neighboring)


def check_resolution(resolution: int, minimum: int = 1) -> int:
    """Resolution of a score as a Python integer, or an error.

    It does not wrap around like NumPy's.
    """
    plain_number("resolution", resolution)
    is_valid = minimum <= resolution <= 10**9 and int(resolution) == resolution
    require(is_valid, f"an integer {minimum} <= resolution <= 10**9", resolution=resolution)
    return int(resolution)


def standard_error(
    scorer: PrivateScorer,
    noisy: Sequence[int],
    n_scored: int,
    neighboring: Neighboring,
    *,
    noise_std: float,
    size_std: float = 0.0,
) -> float:
    """Standard error of a score through its noise, as a function.

    It takes the numbers that ``scorer.score(noisy, n_scored, neighboring)`` takes.

    Each noisy integer, and the number of records, is moved up and down by its standard deviation;
    half the differences of the score add up in squares. This reads nothing but noisy integers and
    public numbers: post-processing.

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
        values = [value + by * (i == place) for i, value in enumerate(noisy)]
        return scorer.score(values, n_scored, neighboring)

    def resized(by: int) -> float:
        return scorer.score(noisy, max(n_scored + by, 1), neighboring)

    try:
        errors = [_half_difference(partial(moved, place), noise_std) for place in range(len(noisy))]
        errors.append(_half_difference(resized, size_std))
    except Exception:  # a user's scorer may refuse other integers; its score remains valid
        return math.nan
    return math.hypot(*errors)


def _half_difference(score: Callable[[int], float], std: float) -> float:
    """Half the difference of a score across two standard deviations."""
    step = max(round(std), 1)
    return 0.5 * (score(step) - score(-step)) * std / step
