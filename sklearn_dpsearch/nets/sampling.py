"""Exact Poisson sampling: every record in every batch by a coin of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

#: Least rate for which gaps are drawn: their probabilities are wrong by about 2**-53 each.
LEAST_RATE = 1e-9


class PoissonBatches:
    """Batches of record numbers: each of ``n`` records is in each batch with probability ``rate``, independently.

    The coins of all steps form one sequence of Bernoulli trials, of which the gaps between successes are drawn: they
    are geometric, in double precision, so that a rate of 1e-7 is as exact as one of 0.1 (comparing single-precision
    uniforms with the rate would include 19 % more records there). The work is proportional to the batches.

    Parameters
    ----------
    rng : Generator
        Secret randomness.
    rate : float
        At least ``LEAST_RATE``: the law of the gaps is then exact to one part in a million, and no sum overflows.
    n : int
        Number of records.
    """

    def __init__(self, rng: np.random.Generator, rate: float, n: int) -> None:
        self._rng, self._rate, self._n = rng, float(rate), int(n)
        self._ahead = self._successes(-1, 1)

    def draw(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """The next ``steps`` batches: step number and record number of every success, both ascending together.

        The result does not depend on how many steps are drawn at once.
        """
        trials = steps * self._n
        found = [self._ahead]
        while found[-1][-1] < trials:
            expected = (trials - int(found[-1][-1])) * self._rate
            found.append(self._successes(found[-1][-1], int(expected + 4 * np.sqrt(expected)) + 8))
        positions = np.concatenate(found)
        inside = int(np.searchsorted(positions, trials))
        self._ahead = positions[inside:] - trials
        return np.divmod(positions[:inside], max(self._n, 1))

    def state(self) -> torch.Tensor:
        """What was drawn ahead. The coins themselves are those of the generator."""
        return torch.from_numpy(self._ahead)

    def restore(self, state: torch.Tensor) -> None:
        """Go on where this state was taken, with a generator that goes on there too."""
        self._ahead = state.numpy()

    def _successes(self, last: int, number: int) -> np.ndarray:
        """The next trials that succeed, counted from the first one that is not drawn yet."""
        gaps = self._rng.geometric(self._rate, number)  # once in 2**53 it gives 0, which would be the same record again
        return last + np.cumsum(np.maximum(gaps, 1))


def padded_batches(sources: Sequence[PoissonBatches], steps: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The next batches of several trainings, never truncated.

    Returns
    -------
    records : array of shape (steps, len(sources), widest)
        Record numbers; ``n`` where a batch is shorter than the widest.
    sizes : array of shape (steps, len(sources))
    """
    drawn = [source.draw(steps) for source in sources]
    sizes = np.stack([np.bincount(step, minlength=steps) for step, _ in drawn], axis=1)
    records = np.full((steps, len(sources), int(sizes.max(initial=0))), n, dtype=np.int64)
    for i, (step, record) in enumerate(drawn):
        starts = np.cumsum(sizes[:, i]) - sizes[:, i]
        records[step, i, np.arange(len(step)) - starts[step]] = record
    return records, sizes
