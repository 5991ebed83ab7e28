"""The training after the choice: changed parameters, a warm start, and the guarantee that both have to keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline

from ...privacy import PrivacyError
from .._records import with_parameters
from .._types import Candidate
from ..planning.plan import Plan
from ..planning.space_guarantee import SpaceGuarantee


def changes(candidate: Candidate, parameters: Candidate) -> Iterator[tuple[str, Any]]:
    """Changed parameters; of a nested estimator only its changed ones, so that it keeps its fitted state."""
    for name, new in parameters.items():
        old = candidate[name]
        if new is not old and hasattr(new, "get_params") and type(new) is type(old):
            before = old.get_params(deep=True)
            for inner, value in new.get_params(deep=True).items():
                if not hasattr(value, "get_params") and repr(value) != repr(before.get(inner)):
                    yield f"{name}__{inner}", value
        elif new is not old:
            yield name, new


def warm_start_name(estimator: Any) -> str:
    """Name of the parameter ``warm_start`` of the estimator, or of the last step of a pipeline.

    Raises
    ------
    ValueError
        If the parameter does not exist.
    """
    prefix, inner = "", estimator
    while type(inner) is Pipeline:
        name, inner = inner.steps[-1]
        prefix += f"{name}__"
    if not hasattr(inner, "get_params") or "warm_start" not in inner.get_params(deep=False):
        raise ValueError(
            f"Found warm_start=True, but {type(inner).__name__} has no parameter warm_start. Use an estimator that can "
            "go on from a fitted model (the nets of sklearn_dpsearch.nets can), or leave warm_start=False."
        )
    return f"{prefix}warm_start"


def check_kept(
    plan: Plan, promises: SpaceGuarantee, candidate: Candidate, parameters: Candidate, expected: float | None
) -> None:
    """Raise unless training with the extrapolated parameters and the expected size keeps the candidate's guarantee."""
    same = all(parameters[name] is value for name, value in candidate.items())
    if expected is None and same:
        return
    model = promises.configured(parameters)
    planned = promises.training(model if same else promises.configured(candidate)).guarantee
    told = {} if expected is None else plan.recipe.adapter.expecting(model, expected)
    if told is None and promises.counts_records(model):
        raise PrivacyError(
            f"A candidate ({dict(candidate)!r}) may use the number of its records, unlike the configured estimator: "
            "the total was computed for a secret subset. Search over steps that can all be told the expected number of "
            "records (a method expecting(n))."
        )
    if not promises.keeps(with_parameters(model, told or {}), planned):
        raise PrivacyError(
            f"Found {dict(parameters)!r} for the final model of the candidate {dict(candidate)!r}, which promises "
            "something else. Parameters on which the guarantee depends must be kept: remove them from extrapolate."
        )
