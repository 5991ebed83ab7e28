"""Setting parameters of estimators of any make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """The estimator itself, with these parameters. One that is no scikit-learn class is not called with nothing."""
    if parameters:
        estimator.set_params(**parameters)
    return estimator
