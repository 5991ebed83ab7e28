"""Names for types that the searches share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..adapters import Adapter
from ..adapters.adapter import ExtrapolationRule
from ..privacy._types import Neighboring
from ..scoring import Noise, PrivateScorer

#: Values of hyperparameters by name: one of the points among which a search chooses.
Candidate: TypeAlias = Mapping[str, Any]
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
#: Public X and y.
PublicData: TypeAlias = tuple[Any, Any]
#: Extrapolation of parameters to more records: a word, a function of a value and two sizes, or a
#: rule for each name.
Extrapolate: TypeAlias = str | Callable[[Any, float, float], Any] | Mapping[str, ExtrapolationRule]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings by which models are made, trained and scored: all that a worker needs of a plan.

    Parameters
    ----------
    estimator, adapter, scorer, neighboring, error_score
        As planned.
    settings : mapping
        Parameters of the estimator that set the noise.
    noise : Noise or None
        Noise of a private score.
    trains_together : bool
        Whether candidates can be trained at once.
    n_samples : int or None
        Number of all records, for estimators whose noise or rate follows from it.
    """

    estimator: Any
    adapter: Adapter
    settings: Mapping[str, Any]
    scorer: Scorer
    noise: Noise | None
    neighboring: Neighboring
    error_score: float
    trains_together: bool
    n_samples: int | None

    def score(self, model: Any, X: Any, y: Any) -> float:
        """Metric of a model; as in scikit-learn, a metric is not handed a target that does not
        exist."""
        target = () if y is None and not isinstance(self.scorer, PrivateScorer) else (y,)
        return float(self.scorer(model, X, *target))


@dataclass(frozen=True)
class InFull:
    """Map a candidate to its form for the final training, with the final noise in the estimators
    that it puts in.

    Parameters
    ----------
    parts : sequence of (name, estimator, copy)
        Estimators that candidates put in, each with its copy for the final training.
    """

    parts: Sequence[tuple[str, Any, Any]]

    def __call__(self, candidate: Candidate) -> dict[str, Any]:
        return {name: self._in_full(name, value) for name, value in candidate.items()}

    def _in_full(self, name: str, value: Any) -> Any:
        return next(
            (copy for part, tuned, copy in self.parts if part == name and tuned is value), value
        )
