"""Checks of arguments and public facts before a private record is used.

A fit that cannot succeed spends nothing.

Public are shapes, kinds of numbers and labels, declared classes and bounds, names and parameters.
Records are private. What these checks do not find, a rehearsal finds.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.metadata_routing import process_routing

from ...adapters._adapter import is_ours
from ...adapters._refused_estimators import refuse_values_of_records
from ...data._columns import NO_NUMBERS, is_frame
from ...data._labels import NUMBERS, TEXT, check_kind
from ...data._memory import share_memory
from ...data._records import Records, how_to_wrap, read_parameter, read_records
from ...preprocessing._schema import Schema
from ...privacy import CountDistribution, LeakingEstimatorError, PrivacyError
from ...scoring import PrivateScorer
from .. import _records
from .._records import Parameters, Scorer

#: Mean number of runs from which a search counts as a typing error: the number of runs is never cut
#: later.
MOST_RUNS = 10**6
#: Budgets below it are not private but meaningless: halves and shares of them would no longer be
#: numbers.
SMALLEST_BUDGET = 1e-100

BUDGET = [None, Interval(numbers.Real, SMALLEST_BUDGET, None, closed="left")]
SMALL_NUMBER = Interval(numbers.Real, SMALLEST_BUDGET, 1, closed="left")
DELTA = [None, Options(numbers.Real, {0}), SMALL_NUMBER]
RUNS = [Interval(numbers.Real, 1, MOST_RUNS, closed="both"), CountDistribution]
PARTS = [None, Interval(numbers.Integral, 2, 10**6, closed="both")]


def check_forms(search: Parameters) -> None:
    """Raise for a class as estimator, and for parameters that release several scores."""
    if isinstance(search.estimator, type):
        name = search.estimator.__name__
        raise TypeError(
            f"Found the class {name} as estimator; an object is needed. Write {name}(...)."
        )
    scoring, refit = getattr(search, "scoring", None), getattr(search, "refit", None)
    refusals = []
    if isinstance(scoring, (list, tuple, set, dict)):
        first = next(iter(scoring.values() if isinstance(scoring, dict) else scoring), "accuracy")
        refusals.append(
            f"Found scoring={scoring!r}: each score of the private records has a price, so one "
            f"decides. Write scoring={first!r}, and compute others on public test data from "
            f"search.predict."
        )
    if isinstance(refit, str) and refit != "winner":
        refusals.append(
            f"Found refit={refit!r}, which names one of several scores; here one score decides. "
            f"Write scoring={refit!r} and leave refit='winner' (the winner's own model, at no "
            f"cost)."
        )
    elif callable(refit):
        refusals.append(
            "Found a function as refit=, which would see the scores of all candidates; they are "
            "secret. The best private score decides: leave refit='winner', or write a scorer that "
            "has your rule (scoring.make_private_scorer)."
        )
    if refusals:
        raise PrivacyError(" ".join(refusals))


def check_supported(search: Parameters) -> None:
    """Raise for values that are of their types and that no search can go by."""
    n_iter = getattr(search, "n_iter", None)
    if isinstance(n_iter, CountDistribution) and n_iter.mean > MOST_RUNS:
        raise ValueError(
            f"Found n_iter={n_iter!r}, so {n_iter.mean:g} runs on average; at most {MOST_RUNS} are "
            "drawn. Give a smaller mean, or a capped distribution, e.g. "
            "Geometric(100).capped(1000)."
        )
    if isinstance(search.error_score, str):
        raise PrivacyError(
            "Found error_score='raise': an error raised by one candidate could reveal its "
            "data. Use error_score=np.nan (a failing candidate is the worst), and look for "
            "errors on public or made-up data: dry_run() shows them in full."
        )
    if search.error_score == np.inf:
        raise ValueError(
            "Found error_score=inf, which would make a failing candidate the best. Use "
            "error_score=np.nan (a failing candidate is the worst, as with -inf), or a finite "
            "number."
        )
    if search.n_jobs == 0:
        raise ValueError(
            "Found n_jobs=0; None, a number of workers, or -1 for one on each processor is needed."
        )
    refuse_traces(search.estimator)


# --- parameters of ``fit`` ------------------------------------------------------------------------


def fit_params_of(search: Parameters, params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for the estimator's ``fit``; per-record ones only on the caller's word."""
    if get_config().get("enable_metadata_routing"):
        params = process_routing(search, "fit", **params).estimator.fit
    if search.guarantee is None:
        refuse_values_of_records(params)
    return {name: read_parameter(name, value) for name, value in params.items()}


# --- values inside of arguments -------------------------------------------------------------------


def nested_values(estimator: Any) -> Iterable[Any]:
    """Value of every parameter, at any depth, and of entries in lists of named steps.

    A class has no parameters.
    """
    has_parameters = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    for value in estimator.get_params(deep=False).values() if has_parameters else ():
        steps = value if isinstance(value, list) else []
        named = [step[1] for step in steps if isinstance(step, tuple) and len(step) > 1]
        for part in (value, *named):
            yield part
            yield from nested_values(part)


def values_of_space(space: object) -> Iterable[Any]:
    """Value of every entry in the lists of a space."""
    for dictionary in space if isinstance(space, list) else [space]:
        for values in dictionary.values() if isinstance(dictionary, Mapping) else ():
            if isinstance(values, (list, tuple)):
                yield from values


# --- public facts of the data ---------------------------------------------------------------------

#: Kinds that neither records nor targets may have.
REFUSED_KINDS = {
    "c": "Complex data not supported: {0} has a complex dtype. Give real numbers, or labels.",
    "V": "Found a structured array as {0}; give an array of numbers, one label for each record, or "
    "a data frame.",
}
ONE_TARGET = (
    "Found scoring={!r}, which is for one target of a record, and {} columns in y: every score "
    "would be the worst. Use scoring='accuracy' (all labels of a record right), or "
    "make_private_scorer(score_func, lower=..., upper=...) with one value per record. Nothing was "
    "spent."
)


def first_look(
    search: Parameters, kinds: Sequence[Any], scorer: Scorer, X: Any, y: Any, params: dict[str, Any]
) -> Records:
    """Read records at the door, and refuse what cannot succeed.

    Parameters and public facts alone decide what is refused.

    Parameters
    ----------
    search : Parameters
    kinds : sequence of estimators
        One candidate of each family.
    scorer : Scorer
    X, y : array-like
        Private records.
    params : dict
        Parameters for the estimator's ``fit``.
    """
    name, tags = type(search).__name__, get_tags(search)
    if y is None and tags.target_tags.required:
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is "
            f"None.{how_to_wrap(X)}"
        )
    records = read_records(X, y, _records.declared_of(kinds))
    _check_columns(kinds, records)
    _check_features(search.estimator, name, records, tags)
    if records.y is not None:
        _check_targets(scorer, _records.declared_classes(kinds), records.y, records.label_kind)
    for param, value in params.items():
        weighs = param.rpartition("__")[2] == "sample_weight" and hasattr(value, "__len__")
        if weighs and len(value) != records.n:
            raise ValueError(
                f"Found {param} with {len(value)} entries for {records.n} records. Give one weight "
                f"for each record."
            )
    return records


def _check_columns(models: Sequence[Any], records: Records) -> None:
    """Raise for features whose types our own first steps exclude.

    The target need not be among the columns.
    """
    header, _ = records.headers
    for first in [_records.steps_of(model)[0] for model in models]:
        stated = _records.parameter(first, "schema") if is_ours(type(first)) else None
        if stated is not None and is_frame(header):
            schema, target = Schema.of(stated), _records.parameter(first, "target")
            schema.only(*(name for name in schema if name != target)).read_columns(header)
        if stated is None and _records.takes_groups(first) and records.kind in TEXT:
            raise ValueError(NO_NUMBERS.format("X of text"))


def _check_features(estimator: Any, name: str, records: Records, tags: Any) -> None:
    """Raise for records of a kind that no estimator takes, or that this one does not take."""
    X, kind = records.X, records.kind
    shape = getattr(X, "shape", ())
    if issparse(X) and not tags.input_tags.sparse:
        raise TypeError(
            f"Sparse data was passed to {name}, but {type(estimator).__name__} needs dense data. "
            f"Use X.toarray()."
        )
    if shape[1:] == (0,):
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
    if kind in REFUSED_KINDS:
        raise ValueError(REFUSED_KINDS[kind].format("X"))
    # records may be single numbers, as custom modules may allow
    kinds = type(_records.steps_of(estimator)[0]).__mro__
    of_skorch = any(base.__module__.startswith("skorch.") for base in kinds)
    single = of_skorch or get_tags(estimator).input_tags.one_d_array
    if len(shape) == 1 and kind in NUMBERS and not single:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X has shape {shape}. Give X of shape "
            "(n_samples, n_features): X.reshape(-1, 1) if it holds one feature of many records."
        )


def _check_targets(scorer: Scorer, declared: Sequence[Any], y: Any, kind: str) -> None:
    """Raise for targets that no class, and no label of the scorer, can equal."""
    if kind in REFUSED_KINDS:
        raise ValueError(REFUSED_KINDS[kind].format("y"))
    width = (*getattr(y, "shape", ()), 1, 1)[1]
    if width > 1:  # classes are names of columns then
        if isinstance(scorer, PrivateScorer) and not scorer.several_targets:
            raise PrivacyError(ONE_TARGET.format(scorer, width))
        return
    for classes in declared:
        if classes is not None and len(np.shape(classes)) == 1:
            _check_labels(list(classes), kind, getattr(y, "dtype", None))
        _check_named_labels(scorer, classes, kind)


def _check_labels(classes: list[Any], labels: str, dtype: Any) -> None:
    """Raise where the type of y excludes all declared classes."""
    check_kind(classes, labels)
    declared = np.asarray(classes).dtype.kind
    if declared in tuple("biu") and labels == "f":
        raise ValueError(
            f"Found y of type {dtype} for classes={classes!r}: a continuous target has no classes. "
            "If all values are whole, write y.astype(int), or declare the classes as floats; "
            "otherwise use a regressor."
        )
    if declared in NUMBERS and str(dtype) == "object":
        raise ValueError(
            f"Found y of type object for classes={classes!r}: objects hold text as a rule, and "
            "then no label would be declared. Write y.astype(int) if they are numbers, or give the "
            "classes as y has them."
        )


def _check_named_labels(scorer: Scorer, declared: Any, kind: str) -> None:
    """Raise for a private scorer whose labels are no classes, or of another kind than y."""
    named = getattr(scorer, "pos_label", None)
    labels = [named] if named is not None else list(getattr(scorer, "classes", ()))
    unknown = [label for label in labels if declared is not None and label not in list(declared)]
    if labels and kind and kind in TEXT + NUMBERS and declared is None:
        unknown = [label for label in labels if isinstance(label, str) != (kind in TEXT)]
    if unknown:
        declaration = "labels of another kind in y"
        if declared is not None:
            declaration = f"classes={list(declared)!r}"
        raise PrivacyError(
            f"Found scoring={scorer!r}, which names {unknown!r}, and {declaration}: every score "
            "would be the same. Name the labels as they are in y. Nothing was spent."
        )


def read_public(X_public: Any, y_public: Any, X: Any, y: Any, models: Sequence[Any]) -> Records:
    """Public data at the door.

    Raises
    ------
    PrivacyError
        If it shares memory with private records.
    ValueError
        If no candidate can be scored on it.
    """
    if X_public is None:
        raise ValueError(
            "Found y_public without X_public. Give both, or none to validate on private records."
        )
    if y_public is None and y is not None:
        raise ValueError(
            "Found X_public without y_public, which scores need as they need y. Give both."
        )
    pairs = ((X_public, X), (y_public, y))
    if any(share_memory(public, private) for public, private in pairs if public is not None):
        raise PrivacyError(
            "Found X_public or y_public that shares its memory with X or y: private records are "
            "not public, and scores on them would be released without noise. Leave X_public out to "
            "validate on private records; copy what is public."
        )
    public = read_records(
        X_public, y_public, _records.declared_of(models), ("X_public", "y_public")
    )
    if public.n == 0:
        raise ValueError(
            "Found X_public with 0 records, on which nothing can be scored. Give some, or leave it "
            "out."
        )
    return public


def check_public_shape(public: Records, records: Records) -> None:
    """Raise for public data of another shape than the private records."""
    shapes = (tuple(getattr(data.X, "shape", ()))[1:] for data in (records, public))
    private_shape, public_shape = shapes
    if private_shape and public_shape and private_shape != public_shape:
        raise ValueError(
            f"Found records of shape {private_shape} in X and {public_shape} in X_public, which no "
            "candidate could predict for. Give both the same features."
        )


def refuse_pairwise(estimator: Any) -> None:
    """Raise for kernels or distances between records.

    The row of each record would hold every other record.
    """
    if get_tags(estimator).input_tags.pairwise:
        raise LeakingEstimatorError(
            f"{type(estimator).__name__} takes a precomputed kernel or distances between records: "
            "the row of each record then depends on all others, and no part of the records can be "
            "taken. Give features, and a kernel that is computed from them."
        )


def refuse_traces(estimator: Any) -> None:
    """Raise for whatever would see every candidate, or keep something of it outside.

    Callbacks and checkpoints do so. Copies of an estimator keep callbacks of scikit-learn. Inner
    searches with one checkpoint folder would share noise.
    """
    for name, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        where = f"{name or 'the estimator'} ({type(part).__name__})"
        if getattr(part, "_skl_callbacks", None):
            raise PrivacyError(
                f"Found callbacks on {where}: they would see every candidate, and how many there "
                "are. Remove them with set_callbacks()."
            )
        folder = getattr(part, "checkpoint", None)
        if folder is not None and hasattr(part, "privacy_guarantee"):
            raise PrivacyError(
                f"Found checkpoint={str(folder)!r} on {where}; a checkpoint is for one search, and "
                "candidates would leave there what they hold, and how many there are. Set "
                "checkpoint=None; a checkpoint of the outer search keeps these trainings too."
            )
