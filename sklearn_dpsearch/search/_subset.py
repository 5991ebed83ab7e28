"""A random subset of the records, and what is known about its size in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..privacy.mechanisms.coins import RandomBytes, coins
from ..scoring.validation import Exposure, Fold, Validation

#: Records expected in a part, at least.
HANDFUL = 10


@dataclass(frozen=True)
class InSubset(Validation):
    """Validation inside of a subset that each record joins with probability ``fraction``, by a coin of its own."""

    inside: Validation
    fraction: float

    def exposures(self) -> tuple[Exposure, ...]:
        """All the ways in which one run may use one record of the subset."""
        return self.inside.exposures()

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return self.draw(n_samples, random_bytes)[1]

    def draw(self, n_samples: int, random_bytes: RandomBytes) -> tuple[np.ndarray, list[Fold]]:
        """Who joins, shape (n_samples,), and the folds inside as indices of all records."""
        joins = coins(n_samples, self.fraction, random_bytes)
        members = np.flatnonzero(joins)
        inside = self.inside.folds(members.size, random_bytes)
        return joins, [(members[train], members[test]) for train, test in inside]

    @property
    def taking_part(self) -> float:
        return self.fraction


def check_handful(fraction: float, train_on: str, n: float) -> None:
    """Raise if the subset or the rest is expected to hold next to nothing of ``n`` records."""
    parts = {"subset": fraction * n} if train_on == "all" else {"subset": fraction * n, "rest": (1.0 - fraction) * n}
    for name, expected in parts.items():
        if expected < HANDFUL:
            remedy = "Give a larger" if name == "subset" else "Give a smaller"
            raise ValueError(
                f"Found subset_fraction={fraction!r} of {n:g} records (n_samples={n:g}): the {name} is expected to "
                f"hold {expected:.3g} of them, fewer than {HANDFUL}. {remedy} subset_fraction, or use DPRandomSearchCV."
            )


def warm_start_name(estimator: Any) -> str:
    """The parameter that makes ``fit`` go on from the fitted model: the estimator's own, or its pipeline's last step's.

    Raises
    ------
    ValueError
        If there is none.
    """
    prefix, inner = "", estimator
    while type(inner) is Pipeline:
        name, inner = inner.steps[-1]
        prefix += f"{name}__"
    if not hasattr(inner, "get_params") or "warm_start" not in inner.get_params(deep=False):
        raise ValueError(
            f"Found warm_start=True, but {type(inner).__name__} has no parameter warm_start. Use an estimator that can "
            "go on from a fitted model (the nets of sklearn_dpsearch.nets can), or leave warm_start=False."
        )
    return f"{prefix}warm_start"
