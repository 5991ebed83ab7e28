"""Noises for report noisy max, each with an exact draw of the winner: integers and fractions, never a float.

| noise | drawn as |
|---|---|
| Gumbel | the exponential mechanism, by rejection |
| exponential | permute and flip (McKenna & Sheldon 2020; Ding et al. 2021 show that this is the same) |
| Laplace, Gaussian | discrete Laplace and discrete Gaussian noise on a grid |

Privacy cost of the winner: ``noisy_max``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from ..numerics.exact_numbers import Number, fraction, positive_fraction
from .exact_sampling import SYSTEM, IntegerSource, bernoulli_exp, discrete_gaussian, discrete_laplace


@dataclass(frozen=True, kw_only=True)
class MaxNoise(ABC):
    """Distribution of the noise that is added to every utility before the largest is reported.

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_fraction(self.scale, "scale"))

    @abstractmethod
    def select(self, utilities: Sequence[Number], bits: IntegerSource = SYSTEM) -> int:
        """Index of the candidate whose noisy utility is largest.

        Parameters
        ----------
        utilities : sequence of Fraction, int or float
            Finite, at least one. A float counts for exactly what it is: where it was rounded, that has to be part of
            the sensitivity.
        bits : IntegerSource
            Source of fair integers; by default the operating system.
        """


@dataclass(frozen=True, kw_only=True)
class GumbelNoise(MaxNoise):
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

    def select(self, utilities: Sequence[Number], bits: IntegerSource = SYSTEM) -> int:
        """A fair candidate, kept with probability exp((u_i − max u)/scale); else another one."""
        below = _below_the_largest(utilities, self.scale)
        while True:
            index = bits.randrange(len(below))
            if bernoulli_exp(below[index], bits):
                return index


@dataclass(frozen=True, kw_only=True)
class ExponentialNoise(MaxNoise):
    """Exponential noise with mean ``scale``, that is permute and flip.

    At the same scale its expected utility is never below the exponential mechanism's. It has no bounded range, however:
    composed with other mechanisms it costs more.

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.

    Examples
    --------
    >>> import random
    >>> ExponentialNoise(scale=Fraction(1, 10)).select([0.2, 0.9, 0.3], random.Random(0))
    1
    """

    def select(self, utilities: Sequence[Number], bits: IntegerSource = SYSTEM) -> int:
        """The first candidate, in a random order, whose coin with probability exp((u_i − max u)/scale) succeeds."""
        below = _below_the_largest(utilities, self.scale)
        left = list(range(len(below)))
        while True:
            index = left.pop(bits.randrange(len(left)))
            if bernoulli_exp(below[index], bits):  # the best one's coin always does
                return index


@dataclass(frozen=True, kw_only=True)
class GridNoise(MaxNoise):
    """Integer noise on utilities that are rounded down to multiples of ``grid``; of equals the first wins.

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.
    grid : Fraction or int
        > 0; best a whole part of the sensitivity, and well below ``scale``.
    """

    grid: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "grid", positive_fraction(self.grid, "grid"))

    def moved(self, sensitivity: Fraction) -> int:
        """Largest distance of two neighbours' rounded utilities, in multiples of the grid: ⌈Δ/grid⌉.

        A grid that divides the sensitivity costs nothing.
        """
        return ceil(sensitivity / self.grid)

    def select(self, utilities: Sequence[Number], bits: IntegerSource = SYSTEM) -> int:
        """The first of the largest noisy utilities."""
        noisy = [floor(fraction(utility) / self.grid) + self._draw(bits) for utility in utilities]
        return noisy.index(max(noisy))

    @abstractmethod
    def _draw(self, bits: IntegerSource) -> int:
        """Noise in multiples of the grid."""


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(GridNoise):
    """Discrete Laplace noise, P[k·grid] ∝ exp(−|k|·grid/scale).

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.
    grid : Fraction or int
        Utilities are rounded down to its multiples, > 0. Best a whole part of the sensitivity, well below ``scale``.

    Examples
    --------
    >>> import random
    >>> LaplaceNoise(scale=Fraction(1, 10), grid=Fraction(1, 1000)).select([0.2, 0.9, 0.3], random.Random(0))
    1
    """

    def _draw(self, bits: IntegerSource) -> int:
        return discrete_laplace(self.scale / self.grid, bits)


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(GridNoise):
    """Discrete Gaussian noise, P[k·grid] ∝ exp(−(k·grid/scale)²/2).

    Parameters
    ----------
    scale : Fraction or int
        In units of the utilities, > 0.
    grid : Fraction or int
        Utilities are rounded down to its multiples, > 0. Best a whole part of the sensitivity, well below ``scale``.

    Examples
    --------
    >>> import random
    >>> GaussianNoise(scale=Fraction(1, 10), grid=Fraction(1, 1000)).select([0.2, 0.9, 0.3], random.Random(0))
    1
    """

    def _draw(self, bits: IntegerSource) -> int:
        return discrete_gaussian((self.scale / self.grid) ** 2, bits)


def _below_the_largest(utilities: Sequence[Number], scale: Fraction) -> list[Fraction]:
    """(max u − u_i)/scale."""
    exact = [fraction(utility) for utility in utilities]
    largest = max(exact)
    return [(largest - utility) / scale for utility in exact]
