"""Guarantees on the caller's word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..privacy import Guarantee, PrivacyError, UnknownGuaranteeError
from ._base import Adapter, TrainingRun
from .pipelines import refuse_cache
from .protocol import scaled_by_name


class DeclaredAdapter(Adapter):
    """One guarantee for whatever the estimator's parameters are, or a callable (estimator, n_samples) ↦ guarantee."""

    def __init__(self, declared: Guarantee | Callable[[Any, int | None], Guarantee]) -> None:
        self.declared = declared

    def recognises(self, estimator: Any) -> bool:
        return True

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        for part in (estimator, *estimator.get_params(deep=True).values()):
            refuse_cache(part)
        found = self.declared if isinstance(self.declared, Guarantee) else self.declared(estimator, n_samples)
        if not isinstance(found, Guarantee):
            raise UnknownGuaranteeError(
                f"guarantee gave {found!r}. It must be a guarantee from sklearn_dpsearch.privacy, e.g. "
                "PureDP(epsilon=1.0), or a callable (estimator, n_samples) that returns one."
            )
        word = (
            f"The caller declared that one fit of {type(estimator).__name__} promises {found!r}; this was not checked."
        )
        return TrainingRun(guarantee=found, assumptions=(word,))

    def scaled(self, estimator: Any, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        if isinstance(self.declared, Guarantee):
            raise PrivacyError(
                f"A fixed declared guarantee ({self.declared!r}) cannot be calibrated to a target epsilon. Declare a "
                "callable (estimator, n_samples) that returns the guarantee for the estimator's current parameters, "
                "or leave epsilon=None."
            )
        return scaled_by_name(estimator, factor)

    def privacy_parameters(self, estimator: Any) -> tuple[str, ...] | None:
        return () if isinstance(self.declared, Guarantee) else None
