"""The adapter of diffprivlib's models."""

from __future__ import annotations

import math
import numbers
import secrets
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..privacy import LeakingEstimatorError, PrivacyError, PureDP, UnknownGuaranteeError
from ..privacy._types import Neighboring
from .adapter import Adapter, Estimator, ExtrapolationRule, TrainingRun
from .diffprivlib_models import MODELS, SPACES

#: The module of the models that are trained in double precision, and of those whose predictions are clipped.
VARIANTS = f"{__package__}.diffprivlib_variants"

#: Release of diffprivlib whose sources were read.
EXAMINED = "0.6.6"


class SystemRandomState(np.random.RandomState):
    """The operating system's generator, for a tree's draws: features, thresholds, labels of empty leaves and noise.

    The state of NumPy's generator can be computed from some 400 released thresholds, and tells which leaves were empty.
    """

    _source = secrets.SystemRandom()

    def __reduce__(self) -> Any:
        return type(self), ()  # a copy must not fall back to NumPy's generator

    # trees draw single numbers only, so NumPy's signatures for arrays do not matter

    def random(self, size: None = None) -> float:  # type: ignore[override]
        return self._source.random()

    def uniform(self, low: float = 0.0, high: float = 1.0, size: None = None) -> float:  # type: ignore[override]
        return self._source.uniform(low, high)

    def randint(  # type: ignore[override]
        self, low: int, high: int | None = None, size: None = None, dtype: type = int
    ) -> int:
        return self._source.randrange(low) if high is None else self._source.randrange(low, high)


class DiffprivlibAdapter(Adapter):
    """The models of ``diffprivlib.models``, by exact type: a subclass may have changed ``fit``."""

    def recognises(self, estimator: object) -> bool:
        kind = type(estimator)
        theirs = kind.__module__.startswith("diffprivlib.models.") or kind.__module__ == VARIANTS
        return theirs and _name(estimator) in MODELS

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        model = MODELS[_name(estimator)]
        _examined(type(estimator).__name__)
        epsilon = _checked_epsilon(estimator)
        for name in model.bounds:
            _require_given(estimator, name)
        guarantee = PureDP(epsilon=_above(epsilon * model.factor(estimator)), neighboring="replace_one")
        return TrainingRun(guarantee=guarantee, assumptions=model.assumptions)

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        return {"epsilon": _epsilon(estimator) * factor}

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...]:
        model = MODELS[_name(estimator)]
        return ("epsilon", *model.bounds, *model.also)

    def fresh_randomness(self, estimator: Estimator) -> dict[str, Any]:
        """No seed, so that mechanisms draw on the operating system, and an own accountant: the default counts runs."""
        from diffprivlib.accountant import BudgetAccountant

        name = _name(estimator)
        source = SystemRandomState() if name == "DecisionTreeClassifier" else None
        return {"random_state": source, "accountant": BudgetAccountant(), **MODELS[name].settings}

    def under(self, estimator: Estimator, neighboring: Neighboring) -> dict[str, Any] | None:
        return {} if neighboring == "replace_one" else None

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        """Rules for changing parameters. C is kept: it weighs the sum of all losses (docs/theory/extrapolation.md)."""
        return {"C": "keep"} if type(estimator).__name__ == "LogisticRegression" else {}

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]]:
        """Space around the current parameters, from ``SPACES`` in ``diffprivlib_models``."""
        around = SPACES.get(_name(estimator), {})
        return [{name: values(getattr(estimator, name), grid) for name, values in around.items()}]

    def prepare(self, model: Estimator) -> None:
        """Make the model train in double precision: bounds are truncated to the type of X, where that is not."""
        from .diffprivlib_variants import IN_DOUBLES

        model.__class__ = IN_DOUBLES.get(_name(model), type(model))

    def finish(self, model: Estimator) -> None:
        """Keep the predictions of a linear regression within ``bounds_y``: on few records the noise is that large."""
        from .diffprivlib_variants import RELEASED

        model.__class__ = RELEASED.get(_name(model), type(model))

    def scrub(self, model: Estimator) -> None:
        for name in MODELS[_name(model)].exact:
            model.__dict__.pop(name, None)


def _name(model: object) -> str:
    """Name of this model in diffprivlib."""
    return type(model).__name__.removeprefix("Clipped").removesuffix("InDoubles")


def _examined(name: str) -> None:
    version = getattr(sys.modules.get("diffprivlib"), "__version__", None)
    if version != EXAMINED:
        raise UnknownGuaranteeError(
            f"{name} comes from diffprivlib {version}; what its models really promise is known for {EXAMINED}. Install "
            f"diffprivlib=={EXAMINED}, or declare what one fit promises, e.g. guarantee=PureDP(epsilon=1.0)."
        )


def _epsilon(estimator: Estimator) -> Any:
    return estimator.get_params(deep=False)["epsilon"]


def _checked_epsilon(estimator: Estimator) -> float:
    epsilon = _epsilon(estimator)
    if not isinstance(epsilon, numbers.Real) or isinstance(epsilon, bool) or not 0 < float(epsilon) < math.inf:
        raise PrivacyError(
            f"{type(estimator).__name__} has epsilon={epsilon!r}. It needs 0 < epsilon < inf, e.g. epsilon=1.0."
        )
    return float(epsilon)


def _require_given(estimator: Estimator, name: str) -> None:
    if getattr(estimator, name) is None:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} has {name}=None and would read it from the data. Give {name} as public "
            "constants, known without looking at the data."
        )


def _above(epsilon: float) -> float:
    """Round up by two doubles, because the product may have been rounded down; short decimals stay."""
    return epsilon if epsilon == round(epsilon, 12) else math.nextafter(math.nextafter(epsilon, math.inf), math.inf)
