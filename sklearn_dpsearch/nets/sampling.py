"""Exact Poisson subsampling: every record joins every batch independently."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

#: Least rate for which gaps are drawn: their probabilities are wrong by about 2**-53 each.
LEAST_RATE = 1e-9


class PoissonBatches:
    """Batches of record numbers: each of ``n`` records is in each batch with probability ``rate``, independently.

    The draws of all steps form one sequence of Bernoulli trials. Only the gaps between successes are drawn: geometric
    numbers in double precision, so that a rate of 1e-7 is as exact as a rate of 0.1 (comparing single-precision
    uniforms with 1e-7 would include 19 % more records). The work is proportional to the size of the batches.

    Parameters
    ----------
    rng : Generator
        Secret randomness.
    rate : float
        At least ``LEAST_RATE``: the distribution of gaps is then exact to one part in a million, and no sum overflows.
    n : int
        Number of records.
    labels : Generator, optional
        Deals records to parts.
    """

    def __init__(
        self, rng: np.random.Generator, rate: float, n: int, labels: np.random.Generator | None = None
    ) -> None:
        self._rng, self._rate, self._n, self._labels = rng, float(rate), int(n), labels
        self._ahead = self._successes(-1, 1)

    def draw(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the next ``steps`` batches: step number and record number of every success, in ascending order.

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

    def draw_parts(self, steps: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw batches, and deal every record to one of the parts of its batch by a label of its own.

        A label depends neither on records nor on their number. A step's number is replaced by step · parts + label.
        """
        step, record = self.draw(steps)
        if parts == 1:
            return step, record
        assert self._labels is not None
        place = step * parts + self._labels.integers(parts, size=len(step))
        order = np.argsort(place, kind="stable")
        return place[order], record[order]

    def state(self) -> torch.Tensor:
        """Members drawn ahead. The state of the generator is kept apart."""
        return torch.from_numpy(self._ahead)

    def restore(self, state: torch.Tensor) -> None:
        """Go on from a saved state; the generator must be restored to the same point."""
        self._ahead = state.numpy()

    def _successes(self, last: int, number: int) -> np.ndarray:
        """Draw the next successful trials, counted from the first trial that is not drawn yet."""
        gaps = self._rng.geometric(self._rate, number)  # once in 2**53 it gives 0: the same record twice
        return last + np.cumsum(np.maximum(gaps, 1))


def padded_batches(
    sources: Sequence[PoissonBatches], steps: int, n: int, parts: int = 1, width: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the next batches of several trainings, part by part, never truncated.

    Parameters
    ----------
    sources : sequence of PoissonBatches
    steps, n, parts : int
    width : int
        All parts are filled up to a multiple of this width.

    Returns
    -------
    records : array of shape (steps · parts, len(sources), widest)
        Record numbers; ``n`` where a part is shorter than the widest.
    sizes : array of shape (steps · parts, len(sources))
    """
    drawn = [source.draw_parts(steps, parts) for source in sources]
    sizes = np.stack([np.bincount(place, minlength=steps * parts) for place, _ in drawn], axis=1)
    widest = -(-int(sizes.max(initial=0)) // width) * width
    records = np.full((steps * parts, len(sources), widest), n, dtype=np.int64)
    for i, (place, record) in enumerate(drawn):
        starts = np.cumsum(sizes[:, i]) - sizes[:, i]
        records[place, i, np.arange(len(place)) - starts[place]] = record
    return records, sizes
