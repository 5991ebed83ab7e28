"""Poisson subsampling into batches of a fixed number of rows: no row tells who else was drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data._persons import PersonCodes, number_of_persons, persons_in

#: Least rate for which gaps are drawn: their probabilities are wrong by about 2**-53 each.
LEAST_RATE = 1e-9


def rows_per_batch(rate: float, n: int) -> int:
    """Number of rows of every batch under Poisson subsampling.

    It is two standard deviations above the expected size, at most ``n``.
    """
    expected = rate * n
    return min(n, math.floor(expected + 2.0 * math.sqrt(expected * (1.0 - rate))) + 1)


class PoissonBatches:
    """Batches of record numbers by Poisson subsampling.

    Each of ``n`` records is in each batch with probability ``rate``, independently.

    Batches with more than ``rows_per_batch`` records are drawn again. A record then joins at most
    as often, whatever the others do, so amplification by sampling holds with ``rate``
    (docs/theory/clipped_sums.md). Each batch is put into random rows, so that the rows of all other
    records do not depend on whether a record was drawn.

    The draws of all steps form one sequence of Bernoulli trials. Only the gaps between successes
    are drawn: geometric numbers in double precision, so that a rate of 1e-7 is as exact as a rate
    of 0.1 (comparing single-precision uniforms with 1e-7 would include 19 % more records). The work
    is proportional to the size of the batches.

    Parameters
    ----------
    coins, rows : Generator
        Secret randomness: who is drawn, and into which row.
    rate : float
        At least ``LEAST_RATE``: the distribution of gaps is then exact to one part in a million,
        and no sum overflows.
    n : int
        Number of records.
    """

    def __init__(
        self, coins: np.random.Generator, rows: np.random.Generator, rate: float, n: int
    ) -> None:
        self._coins, self._rows, self._rate, self._n = coins, rows, float(rate), int(n)
        self.rows = rows_per_batch(self._rate, self._n)
        self._ahead = self._draw_successes(-1, 1)

    def draw(self, steps: int) -> np.ndarray:
        """Draw the next batches of record numbers, shape (steps, rows).

        ``n`` stands in rows without a record.

        The result does not depend on how many steps are drawn at once.
        """
        batches = np.full((steps, self.rows), self._n, dtype=np.int64)
        done = 0
        while done < steps:
            step, record = self._draw_samples(steps - done)
            sizes = np.bincount(step, minlength=steps - done)
            accepted = sizes <= self.rows
            in_batch = accepted[step]
            starts = np.cumsum(sizes) - sizes
            place = np.arange(len(step)) - starts[step]
            number = done + np.cumsum(accepted) - 1
            batches[number[step[in_batch]], place[in_batch]] = record[in_batch]
            done += int(accepted.sum())
        return self._rows.permuted(batches, axis=1, out=batches)

    def _draw_samples(self, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw Poisson samples of any size: steps and record numbers.

        Every success is listed, in ascending order.
        """
        trials = steps * self._n
        successes = [self._ahead]
        while successes[-1][-1] < trials:
            expected = (trials - int(successes[-1][-1])) * self._rate
            number = int(expected + 4 * np.sqrt(expected)) + 8
            successes.append(self._draw_successes(successes[-1][-1], number))
        positions = np.concatenate(successes)
        inside = int(np.searchsorted(positions, trials))
        self._ahead = positions[inside:] - trials
        return np.divmod(positions[:inside], max(self._n, 1))

    def _draw_successes(self, last: int, number: int) -> np.ndarray:
        """Draw the next successes in a sequence of Bernoulli trials.

        They are counted from the first trial that is not drawn yet.
        """
        # once in 2**53 it gives 0: the same record twice
        gaps = self._coins.geometric(self._rate, number)
        return last + np.cumsum(np.maximum(gaps, 1))


class RecordsOfPersons:
    """Numbers of the records of each person.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        Person of each record, 0 … n_persons − 1.
    """

    def __init__(self, codes: PersonCodes) -> None:
        self.codes = codes
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.append(0, np.cumsum(np.bincount(codes)))

    @classmethod
    def of(cls, groups: Any, n_samples: int) -> RecordsOfPersons | None:
        """Records of persons by their names; None if each has one.

        Persons are then drawn as records are.
        """
        codes = persons_in(groups, n_samples)
        return None if number_of_persons(codes) == n_samples else cls(codes)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def records(self, persons: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """One record of each drawn person, by a number in [0, 1).

        For no person it is the number of all records.
        """
        numbers = np.minimum(persons, len(self) - 1)
        first, counts = self._starts[numbers], np.diff(self._starts)[numbers]
        drawn = self._order[first + (turns * counts).astype(np.int64)]
        return np.where(persons < len(self), drawn, len(self.codes))


class PersonBatches:
    """Batches of persons, each present by one random record of his.

    Given all of these draws a person adds one clipped gradient to a step in which he is, and none
    to others: what holds for a record holds for him (docs/theory/persons.md).

    Parameters
    ----------
    batches : PoissonBatches
        Batches of persons' numbers.
    persons : RecordsOfPersons
    turns : Generator
        Secret randomness: one number for each row of a batch, whether or not a person is in it.
    """

    def __init__(
        self, batches: PoissonBatches, persons: RecordsOfPersons, turns: np.random.Generator
    ) -> None:
        self._batches, self._persons, self._turns = batches, persons, turns
        self.rows = batches.rows

    def draw(self, steps: int) -> np.ndarray:
        """Draw the next batches of persons' record numbers, shape (steps, rows).

        The number of all records stands for none.
        """
        persons = self._batches.draw(steps)
        return self._persons.records(persons, self._turns.random(persons.shape))


def padded_batches(
    sources: Sequence[PoissonBatches | PersonBatches], steps: int, n: int, rows: int
) -> np.ndarray:
    """Draw the next batches of several trainings, with equal numbers of rows.

    Parameters
    ----------
    sources : sequence of PoissonBatches or PersonBatches
    steps : int
    n : int
        Stands for "no record"; larger numbers, which are places without a record, become ``n``.
    rows : int

    Returns
    -------
    records : array of shape (steps, len(sources), rows)
    """
    records = np.full((steps, len(sources), rows), n, dtype=np.int64)
    for i, source in enumerate(sources):
        np.minimum(source.draw(steps), n, out=records[:, i, : source.rows])
    return records
