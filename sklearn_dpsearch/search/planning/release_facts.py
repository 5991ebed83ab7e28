"""Facts of a fit for its statement: classes and names, all of them public before the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...privacy.statement.release import Release

#: Attributes of every fit that ends with a model.
ALWAYS = ("best_params_", "best_index_", "best_score_", "cv_results_", "scorer_", "n_splits_")


def release_of(made_by: str, models: Sequence[Any], attributes: Sequence[str], *, seeded: bool, kept: bool) -> Release:
    """Describe the release of a search.

    Parameters
    ----------
    made_by : str
        The search's class.
    models : sequence of estimators
        One for each kind of candidate.
    attributes : sequence of str
        What is released at most.
    seeded : bool
        Whether a seed was given.
    kept : bool
        Whether a fit may go on after a crash, from a secret in its folder.
    """
    kinds = dict.fromkeys(class_of(model) for model in models)
    return Release(
        made_by=made_by, model=" or ".join(kinds), attributes=tuple(attributes), tuned=True, seeded=seeded, kept=kept
    )


def class_of(model: Any) -> str:
    """Class of an estimator, for a pipeline with the classes of its steps; ``repr`` is never used."""
    name = type(model).__name__
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list) or not all(isinstance(step, tuple) and len(step) == 2 for step in steps):
        return name
    return f"{name}({', '.join(class_of(step) for _, step in steps)})"
