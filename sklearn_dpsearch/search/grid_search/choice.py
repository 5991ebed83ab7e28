"""Report noisy max over a whole grid: one private choice, one private training."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...privacy import Guarantee, GumbelNoise, noisy_max
from ...privacy.spent import Component
from ..planning.space_guarantee import SpaceGuarantee


@dataclass(frozen=True, kw_only=True)
class CostOfChoice:
    """Cost of a choice by report noisy max, and of one training.

    Parameters
    ----------
    n_candidates : int
    noise : GumbelNoise
        For utilities of sensitivity 1.
    """

    n_candidates: int
    noise: GumbelNoise

    def noise_for(self, sensitivity: Fraction) -> GumbelNoise:
        """Noise for utilities of another sensitivity."""
        return GumbelNoise(scale=self.noise.scale * sensitivity)

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        number, training = self.n_candidates, promises.worst
        choice = noisy_max(number, 1, self.noise, neighboring=training.neighboring)
        name = f"choice among {number} candidate{'s' * (number > 1)} by report noisy max"
        return (
            Component(name=name, guarantee=choice),
            Component(name="training of the winner on all records", guarantee=training),
        )
