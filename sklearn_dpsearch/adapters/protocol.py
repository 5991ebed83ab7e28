"""Estimators that state their own guarantee through a method ``privacy_guarantee(n_samples)``."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from ..privacy import Guarantee, PrivacyError, UnknownGuaranteeError
from ._base import Adapter, Rule, TrainingRun


class ProtocolAdapter(Adapter):
    """Anything with a method ``privacy_guarantee(n_samples) -> Guarantee``.

    A subclass of an estimator of this library may have changed ``fit``: it needs a method of its own, and is not
    trained together with others.

    Estimators may say more about themselves:

    - ``secure_without_seed = True``: with ``random_state=None`` they draw on the operating system, and are left so
      (others get a generator with fresh entropy); the same for ``noise_seed``;
    - ``privacy_parameters``: the names of the parameters on which the guarantee depends;
    - ``privacy_assumptions()``: what the guarantee rests on, as sentences;
    - ``scaled_privacy(factor, varying)``: see ``Adapter.scaled``;
    - ``fit_together(models, X, y)``: a static method, see ``Adapter.fit_together``;
    - ``expecting(n)``, ``extrapolation()`` and the parameter ``public_n``: see ``Adapter.expecting``,
      ``Adapter.extrapolation`` and ``Adapter.public_size``.
    """

    def recognises(self, estimator: Any) -> bool:
        return callable(getattr(estimator, "privacy_guarantee", None)) and not _only_inherits(
            estimator, "privacy_guarantee"
        )

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        name = type(estimator).__name__
        if callable(getattr(estimator, "_unseeded_cost", None)):  # a search: it rests on what its own estimator does
            spent = estimator._unseeded_cost(n_samples)
            word = f"{name} states its own guarantee: {spent.guarantee!r}."
            return TrainingRun(guarantee=spent.guarantee, assumptions=(word, *spent.assumptions))
        found = estimator.privacy_guarantee(n_samples)
        if not isinstance(found, Guarantee):
            raise UnknownGuaranteeError(
                f"{name}.privacy_guarantee returned {type(found).__name__}. It must return a guarantee from "
                "sklearn_dpsearch.privacy, e.g. PureDP(epsilon=1.0)."
            )
        if callable(getattr(estimator, "privacy_assumptions", None)):
            return TrainingRun(guarantee=found, assumptions=tuple(estimator.privacy_assumptions()))
        return TrainingRun(guarantee=found, assumptions=(f"{name} states its own guarantee: {found!r}.",))

    def scaled(self, estimator: Any, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        if callable(getattr(estimator, "scaled_privacy", None)):
            found: dict[str, Any] = estimator.scaled_privacy(factor, varying)
            return found
        return scaled_by_name(estimator, factor)

    def privacy_parameters(self, estimator: Any) -> tuple[str, ...] | None:
        return getattr(estimator, "privacy_parameters", None)

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        secure = getattr(estimator, "secure_without_seed", False)
        names = {"random_state", "noise_seed"} & set(estimator.get_params(deep=False))
        return dict.fromkeys(sorted(names)) if secure else {}

    def trains_together(self, estimator: Any) -> bool:
        return callable(getattr(estimator, "fit_together", None)) and not _only_inherits(estimator, "fit_together")

    def fit_together(self, models: Sequence[Any], X: Any, y: Any) -> list[Any]:
        found: list[Any] = type(models[0]).fit_together(models, X, y)
        return found

    def expecting(self, estimator: Any, n: float) -> dict[str, Any] | None:
        found: dict[str, Any] | None = (
            estimator.expecting(n) if callable(getattr(estimator, "expecting", None)) else None
        )
        return found

    def public_size(self, estimator: Any) -> float | None:
        n = estimator.get_params(deep=False).get("public_n")
        return float(n) if isinstance(n, numbers.Real) else None

    def extrapolation(self, estimator: Any) -> Mapping[str, Rule]:
        known = callable(getattr(estimator, "extrapolation", None))
        found: Mapping[str, Rule] = estimator.extrapolation() if known else {}
        return found


def _only_inherits(estimator: Any, method: str) -> bool:
    """Whether a class from elsewhere has a method from a class of this library."""
    kind = type(estimator)
    owner = next((one for one in kind.__mro__ if method in vars(one)), kind)
    return _is_ours(owner) and not _is_ours(kind)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


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
