"""Checks from public facts before a private record is used: a fit that cannot succeed spends nothing.

Public are shapes, kinds of numbers and labels, declared classes and bounds, names and parameters. Records are private.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_consistent_length

from ...data.columns import frame_of, is_data_set, is_frame, library_of, read_column, refused
from ...data.labels import targets_like
from ...data.lists import numbers_in, objects_in
from ...errors import did_you_mean, not_once
from ...privacy import LeakingEstimatorError, PrivacyError
from ...scoring import PrivateScorer
from .._records import n_records
from .._types import Parameters, Scorer
from .container_facts import NUMBERS, TEXT, ContainerFacts, facts_of, how_to_wrap, kind_of

#: Steps that keep the number of features.
KEEP_WIDTH = ("Binarizer", "Normalizer", "OrdinalEncoder", "SimpleImputer", "StandardScaler")
#: Parameters that hold one pair of bounds for all features, or one for each.
BOUNDS = ("bounds", "bounds_X")


@dataclass(frozen=True)
class FitData:
    """Data of a fit that may begin, with all that was seen of them before a record is used."""

    X: Any
    y: Any
    facts_of_X: ContainerFacts
    facts_of_y: ContainerFacts | None


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
        wrapped = "" if hasattr(X, "shape") else how_to_wrap(type(X))
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.{wrapped}")
    declared = kind_of(getattr(y, "dtype", None))
    X, y = records_for(X, (search.estimator, *models)), targets_for(y, (search.estimator, *models))
    facts, labels = facts_of(X), None if y is None else _facts_of_targets(y, declared)
    _check_records(search.estimator, name, facts, tags)
    for model in (search.estimator, *models):
        _in_one(partial(_check_schema, model, facts), partial(check_declared, model, facts.width, labels))
    X, y = indexable(X, y)
    check_fit_params(search.estimator, params, facts.n)
    if labels is not None and labels.has_several_columns:
        _check_scores_rows(scorer, labels)
    else:
        for model in models:
            _check_named_labels(scorer, model, "" if labels is None else labels.kind)
    return FitData(X, y, facts, labels)


def records_for(X: Any, models: Sequence[Any]) -> Any:
    """Records in a container for estimators of others: an array, or a data frame of pandas with NumPy's types.

    A list becomes an array of objects where a step reads text or tables, else of numbers.

    Raises
    ------
    TypeError
        For a container that is not known.
    """
    library = library_of(X)
    if is_frame(X):
        return frame_of(X, [name for model in models for name in _listed(model)])
    if library == "builtins":
        return (objects_in if any(map(_reads_objects, models)) else numbers_in)(X, "X")
    if library in ("pandas", "polars", "pyarrow"):
        return read_column(X).values
    if library is None and not (issparse(X) or is_data_set(X)):
        raise TypeError(f"{refused(X)}{how_to_wrap(type(X))}")
    return X


def _listed(model: Any) -> list[str]:
    """Columns whose numbers must not be rounded, by the schemas of the steps."""
    schemas = [parameter(step, "schema") for step in steps_of(model)]
    entries = [entry for schema in schemas if isinstance(schema, Mapping) for entry in schema.items()]
    return [
        name for name, entry in entries if isinstance(entry, list) or (isinstance(entry, Mapping) and "values" in entry)
    ]


def _reads_objects(estimator: Any) -> bool:
    """Return whether a step, or a part of one, takes other entries than numbers: it reads each of them by itself."""
    for step in steps_of(estimator):
        tags, parts = get_tags(step).input_tags, step.transformer_list if type(step) is FeatureUnion else ()
        if type(step) is ColumnTransformer or tags.categorical or tags.string or tags.dict:
            return True
        if parameter(step, "schema") is not None or any(
            _reads_objects(part) for _, part in parts if hasattr(part, "fit")
        ):
            return True
    return False


def targets_for(y: Any, models: Sequence[Any]) -> Any:
    """Targets in an array: labels for a classifier, else numbers."""
    if y is None or is_data_set(y):
        return y
    declared = [parameter(steps_of(model)[-1], "classes") for model in models]
    known = [label for classes in declared if len(np.shape(classes)) == 1 for label in classes]
    return targets_like(y, list(dict.fromkeys(known)) or None, not any(map(is_classifier, models)))


def _in_one(*checks: Callable[[], None]) -> None:
    """Call all checks; raise one error that says all that they say."""
    found = []
    for check in checks:
        try:
            check()
        except ValueError as error:
            found.append(error)
    if len(found) > 1:
        raise ValueError("\n".join(f"{number}. {error}" for number, error in enumerate(found, 1))) from found[0]
    if found:
        raise found[0]


def _check_schema(estimator: Any, facts: ContainerFacts) -> None:
    """Raise if a data frame lacks columns of the schema by which the first step makes records up."""
    step = steps_of(estimator)[0]
    columns, schema = getattr(facts.empty, "columns", None), parameter(step, "schema")
    if columns is None or not isinstance(schema, Mapping) or not hasattr(step, "made_up"):
        return
    target = parameter(step, "target")
    if told := not_once([str(name) for name in columns], [name for name in schema if name != target]):
        raise ValueError(told)


def _check_records(estimator: Any, name: str, facts: ContainerFacts, tags: Any) -> None:
    """Raise for records of a kind that no estimator takes, or that this one does not take."""
    if facts.is_sparse and not tags.input_tags.sparse:
        raise TypeError(
            f"Sparse data was passed to {name}, but {type(estimator).__name__} needs dense data. Use X.toarray()."
        )
    if facts.width == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={facts.shape}) while a minimum of 1 is required.")
    if facts.kind == "c":
        raise ValueError("Complex data not supported: X has a complex dtype. Give real features.")
    if facts.kind == "V":
        raise ValueError("Found a structured array as X; give an array of numbers, or a data frame: pd.DataFrame(X).")
    if facts.dimensions == 1 and facts.kind and facts.kind in NUMBERS and not _takes_single_numbers(estimator):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X has shape ({facts.n},). Give X of shape (n_samples, "
            "n_features): X.reshape(-1, 1) if it holds one feature of many records."
        )


def _facts_of_targets(y: Any, declared: str) -> ContainerFacts:
    """Facts of targets of a declared kind; raise for others than one or several plain values for each record."""
    facts = facts_of(y, "y")
    facts = replace(facts, kind=declared or facts.kind)
    if facts.kind == "c":
        raise ValueError("Complex data not supported: y has a complex dtype. Give real numbers, or labels.")
    if facts.kind == "V":
        raise ValueError("Found a structured array as y; one label or number for each record is needed.")
    return facts


def check_public(X_public: Any, y_public: Any, X: Any, y: Any) -> None:
    """Raise for public data on which no candidate can be scored, or that shares memory with private records."""
    if X_public is None and y_public is not None:
        raise ValueError("Found y_public without X_public. Give both, or none to validate on private records.")
    if y_public is None and y is not None:
        raise ValueError("Found X_public without y_public, which scores need as they need y. Give both.")
    for name, public in (("X_public", X_public), ("y_public", y_public)):
        if public is not None:
            facts_of(public, name)
    check_consistent_length(X_public, y_public)
    if n_records(X_public) == 0:
        raise ValueError("Found X_public with 0 records, on which nothing can be scored. Give some, or leave it out.")
    if any(_share(public, private) for public, private in ((X_public, X), (y_public, y))):
        raise PrivacyError(
            "Found X_public or y_public that shares its memory with X or y: private records are not public, and scores "
            "on them would be released without noise. Leave X_public out to validate on private records."
        )
    found, public = (tuple(getattr(records, "shape", ()))[1:] for records in (X, X_public))
    if found and public and found != public:
        raise ValueError(
            f"Found records of shape {found} in X and {public} in X_public, which no candidate could predict for. Give "
            "both the same features."
        )


def check_declared(estimator: Any, n_features: int | None, y: ContainerFacts | None) -> None:
    """Raise for bounds with a wrong number of features, and for classes of another kind than the labels."""
    steps = steps_of(estimator)
    for step in steps:
        if n_features is not None:
            _check_bounds(step, n_features)
        if type(step).__name__ not in KEEP_WIDTH:
            break  # later steps see another number of features
    classes = parameter(steps[-1], "classes")
    if y is None or classes is None or len(np.shape(classes)) != 1:
        return
    if not y.has_several_columns:  # of several columns classes are names
        _check_labels(list(classes), y)


def _check_labels(classes: list[Any], y: ContainerFacts) -> None:
    """Raise where the type of y excludes all declared classes."""
    declared, labels = kind_of(np.asarray(classes).dtype), y.kind
    if {declared in TEXT, labels in TEXT} == {True, False} and declared in TEXT + NUMBERS and labels in TEXT + NUMBERS:
        words = {True: "text", False: "numbers"}
        raise ValueError(
            f"Found classes={classes!r} ({words[declared in TEXT]}) for labels in y that are "
            f"{words[labels in TEXT]}: none of them is declared. Give classes of the same kind as y, here or in the "
            "schema." + _within_an_ensemble(labels, f"declare classes=range({len(classes)})")
        )
    if declared in tuple("biu") and labels == "f":
        raise ValueError(
            f"Found y of type {y.dtype} for classes={classes!r}: a continuous target has no classes. If all values are "
            "whole, write y.astype(int), or declare the classes as floats; otherwise use a regressor."
        )
    if declared in NUMBERS and str(y.dtype) == "object":
        raise ValueError(
            f"Found y of type object for classes={classes!r}: objects hold text as a rule, and then no label would be "
            "declared. Write y.astype(int) if they are numbers, or give the classes as y has them."
        )


def _within_an_ensemble(labels: str, remedy: str) -> str:
    """Hint for a search with named labels inside scikit-learn's ensembles, which give it numbers."""
    if labels in TEXT:
        return ""
    return (
        " Inside VotingClassifier, StackingClassifier and BaggingClassifier y holds numbers: the places of the labels "
        f"in the sorted list of those that occur. If all of them occur for sure, {remedy} there."
    )


def _check_bounds(step: Any, n_features: int) -> None:
    for name in BOUNDS:
        bounds = parameter(step, name)
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            continue
        for end in bounds:
            if np.ndim(end) == 1 and len(end) not in (1, n_features):
                raise ValueError(
                    f"Found {name} of {type(step).__name__} for {len(end)} features, but X has {n_features}. Give one "
                    "pair of numbers for all features, or two arrays with one entry for each."
                )


def check_fit_params(estimator: Any, params: Mapping[str, Any], n_samples: int) -> None:
    """Raise for parameters that no ``fit`` in the pipeline takes, and for a wrong number of weights."""
    for name, value in params.items():
        weighs = name.rpartition("__")[2] == "sample_weight" and hasattr(value, "__len__")
        if weighs and len(value) != n_samples:
            raise ValueError(
                f"Found {name} with {len(value)} entries for {n_samples} records. Give one weight for each record."
            )
    _check_taken(estimator, params)


def _check_taken(estimator: Any, params: Mapping[str, Any]) -> None:
    if type(estimator) is Pipeline:
        _check_steps(estimator, params)
        return
    explicit = signature(estimator.fit_transform).parameters if hasattr(estimator, "fit_transform") else ()
    try:
        signature(estimator.fit).bind_partial(**{name: value for name, value in params.items() if name not in explicit})
    except TypeError as error:
        raise TypeError(f"{type(estimator).__name__}.fit {error}. Leave it out; nothing was spent.") from None


def _check_steps(pipeline: Any, params: Mapping[str, Any]) -> None:
    names = [name for name, _ in pipeline.steps]
    for name in params:
        step, found, _ = name.partition("__")
        if not found or step not in names:
            raise ValueError(
                f"Found the fit parameter {name!r} for a pipeline of the steps {names}: it needs the name of a step "
                f"and two underscores in front.{did_you_mean(step, names)} Nothing was spent."
            )
    for name, step in pipeline.steps:
        below = {path.partition("__")[2]: value for path, value in params.items() if path.partition("__")[0] == name}
        if below:
            _check_taken(step, below)


def _check_scores_rows(scorer: Scorer, y: ContainerFacts) -> None:
    """Raise for a private scorer that cannot handle several targets of a record: every score would be the worst."""
    if isinstance(scorer, PrivateScorer) and not scorer.several_targets:
        raise PrivacyError(
            f"Found scoring={scorer!r}, which is for one target of a record, and {y.width} columns in y: every "
            "score would be the worst. Use scoring='accuracy' (all labels of a record right), or "
            "make_private_scorer(score_func, lower=..., upper=...) with one value per record. Nothing was spent."
        )


def _check_named_labels(scorer: Scorer, estimator: Any, kind: str) -> None:
    """Raise for a private scorer that names labels which are no classes, or of another kind than y."""
    named = getattr(scorer, "pos_label", None)
    labels = [named] if named is not None else list(getattr(scorer, "classes", ()))
    declared = parameter(steps_of(estimator)[-1], "classes")
    unknown = [label for label in labels if declared is not None and label not in list(declared)]
    if labels and kind and kind in TEXT + NUMBERS and declared is None:
        unknown = [label for label in labels if isinstance(label, str) != (kind in TEXT)]
    if unknown:
        known = f"classes={list(declared)!r}" if declared is not None else "labels of another kind in y"
        raise PrivacyError(
            f"Found scoring={scorer!r}, which names {unknown!r}, and {known}: every score would be the same. Name the "
            "labels as they are in y. Nothing was spent."
            + (_within_an_ensemble(kind, "name labels by their places") if declared is None else "")
        )


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


def _share(public: Any, private: Any) -> bool:
    """Return whether two collections of records are the same, or hold the same memory."""
    if public is None or private is None:
        return False
    if public is private:
        return True
    both = isinstance(public, np.ndarray) and isinstance(private, np.ndarray)
    return bool(
        both and public.size and private.size and np.may_share_memory(public, private) and _overlap(public, private)
    )


def _overlap(first: np.ndarray, second: np.ndarray) -> bool:
    try:
        return bool(np.shares_memory(first, second, max_work=1000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:  # a doubt is a refusal
        return True


def steps_of(estimator: Any) -> list[Any]:
    """Active steps of a pipeline, at any depth; for other estimators the estimator alone."""
    if type(estimator) is not Pipeline:
        return [estimator]
    found = [inner for _, step in estimator.steps if hasattr(step, "fit") for inner in steps_of(step)]
    return found or [estimator]


def parameter(estimator: Any, name: str) -> Any:
    """Value of an estimator's parameter, or what its schema states instead; None if the parameter does not exist."""
    facts: Mapping[str, Any] = getattr(estimator, "public_facts", {})
    if name in facts:
        return facts[name]
    return estimator.get_params(deep=False).get(name) if hasattr(estimator, "get_params") else None


def refuse_traces(estimator: Any) -> None:
    """Raise for whatever would see every candidate, or keep something of it outside: callbacks and files.

    Copies of an estimator keep callbacks of scikit-learn. Candidates with one checkpoint folder would share noise.
    """
    for name, part in {"": estimator, **estimator.get_params(deep=True)}.items():
        where = f"{name or 'the estimator'} ({type(part).__name__})"
        if getattr(part, "_skl_callbacks", None):
            raise PrivacyError(
                f"Found callbacks on {where}: they would see every candidate, and how many there are. Remove them with "
                "set_callbacks()."
            )
        if getattr(part, "writes_files", False):
            raise PrivacyError(
                f"Found a TrainEndCheckpoint on {where}: it would write every candidate to files, and so how many "
                "there are. Remove it, and save best_estimator_."
            )
        folder = getattr(part, "checkpoint", None)
        if folder is not None and hasattr(part, "privacy_guarantee"):
            raise PrivacyError(
                f"Found checkpoint={str(folder)!r} on {where}; a checkpoint is for one training of one net, and "
                "candidates would leave there what they hold, and how many there are. Set checkpoint=None; a "
                "checkpoint of the search keeps these trainings too."
            )
