"""Neighbouring data sets: given ones are checked, others get extreme records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.multiclass import type_of_target

from ..data._columns import frame_of, is_frame
from ..data._labels import as_array, column_of
from ..data._persons import missing_among, persons_in
from ..data._records import dense_numbers
from ..data._rows import stacked
from ..privacy import PrivacyError
from ..privacy._checks import Array, Neighboring, check_neighboring

Records = npt.NDArray[Any]
#: (X, y), or (X, y, groups)
Dataset = tuple[Any, ...]
#: Places of the changed records in both data sets.
Places = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two neighbouring data sets for an audit.

    Parameters
    ----------
    X, y : array-like
        The first data set.
    other_X, other_y : array-like
        The second: one record more, less or changed, or all records of one person.
    neighboring : {"add_remove", "zero_out", "replace_one"}
    steps : int
        Number of steps between the data sets. Under zero-out ``fit`` cannot receive an absent
        record, so two values of one record are two steps apart, unless one of the values counts as
        absent.
    canary : array-like of shape (k, n_features)
        The records in which they differ, k = 1 or 2; of a person the first.
    groups, other_groups : array-like, optional
        Person of each record.
    """

    X: Any
    y: Any
    other_X: Any
    other_y: Any
    neighboring: Neighboring
    steps: int
    canary: Any
    groups: Any = None
    other_groups: Any = None

    @classmethod
    def of(
        cls, data: Dataset, other: Dataset, neighboring: Neighboring, absent: bool = False
    ) -> Neighbours:
        """Check that two data sets are neighbours.

        Parameters
        ----------
        data, other : (X, y) or (X, y, groups)
            The data sets; with groups they differ in one person.
        neighboring : {"add_remove", "zero_out", "replace_one"}
            Neighbouring relation.
        absent : bool, default=False
            Under zero-out, the caller's assurance that one value of the changed record contributes
            nothing.

        Raises
        ------
        PrivacyError
            If the data sets are not neighbours.
        """
        check_neighboring(neighboring)
        first, second = _record_rows(*data), _record_rows(*other)
        of_persons = any(groups is not None for groups in (*data[2:], *other[2:]))
        places = _places_of_change(first, second, of_persons, neighboring == "add_remove")
        if places is None:
            raise _not_neighbours(first, second, neighboring, of_persons)
        changed = [(part[0], place) for part, place in zip((data, other), places) if place.size]
        shown = [_safe_indexing(part, place[:1]) for part, place in changed]
        steps = 2 if neighboring == "zero_out" and not absent else 1
        fields = dict(zip(("X", "y", "groups"), data))
        fields |= dict(zip(("other_X", "other_y", "other_groups"), other))
        return cls(neighboring=neighboring, steps=steps, canary=stacked(shown), **fields)


def worst_case(
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    neighboring: Neighboring,
    scale: float = 1.0,
    absent: bool = False,
    classification: bool | None = None,
) -> Neighbours:
    """Build neighbours that differ in one extreme record, or person.

    Its target contradicts its features.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers. Neighbours of a frame are frames of pandas.
    y : array-like of shape (n_samples,), optional
        Labels or numbers.
    groups : array-like of shape (n_samples,), optional
        Person of each record. The canary is then the person with the most records, all of which are
        extreme, or one more person with as many.
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The extreme record is added; or replaces a record of zeros; or replaces a record with the
        same features and the opposite target (without y: the opposite features).
    scale : float, default=1.0
        Distance of the canary from the middle: 1 for the ends of the ranges. An estimator clips
        values beyond its stated bounds.
    absent : bool, default=False
        Under zero-out, the caller's assurance that a record of zeros contributes nothing.
    classification : bool, optional
        Whether numbers in ``y`` are labels, of which the canary gets the rarest; else it gets an
        end of their range. None: they are if all are whole, as for scikit-learn's
        ``type_of_target``. ``audit`` asks the estimator.

    Returns
    -------
    Neighbours
        Both data sets, and the record in which they differ.

    Raises
    ------
    ValueError
        For records or targets from which no canary can be built.

    Examples
    --------
    >>> pair = worst_case([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]], [0, 1, 1], neighboring="add_remove")
    >>> len(pair.X), len(pair.other_X), pair.canary.tolist()
    (3, 4, [[2.0, 3.0]])
    """
    check_neighboring(neighboring)
    values, target = _numeric_table(X), None if y is None else _typed(as_array(y))
    check_consistent_length(values, target)
    record, label, opposite, other_label = _extreme_record(values, target, scale, classification)
    persons = np.arange(len(values)) if groups is None else persons_in(groups, len(values))
    counts = np.bincount(persons)
    places = np.flatnonzero(persons == counts.argmax())
    data: Dataset = values, target, persons
    if neighboring == "add_remove":  # one person more, with as many records
        rows = np.append(np.arange(len(values)), places)
        values, target = values[rows], None if target is None else target[rows]
        persons = np.append(persons, np.full(len(places), len(counts)))
        places = np.arange(len(rows) - len(places), len(rows))
    else:
        if neighboring == "zero_out":
            opposite, other_label = np.zeros_like(record), label
        if np.array_equal(record, opposite) and label == other_label:
            raise ValueError(
                "Found X and y from which no canary can be built: the extreme record equals the "
                f"record that it replaces under {neighboring!r}; a column of X that varies is "
                "needed. Give other=(X, y), a neighbour of your own."
            )
        data = _with_at(values, places, opposite), _with_at(target, places, other_label), persons
    other: Dataset = _with_at(values, places, record), _with_at(target, places, label), persons
    if is_frame(X):  # whose columns are read by name
        table = frame_of(X)
        named = (type(table)(part[0], columns=table.columns) for part in (data, other))
        data, other = ((frame, *part[1:]) for frame, part in zip(named, (data, other)))
    end = 2 if groups is None else 3
    return Neighbours.of(data[:end], other[:end], neighboring, absent)


def _typed(targets: Records) -> Records:
    """Array of numbers or of texts; of objects where they are mixed."""
    typed = np.array(targets.tolist())
    is_changed = typed.ndim == 1 and typed.dtype.kind in "US" and typed.tolist() != targets.tolist()
    return targets if is_changed else typed


def _extreme_record(
    values: Array, y: Records | None, scale: float, classification: bool | None
) -> tuple[Array, Any, Array, Any]:
    """Extreme record for a canary, and the record it replaces, each with its target.

    The targets are the two rarest classes, or the ends of the range.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    middle, reach = (low + high) / 2, scale * (high - low) / 2
    if y is None:
        return middle + reach, None, middle - reach, None
    targets = column_of(y)
    present = ~missing_among(targets)
    if targets.ndim > 1 or not present.any():
        raise ValueError(
            "Found several targets for each record, or none for all of them; one for each is "
            "needed. Give other=(X, y), a neighbour of your own."
        )
    values, targets = values[present], _typed(targets[present])
    if classification is None:
        classification = type_of_target(targets) in ("binary", "multiclass")
    if targets.dtype.kind in "fiu" and not classification:
        label, other_label = targets.max(), targets.min()
        centred = targets.astype(float) - targets.astype(float).mean()
        against = -np.sign(centred @ (values - values.mean(axis=0)))
    else:
        label, other_label = _rarest_classes(targets)
        against = np.sign(values.mean(axis=0) - values[targets == label].mean(axis=0))
    record = middle + np.where(against >= 0, reach, -reach)
    opposite = middle - (record - middle) if label == other_label else record
    return record, label, opposite, other_label


def _rarest_classes(labels: Records) -> Records:
    """Two rarest classes, or the only one twice."""
    names = np.array(list(map(repr, labels))) if labels.dtype.kind == "O" else labels
    _, places, counts = np.unique(names, return_index=True, return_counts=True)
    return labels[places[np.argsort(counts, kind="stable")[:2]]][[0, -1]]


def _with_at(values: Any, places: npt.NDArray[np.intp], value: Any) -> Any:
    """Copy of an array with a value at some places; None stays None."""
    if values is None:
        return None
    copy = values.copy()
    copy[places] = value
    return copy


def _numeric_table(X: Any) -> Array:
    """Records as a table of floats, or an error."""
    values, problem = dense_numbers(X), ""
    if values.ndim != 2 or len(values) < 2:
        problem = f"of shape {values.shape}"
    elif values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        problem = "with values that are not finite numbers"
    if problem:
        raise ValueError(
            f"Found X {problem}; a table of finite numbers with two records or more is needed to "
            "build a canary. Give other=(X, y), a neighbour of your own."
        )
    return values.astype(float)


# --- the check ------------------------------------------------------------------------------------


def _record_rows(X: Any, y: Any, groups: Any = None) -> Records:
    """Records as rows of objects, with targets and persons; None for each missing value.

    Persons are the last column.
    """
    table = np.asarray(X.toarray() if issparse(X) else X, dtype=object)
    parts = [table.reshape(len(table), -1)]
    for name, part in (("targets", y), ("groups", groups)):
        if part is not None:
            parts.append(np.asarray(part, dtype=object).reshape(len(part), -1))
            if len(parts[-1]) != len(table):
                numbers = f"{len(table)} records and {len(part)} {name}"
                raise ValueError(f"Found {numbers} in one data set; give one for each.")
    rows = np.hstack(parts)
    rows[missing_among(rows.ravel()).reshape(rows.shape)] = None
    return rows


def _places_of_change(
    first: Records, second: Records, of_persons: bool, added: bool
) -> Places | None:
    """Places of the only record or person in which data sets differ, or which one of them lacks."""
    if first.shape[1] != second.shape[1]:
        return None
    if of_persons:
        persons = np.append(first[:, -1], second[:, -1])
        codes, other_codes = np.split(persons_in(persons, len(persons)), [len(first)])
    else:
        codes, other_codes = _record_codes(first, second)
    candidates = np.setxor1d(codes, other_codes)
    if not candidates.size and len(first) == len(second):
        candidates = codes[~_equal_rows(first, second)][:1]
    if candidates.size != 1:
        return None
    places = np.flatnonzero(codes == candidates), np.flatnonzero(other_codes == candidates)
    remaining = [np.delete(rows, place, axis=0) for rows, place in zip((first, second), places)]
    if len(remaining[0]) != len(remaining[1]) or not _equal_rows(*remaining).all():
        return None
    sizes = {place.size for place in places}
    return places if (0 in sizes if added else len(sizes) == 1) else None


def _record_codes(first: Records, second: Records) -> list[npt.NDArray[np.int64]]:
    """Codes of records by their places, as if the longer data set had more at the first change."""
    n = min(len(first), len(second))
    place = int(np.argmin([*_equal_rows(first[:n], second[:n]), False]))
    codes = [np.arange(len(rows)) for rows in (first, second)]
    codes[len(first) > len(second)][place:] += abs(len(first) - len(second))
    return codes


def _equal_rows(first: Records, second: Records) -> npt.NDArray[np.bool_]:
    """Mask of equal rows."""
    return np.asarray(np.asarray(first == second, dtype=bool).all(axis=1))


def _not_neighbours(
    first: Records, second: Records, relation: Neighboring, of_persons: bool
) -> PrivacyError:
    """Error for two data sets that are no neighbours."""
    difference = f"shapes {first.shape} and {second.shape}, targets included"
    if first.shape == second.shape:
        difference = f"{np.sum(~_equal_rows(first, second))} of {len(first)} records differ"
    unit = "person" if of_persons else "record"
    added, changed = f"one {unit} more in one of them", f"other values of one {unit} alone"
    return PrivacyError(
        f"The two data sets are not neighbours under {relation!r}: {difference}; needed are "
        f"{added if relation == 'add_remove' else changed}, with all other records equal and in "
        "the same order. Give such a pair, name the relation that holds (neighboring=), or leave "
        "other out to have a canary built."
    )
