"""Files of records, CSV and Parquet, split so that no record decides how another is read."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import TrainingError, not_once

#: Texts of missing values, those of pandas' reader of CSV.
MISSING_TEXTS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
CSV_NEEDED = (
    "A CSV file needs the names of its columns in its first line, with commas between them, in "
    "UTF-8, and lines that end with \\n."
)


def is_parquet(path: Any) -> bool:
    """Return whether a file is one of Parquet, by its name."""
    return os.fsdecode(path).lower().endswith((".parquet", ".pq"))


def read_file(path: Any, columns: Sequence[str], newlines_in_values: bool = False) -> Any:
    """Read columns of a file: Parquet by PyArrow, else CSV, whose entries are texts.

    Parameters
    ----------
    path : str or path
        On a disk, or where fsspec finds it.
    columns : sequence of str
        Other columns are not read.
    newlines_in_values : bool, default=False
        Whether quoted values may hold ends of lines. An open quote of one record then swallows the
        next ones.

    Returns
    -------
    pyarrow.Table, or DataFrame of pandas
        A row of CSV with a field too many or too few, or with bytes that are no UTF-8, is one of
        missing values.

    Raises
    ------
    TrainingError
        For a file that cannot be opened, or lacks a column.
    """
    import fsspec

    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(fsspec.open(path, "rb", compression="infer"))
        except OSError as error:
            raise TrainingError(
                f"Found {path!r}, which a worker cannot open ({type(error).__name__}); files that "
                "all workers can read are needed. Give their paths on the disks of the workers."
            ) from None
        if is_parquet(path):
            from pyarrow.parquet import ParquetFile

            table = ParquetFile(file)
            _check_names(path, table.schema_arrow.names, columns)
            return table.read([name for name in table.schema_arrow.names if name in columns])
        # with an open quote, more than a line would show records among the names
        names = _fields(file.readline()) or []
        _check_names(path, names, columns, CSV_NEEDED)
        rows = _rows_across_lines(file) if newlines_in_values else map(_fields, file)
        return _frame_of_rows(rows, names, list(dict.fromkeys(columns)))


def _check_names(path: Any, names: Sequence[str], wanted: Sequence[str], needed: str = "") -> None:
    if message := not_once(names, wanted):
        raise TrainingError(f"In {path!r}: {message} {needed}".strip())


def _frame_of_rows(rows: Iterator[list[str] | None], names: list[str], columns: list[str]) -> Any:
    import pandas as pd

    places, blank = list(map(names.index, columns)), [None] * len(columns)
    entries = [
        [None if fields[place] in MISSING_TEXTS else fields[place] for place in places]
        if fields is not None and len(fields) == len(names)
        else blank
        for fields in rows
    ]
    return pd.DataFrame(entries, columns=columns, dtype=object)


def _fields(line: bytes) -> list[str] | None:
    """Fields of a line; None for one that cannot be read. Quotes end with it."""
    try:
        return next(csv.reader([line.decode("utf-8-sig")]))
    except (ValueError, csv.Error, StopIteration):
        return None


def _rows_across_lines(file: Any) -> Iterator[list[str] | None]:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
    rows = csv.reader(text)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield None
