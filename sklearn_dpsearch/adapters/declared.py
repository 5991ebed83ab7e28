"""Guarantees on the caller's word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.compose import ColumnTransformer

from ..privacy import Guarantee, PrivacyError, UnknownGuaranteeError
from ._base import Adapter, TrainingRun
from ._fitted import fitted_parts
from .pipelines import refuse_cache
from .protocol import scaled_by_name


class DeclaredAdapter(Adapter):
    """One guarantee for whatever the estimator's parameters are, or a callable (estimator, n_samples) ↦ guarantee.

    The caller's word replaces what is known about the guarantee, and nothing else: models that an adapter knows, at any
    depth, still get their own randomness, lose what their ``fit`` computed without noise, and predict within bounds.

    Parameters
    ----------
    declared : Guarantee or callable
    known : sequence of Adapter
        The adapters of single models.
    """

    def __init__(
        self, declared: Guarantee | Callable[[Any, int | None], Guarantee], known: Sequence[Adapter] = ()
    ) -> None:
        self.declared, self.known = declared, known

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

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        inside: tuple[str, ...] = ()
        for name, part in sorted({"": estimator, **estimator.get_params(deep=True)}.items()):
            if name.startswith(inside):  # of a model that sees to its own parts
                continue
            if type(part) is ColumnTransformer:
                found[_under(name, "sparse_threshold")] = 0
            for adapter in self._adapters(part):
                found |= {_under(name, key): value for key, value in adapter.fresh_randomness(part).items()}
                inside = (*inside, _under(name, ""))
        return found

    def finish(self, model: Any) -> None:
        for part in fitted_parts(model):
            for adapter in self._adapters(part):
                adapter.finish(part)

    def scrub(self, model: Any) -> None:
        for part in fitted_parts(model):
            for adapter in self._adapters(part):
                adapter.scrub(part)

    def _adapters(self, part: Any) -> list[Adapter]:
        """The adapter that knows this model, if there is one."""
        return [one for one in self.known if one.recognises(part)][:1]


def _under(name: str, parameter: str) -> str:
    """The name of a parameter of a part."""
    return f"{name}__{parameter}" if name else parameter
