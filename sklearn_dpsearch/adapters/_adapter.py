"""Adapters: facts about the estimators of one library, or those that an estimator states itself."""

from __future__ import annotations

import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from ..privacy import Guarantee, PrivacyError, UnknownGuaranteeError
from ..privacy._checks import Neighboring
from ..privacy._serialization import is_ours as is_ours  # asked of estimators, too
from ..privacy.interop import from_event
from ._seeds import SEEDS

#: Change of a good value of a hyperparameter with the number of records: "linear" (in proportion),
#: "keep", or (value, n, n') ↦ value.
ExtrapolationRule = str | Callable[[Any, float, float], Any]
#: Parameters of an estimator, for ``set_params``.
Parameters = dict[str, Any]
Names = frozenset[str]
#: Space of candidates, as for ``param_distributions``; None where it is not known.
OwnSpace = list[dict[str, Any]] | None


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
        What the guarantee rests on besides the mechanism, as sentences for
        ``privacy_spent_.assumptions``.
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
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        """Parameters with which every privacy loss of one ``fit`` is multiplied by ``factor``.

        ``varying`` names the parameters in which candidates differ. An estimator that can state its
        noise through several parameters chooses one that does not vary.
        """

    @abstractmethod
    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        """Names of the parameters on which the guarantee depends; None if it may depend on any."""

    def fresh_randomness(self, estimator: Estimator) -> Parameters:
        """Parameters that give one candidate its own secure randomness and its own ledger."""
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

    def expecting(self, estimator: Estimator, n: float) -> Parameters | None:
        """Parameters that make ``fit`` use the public number ``n`` of records.

        With them ``fit`` does not count its records, and the guarantee does not change. The result
        is None for an estimator that counts its records, or may do so.
        """
        return None

    def under(self, estimator: Estimator, neighboring: Neighboring) -> Parameters | None:
        """Parameters for guarantee and noise under these neighbours; None if that is impossible."""
        return None

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        """Parameter ↦ change of its good values with the number of records, if they change."""
        return {}

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> OwnSpace:
        """Space of candidates around the estimator's current parameters.

        It is a list of dictionaries, as for ``param_distributions``, with lists of values alone if
        ``grid`` is true. [{}] means that nothing is worth searching, and None that the space is
        unknown.
        """
        return None

    def for_records(self, estimator: Estimator, n: int, places: int | None = None) -> None:
        """Fix what follows from the number ``n`` of all records (rate, steps).

        That holds for a fit on some of the records too. ``places`` is the public number of places
        for the records of the next ``fit``, whose own number is secret.
        """
        return None

    def prepare(self, model: Estimator) -> None:
        """Make a model take its seed, and numbers as its guarantee needs, before each ``fit``."""
        return None

    def finish(self, model: Estimator) -> None:
        """Keep a fitted model's predictions within bounds from public constants.

        Called before the model is scored, so that the score is that of the released model.
        Post-processing: no data is read.
        """
        return None

    def scrub(self, model: Estimator) -> None:
        """Delete attributes of a fitted model that its guarantee does not cover."""
        return None


# --- checks that several adapters share -----------------------------------------------------------


def positive(owner: str, name: str, value: Any, below: float = math.inf) -> float:
    """A parameter of an estimator that must be a number between 0 and ``below``."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < below:
        needed = f"a number between 0 and {below:g} is needed."
        raise PrivacyError(f"Found {name}={value!r} in {owner}; {needed}")
    return float(value)


def require_version(package: str, distribution: str, examined: str, example: str) -> None:
    """Raise unless the loaded package is the release whose sources were read."""
    version = getattr(sys.modules.get(package), "__version__", None)
    if version != examined:
        raise UnknownGuaranteeError(
            f"Found {distribution} {version}; what its models really promise is known for "
            f"{examined}. Install {distribution}=={examined}, or declare the guarantee of one fit, "
            f"e.g. guarantee={example}."
        )


# --- estimators that state their own guarantee ----------------------------------------------------


class PrivateEstimator(Estimator, Protocol):
    """Interface of an estimator that states its own guarantee.

    Each of these facts may be stated too, as a method or an attribute of the estimator. The methods
    of ``Adapter`` of the same name say what they mean, without ``estimator``:

    - ``privacy_parameters``, ``scaled_privacy(factor, varying)``, ``under(neighboring)``,
      ``expecting(n)``;
    - ``search_space(grid=False)``, ``extrapolation()``;
    - ``fit_together(models, X, y)``, a static method;
    - ``privacy_assumptions()``: assumptions of the guarantee, as sentences;
    - ``secure_without_seed``: with True and ``random_state=None`` (``noise_seed=None``) the
      estimator draws on the operating system, and keeps None. Other estimators get a generator with
      fresh entropy.
    """

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """Guarantee of one ``fit`` on ``n_samples`` records (None: not known yet)."""


class ProtocolAdapter(Adapter):
    """Adapter for anything with a method ``privacy_guarantee(n_samples) -> Guarantee``.

    ``PrivateEstimator`` lists what else an estimator may state. Instead of the method it may have
    ``dp_event``, the event of one ``fit`` as configured or a method that returns it, and
    ``neighboring_relation``, both of ``dp_accounting``. A subclass of an estimator of this library
    may have changed ``fit``: the subclass needs a statement of its own, and is not trained together
    with others.
    """

    def recognises(self, estimator: object) -> bool:
        return _states(estimator, "privacy_guarantee") or _states(estimator, "dp_event")

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        name = type(estimator).__name__
        if not _states(estimator, "privacy_guarantee"):
            event = estimator.dp_event() if callable(estimator.dp_event) else estimator.dp_event
            guarantee, word = from_event(event, _relation(estimator)), f"event: {event!r}"
            return TrainingRun(guarantee=guarantee, assumptions=(f"{name} states its own {word}.",))
        # a search: its guarantee rests on the assumptions of its estimator
        if _has(estimator, "_unseeded_cost"):
            spent = estimator._unseeded_cost(n_samples)
            word = f"{name} states its own guarantee: {spent.guarantee!r}."
            return TrainingRun(guarantee=spent.guarantee, assumptions=(word, *spent.assumptions))
        promise = estimator.privacy_guarantee(n_samples)
        if not isinstance(promise, Guarantee):
            raise UnknownGuaranteeError(
                f"{name}.privacy_guarantee returned {type(promise).__name__}. It must return a "
                "guarantee from sklearn_dpsearch.privacy, e.g. PureDP(epsilon=1.0)."
            )
        assumptions: tuple[str, ...] = (f"{name} states its own guarantee: {promise!r}.",)
        if _has(estimator, "privacy_assumptions"):
            assumptions = tuple(estimator.privacy_assumptions())
        return TrainingRun(guarantee=promise, assumptions=assumptions)

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        if _has(estimator, "scaled_privacy"):
            return dict(estimator.scaled_privacy(factor, varying))
        return scaled_by_name(estimator, factor)

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        names: tuple[str, ...] | None = getattr(estimator, "privacy_parameters", None)
        return names

    def fresh_randomness(self, estimator: Estimator) -> Parameters:
        if not getattr(estimator, "secure_without_seed", False):
            return {}
        return dict.fromkeys(sorted(set(SEEDS) & set(estimator.get_params(deep=False))))

    def takes_chosen_rows(self, estimator: Estimator) -> bool:
        return is_ours(type(estimator)) and getattr(estimator, "takes_chosen_rows", False) is True

    def trains_together(self, estimator: Estimator) -> bool:
        return _states(estimator, "fit_together")

    def fit_together(self, models: Sequence[Any], X: Any, y: Any) -> list[Any]:
        return list(models[0].fit_together(models, X, y))

    def expecting(self, estimator: Estimator, n: float) -> Parameters | None:
        return estimator.expecting(n) if _has(estimator, "expecting") else None

    def for_records(self, estimator: Estimator, n: int, places: int | None = None) -> None:
        if _has(estimator, "sized") and (parameters := estimator.sized(n)):
            estimator.set_params(**parameters)
        if places is not None and _has(estimator, "in_places") and is_ours(type(estimator)):
            estimator.in_places(places)

    def under(self, estimator: Estimator, neighboring: Neighboring) -> Parameters | None:
        if _has(estimator, "under"):
            parameters: Parameters | None = estimator.under(neighboring)
            return parameters
        guarantee = self.training_run(estimator, None).guarantee
        return {} if guarantee.neighboring == neighboring else None

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        return estimator.extrapolation() if _has(estimator, "extrapolation") else {}

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> OwnSpace:
        return estimator.search_space(grid=grid) if _has(estimator, "search_space") else None


def _has(estimator: object, method: str) -> TypeGuard[Any]:
    """Return whether an estimator has a method, independent of other methods."""
    return callable(getattr(estimator, method, None))


def _states(estimator: object, name: str) -> bool:
    """Return whether an estimator has an attribute by which it states a fact itself.

    An attribute that a class from elsewhere inherits from one of ours does not count.
    """
    kind = type(estimator)
    owner = next((parent for parent in kind.__mro__ if name in vars(parent)), kind)
    usable = _has(estimator, name) or (name == "dp_event" and hasattr(estimator, name))
    return usable and (is_ours(kind) or not is_ours(owner))


def scaled_by_name(estimator: Estimator, factor: float) -> dict[str, Any]:
    """Multiply the parameter ``epsilon`` by ``factor``, or divide ``noise_multiplier`` by it."""
    parameters = estimator.get_params(deep=False)
    for name, power in (("epsilon", 1), ("noise_multiplier", -1)):
        if isinstance(parameters.get(name), (int, float)):
            return {name: parameters[name] * factor**power}
    raise PrivacyError(
        f"The noise of {type(estimator).__name__} cannot be calibrated: it has no numeric "
        "parameter epsilon or noise_multiplier. Leave epsilon=None in the search, which then "
        "reports what the estimator as configured costs in total."
    )


#: Relation by the name of the member of ``dp_accounting.NeighboringRelation``.
RELATIONS: Mapping[str, Neighboring] = {
    "ADD_OR_REMOVE_ONE": "add_remove", "REPLACE_SPECIAL": "zero_out",
}  # fmt: skip


def _relation(estimator: Any) -> Neighboring:
    stated = getattr(estimator, "neighboring_relation", None)
    relation = RELATIONS.get(getattr(stated, "name", ""))
    if relation is None:
        raise UnknownGuaranteeError(
            f"Found neighboring_relation={stated!r} in {type(estimator).__name__}, which states a "
            "dp_event; dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE or REPLACE_SPECIAL is "
            "needed as an attribute. Under another relation give the estimator a method "
            "privacy_guarantee(n_samples)."
        )
    return relation
