"""What every private scorer is: a score computed from integers that one record can move only so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..privacy._checks import require
from ..privacy._types import Neighboring
from .noise import Sensitivity


class PrivateScorer(ABC):
    """A score of a fitted model on private records, through a vector of integers of known sensitivity.

    The search computes ``statistic``, adds noise drawn for ``sensitivity`` to each integer, and passes them
    to ``score``, which sees nothing else of the data. All three are told the neighbouring relation of the
    whole search: under ``"add_remove"`` the number of records is private too, so it must be computed from the noisy
    integers as well.

    A record's contribution must depend on that record and the model alone. Sample weights are not supported:
    they change the sensitivity.
    """

    @property
    def several_targets(self) -> bool:
        """Whether records may have several targets, or labels."""
        return False

    @abstractmethod
    def statistic(self, estimator: object, X: Any, y: Any, neighboring: Neighboring) -> list[int]:
        """The integers before noise: NOT private.

        A record that cannot be scored, or not with finite numbers, contributes the worst value.
        """

    @abstractmethod
    def sensitivity(self, neighboring: Neighboring) -> Sensitivity:
        """How far one record can move them."""

    @abstractmethod
    def score(self, noisy: Sequence[int], n_scored: int | None, neighboring: Neighboring) -> float:
        """The score, from noisy integers and public numbers. Greater is better; always finite.

        Parameters
        ----------
        noisy : sequence of int
            Statistic plus noise.
        n_scored : int or None
            The public number of scored records; not used under ``"add_remove"``, where that number is
            private.
        neighboring : {"add_remove", "zero_out", "replace_one"}
            The relation given to ``statistic``.
        """

    @abstractmethod
    def __call__(self, estimator: object, X: Any, y: Any) -> float:
        """The same metric without noise or rounding, for public data: NOT private. Greater is better.

        It keeps the bounds of the private score, so that public data rank candidates by the metric that was asked for.
        """

    def plain(self, estimator: object, X: Any, y: Any) -> float:
        """The metric without noise and without bounds, as ``search.score`` reports it for the caller's own test data.

        NOT private. Scorers that clip values to public bounds override this; the others are called as they are.
        """
        return float(self(estimator, X, y))


def is_additive(scorer: PrivateScorer) -> bool:
    """Whether the statistic of records is the sum of those of any parts of them.

    This is so of every scorer of this library, each of which sums what single records contribute. Of others nothing is
    known: a maximum, say, would move more if blocks were added up.
    """
    return type(scorer).__module__.startswith(f"{__package__}.")


def known_size(n_scored: int | None) -> int:
    """The number of scored records, where it is public; an error where it was left out."""
    require(
        n_scored is not None and n_scored >= 0,
        "the number of scored records, which is public under this relation",
        n_scored=n_scored,
    )
    return int(n_scored or 0)


def check_resolution(resolution: int, least: int = 1) -> int:
    """``resolution`` as an integer that does not wrap around, as those of NumPy would, or an error."""
    whole = not isinstance(resolution, bool) and int(resolution) == resolution and least <= resolution <= 10**9
    require(whole, f"an integer {least} <= resolution <= 10**9", resolution=resolution)
    return int(resolution)
