"""Persons of records: whole numbers in place of names, each of which is read by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ._labels import as_array, column_of
from ._lists import WHOLE_NUMBER, said_by

#: Code of the person of each record.
PersonCodes = NDArray[np.int64]
#: Types of names, exactly, of which equal ones alone are written alike.
NAMES_BY_REPR = (bytes, date, UUID)
#: Name in place of all names without a hash.
UNHASHABLE_NAME = object()


def persons_in(groups: Any, n_samples: int) -> PersonCodes:
    """Code of the person of each record, from groups.

    Codes are 0 … n_persons − 1; a record without a name is of a person of its own.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        Numbers, texts, or other values with a hash, equal for records of one person; a whole number
        in text is that number. None, nan, NaT and pandas' NA are missing. All values without a hash
        are one person.
    n_samples : int

    Raises
    ------
    ValueError
        For another number of entries.
    """
    values = column_of(as_array(groups))
    if values.shape != (n_samples,):
        raise ValueError(
            f"Found groups of shape {values.shape} for {n_samples} records; the person of each "
            f"record is needed, shape ({n_samples},). Give the column that names them."
        )
    missing = missing_among(values)
    named = _codes_of_equal(values[~missing])
    codes = np.empty(n_samples, np.int64)
    codes[~missing] = named
    codes[missing] = np.arange(missing.sum()) + number_of_persons(named)
    return codes


def number_of_persons(persons: PersonCodes) -> int:
    """Number of different persons."""
    return int(persons.max(initial=-1)) + 1


def one_of_each(persons: PersonCodes, random_bytes: Callable[[int], bytes]) -> NDArray[np.intp]:
    """Numbers of one record of each person, in order, drawn uniformly among his records.

    Given the draws, a person has one record: what is differentially private in records is so in
    persons.

    Parameters
    ----------
    persons : ndarray of shape (n_samples,)
    random_bytes : callable
        Secret randomness: 8 bytes for each record.
    """
    turns = np.frombuffer(random_bytes(8 * len(persons)), np.uint64)
    order = np.lexsort((turns, persons))
    first: NDArray[np.intp] = order[np.diff(persons[order], prepend=-1) > 0]
    return np.sort(first)


def missing_among(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of missing values (None, nan, NaT or NA), shape (n,)."""
    if values.dtype.kind == "O":
        return np.fromiter(map(_is_missing, values), np.bool_, len(values))
    return np.asarray(values != values)  # nan and NaT


def _is_missing(name: Any) -> bool:
    """Return whether a value is None, nan, NaT or NA.

    nan and NaT are unequal to themselves, and pandas' NA is neither equal nor unequal.
    """
    if type(name) in (int, str):
        return False
    try:
        return name is None or not bool(name == name)
    except Exception:
        return True


def name_of(value: Any) -> Any:
    """Name of a person, equal for whole numbers and their text."""
    if isinstance(value, np.generic):
        return value.item()
    return said_by(value) if type(value) is str and WHOLE_NUMBER.fullmatch(value) else value


def texts_of_persons(groups: Any) -> Iterator[str | None]:
    """Texts of the persons of records, in order, None for a missing one.

    Equal names have equal texts, in every process. All odd names have one, as no text of theirs
    would be sure to be the same.

    Raises
    ------
    TypeError
        For a column of instants or durations, whose units may differ.
    """
    values = column_of(as_array(groups))
    if values.dtype.kind in "mM":
        raise TypeError(f"Found persons of type {values.dtype}; numbers or texts are needed.")
    pairs = zip(values.tolist(), missing_among(values))
    return (None if is_missing else _text_of_name(name_of(name)) for name, is_missing in pairs)


def _text_of_name(name: Any) -> str:
    if isinstance(name, str):
        return "'" + str.__str__(name)
    if isinstance(name, Number):
        # equal numbers of all types have one hash, but -1 has that of -2
        return "-1" if name == -1 else str(hash(name))  # type: ignore[comparison-overlap]
    return repr(name) if type(name) in NAMES_BY_REPR else ""


def _codes_of_equal(values: NDArray[Any]) -> PersonCodes:
    """Codes that are equal for equal values."""
    if values.dtype.kind in "biufmM":
        return np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    codes: dict[Any, int] = {}
    code_of_each = (_code_of_name(name_of(name), codes) for name in values.tolist())
    return np.fromiter(code_of_each, np.int64, len(values))


def _code_of_name(name: Any, codes: dict[Any, int]) -> int:
    """Code of the name of a person.

    All names that cannot be looked up are one person, who is protected as a whole.
    """
    try:
        return codes.setdefault(name, len(codes))
    except Exception:  # no hash, or no comparison: an error would tell of the record
        return codes.setdefault(UNHASHABLE_NAME, len(codes))
