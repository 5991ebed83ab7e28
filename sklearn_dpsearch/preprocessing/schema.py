"""What is publicly known about the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..privacy.errors import did_you_mean
from .columns import Choice, Column, Range, column_of

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11


class Schema(Mapping[str, Any]):
    """Columns by name: a range of numbers or dates as a tuple, or all values as a list. All of it is public knowledge.

    Parameters
    ----------
    columns : mapping of str to (lower, upper) or list
        ``{"age": (17, 90), "job": ["clerk", "nurse"], "since": (date(2000, 1, 1), date(2030, 1, 1))}``.

    Raises
    ------
    ValueError
        For an entry that is neither two ends in order nor a list of different values.

    Examples
    --------
    >>> schema = Schema({"age": (17, 90), "job": ["clerk", "nurse"], "income": ["low", "high"]})
    >>> schema.classes("income"), list(schema.without("income"))
    (['low', 'high'], ['age', 'job'])
    >>> print(schema.without("income").to_yaml().strip())
    age: {lower: 17, upper: 90}
    job: [clerk, nurse]
    """

    columns: Mapping[str, Column]

    def __init__(self, columns: Mapping[str, Any]) -> None:
        if not isinstance(columns, Mapping) or not columns or not all(isinstance(name, str) for name in columns):
            raise ValueError(
                f"Found {columns!r} as a schema; a dictionary from names of columns to what they hold is needed, e.g. "
                '{"age": (17, 90), "job": ["clerk", "nurse"]}.'
            )
        made = columns.columns if isinstance(columns, Schema) else columns
        self.columns = MappingProxyType({name: column_of(name, stated) for name, stated in made.items()})

    def __getitem__(self, name: str) -> Any:
        return self.columns[name].stated()

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Schema({dict(self)!r})"

    def __reduce__(self) -> Any:
        return Schema, (dict(self),)

    def without(self, *names: str) -> Self:
        """All other columns; leaves out the target, say."""
        for name in names:
            self._of(name)
        return type(self)({name: column for name, column in self.columns.items() if name not in names})

    def classes(self, name: str) -> list[Any]:
        """All values of a column, for ``classes=`` of a classifier."""
        column = self._of(name)
        if not isinstance(column, Choice):
            raise ValueError(f"Found the range {self[name]!r} for column {name!r}; a list of values has classes.")
        return list(column.values)

    def bounds(self, name: str) -> tuple[Any, Any]:
        """The ends of a column, for ``bounds_y=`` of a regressor."""
        column = self._of(name)
        if not isinstance(column, Range):
            raise ValueError(f"Found the values {self[name]!r} for column {name!r}; a range has bounds.")
        return column.lower, column.upper

    def to_yaml(self, path: str | Path | None = None) -> str:
        """As YAML, to be edited or kept; written to ``path`` if there is one. Needs PyYAML."""
        entries = {name: _plain(column) for name, column in self.columns.items()}
        text: str = _yaml().safe_dump(entries, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_yaml(cls, source: str | Path) -> Self:
        """A schema from a file of ``to_yaml``, or from its text if that has more than one line. Needs PyYAML."""
        text = source if isinstance(source, str) and "\n" in source else Path(source).read_text(encoding="utf-8")
        found = _yaml().safe_load(text)
        return cls({name: _stated(entry) for name, entry in found.items()} if isinstance(found, dict) else found)

    def _of(self, name: str) -> Column:
        if name not in self.columns:
            raise KeyError(f"Found no column {name!r} in the schema of {list(self)}.{did_you_mean(name, list(self))}")
        return self.columns[name]


def _plain(column: Column) -> Any:
    """As YAML has it: numbers and dates of Python."""
    if isinstance(column, Range):
        return {"lower": _of_python(column.lower), "upper": _of_python(column.upper)}
    return [_of_python(value) for value in column.stated()]


def _of_python(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def _stated(entry: Any) -> Any:
    if isinstance(entry, dict) and set(entry) == {"lower", "upper"}:
        return entry["lower"], entry["upper"]
    return entry


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("A schema as YAML needs PyYAML: pip install pyyaml.") from error
    return yaml
