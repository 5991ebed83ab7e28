"""Guarantees on the caller's word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..privacy import Guarantee, LeakingEstimatorError, PrivacyError, UnknownGuaranteeError
from ._adapter import Adapter, Estimator, Names, Parameters, TrainingRun, scaled_by_name
from ._pipelines import EstimatorPart, PartsAdapter, nested_name, refuse_cache
from ._seeds import fitted_parts, seed_names

#: A guarantee, or (estimator, number of records or None) ↦ guarantee.
Declared = Guarantee | Callable[[Any, int | None], Guarantee]


class DeclaredAdapter(PartsAdapter):
    """Adapter for a guarantee that the caller declares.

    It is one guarantee for all parameters of the estimator, or a callable (estimator, n_samples) ↦
    guarantee. The caller's word replaces only the guarantee. Models that an adapter knows, at any
    depth, still get their own randomness, lose attributes that ``fit`` computed without noise, and
    predict within bounds.

    Parameters
    ----------
    declared : Guarantee or callable
    adapters : sequence of Adapter
        The adapters of models that are not made of others.
    """

    def __init__(self, declared: Declared, adapters: Sequence[Adapter] = ()) -> None:
        self.declared, self.adapters = declared, adapters

    def recognises(self, estimator: object) -> bool:
        return True

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        for part in (estimator, *estimator.get_params(deep=True).values()):
            refuse_cache(part)
        self._refuse_short_seeds(estimator)
        guarantee = self.declared
        if not isinstance(guarantee, Guarantee):
            guarantee = guarantee(estimator, n_samples)
        if not isinstance(guarantee, Guarantee):
            raise UnknownGuaranteeError(
                f"guarantee gave {guarantee!r}. It must be a guarantee from "
                "sklearn_dpsearch.privacy, e.g. PureDP(epsilon=1.0), or a callable (estimator, "
                "n_samples) that returns one."
            )
        word = f"one fit of {type(estimator).__name__} promises {guarantee!r}"
        word = f"The caller declared that {word}; this was not checked."
        return TrainingRun(guarantee=guarantee, assumptions=(word,))

    def _refuse_short_seeds(self, estimator: Estimator) -> None:
        """Raise for ensembles that seed private models with 31 bits, which can be tried out."""
        for name, part, adapter in self._outermost(estimator):
            nested: Any = getattr(part, "estimator", None)
            seeds = adapter is None and hasattr(part, "_make_estimator")
            if seeds and self._adapter(nested) is not None and seed_names(nested):
                kind, inner = type(part).__name__, type(nested).__name__
                raise LeakingEstimatorError(
                    f"{kind}{f' ({name})' if name else ''} seeds each {inner} with a whole number "
                    f"below 2**31. All of these can be tried out on the released model, and the "
                    f"noise be taken away. Search over {inner}."
                )

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        if isinstance(self.declared, Guarantee):
            raise PrivacyError(
                f"A fixed declared guarantee ({self.declared!r}) cannot be calibrated to a target "
                "epsilon. Declare a callable (estimator, n_samples) that returns the guarantee for "
                "the estimator's current parameters, or leave epsilon=None."
            )
        return scaled_by_name(estimator, factor)

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        return () if isinstance(self.declared, Guarantee) else None

    def known_parts(self, estimator: Estimator) -> Iterator[EstimatorPart]:
        for name, part, adapter in self._outermost(estimator):
            if adapter is not None:
                yield name, part, adapter

    def known_fitted_parts(self, model: Estimator) -> list[tuple[Any, Adapter]]:
        parts = ((part, self._adapter(part)) for part in fitted_parts(model))
        return [(part, adapter) for part, adapter in parts if adapter is not None]

    def _outermost(self, estimator: Estimator) -> Iterator[tuple[str, Any, Adapter | None]]:
        """The estimator and its parameters at any depth, except inside known models.

        The adapters of known models handle the parameters inside them.
        """
        inside: tuple[str, ...] = ()
        for name, part in sorted({"": estimator, **estimator.get_params(deep=True)}.items()):
            if not name.startswith(inside):
                adapter = self._adapter(part)
                if adapter is not None:
                    inside = (*inside, nested_name(name, ""))
                yield name, part, adapter

    def _adapter(self, part: object) -> Adapter | None:
        return next((adapter for adapter in self.adapters if adapter.recognises(part)), None)
