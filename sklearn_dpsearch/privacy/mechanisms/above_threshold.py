r"""One round of the sparse vector technique: is any candidate's utility above a threshold, and which is the first?

**Cost.** With noise Lap(2Δ/ε) on the threshold and Lap(4Δ/ε) on each candidate, two neighbours give "none" with
probabilities within a factor e^{ε/2} of each other, and "candidate k" within e^ε. *Proof.* Couple the threshold noise
z on one data set with z + Δ on the other: density ratio at most e^{ε/2}. A candidate that stays below stays below, as
its utility grows by at most Δ. For an accept couple the noise of k with itself plus 2Δ: again e^{ε/2}, and k still
reaches the threshold. The noise of the candidates after k plays no part. Nothing is assumed about the signs of the
changes. ∎
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from ..numerics.exact_numbers import Number, fraction, positive_fraction
from .exact_sampling import SYSTEM, IntegerSource, discrete_laplace


@dataclass(frozen=True, kw_only=True)
class AboveThreshold:
    """One round: the first candidate whose noisy utility reaches a noisy threshold, drawn exactly.

    Everything is an integer: utilities are rounded down and thresholds up to multiples of ``grid``, and discrete
    Laplace noise is added. Rounding moves the utilities of two neighbours apart by at most ⌈Δ/grid⌉ multiples, which is
    what the noise is made for: a grid that divides Δ costs nothing.

    Parameters
    ----------
    round_epsilon : Fraction or int
        ε of a round in which a candidate is accepted.
    sensitivity : Fraction or int
        Δ: how much one record changes the utility of any candidate.
    grid : Fraction or int, optional
        By default Δ/1024.
    """

    round_epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("round_epsilon", "sensitivity", "grid"):
            value = getattr(self, name)
            if name == "grid" and value is None:
                value = Fraction(self.sensitivity) / 1024
            object.__setattr__(self, name, positive_fraction(value, name))

    @property
    def steps(self) -> int:
        """The sensitivity in multiples of the grid."""
        assert self.grid is not None
        return ceil(self.sensitivity / self.grid)

    def draw_threshold_noise(self, bits: IntegerSource = SYSTEM) -> int:
        """Discrete Laplace noise of scale 2Δ/ε, in multiples of the grid."""
        return discrete_laplace(2 * self.steps / self.round_epsilon, bits)

    def first_above(
        self,
        utilities: Sequence[Number],
        threshold: Number,
        bits: IntegerSource = SYSTEM,
        threshold_noise: int | None = None,
    ) -> int | None:
        """Index of the first candidate whose noisy utility reaches the noisy threshold, or None.

        Parameters
        ----------
        utilities : sequence of Fraction, int or float
            Finite. A float counts for exactly what it is: where it was rounded, that has to be part of ``sensitivity``.
        threshold : Fraction, int or float
            Public: it may depend on the results of earlier rounds only.
        bits : IntegerSource
            Source of fair integers; by default the operating system.
        threshold_noise : int, optional
            One earlier ``draw_threshold_noise`` for a whole walk; by default a new draw.

        Examples
        --------
        >>> import random
        >>> one_round = AboveThreshold(round_epsilon=Fraction(2), sensitivity=Fraction(1, 50))
        >>> one_round.first_above([0.1, 0.2, 0.9, 0.95], 0.6, random.Random(0))
        2
        """
        assert self.grid is not None
        noise = self.draw_threshold_noise(bits) if threshold_noise is None else threshold_noise
        reached = ceil(fraction(threshold) / self.grid) + noise
        for index, utility in enumerate(utilities):
            drawn = discrete_laplace(4 * self.steps / self.round_epsilon, bits)
            if floor(fraction(utility) / self.grid) + drawn >= reached:
                return index
        return None
