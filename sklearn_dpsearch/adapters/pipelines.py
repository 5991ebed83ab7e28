"""Pipelines, feature unions and column transformers: private parts compose, and parts that learn nothing are free."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from .._process import contained
from ..privacy import LeakingEstimatorError, PrivacyError, PureDP, UnknownGuaranteeError, compose
from ..privacy._types import Neighboring
from .adapter import Adapter, Estimator, ExtrapolationRule, TrainingRun
from .refusals import in_step, learns_without_privacy, together
from .steps_by_parameters import (
    fit_by_parameters,
    is_skipped,
    learns_nothing,
    refuse_unknown_categories,
    release_steps,
    what_is_assumed,
)

T = TypeVar("T")


class EstimatorPart(NamedTuple):
    """A part of an estimator: its name there ("" for the whole), the part, and its adapter."""

    name: str
    estimator: Any
    adapter: Adapter


class PartsAdapter(Adapter):
    """Base class that applies each operation to the parts of a model that an adapter knows."""

    @abstractmethod
    def known_parts(self, estimator: Estimator) -> Iterable[EstimatorPart]:
        """Parts of an unfitted estimator that need their adapter."""

    @abstractmethod
    def known_fitted_parts(self, model: Estimator) -> Iterable[tuple[Any, Adapter]]:
        """Parts of a fitted model that need their adapter."""

    def fresh_randomness(self, estimator: Estimator) -> dict[str, Any]:
        return under_names(
            (name, adapter.fresh_randomness(part)) for name, part, adapter in self.known_parts(estimator)
        )

    def integer_seeds(self, estimator: Estimator) -> dict[str, Any]:
        return under_names((name, adapter.integer_seeds(part)) for name, part, adapter in self.known_parts(estimator))

    def search_space(self, estimator: Estimator, *, grid: bool = False) -> list[dict[str, Any]] | None:
        """All combinations of the parts' spaces."""
        found = [
            (part.name, part.adapter.search_space(part.estimator, grid=grid)) for part in self.known_parts(estimator)
        ]
        known = [[under_names([(name, one)]) for one in space] for name, space in found if space is not None]
        combined = [dict(itertools.chain(*(one.items() for one in several))) for several in itertools.product(*known)]
        return combined if known else None

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


def under(name: str, parameter: str) -> str:
    """Name of a part's parameter in the whole model."""
    return f"{name}__{parameter}" if name else parameter


def under_names(parameters: Iterable[tuple[str, Mapping[str, T]]]) -> dict[str, T]:
    """Parameters of named parts as parameters of the whole."""
    return {under(name, key): value for name, found in parameters for key, value in found.items()}


def joined_dense(part: object) -> dict[str, Any]:
    """Make a column transformer join columns densely: by default the number of zeros in all records decides."""
    return {"sparse_threshold": 0} if type(part) is ColumnTransformer else {}


FindAdapter = Callable[[Any], Adapter]


class _CompositeAdapter(PartsAdapter):
    """Adapter of estimators with named parts, each of which sees every record once in a ``fit``."""

    def __init__(self, adapter_for: FindAdapter) -> None:
        self.adapter_for = adapter_for

    @abstractmethod
    def listed(self, estimator: Any) -> list[tuple[str, Any]]:
        """Name of each part, and the part (an estimator, None, "passthrough" or "drop")."""

    def listed_fitted(self, model: Any) -> list[tuple[str, Any]]:
        """Name of each part of a fitted model, and the part."""
        return self.listed(model)

    def training_run(self, estimator: Estimator, n_samples: int | None) -> TrainingRun:
        refuse_cache(estimator)
        if isinstance(estimator, ColumnTransformer):
            refuse_data_dependent_columns(estimator)
        parts = self._present(estimator)
        found = together(partial(self._run, estimator, name, part, n_samples) for name, part in parts)
        runs = [run for run in found if run is not None]
        assumptions = tuple(dict.fromkeys(text for run in runs for text in run.assumptions))
        private = [run.guarantee for run in runs if run.guarantee.pure_epsilon != 0]
        if not private:
            return TrainingRun(guarantee=runs[0].guarantee if runs else PureDP(epsilon=0.0), assumptions=assumptions)
        return TrainingRun(guarantee=compose(*private), assumptions=assumptions)

    def _run(self, owner: Estimator, name: str, part: Any, n_samples: int | None) -> TrainingRun | None:
        """Guarantee of one part; None if the part is free, without assumptions. Errors name the part."""
        if learns_nothing(part):
            refuse_unknown_categories(name, part)
            assumed = what_is_assumed(name, part)
            return None if assumed is None else self._free_run(owner, assumed, n_samples)
        adapter = self._adapter(name, part)
        try:
            return adapter.training_run(part, n_samples)
        except (UnknownGuaranteeError, LeakingEstimatorError) as error:
            raise in_step(name, error) from error

    def _free_run(self, owner: Estimator, assumed: str, n_samples: int | None) -> TrainingRun:
        free = PureDP(epsilon=0.0, neighboring=self._relation(owner, n_samples))
        return TrainingRun(guarantee=free, assumptions=(assumed,))

    def _adapter(self, name: str, part: Any) -> Adapter:
        """Adapter of one part. Errors name the part and the remedy."""
        try:
            return self.adapter_for(part)
        except UnknownGuaranteeError as error:
            if not callable(getattr(part, "fit", None)):
                raise in_step(name, error) from error
            raise learns_without_privacy(name, part) from error

    def _relation(self, owner: Estimator, n_samples: int | None) -> Neighboring:
        """Neighbouring relation of the private parts (free parts hold under any)."""
        for _, part in self._present(owner):
            if not learns_nothing(part):
                try:
                    return self.adapter_for(part).training_run(part, n_samples).guarantee.neighboring
                except PrivacyError:
                    continue
        return "add_remove"

    def _present(self, estimator: Any) -> list[tuple[str, Any]]:
        """Parts that are not skipped."""
        return [(name, part) for name, part in self.listed(estimator) if not is_skipped(part)]

    def known_parts(self, estimator: Estimator) -> list[EstimatorPart]:
        private = [(name, part) for name, part in self._present(estimator) if not learns_nothing(part)]
        return [EstimatorPart(name, part, self._adapter(name, part)) for name, part in private]

    def known_fitted_parts(self, model: Estimator) -> list[tuple[Any, Adapter]]:
        parts = [part for _, part in self.listed_fitted(model) if not is_skipped(part) and not learns_nothing(part)]
        return [(part, self.adapter_for(part)) for part in parts]

    def scaled_privacy(
        self, estimator: Estimator, factor: float, varying: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        return under_names(
            (name, adapter.scaled_privacy(part, factor, _below(name, varying)))
            for name, part, adapter in self.known_parts(estimator)
        )

    def privacy_parameters(self, estimator: Estimator) -> tuple[str, ...] | None:
        names = [name for name, _ in self.listed(estimator)]  # candidates may replace a part by another estimator
        for name, part, adapter in self.known_parts(estimator):
            inner = adapter.privacy_parameters(part)
            if inner is None:
                return None
            names += [under(name, parameter) for parameter in inner]
        return tuple(names)

    def expecting(self, estimator: Estimator, n: float) -> dict[str, Any] | None:
        told = [(name, adapter.expecting(part, n)) for name, part, adapter in self.known_parts(estimator)]
        known = [(name, parameters) for name, parameters in told if parameters is not None]
        return under_names(known) if len(known) == len(told) else None

    def under(self, estimator: Estimator, neighboring: Neighboring) -> dict[str, Any] | None:
        told = [(name, adapter.under(part, neighboring)) for name, part, adapter in self.known_parts(estimator)]
        known = [(name, parameters) for name, parameters in told if parameters is not None]
        return (
            under_names(known) if len(known) == len(told) else None
        )  # parameters of some parts alone would not compose with the other parts

    def extrapolation(self, estimator: Estimator) -> Mapping[str, ExtrapolationRule]:
        return under_names((name, adapter.extrapolation(part)) for name, part, adapter in self.known_parts(estimator))


class PipelineAdapter(_CompositeAdapter):
    """``sklearn.pipeline.Pipeline``."""

    def recognises(self, estimator: object) -> bool:
        return type(estimator) is Pipeline

    def listed(self, estimator: Pipeline) -> list[tuple[str, Any]]:
        return list(estimator.steps)

    def trains_together(self, estimator: Pipeline) -> bool:
        """Return whether the last step trains together and the steps before it learn nothing."""
        *before, (_, last) = estimator.steps
        try:
            return all(self._is_free(step) for _, step in before) and self._trains_together(last)
        except UnknownGuaranteeError:  # candidates may put another step there
            return False

    def fit_together(self, models: Sequence[Any], X: Any, y: Any) -> list[Any]:
        """Fit pipelines: each transforms records by itself, and last steps that see equal records train together."""
        fitted: list[Any] = [None] * len(models)
        groups: list[tuple[type, Any, list[int]]] = []
        for i, model in enumerate(models):
            with contained():  # an error of one model leaves the others
                kind, seen = type(model.steps[-1][1]), model[:-1].fit_transform(X, y) if len(model.steps) > 1 else X
                alike = (group for first, other, group in groups if first is kind and _same_records(seen, other))
                group = next(alike, None)
                if group is None:
                    groups.append((kind, seen, [i]))
                else:
                    group.append(i)
        for _, seen, group in groups:
            with contained():
                for i, last in zip(group, self._fit_last([models[i].steps[-1][1] for i in group], seen, y)):
                    if last is not None:
                        models[i].steps[-1] = (models[i].steps[-1][0], last)
                        fitted[i] = models[i]
        return fitted

    def _fit_last(self, steps: list[Any], X: Any, y: Any) -> list[Any]:
        """Fit last steps of one type; None for each failure."""
        if self._trains_together(steps[0]):
            return self.adapter_for(steps[0]).fit_together(steps, X, y)
        fitted: list[Any] = [None] * len(steps)
        for i, step in enumerate(steps):
            with contained():
                step.fit(X, y)
                fitted[i] = step
        return fitted

    def _trains_together(self, step: Any) -> bool:
        return not is_skipped(step) and self.adapter_for(step).trains_together(step)

    def _is_free(self, step: Any) -> bool:
        """Return whether a step and all of its parts learn nothing."""
        if is_skipped(step) or learns_nothing(step):
            return True
        adapter = self.adapter_for(step)
        return isinstance(adapter, _CompositeAdapter) and all(self._is_free(part) for _, part in adapter.listed(step))


class UnionAdapter(_CompositeAdapter):
    """``sklearn.pipeline.FeatureUnion`` and ``sklearn.compose.ColumnTransformer``."""

    def recognises(self, estimator: object) -> bool:
        return type(estimator) in (FeatureUnion, ColumnTransformer)

    def listed(self, estimator: ColumnTransformer | FeatureUnion) -> list[tuple[str, Any]]:
        if type(estimator) is FeatureUnion:
            return list(estimator.transformer_list)
        return [(name, part) for name, part, _ in estimator.transformers] + [("remainder", estimator.remainder)]

    def fresh_randomness(self, estimator: Estimator) -> dict[str, Any]:
        return {**super().fresh_randomness(estimator), **joined_dense(estimator)}

    def listed_fitted(self, model: ColumnTransformer | FeatureUnion) -> list[tuple[str, Any]]:
        if type(model) is FeatureUnion:
            return list(model.transformer_list)
        return [(name, part) for name, part, _ in model.transformers_]


def _same_records(first: Any, second: Any) -> bool:
    """Return whether two tables are known to be equal."""
    if first is second:
        return True
    if type(first) is not type(second) or first.shape != second.shape:
        return False
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and bool(np.array_equal(first, second))
    return bool(first.equals(second)) if hasattr(first, "equals") else False


def _below(name: str, varying: frozenset[str]) -> frozenset[str]:
    """Parameters of one part, under the names of the part."""
    prefix = under(name, "")
    return frozenset(parameter.removeprefix(prefix) for parameter in varying if parameter.startswith(prefix))


def refuse_data_dependent_columns(estimator: ColumnTransformer) -> None:
    """Raise for column selectors that see X and may read records; scikit-learn's own reads only names and dtypes."""
    for name, _, columns in estimator.transformers:
        if callable(columns) and type(columns) is not make_column_selector:
            raise LeakingEstimatorError(
                f"The columns of {name!r} are chosen by a function that sees the data. Give them by name or position, "
                "or with sklearn.compose.make_column_selector."
            )


def refuse_cache(estimator: Any) -> None:
    """Raise for a cache on disk: it would keep the losers' steps, and give several candidates the same noise."""
    if getattr(estimator, "memory", None) is not None:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} has memory={estimator.memory!r}: cached steps would give several candidates "
            "the same noise and keep the losers on disk. Set memory=None."
        )
