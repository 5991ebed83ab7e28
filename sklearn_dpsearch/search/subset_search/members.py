"""Members of the random subset: records that train candidates, and records that validate them."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from ...errors import did_you_mean
from ...privacy.mechanisms.array_sampling import RandomBytes, bernoulli
from ...scoring.validation import Exposure, Fold, HoldOut, Validation, numbers_where, validation_of

#: Probability with which a Poisson sample exceeds the public bound on its size.
BEYOND = 1e-30
#: Fewest records expected in each part.
HANDFUL = 10

VALIDATES = {"rest": "the records outside the subset", "subset": "some of the subset"}


@dataclass(frozen=True)
class InSubset(Validation):
    """Validation inside a Poisson sample that each record joins with probability ``fraction``, independently."""

    inside: Validation
    fraction: float

    def exposures(self) -> tuple[Exposure, ...]:
        """All the ways in which one run may use one record of the subset."""
        return self.inside.exposures()

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return self.draw(n_samples, random_bytes)[1]

    def draw(self, n_samples: int, random_bytes: RandomBytes) -> tuple[np.ndarray, list[Fold]]:
        """Draw the members, shape (n_samples,), and the folds inside as indices of all records."""
        joins = _who_joins(n_samples, self.fraction, random_bytes)
        members = numbers_where(joins)
        inside = self.inside.folds(members.size, random_bytes)
        return joins, [(members[train], members[test]) for train, test in inside]

    @property
    def taking_part(self) -> float:
        return self.fraction


@dataclass(frozen=True)
class OnTheRest(Validation):
    """Validation outside the subset: the subset trains, and each other record validates with probability ``share``."""

    fraction: float
    share: float

    def exposures(self) -> tuple[Exposure, ...]:
        scored = (1.0 - self.fraction) * self.share
        return (Exposure(1, 0, self.fraction), Exposure(0, 1, scored))

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return self.draw(n_samples, random_bytes)[1]

    def draw(self, n_samples: int, random_bytes: RandomBytes) -> tuple[np.ndarray, list[Fold]]:
        """Draw the members, shape (n_samples,), and the one fold as indices of all records."""
        joins = _who_joins(n_samples, self.fraction, random_bytes)
        members, others = numbers_where(joins), numbers_where(~joins)
        if self.share < 1.0:
            others = others[bernoulli(others.size, self.share, random_bytes)]
        return joins, [(members, others)]


def most_members(n_samples: int, fraction: float) -> int:
    """Public bound on the size of the subset, which a Poisson sample exceeds with probability BEYOND at most."""
    return int(binom.isf(BEYOND, n_samples, fraction))


def _who_joins(n_samples: int, fraction: float, random_bytes: RandomBytes) -> np.ndarray:
    """Draw the Poisson sample: an independent coin for each record; a sample above the bound is drawn again.

    Whatever the others do, a record joins with this probability, or, where they reach the bound, not at all.
    """
    while True:
        joins: np.ndarray = bernoulli(n_samples, fraction, random_bytes)
        if np.count_nonzero(joins) <= most_members(n_samples, fraction):
            return joins


def members_of(validate_on: str, cv: Any, fraction: float, n_samples: int | None, public: bool) -> InSubset | OnTheRest:
    """Make the validation of a subset search from its parameters; with public data all of the subset trains."""
    if validate_on not in VALIDATES:
        raise ValueError(
            f"Found validate_on={validate_on!r}; 'rest' (candidates are scored on records outside the subset) or "
            f"'subset' (on some of the subset) is needed.{did_you_mean(validate_on, VALIDATES)}"
        )
    if cv is not None and not isinstance(cv, numbers.Real):
        raise ValueError(
            f"Found cv={cv!r}: which records are in the subset, and how many, is random and secret, so "
            "there is nothing to split by index. Use cv as a fraction or a number of folds (the latter with "
            "validate_on='subset'), or X_public and y_public."
        )
    if validate_on == "rest" and not public and (cv is None or (isinstance(cv, float) and cv == 1.0)):
        return OnTheRest(fraction, 1.0)
    inside = validation_of(cv, n_samples, public)
    if public or validate_on == "subset":
        return InSubset(inside, fraction)
    if not isinstance(inside, HoldOut):
        raise ValueError(
            f"Found cv={cv!r} with validate_on='rest', where all of the subset trains: a float in (0, 1] is needed, "
            "the share of the other records that validates. Leave cv=None for all of them, or use "
            "validate_on='subset', where cv may be a number of folds."
        )
    return OnTheRest(fraction, inside.fraction)


def check_handful(members: InSubset | OnTheRest, train_on: str, n: float) -> None:
    """Raise if a needed part is expected to hold next to nothing of ``n`` records."""
    fraction = members.fraction
    parts = {"subset": fraction * n}
    if train_on == "rest":
        parts["rest"] = (1.0 - fraction) * n
    if isinstance(members, OnTheRest):
        parts["validating part of the rest"] = (1.0 - fraction) * members.share * n
    for name, expected in parts.items():
        if expected < HANDFUL:
            remedy = "Give a larger" if name == "subset" else "Give a smaller"
            raise ValueError(
                f"Found subset_fraction={fraction!r} of {n:g} records (n_samples={n:g}): the {name} is expected to "
                f"hold {expected:.3g} of them, fewer than {HANDFUL}. {remedy} subset_fraction, or use DPRandomSearchCV."
            )
