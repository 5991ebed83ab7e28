"""Report noisy max with Gumbel noise, the exponential mechanism, drawn exactly: integers and fractions, never a float.

Privacy cost of the winner: ``noisy_max``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..numerics.exact_numbers import Number, fraction, positive_fraction
from .exact_sampling import SYSTEM, IntegerSource, bernoulli_exp


@dataclass(frozen=True, kw_only=True)
class GumbelNoise:
    """Gumbel noise, that is the exponential mechanism: candidate i with probability ∝ exp(u_i/scale).

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.

    Examples
    --------
    >>> import random
    >>> GumbelNoise(scale=Fraction(1, 10)).select([0.2, 0.9, 0.3], random.Random(0))
    1
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_fraction(self.scale, "scale"))

    def select(self, utilities: Sequence[Number], bits: IntegerSource = SYSTEM) -> int:
        """Index of the candidate whose noisy utility is largest.

        A fair candidate, kept with probability exp((u_i − max u)/scale); else another one.

        Parameters
        ----------
        utilities : sequence of Fraction, int or float
            Finite, at least one. A float counts for exactly what it is: where it was rounded, that has to be part of
            the sensitivity.
        bits : IntegerSource
            Source of fair integers; by default the operating system.
        """
        exact = [fraction(utility) for utility in utilities]
        largest = max(exact)
        below = [(largest - utility) / self.scale for utility in exact]
        while True:
            index = bits.randrange(len(below))
            if bernoulli_exp(below[index], bits):
                return index
