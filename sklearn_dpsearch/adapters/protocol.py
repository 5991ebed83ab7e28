"""Estimators that state their own guarantee through a method ``privacy_guarantee(n_samples)``."""

from __future__ import annotations

from typing import Any

from ..privacy import Guarantee, PrivacyError, UnknownGuaranteeError
from ._base import Adapter, TrainingRun


class ProtocolAdapter(Adapter):
    """Anything with a method ``privacy_guarantee(n_samples) -> Guarantee``.

    With a true attribute ``secure_without_seed`` an estimator draws on the operating system if its ``random_state`` is
    None, and is left so; others get a generator with fresh entropy.
    """

    def recognises(self, estimator: Any) -> bool:
        return callable(getattr(estimator, "privacy_guarantee", None))

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        name = type(estimator).__name__
        found = estimator.privacy_guarantee(n_samples)
        if not isinstance(found, Guarantee):
            raise UnknownGuaranteeError(
                f"{name}.privacy_guarantee returned {type(found).__name__}. It must return a guarantee from "
                "sklearn_dpsearch.privacy, e.g. PureDP(epsilon=1.0)."
            )
        return TrainingRun(guarantee=found, assumptions=(f"{name} states its own guarantee: {found!r}.",))

    def scaled(self, estimator: Any, factor: float) -> dict[str, Any]:
        return scaled_by_name(estimator, factor)

    def privacy_parameters(self, estimator: Any) -> None:
        return None

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        secure = getattr(estimator, "secure_without_seed", False)
        return {"random_state": None} if secure and "random_state" in estimator.get_params(deep=False) else {}


def scaled_by_name(estimator: Any, factor: float) -> dict[str, Any]:
    """Scale a parameter called ``epsilon``, or divide one called ``noise_multiplier``."""
    parameters = estimator.get_params(deep=False)
    for name, power in (("epsilon", 1), ("noise_multiplier", -1)):
        if isinstance(parameters.get(name), (int, float)):
            return {name: parameters[name] * factor**power}
    raise PrivacyError(
        f"The noise of {type(estimator).__name__} cannot be calibrated: it has no numeric parameter epsilon or "
        "noise_multiplier. Leave epsilon=None in the search, which then reports what the estimator as configured "
        "costs in total."
    )
