"""Pipelines, feature unions and column transformers: private parts compose, parts that learn nothing are free."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from .._process import contained
from ..privacy import LeakingEstimatorError, PrivacyError, PureDP, UnknownGuaranteeError, compose
from ._base import Adapter, Rule, TrainingRun

FindAdapter = Callable[[Any], Adapter]


class _CompositeAdapter(Adapter):
    """An estimator made of named parts, each of which sees every record once in a ``fit``."""

    def __init__(self, adapter_for: FindAdapter) -> None:
        self.adapter_for = adapter_for

    @abstractmethod
    def listed(self, estimator: Any) -> list[tuple[str, Any]]:
        """Name of each part, and the part (an estimator, None, "passthrough" or "drop")."""

    def parts(self, estimator: Any) -> list[tuple[str, Any]]:
        """The parts that are not skipped."""
        return [(name, part) for name, part in self.listed(estimator) if not _skipped(part)]

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        refuse_cache(estimator)
        if isinstance(estimator, ColumnTransformer):
            refuse_data_dependent_columns(estimator)
        runs = [self._run(estimator, name, part, n_samples) for name, part in self.parts(estimator)]
        assumptions = tuple(dict.fromkeys(text for run in runs if run for text in run.assumptions))
        private = [run.guarantee for run in runs if run is not None and run.guarantee.pure_epsilon != 0]
        free = [run.guarantee for run in runs if run is not None]
        if not private:
            return TrainingRun(guarantee=free[0] if free else PureDP(epsilon=0.0), assumptions=assumptions)
        return TrainingRun(guarantee=compose(*private), assumptions=assumptions)

    def _run(self, owner: Any, name: str, part: Any, n_samples: int | None) -> TrainingRun | None:
        """Promise of one part; None if it is free and says nothing. Errors name the part."""
        if learns_nothing(part):
            refuse_unknown_categories(name, part)
            return (
                None
                if not isinstance(part, FunctionTransformer)
                else TrainingRun(
                    guarantee=PureDP(epsilon=0.0, neighboring=self._relation(owner, n_samples)),
                    assumptions=(f"The function of step {name!r} treats each record on its own.",),
                )
            )
        adapter = self._adapter(name, part)
        try:
            return adapter.training_run(part, n_samples)
        except UnknownGuaranteeError as error:
            raise UnknownGuaranteeError(f"In step {name!r}: {error}") from error
        except LeakingEstimatorError as error:
            raise LeakingEstimatorError(f"In step {name!r}: {error}") from error

    def _adapter(self, name: str, part: Any) -> Adapter:
        """The adapter of one part. Errors name the part and what to do instead."""
        try:
            return self.adapter_for(part)
        except UnknownGuaranteeError as error:
            if not callable(getattr(part, "fit", None)):
                raise UnknownGuaranteeError(f"In step {name!r}: {error}") from error
            kind = type(part).__name__
            how = f"Give it {HOW_NOTHING_IS_LEARNED[kind]}; or u" if _of_sklearn(part, HOW_NOTHING_IS_LEARNED) else "U"
            raise UnknownGuaranteeError(
                f"Step {name!r} ({kind}) learns from the data without privacy. {how}se a private one (for example "
                "from diffprivlib.models), one that learns nothing (FunctionTransformer with public constants), "
                "give it a method privacy_guarantee(n_samples), or declare guarantee= for the whole estimator."
            ) from error

    def _relation(self, owner: Any, n_samples: int | None) -> Any:
        """Neighbouring relation of the private parts (free parts hold under any)."""
        for _, part in self.parts(owner):
            if not learns_nothing(part):
                try:
                    return self.adapter_for(part).training_run(part, n_samples).guarantee.neighboring
                except PrivacyError:
                    continue
        return "add_remove"

    def _private_parts(self, estimator: Any) -> list[tuple[str, Any, Adapter]]:
        return [(n, part, self._adapter(n, part)) for n, part in self.parts(estimator) if not learns_nothing(part)]

    def scaled(self, estimator: Any, factor: float, varying: frozenset[str] = frozenset()) -> dict[str, Any]:
        return {
            f"{name}__{key}": value
            for name, part, adapter in self._private_parts(estimator)
            for key, value in adapter.scaled(part, factor, _below(name, varying)).items()
        }

    def privacy_parameters(self, estimator: Any) -> tuple[str, ...] | None:
        names = [name for name, _ in self.listed(estimator)]  # a part may be replaced by another one
        for name, part, adapter in self._private_parts(estimator):
            inner = adapter.privacy_parameters(part)
            if inner is None:
                return None
            names += [f"{name}__{one}" for one in inner]
        return tuple(names)

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        return {
            f"{name}__{key}": value
            for name, part, adapter in self._private_parts(estimator)
            for key, value in adapter.fresh_randomness(part).items()
        }

    def expecting(self, estimator: Any, n: float) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        for name, part, adapter in self._private_parts(estimator):
            inner = adapter.expecting(part, n)
            if inner is None:
                return None
            found |= {f"{name}__{key}": value for key, value in inner.items()}
        return found

    def public_size(self, estimator: Any) -> float | None:
        sizes = {adapter.public_size(part) for _, part, adapter in self._private_parts(estimator)} - {None}
        return sizes.pop() if len(sizes) == 1 else None

    def extrapolation(self, estimator: Any) -> Mapping[str, Rule]:
        return {
            f"{name}__{key}": rule
            for name, part, adapter in self._private_parts(estimator)
            for key, rule in adapter.extrapolation(part).items()
        }

    def finish(self, model: Any) -> None:
        for part in self._fitted_private_parts(model):
            self.adapter_for(part).finish(part)

    def scrub(self, model: Any) -> None:
        for part in self._fitted_private_parts(model):
            self.adapter_for(part).scrub(part)

    def _fitted_private_parts(self, model: Any) -> list[Any]:
        return [part for _, part in self.fitted(model) if not _skipped(part) and not learns_nothing(part)]

    def fitted(self, model: Any) -> list[tuple[str, Any]]:
        """Name of each part of a fitted model, and the part."""
        return self.listed(model)


class PipelineAdapter(_CompositeAdapter):
    """``sklearn.pipeline.Pipeline``."""

    def recognises(self, estimator: Any) -> bool:
        return type(estimator) is Pipeline

    def listed(self, estimator: Any) -> list[tuple[str, Any]]:
        return list(estimator.steps)

    def trains_together(self, estimator: Any) -> bool:
        """Whether the last step does and the steps before it learn nothing."""
        *before, (_, last) = estimator.steps
        try:
            return all(self._is_free(step) for _, step in before) and self._trains_together(last)
        except UnknownGuaranteeError:  # candidates may put another step there
            return False

    def fit_together(self, models: Sequence[Any], X: Any, y: Any) -> list[Any]:
        """Each model transforms the records by itself; last steps that are then given the same are fitted at once."""
        fitted: list[Any] = [None] * len(models)
        groups: list[tuple[type, Any, list[int]]] = []
        for i, model in enumerate(models):
            with contained():  # this model has failed, the others have not
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
        """Last steps of one type, fitted; None in the place of each that failed."""
        if self._trains_together(steps[0]):
            return self.adapter_for(steps[0]).fit_together(steps, X, y)
        fitted: list[Any] = [None] * len(steps)
        for i, step in enumerate(steps):
            with contained():
                step.fit(X, y)
                fitted[i] = step
        return fitted

    def _trains_together(self, step: Any) -> bool:
        return not _skipped(step) and self.adapter_for(step).trains_together(step)

    def _is_free(self, step: Any) -> bool:
        """Whether a step learns nothing, nor does any part of it."""
        if _skipped(step) or learns_nothing(step):
            return True
        adapter = self.adapter_for(step)
        return isinstance(adapter, _CompositeAdapter) and all(self._is_free(one) for _, one in adapter.listed(step))


class UnionAdapter(_CompositeAdapter):
    """``sklearn.pipeline.FeatureUnion`` and ``sklearn.compose.ColumnTransformer``."""

    def recognises(self, estimator: Any) -> bool:
        return type(estimator) in (FeatureUnion, ColumnTransformer)

    def listed(self, estimator: Any) -> list[tuple[str, Any]]:
        if type(estimator) is FeatureUnion:
            return list(estimator.transformer_list)
        return [(name, part) for name, part, _ in estimator.transformers] + [("remainder", estimator.remainder)]

    def fresh_randomness(self, estimator: Any) -> dict[str, Any]:
        """Dense columns: whether sparse ones are joined as such depends on the number of zeros in all records."""
        dense = {"sparse_threshold": 0} if type(estimator) is ColumnTransformer else {}
        return {**super().fresh_randomness(estimator), **dense}

    def fitted(self, model: Any) -> list[tuple[str, Any]]:
        if type(model) is FeatureUnion:
            return list(model.transformer_list)
        return [(name, part) for name, part, _ in model.transformers_]


def _skipped(part: Any) -> bool:
    return part is None or (isinstance(part, str) and part in ("passthrough", "drop"))


def _same_records(one: Any, other: Any) -> bool:
    """Whether two tables are known to be equal."""
    if one is other:
        return True
    if type(one) is not type(other) or one.shape != other.shape:
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and bool(np.array_equal(one, other))
    return bool(one.equals(other)) if hasattr(one, "equals") else False


def _is_composite(part: Any) -> bool:
    return type(part) in (Pipeline, FeatureUnion, ColumnTransformer)


def _below(name: str, varying: frozenset[str]) -> frozenset[str]:
    """Parameters of one part, without its name in front."""
    return frozenset(one.removeprefix(f"{name}__") for one in varying if one.startswith(f"{name}__"))


def _always(part: Any) -> bool:
    return True


def _given_categories(part: Any) -> bool:
    """Categories as a list, and no merging of rare ones."""
    rare = getattr(part, "min_frequency", None), getattr(part, "max_categories", None)
    return not isinstance(part.categories, str) and rare == (None, None)


def _constant(part: Any) -> bool:
    """A constant for missing values, and no column dropped for being empty."""
    return part.strategy == "constant" and part.keep_empty_features and not part.add_indicator


#: scikit-learn's transformers that take each record on its own and keep nothing of it, and when they do so.
#: (The tag ``requires_fit`` does not tell: GaussianProcessRegressor has it unset.)
LEARN_NOTHING: dict[str, Callable[[Any], bool]] = {
    "AdditiveChi2Sampler": _always,
    "Binarizer": _always,
    "FeatureHasher": _always,
    "FunctionTransformer": _always,
    "HashingVectorizer": _always,
    "Normalizer": _always,
    "OneHotEncoder": _given_categories,
    "OrdinalEncoder": _given_categories,
    "PolynomialFeatures": _always,
    "SimpleImputer": _constant,
}

_CATEGORIES = "public categories=[[...], ...], and neither min_frequency nor max_categories"
#: What those of them that may learn need in order not to.
HOW_NOTHING_IS_LEARNED: dict[str, str] = {
    "OneHotEncoder": _CATEGORIES,
    "OrdinalEncoder": _CATEGORIES,
    "SimpleImputer": "strategy='constant', a public fill_value, keep_empty_features=True and add_indicator=False",
}


#: How encoders take a category that was not declared.
HOW_UNKNOWN_IS_ENCODED: dict[str, str] = {
    "OneHotEncoder": "handle_unknown='ignore'",
    "OrdinalEncoder": "handle_unknown='use_encoded_value' and unknown_value=-1",
}


def learns_nothing(part: Any) -> bool:
    """Whether a part is one of ``LEARN_NOTHING``, by exact type."""
    return _of_sklearn(part, LEARN_NOTHING) and LEARN_NOTHING[type(part).__name__](part)


def refuse_unknown_categories(name: str, part: Any) -> None:
    """One record with a category that was not declared would make every candidate fail: all is spent for nothing."""
    if getattr(part, "handle_unknown", None) == "error":
        kind = type(part).__name__
        raise LeakingEstimatorError(
            f"Step {name!r} ({kind}) has handle_unknown='error': a single record with a category that was not declared "
            f"would make every candidate fail, and show. Give it {HOW_UNKNOWN_IS_ENCODED[kind]}."
        )


def _of_sklearn(part: Any, names: Container[str]) -> bool:
    return type(part).__module__.startswith("sklearn.") and type(part).__name__ in names


def refuse_data_dependent_columns(estimator: ColumnTransformer) -> None:
    """Column selectors that see X may select by its records; scikit-learn's own looks at names and dtypes alone."""
    for name, _, columns in estimator.transformers:
        if callable(columns) and type(columns) is not make_column_selector:
            raise LeakingEstimatorError(
                f"The columns of {name!r} are chosen by a function that sees the data. Give them by name or position, "
                "or with sklearn.compose.make_column_selector."
            )


def refuse_cache(estimator: Any) -> None:
    """A cache on disk would hold the losers' steps, and hand the same noise to several candidates."""
    if getattr(estimator, "memory", None) is not None:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} has memory={estimator.memory!r}: cached steps would give several candidates "
            "the same noise and keep the losers on disk. Set memory=None."
        )
