"""Names for types that the searches share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..adapters.adapter import ExtrapolationRule

#: Values of hyperparameters by name: one of the points among which a search chooses.
Candidate: TypeAlias = Mapping[str, Any]
#: Several of them, in order.
Candidates: TypeAlias = Sequence[Candidate]
#: Space of candidates given by a user: name to a list of values or a distribution; "auto" for the
#: estimator's space.
Distributions: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str
#: (estimator, X, y), or (estimator, X) without a target, to a number, greater is better: of
#: scikit-learn, or private.
Scorer: TypeAlias = Callable[..., float]
#: A search, whose parameters count.
Parameters: TypeAlias = Any
#: A seed for one random draw; None takes fresh entropy of the operating system.
Seed: TypeAlias = np.random.SeedSequence | None
#: One seed for each run.
Seeds: TypeAlias = Sequence[Seed]
#: A seed or generator that is known, for tests; None: entropy of the operating system.
KnownSeed: TypeAlias = int | np.random.RandomState | None
#: Public X and y.
PublicData: TypeAlias = tuple[Any, Any]
#: Extrapolation of parameters to more records: a word, a function of a value and two sizes, or a
#: rule for each name.
Extrapolate: TypeAlias = str | Callable[[Any, float, float], Any] | Mapping[str, ExtrapolationRule]
