"""Columns of a table as the models of a search read them, by their schema."""

from __future__ import annotations

from typing import Any


def columns_read(estimator: Any) -> list[str]:
    """One line for each column of each schema in an estimator; none without a schema.

    Parameters
    ----------
    estimator : estimator
        Not fitted; models with a schema have a method of this name.
    """
    parts = [estimator, *estimator.get_params(deep=True).values()]
    readers = [part for part in parts if not isinstance(part, type) and callable(getattr(part, "columns_read", None))]
    return list(dict.fromkeys(line for reader in readers for line in reader.columns_read()))
