"""Report noisy max over a whole grid: one private choice, one private training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...privacy import (
    BudgetUnreachableError,
    ExponentialNoise,
    GaussianNoise,
    Guarantee,
    GumbelNoise,
    LaplaceNoise,
    MissingDeltaError,
    calibrate,
    noisy_max,
)
from ...privacy.mechanisms.report_noisy_max import MaxNoise
from ...privacy.spent import Component
from ..planning.space_guarantee import SpaceGuarantee

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
