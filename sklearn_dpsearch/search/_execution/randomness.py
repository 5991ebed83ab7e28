"""Sources of a search's randomness: the operating system, or a seed for tests."""

from __future__ import annotations

import os
import random
import secrets

import numpy as np


class Randomness:
    """All random choices of one ``fit``.

    Parameters
    ----------
    random_state : None, int or RandomState
        None: the operating system's entropy for everything. Otherwise everything follows from the
        seed, for any number of jobs, and the noise can be undone with it.
    """

    def __init__(self, random_state: int | np.random.RandomState | None = None) -> None:
        self._follow(entropy_of(random_state), seeded=random_state is not None)

    @classmethod
    def following(cls, entropy: int | list[int]) -> Randomness:
        """Derive all randomness from one secret, so that a kept secret draws it again."""
        randomness = object.__new__(cls)
        randomness._follow(entropy, seeded=True)
        return randomness

    def _follow(self, entropy: int | list[int], *, seeded: bool) -> None:
        self.seeded = seeded
        self._sequence = np.random.SeedSequence(entropy)
        self._count, self._drawing, coins, self._runs = self._sequence.spawn(4)
        self._coins = np.random.Generator(np.random.PCG64(coins))

    @property
    def bits(self) -> random.Random:
        """Source for the number of runs."""
        return random_bits(self._count) if self.seeded else secrets.SystemRandom()

    def drawing(self) -> np.random.RandomState:
        """Source for drawing candidates, which are public once released."""
        return np.random.RandomState(np.random.MT19937(self._drawing))

    def random_bytes(self, n: int) -> bytes:
        """Source for splitting the records; every call gives a new source."""
        return self._coins.bytes(n) if self.seeded else os.urandom(n)

    def run_seeds(self, n: int) -> list[np.random.SeedSequence | None]:
        """One seed per run; None where a run takes its own entropy."""
        return list(self._runs.spawn(n)) if self.seeded else [None] * n


def entropy_of(random_state: int | np.random.RandomState | None) -> int | list[int]:
    """Entropy from which everything random follows."""
    if random_state is None:
        return secrets.randbits(256)
    if isinstance(random_state, np.random.RandomState):
        return [int(word) for word in random_state.randint(2**32, size=8, dtype=np.uint64)]
    return int(random_state)


def random_bits(seed: np.random.SeedSequence | None) -> random.Random:
    """Make Python's generator from a seed sequence, or take the operating system's."""
    if seed is None:
        return secrets.SystemRandom()
    return random.Random(int.from_bytes(seed.generate_state(8).tobytes(), "little"))


def random_state(seed: np.random.SeedSequence | None) -> np.random.RandomState:
    """Make a generator for an estimator, from a seed sequence or 256 fresh bits."""
    source = np.random.SeedSequence(secrets.randbits(256)) if seed is None else seed
    return np.random.RandomState(np.random.MT19937(source))
