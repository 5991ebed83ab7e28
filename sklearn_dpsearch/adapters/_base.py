"""What an adapter knows about the estimators of one library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..privacy import Guarantee

#: How a hyperparameter changes with the number of records: (value, n, n') ↦ value, or a word for it.
Rule = str | Callable[[Any, float, float], Any]


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """The promise of one ``fit`` of an estimator as configured.

    Parameters
    ----------
    guarantee : Guarantee
        What one ``fit`` promises.
    assumptions : tuple of str
        What the guarantee rests on beyond the mechanism, as plain sentences for ``privacy_spent_.assumptions``.
    """

    guarantee: Guarantee
    assumptions: tuple[str, ...] = ()


class Adapter(ABC):
    """Knowledge about the estimators of one kind. Nothing here touches data or fits."""

    @abstractmethod
    def recognises(self, estimator: Any) -> bool:
        """Whether this adapter vouches for exactly this type of estimator."""

    @abstractmethod
    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        """Promise of one ``fit``; raises ``LeakingEstimatorError`` or ``UnknownGuaranteeError`` where there is none."""

    @abstractmethod
    def scaled(self, estimator: Any, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Parameters (for ``set_params``) with which every privacy loss of one ``fit`` is multiplied by ``factor``.

        ``varying`` names the parameters in which candidates differ: an estimator may state its noise in a form that
        they leave alone.
        """

    @abstractmethod
    def privacy_parameters(self, estimator: Any) -> tuple[str, ...] | None:
        """Names of the parameters on which the guarantee depends; None if any might matter."""

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        """Parameters that give one candidate its own secure randomness and its own ledger."""
        return {}

    def trains_together(self, estimator: Any) -> bool:
        """Whether ``fit_together`` is worth calling for candidates of this estimator."""
        return False

    def fit_together(self, models: Sequence[Any], X: Any, y: Any) -> list[Any]:
        """Fit several unfitted models on the same records, None in the place of each that failed.

        The results are those of fitting them one after the other; only the time may differ.
        """
        raise NotImplementedError(f"{type(self).__name__} does not train models together.")

    def expecting(self, estimator: Any, n: float) -> dict[str, Any] | None:
        """Parameters with which ``fit`` uses the public number ``n`` of records and does not count those it is given.

        They leave the guarantee as it is. None: the estimator counts its records, or it is not known not to.
        """
        return None

    def public_size(self, estimator: Any) -> float | None:
        """The number of records that the estimator was told as a public constant, if it was."""
        return None

    def extrapolation(self, estimator: Any) -> Mapping[str, Rule]:
        """How good values of parameters change with the number of records, as configured.

        Name ↦ ``"linear"`` (in proportion), ``"keep"`` or a callable (value, n, n'); others are kept.
        """
        return {}

    def finish(self, model: Any) -> None:
        """What public constants say about the predictions of a fitted model; before it is scored, so that scores hold.

        Post-processing: it reads nothing of the data.
        """
        return None

    def scrub(self, model: Any) -> None:
        """Delete what a fitted model holds of the data beyond what its guarantee covers."""
        return None
