"""Report noisy max over a whole grid: one private choice, one private training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from ...privacy import (
    BudgetUnreachableError,
    ExponentialNoise,
    GaussianNoise,
    Guarantee,
    GumbelNoise,
    LaplaceNoise,
    MissingDeltaError,
    PrivacyError,
    calibrate,
    noisy_max,
)
from ...privacy.mechanisms.report_noisy_max import MaxNoise
from ...privacy.spent import Component
from ...scoring.validation import Validation
from .._types import Candidate, Distributions, Parameters
from ..execution.job import Job
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.utilities import sensitivity
from ..planning.plan import CostModel
from ..planning.space import SpaceGuarantee
from .aggregated import AggregatedRunner, number_of_points, train_winner

#: Laplace and Gaussian noise are multiples of the sensitivity divided by GRID.
GRID = 256
#: Largest scale of Gaussian noise in multiples of its grid, and in multiples of the sensitivity: larger noise hides all
#: utilities.
STEPS, MOST_SCALE = 3000, 1e4

# --- the noise --------------------------------------------------------------------------------------------------------


def _gaussian(epsilon: Fraction, unit: Fraction, candidates: int, delta: float | None) -> MaxNoise:
    """Least Gaussian noise with which the choice is (ε, δ)-private."""
    if not delta:
        raise MissingDeltaError(
            "Found noise='gaussian' with delta=None or 0: Gaussian noise is private at a delta > 0 only. Give delta, "
            "or use noise='exponential'."
        )

    return scaled_gaussian(least_scale(float(epsilon), candidates, float(delta)), unit)


def scaled_gaussian(scale: float, unit: Fraction) -> GaussianNoise:
    """Gaussian noise of a scale in multiples of the sensitivity, on a grid that divides the sensitivity."""
    return GaussianNoise(scale=Fraction(scale) * unit, grid=unit / max(1, min(GRID, int(STEPS / scale))))


@lru_cache(maxsize=64)
def least_scale(epsilon: float, candidates: int, delta: float) -> float:
    """Least scale of Gaussian noise, in multiples of the sensitivity, with which a choice is (ε, δ)-private."""

    def choice(scale: float) -> Guarantee:
        if scale > MOST_SCALE:
            raise BudgetUnreachableError(f"No noise of scale {scale:g} is drawn on so fine a grid.")
        return noisy_max(candidates, 1, scaled_gaussian(scale, Fraction(1)))

    return calibrate(choice, epsilon, delta)


#: Name ↦ (ε, sensitivity, number of candidates, δ) ↦ noise.
NOISES: dict[str, Callable[[Fraction, Fraction, int, float | None], MaxNoise]] = {
    "exponential": lambda epsilon, unit, candidates, delta: GumbelNoise(scale=2 * unit / epsilon),
    "permute_and_flip": lambda epsilon, unit, candidates, delta: ExponentialNoise(scale=2 * unit / epsilon),
    "laplace": lambda epsilon, unit, candidates, delta: LaplaceNoise(scale=2 * unit / epsilon, grid=unit / GRID),
    "gaussian": _gaussian,
}

#: Noise ↦ number of candidates n ↦ upper bound on the expected largest of n noises of scale 1, above their mean.
LARGEST_OF: dict[str, Callable[[int], float]] = {
    "exponential": math.log,
    "permute_and_flip": math.log,
    "laplace": lambda candidates: sum(1 / i for i in range(1, candidates + 1)),
    "gaussian": lambda candidates: math.sqrt(2 * math.log(candidates)),
}

# --- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CostOfChoice:
    """Cost of a choice by report noisy max, and of one training.

    Parameters
    ----------
    n_candidates : int
    noise : MaxNoise
        For utilities of sensitivity 1.
    name : str
        The noise's name.
    """

    n_candidates: int
    noise: MaxNoise
    name: str

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        number, training = self.n_candidates, promises.worst
        choice = noisy_max(number, 1, self.noise, neighboring=training.neighboring)
        name = f"choice among {number} candidate{'s' * (number > 1)} by report noisy max ({self.name})"
        return (
            Component(name=name, guarantee=choice),
            Component(name="training of the winner on all records", guarantee=training),
        )


# --- how it runs ------------------------------------------------------------------------------------------------------


class ChoiceParameters(Parameters, Protocol):
    """Parameters for a noisy maximum over a grid."""

    param_grid: Distributions
    selection_share: float
    selection_epsilon: float | None
    noise: str
    n_parts: int | None
    part_noise: str


class NoisyMaxRunner(AggregatedRunner):
    """Sample-and-aggregate over the grid, one choice by a noisy maximum, and one training.

    Parameters
    ----------
    search : ChoiceParameters
    """

    search: ChoiceParameters

    def __init__(self, search: ChoiceParameters) -> None:
        super().__init__(search, search.param_grid, "param_grid", n_parts=search.n_parts, part_noise=search.part_noise)

    @property
    def choice_epsilon(self) -> float:
        search = self.search
        if search.selection_epsilon is not None:
            return float(search.selection_epsilon)
        if search.epsilon is None:
            raise PrivacyError(
                "Found neither epsilon nor selection_epsilon: what may the choice cost? Give epsilon, the total for "
                "choice and training, or selection_epsilon, and the estimator's own noise as configured."
            )
        return float(search.epsilon) * float(search.selection_share)

    def chooser(self, unit: Fraction, n_candidates: int) -> MaxNoise:
        """Noise of the choice, for utilities of the given sensitivity."""
        return NOISES[self.search.noise](Fraction(self.choice_epsilon), unit, n_candidates, self.search.delta)

    def expected_loss(self, n_parts: int, n_candidates: int) -> str:
        """E[max of n noises] − E[noise] bounds what the winner lacks; permute and flip is never worse than Gumbel."""
        scale = float(self.chooser(sensitivity(n_parts), n_candidates).scale)
        loss = min(math.ceil(100 * scale * LARGEST_OF[self.search.noise](n_candidates)) / 100, 1.0)
        return f", and the noise of the choice costs at most {loss:.2f} of utility on average"

    def cost(self, validation: Validation) -> CostModel:
        number = number_of_points(self.space)
        return CostOfChoice(n_candidates=number, noise=self.chooser(Fraction(1), number), name=self.search.noise)

    def run(self, job: Job, candidates: Sequence[Candidate], source: Randomness, X: Any, y: Any) -> Outcome:
        k = len(job.split.folds)
        *seeds, last = source.run_seeds(k + 1)
        if len(candidates) == 1:  # without a choice, at no cost
            return train_winner(job, candidates[0], float("nan"), last, X, y)
        self.count_trainings(job, candidates)
        utilities = self.utilities(job, candidates, seeds, X, y)
        self.progress.last_training()
        chosen = self.chooser(sensitivity(k), len(candidates)).select(utilities, source.bits)
        return train_winner(job, candidates[chosen], float("nan"), last, X, y)
