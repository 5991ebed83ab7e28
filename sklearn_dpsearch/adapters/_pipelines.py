"""Pipelines, feature unions and column transformers.

Private parts compose, and parts that learn nothing are free.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from .._process import contained
from ..privacy import LeakingEstimatorError, PureDP, UnknownGuaranteeError, compose
from ..privacy._checks import Neighboring
from ._adapter import Adapter, Estimator, ExtrapolationRule, Names, Parameters, TrainingRun
from ._refused_estimators import check_all, error_in_step, learning_step_error
from ._sklearn_steps import (
    assumption_of,
    fit_by_parameters,
    is_skipped,
    learns_nothing,
    refuse_unknown_categories,
    release_steps,
)

T = TypeVar("T")
#: A part of an estimator: its name there ("" for the whole), the part, and its adapter.
EstimatorPart: TypeAlias = tuple[str, Any, Adapter]


class PartsAdapter(Adapter):
    """Base class that applies each operation to the parts of a model that an adapter knows."""

    @abstractmethod
    def known_parts(self, estimator: Estimator) -> Iterable[EstimatorPart]:
        """Parts of an unfitted estimator that need their adapter."""

    @abstractmethod
    def known_fitted_parts(self, model: Estimator) -> Iterable[tuple[Any, Adapter]]:
        """Parts of a fitted model that need their adapter."""

    def answers(
        self, estimator: Estimator, ask: Callable[[Adapter, Any], T]
    ) -> list[tuple[str, T]]:
        """Name of each part, and what its adapter says of it."""
        return [(name, ask(adapter, part)) for name, part, adapter in self.known_parts(estimator)]

    def fresh_randomness(self, estimator: Estimator) -> Parameters:
        secure = self.answers(estimator, lambda adapter, part: adapter.fresh_randomness(part))
        return nested_parameters(secure)

    def search_space(
        self, estimator: Estimator, *, grid: bool = False
    ) -> list[dict[str, Any]] | None:
        """All combinations of the parts' spaces."""
        spaces = self.answers(
            estimator, lambda adapter, part: adapter.search_space(part, grid=grid)
        )
        nested = [[(name, inner) for inner in space] for name, space in spaces if space is not None]
        combined = map(nested_parameters, itertools.product(*nested))
        return list(combined) if nested else None

    def for_records(self, estimator: Estimator, n: int, places: int | None = None) -> None:
        for _, part, adapter in self.known_parts(estimator):
            adapter.for_records(part, n, places)

    def prepare(self, model: Estimator) -> None:
        fit_by_parameters(model)
        for _, part, adapter in self.known_parts(model):
            adapter.prepare(part)

    def finish(self, model: Estimator) -> None:
        for part, adapter in self.known_fitted_parts(model):
            adapter.finish(part)

    def scrub(self, model: Estimator) -> None:
        release_steps(model)
        for part, adapter in self.known_fitted_parts(model):
            adapter.scrub(part)


def nested_name(name: str, parameter: str) -> str:
    """Name of a part's parameter in the whole model."""
    return f"{name}__{parameter}" if name else parameter


def nested_parameters(parameters: Iterable[tuple[str, Mapping[str, T]]]) -> dict[str, T]:
    """Parameters of named parts as parameters of the whole."""
    return {
        nested_name(name, key): value for name, inner in parameters for key, value in inner.items()
    }


def nested_parameters_if_all(
    parameters: Sequence[tuple[str, Mapping[str, T] | None]],
) -> dict[str, T] | None:
    """Parameters of all named parts; None if one part has none.

    The noise of a part without parameters would not fit that of the others.
    """
    nested = [(name, inner) for name, inner in parameters if inner is not None]
    return nested_parameters(nested) if len(nested) == len(parameters) else None


class CompositeAdapter(PartsAdapter):
    """scikit-learn's estimators with named parts, which see every record once in a ``fit``.

    Parameters
    ----------
    look_up : callable
        Part ↦ its adapter.
    """

    def __init__(self, look_up: Callable[[Any], Adapter]) -> None:
        self._look_up = look_up
        self._adapters: dict[tuple[type, frozenset[str]], Adapter] = {}

    def __reduce__(self) -> Any:
        return type(self), (self._look_up,)  # adapters of parts are those of one plan

    def adapter_for(self, part: Any) -> Adapter:
        """Adapter of a part, looked up once for all of its type that have the same attributes."""
        kind = type(part), frozenset(getattr(part, "__dict__", ()))
        adapter = self._adapters.get(kind)
        if adapter is None or not adapter.recognises(part):
            adapter = self._adapters[kind] = self._look_up(part)
        return adapter

    def recognises(self, estimator: object) -> bool:
        return type(estimator) in (Pipeline, FeatureUnion, ColumnTransformer)

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        refuse_cache(estimator)
        if isinstance(estimator, ColumnTransformer):
            refuse_data_dependent_columns(estimator)
        parts = [(name, part) for name, part in named_parts(estimator) if not is_skipped(part)]
        runs = check_all(partial(self._run, name, part, n_samples) for name, part in parts)
        assumptions = tuple(dict.fromkeys(text for run in runs for text in run.assumptions))
        private = [run.guarantee for run in runs if run.guarantee.pure_epsilon != 0]
        if not private:  # under the relation of a part that states one
            stated = (run.guarantee for run in runs if run.guarantee.neighboring != "add_remove")
            return TrainingRun(guarantee=next(stated, PureDP(epsilon=0.0)), assumptions=assumptions)
        return TrainingRun(guarantee=compose(*private), assumptions=assumptions)

    def _run(self, name: str, part: Any, n_samples: int | None) -> TrainingRun:
        """Guarantee of one part. Errors name the part."""
        if learns_nothing(part):
            refuse_unknown_categories(name, part)
            return TrainingRun(guarantee=PureDP(epsilon=0.0), assumptions=assumption_of(name, part))
        adapter = self._adapter(name, part)
        try:
            return adapter.training_run(part, n_samples)
        except (UnknownGuaranteeError, LeakingEstimatorError) as error:
            raise error_in_step(name, error) from error

    def _adapter(self, name: str, part: Any) -> Adapter:
        """Adapter of one part. Errors name the part and the remedy."""
        try:
            return self.adapter_for(part)
        except UnknownGuaranteeError as error:
            if not callable(getattr(part, "fit", None)):
                raise error_in_step(name, error) from error
            raise learning_step_error(name, part) from error

    def known_parts(self, estimator: Estimator) -> list[EstimatorPart]:
        private = [(name, part) for name, part in named_parts(estimator) if not _is_free(part)]
        return [(name, part, self._adapter(name, part)) for name, part in private]

    def known_fitted_parts(self, model: Estimator) -> list[tuple[Any, Adapter]]:
        parts = [part for _, part in named_parts(model, fitted=True) if not _is_free(part)]
        return [(part, self.adapter_for(part)) for part in parts]

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: Names = frozenset()
    ) -> Parameters:
        return nested_parameters(
            (name, adapter.scaled_privacy(part, factor, _parameters_of_part(name, varying)))
            for name, part, adapter in self.known_parts(estimator)
        )

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        # candidates may replace a part by another estimator
        names = [name for name, _ in named_parts(estimator)]
        for name, part, adapter in self.known_parts(estimator):
            inner = adapter.privacy_parameters(part)
            if inner is None:
                return None
            names += [nested_name(name, parameter) for parameter in inner]
        return tuple(names)

    def expecting(self, estimator: Estimator, n: float) -> Parameters | None:
        sized = self.answers(estimator, lambda adapter, part: adapter.expecting(part, n))
        return nested_parameters_if_all(sized)

    def under(self, estimator: Estimator, neighboring: Neighboring) -> Parameters | None:
        restated = self.answers(estimator, lambda adapter, part: adapter.under(part, neighboring))
        return nested_parameters_if_all(restated)

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        rules = self.answers(estimator, lambda adapter, part: adapter.extrapolation(part))
        return nested_parameters(rules)

    def trains_together(self, estimator: Any) -> bool:
        """Return whether a pipeline's last step trains together and those before learn nothing."""
        if type(estimator) is not Pipeline:
            return False
        *before, (_, last) = estimator.steps
        alone = all(self._is_free_throughout(step) for _, step in before)
        return alone and self._trains_together(last)

    def fit_together(self, models: Sequence[Any], X: Any, y: Any) -> list[Any]:
        """Fit pipelines, and train last steps that see equal records together.

        Each pipeline transforms records by itself.
        """
        fitted: list[Any] = [None] * len(models)
        for features, members in self._groups_by_features(models, X, y):
            with contained():
                lasts = [models[i].steps[-1][1] for i in members]
                if self._trains_together(lasts[0]):
                    lasts = self.adapter_for(lasts[0]).fit_together(lasts, features, y)
                else:
                    lasts[0].fit(features, y)
                for i, last in zip(members, lasts):
                    if last is not None:
                        models[i].steps[-1] = (models[i].steps[-1][0], last)
                        fitted[i] = models[i]
        return fitted

    def _groups_by_features(
        self, models: Sequence[Any], X: Any, y: Any
    ) -> list[tuple[Any, list[int]]]:
        """Features, and the numbers of the pipelines whose last steps train on them together."""
        groups: list[tuple[Any, list[int]]] = []
        for i, model in enumerate(models):
            with contained():  # an error of one model leaves the others
                last = model.steps[-1][1]
                features = model[:-1].fit_transform(X, y) if len(model.steps) > 1 else X
                for other, numbers in groups if self._trains_together(last) else ():
                    same_kind = type(models[numbers[0]].steps[-1][1]) is type(last)
                    if same_kind and _same_records(features, other):
                        numbers.append(i)
                        break
                else:
                    groups.append((features, [i]))
        return groups

    def _trains_together(self, step: Any) -> bool:
        try:
            return not is_skipped(step) and self.adapter_for(step).trains_together(step)
        except UnknownGuaranteeError:  # candidates may put another step there
            return False

    def _is_free_throughout(self, step: Any) -> bool:
        """Return whether a step and all of its parts learn nothing."""
        nested = self.recognises(step) and all(
            self._is_free_throughout(part) for _, part in named_parts(step)
        )
        return _is_free(step) or nested


def named_parts(composite: Any, *, fitted: bool = False) -> list[tuple[str, Any]]:
    """Name of each part, and the part (an estimator, None, "passthrough" or "drop")."""
    if type(composite) is not ColumnTransformer:
        return list(composite.steps if type(composite) is Pipeline else composite.transformer_list)
    if fitted:  # with the remainder
        return [(name, part) for name, part, _ in composite.transformers_]
    parts = [(name, part) for name, part, _ in composite.transformers]
    return [*parts, ("remainder", composite.remainder)]


def _is_free(part: Any) -> bool:
    return is_skipped(part) or learns_nothing(part)


def _same_records(first: Any, second: Any) -> bool:
    """Return whether two tables are known to be equal."""
    if first is second:
        return True
    if type(first) is not type(second) or first.shape != second.shape:
        return False
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and bool(np.array_equal(first, second))
    return bool(first.equals(second)) if hasattr(first, "equals") else False


def _parameters_of_part(name: str, varying: Names) -> Names:
    """Parameters of one part, under the names of the part."""
    prefix = nested_name(name, "")
    inside = (parameter for parameter in varying if parameter.startswith(prefix))
    return frozenset(parameter.removeprefix(prefix) for parameter in inside)


def refuse_data_dependent_columns(estimator: ColumnTransformer) -> None:
    """Raise for column selectors that see X and may read records.

    Scikit-learn's own reads only names and dtypes.
    """
    for name, _, columns in estimator.transformers:
        if callable(columns) and type(columns) is not make_column_selector:
            raise LeakingEstimatorError(
                f"The columns of {name!r} are chosen by a function that sees the data. Give them "
                "by name or position, or with sklearn.compose.make_column_selector."
            )


def refuse_cache(estimator: Any) -> None:
    """Raise for a cache on disk.

    It would keep the losers' steps, and give several candidates the same noise.
    """
    if getattr(estimator, "memory", None) is not None:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} has memory={estimator.memory!r}: cached steps would give "
            "several candidates the same noise and keep the losers on disk. Set memory=None."
        )
