"""Outcome of a search: the rows and the model that it is about to release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...privacy import PrivacyError
from ...privacy.spent import PrivacySpent

NOTHING_FOUND = (
    "No candidate could be trained and scored, so there is no model; the privacy cost in privacy_spent_ is spent all "
    "the same. Which data made the candidates fail is not told, because that would reveal it. Usual reasons: a "
    "parameter value that the estimator does not accept; NaN or infinite values in X or y; labels in y or categories "
    "in X that were not declared; bounds for another number of features; y with one class, in all records or among "
    "those that train; too few records (one sample); a score that is not a finite number; a process that was ended for "
    "want of memory; a model that cannot be pickled. search.dry_run(X_example, y_example) tries a candidate on public "
    "or made-up records and shows the error; it spends nothing."
)


class NoModelError(PrivacyError):
    """Error for a search whose every candidate failed."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results that a search is about to release.

    Parameters
    ----------
    found : bool
        Whether there is a model; if not, nothing else is released.
    may_stop : bool
        Whether finding nothing is an ordinary result, told by ``found_``, rather than an error.
    rows : sequence of (parameters, score)
    best : int
        Which of them is the winner's.
    attributes : mapping
        Further attributes of the fitted search.
    """

    found: bool
    rows: Sequence[tuple[Mapping[str, Any], float]]
    best: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    may_stop: bool = False


def charge(model: Any, spent: PrivacySpent) -> None:
    """Make the released model report the cost of the whole search, not the cost of its own training."""
    if "privacy_spent_" in getattr(model, "__dict__", {}):  # on the object itself: a property would answer too
        model.privacy_spent_ = spent
    for part in (getattr(model, "best_estimator_", None), *_parts(model)):
        if hasattr(part, "fit"):
            charge(part, spent)


def _parts(model: Any) -> list[Any]:
    """Parts of a pipeline or a union. Other estimators may use these words for something else."""
    listed = (getattr(model, name, None) for name in ("steps", "transformers_", "transformer_list"))
    entries = [entry for entries in listed if isinstance(entries, list) for entry in entries]
    return [entry[1] for entry in entries if isinstance(entry, tuple) and len(entry) > 1]


def results_of(candidates: Sequence[Mapping[str, Any]], scores: np.ndarray) -> dict[str, Any]:
    """Released rows in the form of scikit-learn's ``cv_results_``."""
    columns: dict[str, Any] = {}
    for name in sorted({name for candidate in candidates for name in candidate}):
        column = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
        for i, candidate in enumerate(candidates):
            if name in candidate:
                column[i] = candidate[name]
        columns[f"param_{name}"] = column
    rank = np.array([1 + int(np.sum(scores > score)) for score in scores], dtype=np.int32)
    return {**columns, "params": list(candidates), "mean_test_score": scores, "rank_test_score": rank}
