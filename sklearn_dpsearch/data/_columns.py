"""Columns of a table, each in a form that follows from its declared type.

No value decides how others are read. pandas, polars and PyArrow choose the form of their own types
by the values: one missing value makes doubles of all whole numbers. Here numbers that may be
missing are doubles, instants are NumPy's, in UTC, and all else is Python's.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..errors import not_once
from ._lists import doubles, numbers_in, objects, objects_in
from ._plain_values import plain_objects
from ._rows import ChosenRows

INDEXES_OF_PANDAS = "Index RangeIndex DatetimeIndex TimedeltaIndex CategoricalIndex"
#: Containers by library, by exact type.
CONTAINERS = {
    "builtins": ("list", "tuple"),
    "numpy": ("ndarray", "memmap"),
    "pandas": ("DataFrame", "Series", *INDEXES_OF_PANDAS.split()),
    "polars": ("DataFrame", "Series"),
    "pyarrow": ("Table", "RecordBatch", "ChunkedArray"),
    "torch": ("Tensor",),
}
#: Containers with named columns.
FRAMES = ("DataFrame", "Table", "RecordBatch")
ACCEPTED_FORMS = (
    "an array of NumPy, a data frame of pandas or polars, a table of PyArrow, or a list of records "
    "is needed"
)
NUMBERS = "biuf"
NO_NUMBERS = (
    "Found {}; numbers are needed. pandas.to_numeric(column, errors='coerce') reads each entry by "
    "itself, and makes nan of what is no number; models with a schema take text as well."
)


class Given(NamedTuple):
    """Column of a table: its values, and the letter of their kind.

    Values have shape (n_samples,); kinds are NumPy's letters, and "T" is text.
    """

    values: NDArray[Any]
    kind: str


def library_of(values: Any) -> str | None:
    """Name of the library of a container; None for an unknown container.

    Subclasses, which may do anything, are unknown.
    """
    kind = type(values)
    if kind is ChosenRows:
        return "numpy"
    name = kind.__module__.partition(".")[0]
    library = sys.modules.get(name)
    arrays = {"pyarrow": "lib.Array", "pandas": "api.extensions.ExtensionArray"}.get(name)
    if arrays is not None and isinstance(values, attrgetter(arrays)(library)):
        return name
    if kind.__name__ in CONTAINERS.get(name, ()) and getattr(library, kind.__name__) is kind:
        return name
    return None


def is_frame(values: Any) -> bool:
    """Return whether a container has named columns."""
    return library_of(values) is not None and type(values).__name__ in FRAMES


def is_data_set(values: Any) -> bool:
    """Return whether a container is PyTorch's or skorch's data set.

    Records are read one by one, or come as arrays by name.
    """
    torchs, skorchs = sys.modules.get("torch.utils.data"), sys.modules.get("skorch.helper")
    kinds = [] if torchs is None else [torchs.Dataset]
    kinds += [] if skorchs is None else [skorchs.SliceDataset, skorchs.SliceDict]
    return isinstance(values, tuple(kinds))


def is_of_dask(values: Any) -> bool:
    """Return whether a container is of Dask, or a list of delayed objects."""
    if isinstance(values, (list, tuple)):
        return bool(values) and all(map(is_of_dask, values))
    library = type(values).__module__.partition(".")[0]
    return library in ("dask", "dask_expr") and hasattr(values, "dask")


def names_of(X: Any) -> list[str] | None:
    """Names of the columns of a table; None for a container without names."""
    if not is_frame(X):
        return None
    return [str(name) for name in (X.column_names if library_of(X) == "pyarrow" else X.columns)]


def columns_of(X: Any, wanted: Sequence[str], exact: Collection[str] = ()) -> Mapping[str, Given]:
    """Columns of a table by name, each read by its declared type.

    Parameters
    ----------
    X : table, or array or list of shape (n_samples, n_columns)
    wanted : sequence of str
    exact : collection of str
        Columns whose numbers must not be rounded, as those above 2⁵³ are in double precision.

    Raises
    ------
    ValueError
        If a column is missing or occurs twice, or an array has another number of columns.
    TypeError
        For other containers.
    """
    names = names_of(X)
    if names is None:
        return dict(zip(wanted, map(_read_numpy, _check_array(X, wanted).T)))
    if message := not_once(names, wanted):
        raise ValueError(message)
    return {name: read_column(_column_at(X, names.index(name)), name in exact) for name in wanted}


def read_column(column: Any, exact: bool = False) -> Given:
    """Read a column, or a series, by its declared type.

    Raises
    ------
    TypeError
        For other containers than NumPy's, pandas', polars' and PyArrow's.
    """
    read = READERS.get(library_of(column) or "")
    if read is None:
        raise refused(column)
    return read(column, exact)


def frame_of(X: Any, exact: Collection[str] = ()) -> Any:
    """Data frame of pandas with NumPy's types, of any table.

    A frame that has them already is not copied.

    Raises
    ------
    ImportError
        For a table of another library, without pandas.
    """
    try:
        import pandas as pd
    except ImportError:
        needed = "pandas is needed to hand it to estimators. pip install pandas."
        raise ImportError(f"Found X of type {type(X).__name__}; {needed}") from None
    is_pandas, names = type(X) is pd.DataFrame, names_of(X) or []
    if is_pandas and all(isinstance(dtype, np.dtype) and dtype.kind != "O" for dtype in X.dtypes):
        return X
    labels, index = (X.columns, X.index) if is_pandas else (names, None)
    columns = {}
    for place, name in enumerate(names):
        values = read_column(_column_at(X, place), name in exact).values
        values = plain_objects(values) if values.dtype.kind == "O" else values
        columns[place] = pd.Series(values, index, values.dtype, copy=False)
    frame = pd.DataFrame(columns, index, copy=False)
    frame.columns = labels
    return frame


def without_records(X: Any) -> Any:
    """Table with its names and types alone."""
    return X[:0]


def columns_in(X: Any) -> list[Any]:
    """Columns of a table, unread.

    Another container of NumPy, pandas or polars is one column, and others have none.
    """
    if is_frame(X):
        return [_column_at(X, place) for place in range(len(names_of(X) or ()))]
    return [X] if library_of(X) in ("numpy", "pandas", "polars") else []


def array_of(X: Any, name: str = "X", row_shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Array of numbers of a table, an array, or a list.

    Entries of lists that are none are missing. ``row_shape`` is the declared shape of a row of a
    list.

    Raises
    ------
    ValueError
        For texts and objects in a table, and for an array of objects.
    """
    library = library_of(X)
    if library == "builtins":
        return numbers_in(X, name, row_shape)
    if library == "torch":
        return np.asarray(X.detach().cpu().numpy())
    if is_frame(X):
        columns = [read_column(column).values for column in columns_in(X)]
        named = zip(names_of(X) or (), columns)
        if labels := [label for label, column in named if column.dtype.kind not in NUMBERS]:
            columns_in_words = f"{name} with columns that do not hold numbers: {labels}"
            raise ValueError(NO_NUMBERS.format(columns_in_words))
        if len({column.dtype for column in columns}) > 1:
            columns = list(map(doubles, columns))
        return np.column_stack(columns) if columns else np.empty((len(X), 0))
    if library is None and issparse(X):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required. Use {name}.toarray()."
        )
    if library is None:
        raise refused(X, name)
    values = np.asarray(X) if library == "numpy" else read_column(X).values
    if values.dtype.kind == "O":
        raise ValueError(NO_NUMBERS.format(f"{name} of objects"))
    return values


def refused(values: Any, name: str = "X") -> TypeError:
    """Error for an unknown kind of container."""
    kind = type(values)
    problem = f"Found {name} of type {kind.__name__}; {ACCEPTED_FORMS}."
    if kind.__module__.partition(".")[0] == "dask":
        remedy = f"{name}.compute() is needed here."
        problem += f" Boosting and a subset search over it take partitions of Dask; {remedy}"
    return TypeError(problem)


def _column_at(X: Any, place: int) -> Any:
    """Column of a table at a place."""
    library = library_of(X)
    if library == "pandas":
        return X.iloc[:, place]
    if library == "pyarrow":
        return X.column(place)
    return X[:, place]


def _check_array(X: Any, wanted: Sequence[str]) -> NDArray[Any]:
    """Array of shape (n_samples, n_columns), or an error."""
    if library_of(X) not in ("numpy", "builtins"):
        raise refused(X)
    table = np.asarray(X) if library_of(X) == "numpy" else objects_in(X, "X", (len(wanted),))
    if table.ndim != 2 or table.shape[1] != len(wanted):
        raise ValueError(
            f"Found an array of shape {table.shape} without names; the schema has {len(wanted)} "
            f"columns: shape (n_samples, {len(wanted)}) in its order is needed, or a data frame."
        )
    return table


# --- one column -----------------------------------------------------------------------------------


def _read_numpy(column: Any, exact: bool = False) -> Given:
    """Read a column of NumPy."""
    kind = column.dtype.kind
    return Given(column, "T" if kind in "UT" else kind)


def _read_pandas(column: Any, exact: bool) -> Given:
    """Read a column of pandas by its dtype."""
    dtype = column.dtype
    if type(column).__name__ != "Series":
        column = sys.modules["pandas"].Series(column)
    if isinstance(dtype, np.dtype):
        return _read_numpy(column.to_numpy())
    if type(dtype).__name__ == "ArrowDtype":
        return _read_pyarrow(column.array.__arrow_array__(), exact)
    kind = getattr(getattr(dtype, "categories", dtype), "dtype", dtype).kind
    if kind in NUMBERS and not (exact and kind != "f"):
        return Given(np.asarray(column.to_numpy(np.float64, na_value=np.nan)), kind)
    if kind == "M" and hasattr(dtype, "tz"):
        return Given(np.asarray(column.dt.tz_convert(None).to_numpy()), kind)
    values = _readable_objects(
        lambda: column.astype(object), lambda place: column.iloc[place], len(column)
    )
    values[column.isna().to_numpy(bool)] = np.nan
    return Given(values, "T" if str(dtype).lower().startswith("str") else kind)


def _read_polars(column: Any, exact: bool) -> Given:
    """Read a column of polars by its dtype."""
    dtype, name = column.dtype, str(column.dtype).partition("(")[0]
    kind = "i" if dtype.is_integer() else "b" if name == "Boolean" else ""
    if kind and exact:
        return Given(objects(column.to_list()), kind)
    if kind or dtype.is_numeric():
        return Given(np.asarray(column.cast(float, strict=False).to_numpy()), kind or "f")
    if name == "Datetime" and dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if name == "Duration":
        return Given(np.asarray(column.to_numpy()), "m")
    if name in ("Date", "Datetime"):
        return Given(np.asarray(column.to_numpy()).astype("datetime64[us]"), "M")
    is_text = name in ("String", "Categorical", "Enum")
    return Given(objects(column.to_list()), "T" if is_text else "O")


def _read_pyarrow(column: Any, exact: bool) -> Given:
    """Read a column of PyArrow by its type."""
    arrow, dtype = sys.modules["pyarrow"], column.type
    kinds = arrow.types
    inner = dtype.value_type if kinds.is_dictionary(dtype) else dtype
    kind = "i" if kinds.is_integer(inner) else "b" if kinds.is_boolean(inner) else ""
    if inner is not dtype:
        column = column.cast(inner)
    if kind and exact:
        return Given(_arrow_objects(column), kind)
    if kind or kinds.is_floating(inner) or kinds.is_decimal(inner):
        column = column.cast("uint8") if kind == "b" else column
        return Given(_arrow_to_numpy(column.cast("float64", safe=False)), kind or "f")
    if kinds.is_timestamp(inner) or kinds.is_date(inner):
        unit = inner.unit if kinds.is_timestamp(inner) else "s" if kinds.is_date32(inner) else "ms"
        return Given(_arrow_to_numpy(column.cast(arrow.timestamp(unit))), "M")
    text = kinds.is_string(inner) or kinds.is_large_string(inner) or kinds.is_string_view(inner)
    return Given(_arrow_objects(column), "T" if text else "O")


def _arrow_objects(column: Any) -> NDArray[np.object_]:
    """Python's objects of a PyArrow column."""
    return _readable_objects(column.to_pylist, lambda place: column[place].as_py(), len(column))


def _readable_objects(
    read: Callable[[], Any], read_one: Callable[[int], Any], n: int
) -> NDArray[np.object_]:
    """Python's objects of a column, None for unreadable entries.

    Unreadable are text that is no UTF-8, and a duration of 10¹⁰ years.
    """
    try:
        return objects(read())
    except Exception:  # one record must not make an error
        entries: list[Any] = [None] * n
        for place in range(n):
            with contextlib.suppress(Exception):
                entries[place] = read_one(place)
        return objects(entries)


def _arrow_to_numpy(column: Any) -> NDArray[Any]:
    """NumPy's array of a PyArrow column, or of its chunks."""
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    arrays = [chunk.to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate(arrays) if arrays else np.asarray(column.to_numpy())


READERS: Mapping[str, Callable[[Any, bool], Given]] = {
    "numpy": _read_numpy,
    "pandas": _read_pandas,
    "polars": _read_polars,
    "pyarrow": _read_pyarrow,
}
