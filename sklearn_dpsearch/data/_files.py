"""Files of records, CSV and Parquet, split so that no record decides how another is read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

#: Texts of missing values, those of pandas' reader of CSV.
MISSING_TEXTS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)


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
    """
    import fsspec

    with fsspec.open(str(path), "rb", compression="infer") as file:
        if str(path).endswith((".parquet", ".pq")):
            from pyarrow.parquet import ParquetFile

            table = ParquetFile(file)
            return table.read([name for name in table.schema_arrow.names if name in columns])
        return _read_csv(file, columns, newlines_in_values)


def _read_csv(file: Any, columns: Sequence[str], newlines_in_values: bool) -> Any:
    import pandas as pd

    rows = _rows_across_lines(file) if newlines_in_values else map(_fields, file)
    header = next(rows, None) or []
    places = [place for place, name in enumerate(header) if name in columns]
    blank, width = [None] * len(places), len(header)
    entries = [
        [None if fields[place] in MISSING_TEXTS else fields[place] for place in places]
        if fields is not None and len(fields) == width
        else blank
        for fields in rows
    ]
    frame = pd.DataFrame(entries, columns=range(len(places)), dtype=object)
    frame.columns = [header[place] for place in places]
    return frame


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
