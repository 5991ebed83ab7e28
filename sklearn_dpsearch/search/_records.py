"""Types of the searches; records and targets for estimators of others, and helpers for any kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags

from ..adapters._adapter import ExtrapolationRule, is_ours
from ..data._records import Declared, number_of_records
from ..data._rows import ChosenRows

#: Values of hyperparameters by name: one of the points among which a search chooses.
Candidate: TypeAlias = Mapping[str, Any]
#: Several of them, in order.
Candidates: TypeAlias = Sequence[Candidate]
#: Space of candidates given by a user: name to a list of values or a distribution; "auto" for the
#: estimator's space.
Distributions: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str
#: (estimator, X, y), or (estimator, X) without a target, to a number, greater is better: of
#: scikit-learn, or private.
Scorer: TypeAlias = Callable[..., float]
#: A search, whose parameters count.
Parameters: TypeAlias = Any
#: A seed for one random draw; None takes fresh entropy of the operating system.
Seed: TypeAlias = np.random.SeedSequence | None
#: One seed for each run.
Seeds: TypeAlias = Sequence[Seed]
#: A seed or generator that is known, for tests; None: entropy of the operating system.
KnownSeed: TypeAlias = int | np.random.RandomState | None
#: Public X and y.
PublicData: TypeAlias = tuple[Any, Any]
#: Extrapolation of parameters to more records: a word, a function of a value and two sizes, or a
#: rule for each name.
Extrapolate: TypeAlias = str | Callable[[Any, float, float], Any] | Mapping[str, ExtrapolationRule]


# --- estimators -----------------------------------------------------------------------------------


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """Set parameters and return the estimator.

    Without parameters, ``set_params`` of a foreign class is not called.
    """
    if parameters:
        estimator.set_params(**parameters)
    return estimator


def steps_of(estimator: Any) -> list[Any]:
    """Active steps of a pipeline, at any depth; for other estimators the estimator alone."""
    if type(estimator) is not Pipeline:
        return [estimator]
    active = (step for _, step in estimator.steps if hasattr(step, "fit"))
    return [inner for step in active for inner in steps_of(step)] or [estimator]


def parameter(estimator: Any, name: str) -> Any:
    """Value of an estimator's parameter, or what its schema states instead.

    It is None if the parameter does not exist.
    """
    value = estimator.get_params(deep=False).get(name) if hasattr(estimator, "get_params") else None
    return getattr(estimator, "public_facts", {}).get(name) if value is None else value


def columns_read(estimator: Any) -> list[str]:
    """One line for each column of each schema in an estimator; none without a schema.

    Parameters
    ----------
    estimator : estimator
        Not fitted; models with a schema have a method of this name.
    """
    parts = [estimator, *estimator.get_params(deep=True).values()]
    objects = [part for part in parts if not isinstance(part, type)]
    readers = [part for part in objects if callable(getattr(part, "columns_read", None))]
    return list(dict.fromkeys(line for reader in readers for line in reader.columns_read()))


def reads_any_record(model: Any) -> bool:
    """Return whether no record can make a training fail.

    All steps are of this library, run no module of a user, and know the classes (a schema has those
    of its target): else one label could be a class of its own.
    """
    *_, last = steps = steps_of(model)
    parameters = last.get_params(deep=False)
    declared = any(parameters.get(name) is not None for name in ("classes", "target"))
    knows_classes = declared or not is_classifier(last)
    return knows_classes and all(is_ours(type(step)) for step in steps) and takes_groups(last)


def takes_groups(step: Any) -> bool:
    """Return whether an estimator of this library trains on persons: it reads each alone."""
    return is_ours(type(step)) and getattr(step, "takes_groups", False) is True


# --- the door -------------------------------------------------------------------------------------


def declared_of(models: Sequence[Any]) -> Declared:
    """Public facts by which records are read for these models, one candidate of each family."""
    schemas = [parameter(step, "schema") for model in models for step in steps_of(model)]
    exact = [
        name
        for schema in schemas
        if isinstance(schema, Mapping)
        for name, entry in schema.items()
        if isinstance(entry, list) or (isinstance(entry, Mapping) and "values" in entry)
    ]
    declared = [classes for classes in declared_classes(models) if len(np.shape(classes)) == 1]
    return Declared(
        exact=tuple(dict.fromkeys(exact)),
        of_objects=any(map(_reads_objects, models)),
        row_shape=next(filter(None, map(_row_shape, models)), None),
        classes=tuple(dict.fromkeys(itertools.chain(*declared))) or None,
        numeric=not any(map(is_classifier, models)),
    )


def declared_classes(models: Sequence[Any]) -> list[Any]:
    """Classes that each model declares, or its schema; None where they are not declared."""
    return [parameter(steps_of(model)[-1], "classes") for model in models]


def _row_shape(model: Any) -> tuple[int, ...] | None:
    """Shape of a row that the first step of a model declares.

    The step declares it by its schema, or by bounds of each feature.
    """
    first = steps_of(model)[0]
    schema, bounds = parameter(first, "schema"), parameter(first, "bounds_X")
    if isinstance(schema, Mapping):
        return (len(schema) - (parameter(first, "target") in schema),)
    widths = {np.size(end) for end in bounds} if isinstance(bounds, (tuple, list)) else {1}
    return (max(widths),) if max(widths) > 1 else None


def _reads_objects(estimator: Any) -> bool:
    """Return whether a step, or a part of one, takes other entries than numbers.

    It reads each of them by itself.
    """
    for step in steps_of(estimator):
        tags = get_tags(step).input_tags
        parts = step.transformer_list if type(step) is FeatureUnion else ()
        reads = type(step) is ColumnTransformer or tags.categorical or tags.string or tags.dict
        if reads or parameter(step, "schema") is not None:
            return True
        if any(_reads_objects(part) for _, part in parts if hasattr(part, "fit")):
            return True
    return False


# --- behind it ------------------------------------------------------------------------------------


def take(data: Any, indices: np.ndarray) -> Any:
    """Copy the chosen records.

    The indices have eight bytes: containers multiply indices, and four may wrap around.
    """
    return None if data is None else _safe_indexing(data, np.asarray(indices, np.intp))


def rows_of(data: Any, indices: np.ndarray) -> Any:
    """Choose records without a copy where the container allows it."""
    plain = type(data) in (np.ndarray, np.memmap)
    return ChosenRows(data, indices) if plain else take(data, indices)


def take_param(value: Any, indices: np.ndarray, X: Any) -> Any:
    """Take the chosen records' entries of a parameter with one entry per record.

    Leave other parameters as they are.
    """
    several = hasattr(value, "__len__") and not isinstance(value, (str, dict))
    return take(value, indices) if several and len(value) == number_of_records(X) else value
