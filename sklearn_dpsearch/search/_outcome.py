"""What comes out of a search: the rows and the model that it is about to release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..privacy.spent import PrivacySpent


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a search is about to release.

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
    """A model that states what its own training cost states what the whole search did: it was chosen by it."""
    if "privacy_spent_" in getattr(model, "__dict__", {}):
        model.privacy_spent_ = spent
    steps = getattr(model, "steps", ()) or getattr(model, "transformers_", ()) or getattr(model, "transformer_list", ())
    for part in [getattr(model, "best_estimator_", None), *(one[1] for one in steps)]:
        if hasattr(part, "fit"):
            charge(part, spent)


def results_of(candidates: Sequence[Mapping[str, Any]], scores: np.ndarray) -> dict[str, Any]:
    """The released rows in the form of scikit-learn's ``cv_results_``."""
    columns: dict[str, Any] = {}
    for name in sorted({name for one in candidates for name in one}):
        column = np.ma.masked_all(len(candidates), dtype=object)
        for i, one in enumerate(candidates):
            if name in one:
                column[i] = one[name]
        columns[f"param_{name}"] = column
    rank = np.array([1 + int(np.sum(scores > one)) for one in scores], dtype=np.int32)
    return {**columns, "params": list(candidates), "mean_test_score": scores, "rank_test_score": rank}
