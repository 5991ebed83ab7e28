"""What an adapter knows about the estimators of one library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..privacy import Guarantee


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """The promise of one ``fit`` of an estimator as configured.

    Parameters
    ----------
    guarantee : Guarantee
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
    def scaled(self, estimator: Any, factor: float) -> dict[str, Any]:
        """Parameters (for ``set_params``) with which every privacy loss of one ``fit`` is multiplied by ``factor``."""

    @abstractmethod
    def privacy_parameters(self, estimator: Any) -> tuple[str, ...] | None:
        """Names of the parameters on which the guarantee depends; None if any might matter."""

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        """Parameters that give one candidate its own secure randomness and its own ledger."""
        return {}

    def scrub(self, model: Any) -> None:
        """Delete what a fitted model holds of the data beyond what its guarantee covers."""
        return None
