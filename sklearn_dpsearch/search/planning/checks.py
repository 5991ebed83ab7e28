"""Checks of arguments and public facts before a private record is used: a fit that cannot succeed spends nothing.

Public are shapes, kinds of numbers and labels, declared classes and bounds, names and parameters. Records are private.
What these checks do not find, a rehearsal finds.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_consistent_length

from ...adapters.adapter import is_ours
from ...data.columns import NO_NUMBERS, columns_in, is_frame, names_of
from ...data.labels import NUMBERS, TEXT, check_kind, label_kind
from ...data.lists import is_list
from ...preprocessing.schema import Schema
from ...privacy import CountDistribution, LeakingEstimatorError, PrivacyError
from ...scoring import PrivateScorer
from .._records import declared_classes, how_to_wrap, kind_of, n_records, parameter, records_for, steps_of, targets_for
from .._types import Parameters, Scorer

#: Mean number of runs from which a search counts as a typing error: the number of runs is never cut later.
MOST_RUNS = 10**6
#: Budgets below it are not private but meaningless: halves and shares of them would no longer be numbers.
SMALLEST_BUDGET = 1e-100

BUDGET = [None, Interval(numbers.Real, SMALLEST_BUDGET, None, closed="left")]
DELTA = [None, Options(numbers.Real, {0}), Interval(numbers.Real, SMALLEST_BUDGET, 1, closed="left")]
RUNS = [Interval(numbers.Real, 1, MOST_RUNS, closed="both"), CountDistribution]
PARTS = [None, Interval(numbers.Integral, 2, 10**6, closed="both")]


def check_estimator(found: Any) -> None:
    """Raise for a class, where an object is needed."""
    if isinstance(found, type):
        name = found.__name__
        raise TypeError(f"Found the class {name} as estimator; an object is needed. Write {name}(...).")


def check_mean(n_iter: Any) -> None:
    """Raise for a distribution of the number of runs that would run for ever."""
    if isinstance(n_iter, CountDistribution) and n_iter.mean > MOST_RUNS:
        raise ValueError(
            f"Found n_iter={n_iter!r}, so {n_iter.mean:g} runs on average; at most {MOST_RUNS} are drawn. Give a "
            "smaller mean, or a capped distribution, e.g. Geometric(100).capped(1000)."
        )


# --- parameters of ``fit`` --------------------------------------------------------------------------------------------


def is_per_record(name: str, value: Any) -> bool:
    """Return whether a parameter of ``fit`` may hold a value for each record; sample weights always may."""
    if name.rpartition("__")[2] == "sample_weight":
        return value is not None
    return hasattr(value, "__len__") and not isinstance(value, (str, dict))


# --- values inside of arguments ---------------------------------------------------------------------------------------


def nested_values(estimator: Any) -> Iterable[Any]:
    """Value of every parameter, at any depth, and of entries in lists of named steps; a class has no parameters."""
    known = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    for value in estimator.get_params(deep=False).values() if known else ():
        steps = value if isinstance(value, list) else []
        for part in [value, *(step[1] for step in steps if isinstance(step, tuple) and len(step) > 1)]:
            yield part
            yield from nested_values(part)


def values_of_space(space: object) -> Iterable[Any]:
    """Value of every entry in the lists of a space."""
    for dictionary in [space] if isinstance(space, Mapping) else space if isinstance(space, list) else []:
        for values in dictionary.values() if isinstance(dictionary, Mapping) else ():
            if isinstance(values, (list, tuple)):
                yield from values


# --- public facts of the data -----------------------------------------------------------------------------------------

#: Work in which it is seen whether two arrays share memory.
SEARCHED = 10**6
#: Kinds that neither records nor targets may have.
REFUSED = {
    "c": "Complex data not supported: {0} has a complex dtype. Give real numbers, or labels.",
    "V": "Found a structured array as {0}; give an array of numbers, one label for each record, or a data frame.",
}


@dataclass(frozen=True, eq=False)
class FitData:
    """Data of a fit that may begin, as estimators will see them.

    Parameters
    ----------
    X, y
        Private.
    n : int
        Number of records.
    empty_X, empty_y
        Containers without their records, which keep columns and types; None for other containers than arrays, sparse
        matrices and data frames.
    """

    X: Any
    y: Any
    n: int
    empty_X: Any
    empty_y: Any


def first_look(
    search: Parameters, models: Sequence[Any], scorer: Scorer, X: Any, y: Any, params: Mapping[str, Any]
) -> FitData:
    """Refuse what cannot succeed, from parameters and public facts of the data alone.

    Parameters
    ----------
    search : Parameters
    models : sequence of estimators
        One candidate of each family.
    scorer : Scorer
    X, y : array-like
        Private records.
    params : mapping
        Parameters for the estimator's ``fit``.
    """
    name, tags = type(search).__name__, get_tags(search)
    if y is None and tags.target_tags.required:
        wrapped = "" if hasattr(X, "shape") else how_to_wrap(X)
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.{wrapped}")
    kind, declared = label_kind(y), declared_classes(models)
    _check_columns(models, X)
    X, y = records_for(X, models), targets_for(y, models, declared)
    _check_records(search.estimator, name, X, tags)
    if y is not None:
        _check_container(y, "y")
        kind = kind or kind_of(getattr(y, "dtype", None))
        _check_targets(scorer, declared, y, kind)
    X, y = indexable(X, y)
    n = len(X) if not issparse(X) else int(X.shape[0])  # the shape of a data set may be unknown
    for param, value in params.items():
        weighs = param.rpartition("__")[2] == "sample_weight" and hasattr(value, "__len__")
        if weighs and len(value) != n:
            raise ValueError(
                f"Found {param} with {len(value)} entries for {n} records. Give one weight for each record."
            )
    return FitData(X, y, n, _without_records(X), _without_records(y))


def _without_records(values: Any) -> Any:
    plain = isinstance(values, np.ndarray) or is_frame(values) or issparse(values)
    return values[:0] if plain else None


def _check_columns(models: Sequence[Any], X: Any) -> None:
    """Raise for features whose types our own first steps exclude; the target need not be among the columns."""
    for first in [steps_of(model)[0] for model in models]:
        stated = parameter(first, "schema") if is_ours(type(first)) else None
        if stated is not None and is_frame(X):
            schema, target = Schema.of(stated), parameter(first, "target")
            schema.only(*(name for name in schema if name != target)).read_columns(X[:0])
        numbers_alone = stated is None and is_ours(type(first)) and getattr(first, "takes_groups", False) is True
        if numbers_alone and kind_of(getattr(X, "dtype", None)) in TEXT:
            raise ValueError(NO_NUMBERS.format("X of text"))


def _check_container(values: Any, name: str) -> None:
    """Raise for other objects than arrays, data frames and lists."""
    shape = getattr(values, "shape", None)
    if not shape and not (shape is None and is_list(values)):
        found = f"{type(values).__name__}{' with a single value' * (shape is not None)}"
        raise TypeError(
            f"Found {name} of type {found}; an array, a data frame or a list of records is needed."
            + how_to_wrap(values)
        )


def _check_records(estimator: Any, name: str, X: Any, tags: Any) -> None:
    """Raise for records of a kind that no estimator takes, or that this one does not take."""
    _check_container(X, "X")
    shape, kind = getattr(X, "shape", ()), kind_of(getattr(X, "dtype", None))
    if issparse(X) and not tags.input_tags.sparse:
        raise TypeError(
            f"Sparse data was passed to {name}, but {type(estimator).__name__} needs dense data. Use X.toarray()."
        )
    if shape[1:] == (0,):
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if kind in REFUSED:
        raise ValueError(REFUSED[kind].format("X"))
    if len(shape) == 1 and kind in NUMBERS and not _takes_single_numbers(estimator):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X has shape {shape}. Give X of shape (n_samples, n_features): "
            "X.reshape(-1, 1) if it holds one feature of many records."
        )


def _check_targets(scorer: Scorer, declared: Sequence[Any], y: Any, kind: str) -> None:
    """Raise for targets that no class, and no label of the scorer, can equal."""
    if kind in REFUSED:
        raise ValueError(REFUSED[kind].format("y"))
    width = (*getattr(y, "shape", ()), 1, 1)[1]
    if width > 1:  # classes are names of columns then
        _check_scores_rows(scorer, width)
        return
    for classes in declared:
        if classes is not None and len(np.shape(classes)) == 1:
            _check_labels(list(classes), kind, getattr(y, "dtype", None))
        _check_named_labels(scorer, classes, kind)


def _check_labels(classes: list[Any], labels: str, dtype: Any) -> None:
    """Raise where the type of y excludes all declared classes."""
    check_kind(classes, labels)
    declared = kind_of(np.asarray(classes).dtype)
    if declared in tuple("biu") and labels == "f":
        raise ValueError(
            f"Found y of type {dtype} for classes={classes!r}: a continuous target has no classes. If all values are "
            "whole, write y.astype(int), or declare the classes as floats; otherwise use a regressor."
        )
    if declared in NUMBERS and str(dtype) == "object":
        raise ValueError(
            f"Found y of type object for classes={classes!r}: objects hold text as a rule, and then no label would be "
            "declared. Write y.astype(int) if they are numbers, or give the classes as y has them."
        )


def _check_scores_rows(scorer: Scorer, width: int) -> None:
    """Raise for a private scorer that cannot handle several targets of a record: every score would be the worst."""
    if isinstance(scorer, PrivateScorer) and not scorer.several_targets:
        raise PrivacyError(
            f"Found scoring={scorer!r}, which is for one target of a record, and {width} columns in y: every "
            "score would be the worst. Use scoring='accuracy' (all labels of a record right), or "
            "make_private_scorer(score_func, lower=..., upper=...) with one value per record. Nothing was spent."
        )


def _check_named_labels(scorer: Scorer, declared: Any, kind: str) -> None:
    """Raise for a private scorer that names labels which are no classes, or of another kind than y."""
    named = getattr(scorer, "pos_label", None)
    labels = [named] if named is not None else list(getattr(scorer, "classes", ()))
    unknown = [label for label in labels if declared is not None and label not in list(declared)]
    if labels and kind and kind in TEXT + NUMBERS and declared is None:
        unknown = [label for label in labels if isinstance(label, str) != (kind in TEXT)]
    if unknown:
        known = f"classes={list(declared)!r}" if declared is not None else "labels of another kind in y"
        raise PrivacyError(
            f"Found scoring={scorer!r}, which names {unknown!r}, and {known}: every score would be the same. Name the "
            "labels as they are in y. Nothing was spent."
        )


def check_public(X_public: Any, y_public: Any, X: Any, y: Any) -> None:
    """Raise for public data on which no candidate can be scored, or that shares memory with private records."""
    if X_public is None and y_public is not None:
        raise ValueError("Found y_public without X_public. Give both, or none to validate on private records.")
    if y_public is None and y is not None:
        raise ValueError("Found X_public without y_public, which scores need as they need y. Give both.")
    for name, public in (("X_public", X_public), ("y_public", y_public)):
        if public is not None:
            _check_container(public, name)
    check_consistent_length(X_public, y_public)
    if n_records(X_public) == 0:
        raise ValueError("Found X_public with 0 records, on which nothing can be scored. Give some, or leave it out.")
    if any(_share_memory(public, private) for public, private in ((X_public, X), (y_public, y)) if public is not None):
        raise PrivacyError(
            "Found X_public or y_public that shares its memory with X or y: private records are not public, and scores "
            "on them would be released without noise. Leave X_public out to validate on private records; copy what is "
            "public."
        )
    found, public = (tuple(getattr(records, "shape", ()))[1:] for records in (X, X_public))
    if found and public and found != public:
        raise ValueError(
            f"Found records of shape {found} in X and {public} in X_public, which no candidate could predict for. Give "
            "both the same features."
        )


def _share_memory(public: Any, private: Any) -> bool:
    """Return whether two containers are the same, or may hold the same memory: a doubt is a refusal."""
    if public is private:
        return True
    ours, theirs = (dict(zip(names_of(one) or [""], map(np.asarray, columns_in(one)))) for one in (public, private))
    return any(_same_memory(column, theirs[name]) for name, column in ours.items() if name in theirs)


def _same_memory(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return np.shares_memory(one, other, SEARCHED)  # type: ignore[arg-type]
    except Exception:  # NumPy's, of which the name differs by version: it is too hard to see
        return True


def refuse_pairwise(estimator: Any) -> None:
    """Raise for kernels or distances between records: the row of each record would hold every other record."""
    if get_tags(estimator).input_tags.pairwise:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} takes a precomputed kernel or distances between records: the row of each "
            "record then depends on all others, and no part of the records can be taken. Give features, and a kernel "
            "that is computed from them."
        )


def _takes_single_numbers(estimator: Any) -> bool:
    """Return whether records may be single numbers, as custom modules may allow."""
    return get_tags(estimator).input_tags.one_d_array or any(
        kind.__module__.startswith("skorch.") for kind in type(steps_of(estimator)[0]).__mro__
    )


def refuse_traces(estimator: Any) -> None:
    """Raise for whatever would see every candidate, or keep something of it outside: callbacks and checkpoints.

    Copies of an estimator keep callbacks of scikit-learn. Inner searches with one checkpoint folder would share noise.
    """
    for name, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        where = f"{name or 'the estimator'} ({type(part).__name__})"
        if getattr(part, "_skl_callbacks", None):
            raise PrivacyError(
                f"Found callbacks on {where}: they would see every candidate, and how many there are. Remove them with "
                "set_callbacks()."
            )
        folder = getattr(part, "checkpoint", None)
        if folder is not None and hasattr(part, "privacy_guarantee"):
            raise PrivacyError(
                f"Found checkpoint={str(folder)!r} on {where}; a checkpoint is for one search, and candidates "
                "would leave there what they hold, and how many there are. Set checkpoint=None; a checkpoint of the "
                "outer search keeps these trainings too."
            )
