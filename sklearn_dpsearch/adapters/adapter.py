"""Interface of an adapter: facts about the estimators of one library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..privacy import Guarantee
from ..privacy._types import Neighboring

#: Change of a good value of a hyperparameter with the number of records: "linear" (in proportion), "keep", or
#: (value, n, n') ↦ value.
ExtrapolationRule = str | Callable[[Any, float, float], Any]


class Estimator(Protocol):
    """Interface of every estimator: scikit-learn's parameters by name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def set_params(self, **parameters: Any) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """Guarantee of one ``fit`` of an estimator as configured.

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
    """Facts about one kind of estimators. Only ``fit_together`` touches data or fits."""

    @abstractmethod
    def recognises(self, estimator: object) -> bool:
        """Return whether this adapter vouches for exactly this type of estimator."""

    @abstractmethod
    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        """Guarantee of one ``fit``, and its assumptions.

        Raises
        ------
        UnknownGuaranteeError, LeakingEstimatorError
            If the estimator has no guarantee.
        """

    @abstractmethod
    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """Parameters (for ``set_params``) with which every privacy loss of one ``fit`` is multiplied by ``factor``.

        ``varying`` names the parameters in which candidates differ. An estimator that can state its noise through
        several parameters chooses one that does not vary.
        """

    @abstractmethod
    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        """Names of the parameters on which the guarantee depends; None if it may depend on any."""

    def fresh_randomness(self, estimator: Estimator) -> dict[str, Any]:
        """Parameters that give one candidate its own secure randomness and its own ledger."""
        return {}

    def integer_seeds(self, estimator: Estimator) -> dict[str, Any]:
        """Integers in place of the generators that a search with a seed has set, where integers are needed."""
        return {}

    def takes_chosen_rows(self, estimator: Estimator) -> bool:
        """Return whether ``fit`` takes records as ``ChosenRows``, without a copy."""
        return False

    def trains_together(self, estimator: Estimator) -> bool:
        """Return whether ``fit_together`` is worth calling for candidates of this estimator."""
        return False

    def fit_together(self, models: Sequence[Estimator], X: Any, y: Any) -> list[Any]:
        """Fit several unfitted models on the same records; None for each failure.

        The results are as if the models were fitted one after the other. Only the time may differ.
        """
        raise NotImplementedError(f"{type(self).__name__} does not train models together.")

    def expecting(self, estimator: Estimator, n: float) -> dict[str, Any] | None:
        """Parameters that make ``fit`` use the public number ``n`` of records instead of counting its records.

        The parameters do not change the guarantee. None: the estimator counts its records, or may do so.
        """
        return None

    def under(self, estimator: Estimator, neighboring: Neighboring) -> dict[str, Any] | None:
        """Parameters with which guarantee and noise are for the given neighbours; None if this is impossible."""
        return None

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        """Parameter ↦ change of its good values with the number of records. Parameters left out are kept."""
        return {}

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]] | None:
        """Space of candidates around the estimator's current parameters; lists of values alone with ``grid``.

        A list of dictionaries, as for ``param_distributions``. [{}]: nothing is worth searching. None: unknown.
        """
        return None

    def for_records(self, estimator: Estimator, n: int, places: int | None = None) -> None:
        """Fix what follows from the number ``n`` of all records (rate, steps), also for a fit on some of them.

        ``places``: public number of places for the records of the next ``fit``, whose own number is secret.
        """
        return None

    def prepare(self, model: Estimator) -> None:
        """Make an unfitted model read numbers as its guarantee needs. Called before each ``fit``."""
        return None

    def finish(self, model: Estimator) -> None:
        """Keep a fitted model's predictions within bounds from public constants.

        Called before the model is scored, so that the score is that of the released model. Post-processing: no data
        is read.
        """
        return None

    def scrub(self, model: Estimator) -> None:
        """Delete attributes of a fitted model that its guarantee does not cover."""
        return None
