"""Names for types that the searches share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypedDict

import numpy as np

from ..adapters import Declared, ExtrapolationRule

#: Values of hyperparameters by name: what a search chooses among.
Candidate: TypeAlias = Mapping[str, Any]
#: What a user gives as the space of candidates: name to a list of values or a distribution; "auto" for the estimator's.
Distributions: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str
#: (estimator, X, y) to a number, greater is better; scikit-learn's scorers and our private ones.
Scorer: TypeAlias = Callable[[Any, Any, Any], float]
#: A seed for one thing that is drawn; None takes fresh entropy of the operating system.
Seed: TypeAlias = np.random.SeedSequence | None
#: Public X and y.
PublicData: TypeAlias = tuple[Any, Any]
#: How parameters are carried over to more records: a word, a function of a value and two numbers, or a rule for each.
Extrapolate: TypeAlias = str | Callable[[Any, float, float], Any] | Mapping[str, ExtrapolationRule]


class Workers(TypedDict):
    """What the user said about workers, as joblib's ``Parallel`` takes it."""

    n_jobs: int | None
    pre_dispatch: int | str


class Parameters(Protocol):
    """What every search is given; each runner says what it needs beyond that."""

    estimator: Any
    epsilon: float | None
    delta: float | None
    scoring: str | Scorer | None
    guarantee: Declared | None
    n_jobs: int | None
    pre_dispatch: int | str
    error_score: float | str
    verbose: int
    random_state: int | np.random.RandomState | None


@dataclass(frozen=True)
class InFull:
    """From a candidate to the same with less noise in what it puts into the estimator: as it is trained last.

    Parameters
    ----------
    parts : mapping
        Name, and identity of what a candidate puts in ↦ the same with less noise. Of use in this process alone.
    """

    parts: Mapping[tuple[str, int], Any]

    def __call__(self, candidate: Candidate) -> dict[str, Any]:
        return {name: self.parts.get((name, id(value)), value) for name, value in candidate.items()}
