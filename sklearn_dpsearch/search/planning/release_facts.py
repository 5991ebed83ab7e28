"""Facts of a fit for its statement: classes and names, all of them public before the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...privacy.statement.release import Release

#: Attributes of every fit that ends with a model.
ALWAYS = ("best_params_", "best_index_", "best_score_", "cv_results_", "scorer_", "n_splits_")


def release_of(
    made_by: str,
    estimator: Any,
    models: Sequence[Any],
    attributes: Sequence[str],
    *,
    n_samples: int | None,
    seeded: bool,
    kept: bool,
) -> Release:
    """Describe the release of a search.

    Parameters
    ----------
    made_by : str
        The search's class.
    estimator : estimator
        As given to the search.
    models : sequence of estimators
        One for each kind of candidate.
    attributes : sequence of str
        What is released at most.
    n_samples : int or None
        Number of records, where it counts as public.
    seeded : bool
        Whether a seed was given.
    kept : bool
        Whether a fit may go on after a crash, from a secret in its folder.
    """
    kinds = dict.fromkeys(class_of(model) for model in models)
    columns, target = _table_of(estimator)
    return Release(
        made_by=made_by,
        model=" or ".join(kinds),
        attributes=tuple(attributes),
        tuned=True,
        seeded=seeded,
        kept=kept,
        n_samples=n_samples,
        columns=columns,
        target=target,
    )


def _table_of(estimator: Any) -> tuple[tuple[str, ...], str | None]:
    """Columns that are read, and the target, of the first part of an estimator with a schema."""
    for part in (estimator, *estimator.get_params(deep=True).values()):
        given = getattr(part, "schema", None)
        if hasattr(part, "columns_read") and isinstance(given, Mapping):
            target = getattr(part, "target", None)
            return tuple(name for name in given if name != target), target
    return (), None


def class_of(model: Any) -> str:
    """Class of an estimator, for a pipeline with the classes of its steps; ``repr`` is never used."""
    name = type(model).__name__
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list) or not all(isinstance(step, tuple) and len(step) == 2 for step in steps):
        return name
    return f"{name}({', '.join(class_of(step) for _, step in steps)})"


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
