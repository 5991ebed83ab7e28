"""What an adapter answers about the estimators of one library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..privacy import Guarantee
from ..privacy._types import Neighboring

#: How a good value of a hyperparameter changes with the number of records: "linear" (in proportion), "keep", or
#: (value, n, n') ↦ value.
ExtrapolationRule = str | Callable[[Any, float, float], Any]


class Estimator(Protocol):
    """What is needed of every estimator: scikit-learn's parameters by name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def set_params(self, **parameters: Any) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """The promise of one ``fit`` of an estimator as configured.

    Parameters
    ----------
    guarantee : Guarantee
        What one ``fit`` promises.
    assumptions : tuple of str
        What the guarantee rests on besides the mechanism, as sentences for ``privacy_spent_.assumptions``.
    """

    guarantee: Guarantee
    assumptions: tuple[str, ...] = ()


class Adapter(ABC):
    """What is known about one kind of estimators. Apart from ``fit_together`` nothing here touches data or fits."""

    @abstractmethod
    def recognises(self, estimator: object) -> bool:
        """Whether this adapter vouches for exactly this type of estimator."""

    @abstractmethod
    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        """What one ``fit`` promises.

        Raises
        ------
        UnknownGuaranteeError, LeakingEstimatorError
            Where it promises nothing.
        """

    @abstractmethod
    def scaled(self, estimator: Estimator, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Parameters (for ``set_params``) with which every privacy loss of one ``fit`` is multiplied by ``factor``.

        ``varying`` names the parameters in which candidates differ. An estimator that can state its noise through
        several parameters chooses one that is not among them.
        """

    @abstractmethod
    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        """Names of the parameters on which the guarantee depends; None if any of them might."""

    def fresh_randomness(self, estimator: Estimator) -> dict[str, Any]:
        """Parameters that give one candidate its own secure randomness and its own ledger."""
        return {}

    def takes_chosen_rows(self, estimator: Estimator) -> bool:
        """Whether ``fit`` takes records as ``ChosenRows``, of which a copy is then not needed."""
        return False

    def trains_together(self, estimator: Estimator) -> bool:
        """Whether ``fit_together`` is worth calling for candidates of this estimator."""
        return False

    def fit_together(self, models: Sequence[Estimator], X: Any, y: Any) -> list[Any]:
        """Fit several unfitted models on the same records; None stands in the place of each that failed.

        The results are those of fitting them one after the other. Only the time may differ.
        """
        raise NotImplementedError(f"{type(self).__name__} does not train models together.")

    def expecting(self, estimator: Estimator, n: float) -> dict[str, Any] | None:
        """Parameters that make ``fit`` use the public number ``n`` of records instead of counting those it is given.

        They do not change the guarantee. None: the estimator counts its records, or may do so.
        """
        return None

    def under(self, estimator: Estimator, neighboring: Neighboring) -> dict[str, Any] | None:
        """Parameters with which the guarantee is stated, and its noise made, for these neighbours; None: it cannot."""
        return None

    def public_size(self, estimator: Estimator) -> float | None:
        """The number of records, where the estimator was told it as a public constant."""
        return None

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        """Parameter ↦ how its good values change with the number of records. Parameters left out are kept."""
        return {}

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]] | None:
        """Candidates around what the estimator is set to; lists of values where a whole ``grid`` is needed.

        A list of dictionaries, as ``param_distributions`` takes it. [{}]: nothing is worth searching. None: not known.
        """
        return None

    def keep_training(self, estimator: Estimator, keeper: Any) -> None:
        """Where the estimator may keep its next ``fit`` from time to time, and go on from; None: nowhere any more.

        What it comes to stays the same, whatever is found there. An estimator that knows no such thing starts anew.
        """
        return None

    def finish(self, model: Estimator) -> None:
        """Keep a fitted model's predictions within what public constants say about them.

        It is called before the model is scored, so that the score is that of the released model. It reads nothing of
        the data: post-processing.
        """
        return None

    def scrub(self, model: Estimator) -> None:
        """Delete from a fitted model what its guarantee does not cover."""
        return None
