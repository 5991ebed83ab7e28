"""Labels and numbers to be predicted: places among declared classes, their weights, and doubles."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_array, column_or_1d

from ..errors import PrivacyError
from ._columns import columns_in, is_frame, library_of, read_column, refused
from ._lists import doubles, labels_in, number_of, numbers_in, objects, places_of
from ._plain_values import plain_objects

#: Public constants: label ↦ weight of the loss of its records; labels that are left out have weight
#: 1.
ClassWeights: TypeAlias = Mapping[Any, float] | None
#: Kinds of NumPy types that labels may have.
TEXT, NUMBERS = tuple("US"), tuple("biufc")
#: Libraries whose columns declare their type.
COLUMNS = ("numpy", "pandas", "polars", "pyarrow")
#: Labels looked up at once.
BLOCK = 2**14
#: Types of values that are labels as they are.
LABEL_TYPES = {bool, int, float, str, type(None)}


def assumptions_about_labels(are_declared: bool, class_weight: Any) -> Iterator[str]:
    """Assumptions of a classifier's guarantee about its labels, as plain sentences."""
    if not are_declared:
        yield "the labels that occur in y are public (declare them: classes=[...])."
    if class_weight is not None:
        yield "class_weight was not taken from the labels."


def positions(y: Any, classes: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    """Positions of labels among the classes, −1 for others, shape (n,)."""
    places = {label: place for place, label in enumerate(as_array(classes).tolist())}
    labels = column_of(as_array(y))
    starts = range(0, len(labels), BLOCK)
    blocks = [places_of(labels[start : start + BLOCK].tolist(), places, -1) for start in starts]
    return np.concatenate([np.empty(0, np.int64), *blocks])


def class_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.signedinteger]:
    """Codes of labels among declared classes, −1 for others.

    They are small integers, as there is one for each record.
    """
    return positions(y, classes).astype(np.min_scalar_type(-len(classes)))


def classes_in(y: NDArray[Any], declared: Any) -> NDArray[Any]:
    """Sorted classes, declared or those that occur.

    If none are declared, those that occur are public.

    Raises
    ------
    ValueError
        For targets that are no labels, and for fewer than two classes.
    """
    if declared is None:
        labels = labels_in(y.tolist(), None) if y.dtype.kind == "O" else y
        check_array(labels, ensure_2d=False, dtype=None, input_name="y")
        with warnings.catch_warnings():
            # a warning of many classes would depend on single labels
            warnings.simplefilter("ignore")
            check_classification_targets(labels)
    classes: NDArray[Any] = np.unique(labels) if declared is None else sorted_classes(declared)
    if len(classes) < 2:
        raise ValueError(
            f"Found {len(classes)} class: classification needs at least 2 classes. Declare them "
            "with classes=[...], also those that y lacks."
        )
    return classes


def sorted_classes(declared: Any) -> NDArray[Any]:
    """Declared classes in order.

    A missing value is an error, as a record with a missing label is blank.
    """
    if any(label is None or label != label for label in declared):
        raise ValueError(
            f"Found classes={list(declared)!r}: a missing value is no class, as a record without a "
            "label is blank. Leave it out, or give these records a label of their own, e.g. 'none'."
        )
    return np.asarray(unique_labels(declared))


def label_kind(y: Any) -> str:
    """NumPy's letter for the declared type of labels.

    It is empty for lists, objects and containers of others.
    """
    is_column = library_of(y) in COLUMNS and not is_frame(y) and getattr(y, "shape", None) != ()
    if not is_column or len(y) == 0:
        return ""
    return read_column(y).kind.replace("T", "U").replace("O", "")


def check_kind(classes: Any, kind: str) -> None:
    """Raise where the type of labels excludes all classes.

    The declared type is public.

    Parameters
    ----------
    classes : array-like
    kind : str
        NumPy's letter for the type of the labels.
    """
    declared = np.asarray(classes).dtype.kind
    are_known = {declared, kind} <= {*TEXT, *NUMBERS}
    if are_known and (declared in TEXT) != (kind in TEXT):
        words = {True: "text", False: "numbers"}
        raise ValueError(
            f"Found classes={list(classes)!r} ({words[declared in TEXT]}) for labels in y that are "
            f"{words[kind in TEXT]}: none of them is declared. Give classes of the same kind as y, "
            "here or in the schema (scikit-learn's ensembles make numbers from 0 of labels)."
        )


def class_weights(
    class_weight: Any, classes: NDArray[Any] | None, *, zero: bool = True
) -> NDArray[np.float64]:
    """Weight of each class, from public constants.

    Without classes the weights are only checked.

    Raises
    ------
    PrivacyError, ValueError
        For weights that are not public constants of classes, at least 0 (``zero``) or above 0.
    """
    if isinstance(class_weight, str):
        raise PrivacyError(
            f"Found class_weight={class_weight!r}, which counts the labels in y: each record would "
            "change the weights of all others. Give constants that are known without the data, "
            "e.g. class_weight={0: 1.0, 1: 5.0}."
        )
    weights = {} if class_weight is None else class_weight
    labels = list(weights) if classes is None else classes.tolist()
    if not isinstance(weights, Mapping) or not all(
        label in labels and _is_weight(weight, zero) for label, weight in weights.items()
    ):
        raise ValueError(
            f"Found class_weight={class_weight!r}; a dict of "
            f"labels{'' if classes is None else f' among {labels}'} and finite weights "
            f"{'>=' if zero else '>'} 0 is needed, e.g. {{0: 1.0, 1: 5.0}}."
        )
    return np.array([float(weights.get(label, 1.0)) for label in labels])


def _is_weight(weight: object, zero: bool) -> bool:
    """Return whether a value is a finite weight."""
    is_real = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
    return is_real and 0 <= float(weight) < np.inf and (zero or float(weight) > 0)  # type: ignore[arg-type]


def targets_in(y: Any, numeric: bool, fewest: int = 1) -> NDArray[Any]:
    """Targets for our models, checked, shape (n_samples,).

    In double precision if they have to be numbers, where nan is a missing one.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
    numeric : bool
    fewest : int
        Least number of targets.

    Raises
    ------
    ValueError
        For another shape, complex numbers, and too few targets.
    """
    values = as_array(y)
    if values.dtype.kind == "c":
        raise ValueError(
            "Complex data not supported: y has a complex dtype. Give real numbers, or labels."
        )
    values = numbers_of(values) if numeric else values
    options = {"ensure_2d": False, "ensure_all_finite": False, "ensure_min_samples": fewest}
    values = check_array(values, dtype=None, input_name="y", **options)
    return np.asarray(column_or_1d(values, warn=True))


def numbers_of(y: NDArray[Any]) -> NDArray[np.float64]:
    """Targets as doubles, nan for what is no number.

    Objects and texts are read one by one.

    Raises
    ------
    ValueError
        For types that hold no numbers.
    """
    if y.dtype.kind in "OUS":
        return np.fromiter(map(number_of, y.flat), np.float64, y.size).reshape(y.shape)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"Found y of type {y.dtype}; numbers are needed.")
    return doubles(y)


def targets_like(y: Any, classes: Sequence[Any] | None, numeric: bool) -> Any:
    """Targets for estimators of other libraries.

    Their type follows from the container's, or from the classes. Texts are objects, as the width of
    NumPy's texts is that of the longest.

    Parameters
    ----------
    y : array, series, frame or list
    classes : sequence or None
        Declared labels.
    numeric : bool
        Whether all have to be numbers.
    """
    library = library_of(y)
    if library is None:
        raise refused(y, "y")
    if library == "builtins":
        return numbers_in(y, "y") if numeric else labels_in(y, classes)
    is_array = library in ("numpy", "torch") or is_frame(y)
    if not is_array and classes is not None and not numeric and not isinstance(y.dtype, np.dtype):
        return labels_in(as_array(y).tolist(), classes)
    targets = as_array(y) if is_array else read_column(y).values
    if targets.dtype.kind not in "OUS":
        return targets
    return numbers_of(targets) if numeric else plain_objects(targets.astype(object))


def as_array(y: Any) -> NDArray[Any]:
    """Array of labels or targets, by their declared type.

    Entries of lists are read one by one.

    Raises
    ------
    TypeError
        For other containers.
    """
    library = library_of(y)
    if library == "numpy":
        return np.asarray(y)
    if library == "builtins":
        return objects([label if type(label) in LABEL_TYPES else label_of(label) for label in y])
    if library == "torch":
        return np.asarray(y.detach().cpu().numpy())
    if library is None:
        raise refused(y, "y")
    if not is_frame(y):
        return read_column(y, exact=True).values
    columns = [read_column(column, exact=True).values for column in columns_in(y)]
    alike = len({column.dtype for column in columns}) == 1
    return np.column_stack(columns if alike else [column.astype(object) for column in columns])


def label_of(value: Any) -> Any:
    """Label of a list in Python's types.

    Several labels are a tuple, and one of them is that label.
    """
    try:
        if isinstance(value, (np.ndarray, np.generic)) or type(value).__module__ == "torch":
            value = value.tolist()
    except Exception:  # an error would tell of the label
        return None
    if not isinstance(value, (list, tuple)):
        return value
    labels = tuple(part.tolist() if isinstance(part, np.generic) else part for part in value)
    return labels[0] if len(labels) == 1 else labels


def column_of(values: NDArray[Any]) -> NDArray[Any]:
    """Column of a table with one column; others as they are."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
