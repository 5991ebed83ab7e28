"""Estimators of tables whose noise is calibrated to a stated guarantee."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from .._site import linked
from ..errors import check_arguments_of
from ..privacy import PrivacyError

#: Ways to state the privacy of one fit.
TARGETS = ("target_epsilon", "target_delta", "target_mu")
#: δ at which ``privacy_spent_`` states ε where no ``target_delta`` was given; ``epsilon_at`` gives any other.
STATED_DELTA = 1e-5


@linked
class CalibratedModel(BaseEstimator):
    """Estimator with a Gaussian target: ``target_mu``, or ``target_epsilon`` with ``target_delta``."""

    #: Without a seed, the noise comes from the operating system, in each fit.
    secure_without_seed = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "target_epsilon": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "target_delta": [None, Interval(numbers.Real, 0, 1, closed="neither")],
        "target_mu": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
    }

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """An object, unless it is given arguments that it does not have."""
        check_arguments_of(cls, named)
        made: Self = super().__new__(cls)
        return made

    target_epsilon: float | None
    target_delta: float | None
    target_mu: float | None

    def scaled_privacy(self, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, float | None]:
        """Parameters that make every fit ``factor`` times less private; 1 stands for the target as configured.

        Without a target 1 stands for μ = 1.
        """
        stated = any(getattr(self, name) is not None for name in TARGETS)
        return {**dict.fromkeys(TARGETS), "target_mu": (self._mu() if stated else 1.0) * factor}

    def _mu(self) -> float:
        """μ of one fit, as stated or calibrated."""
        given = {name: float(value) for name in TARGETS if (value := getattr(self, name)) is not None}
        if set(given) not in ({"target_epsilon", "target_delta"}, {"target_mu"}):
            raise PrivacyError(
                f"Found {given or 'none of target_epsilon, target_delta, target_mu'}; target_epsilon=... with "
                "target_delta=..., or target_mu=..., is needed (none of them in a search with epsilon=, which sets it)."
            )
        if "target_mu" in given:
            return given["target_mu"]
        return self._calibrated_mu(given["target_epsilon"], given["target_delta"])

    @abstractmethod
    def _calibrated_mu(self, epsilon: float, delta: float) -> float:
        """Find the largest μ with which a fit is (ε, δ)-private."""

    def __getstate__(self) -> dict[str, Any]:
        """Drop the noise seed from a fitted model: the seed would be enough to undo the noise."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, "noise_seed": None} if "privacy_spent_" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
