"""Events that tell two samples apart, chosen on one half of the runs.

An event is a threshold on a score of the outcome. Scores are coordinates of the numbers, a direction in which their
means differ, and how much more often a label was seen on one data set than on the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bounds import certified_epsilon
from .outcomes import Table

#: Thresholds tried per score, coordinates of a vector tried alone, and distinct numbers that still count as labels.
THRESHOLDS, COORDINATES, FEW = 400, 24, 30
#: Labels of an event that its text names.
SHOWN = 8
#: Confidence at which events are compared on the half that chooses: strict, because the best of many is taken.
STRICT = 0.999


class Score(ABC):
    """A real number for each outcome; NaN where it has none."""

    @abstractmethod
    def of(self, table: Table) -> np.ndarray:
        """Shape (n,)."""

    @abstractmethod
    def told(self, threshold: float, above: bool) -> str:
        """The event in words."""


@dataclass(frozen=True)
class Coordinate(Score):
    """One number of the outcome."""

    name: str
    index: int
    alone: bool

    def of(self, table: Table) -> np.ndarray:
        return table.numbers[self.name][:, self.index]

    def told(self, threshold: float, above: bool) -> str:
        place = "" if self.alone else f"[{self.index}]"
        return f"{self.name}{place} {'>' if above else '<='} {threshold:.6g}"


@dataclass(frozen=True)
class Direction(Score):
    """A weighted sum of standardised numbers."""

    parts: tuple[tuple[str, np.ndarray, np.ndarray, np.ndarray], ...]

    def of(self, table: Table) -> np.ndarray:
        return np.asarray(
            sum(_standard(table.numbers[name], centre, scale) @ w for name, centre, scale, w in self.parts)
        )

    def told(self, threshold: float, above: bool) -> str:
        names = " and ".join(name for name, *_ in self.parts)
        return f"{names}, along the difference of means, {'>' if above else '<='} {threshold:.6g}"


@dataclass(frozen=True)
class Labels(Score):
    """How much more often the label (of several columns, joined) was seen on the first data set."""

    names: tuple[str, ...]
    ratios: tuple[tuple[str, float], ...]

    def of(self, table: Table) -> np.ndarray:
        known = dict(self.ratios)
        return np.array([known.get(one, 0.0) for one in joined(table, self.names)])

    def told(self, threshold: float, above: bool) -> str:
        chosen = sorted(label for label, ratio in self.ratios if (ratio > threshold) == above)
        more = [] if len(chosen) <= SHOWN else [f"… {len(chosen) - SHOWN} more"]
        return f"{' and '.join(self.names)} in {{{', '.join([*chosen[:SHOWN], *more])}}}"


def joined(table: Table, names: tuple[str, ...]) -> list[str]:
    """Labels of several columns as one; a number counts by its value."""
    columns = [
        table.labels[name] if name in table.labels else [f"{one[0]:.12g}" for one in table.numbers[name]]
        for name in names
    ]
    return [" | ".join(map(str, row)) for row in zip(*columns)]


@dataclass(frozen=True)
class Event:
    """What is counted: a score above (or not above) a threshold, more probable on one of the two data sets.

    Parameters
    ----------
    score : Score
        Outcome ↦ number.
    threshold : float
        What the score is compared with.
    above : bool
        Whether the event is a score above the threshold, or one that is not.
    missing : float
        What a missing number counts as: −∞ or ∞.
    first : bool
        Whether it is more probable on the first data set.
    """

    score: Score
    threshold: float
    above: bool
    missing: float
    first: bool

    def happens(self, table: Table) -> np.ndarray:
        """Whether it happened in each run, shape (n,)."""
        return (_filled(self.score.of(table), self.missing) > self.threshold) == self.above

    def __str__(self) -> str:
        note = f" (missing counts as {self.missing})" if np.isinf(self.threshold) else ""
        return self.score.told(self.threshold, self.above) + note


NOTHING = "no outcome differs between runs"


def choose(first: Table, second: Table, delta: float) -> Event | None:
    """The event with the largest certified ε on these runs; None if all outcomes are the same."""
    best, found = (-1.0, -1.0), None
    for score in scores(first, second):
        for missing in (-np.inf, np.inf):
            value, event = _best_cut(score, first, second, delta, missing)
            if value > best:
                best, found = value, event
            if not np.isnan(score.of(first)).any() and not np.isnan(score.of(second)).any():
                break
    return found


def scores(first: Table, second: Table) -> Iterator[Score]:
    """All scores worth a try."""
    discrete = [*first.labels, *(name for name in first.numbers if _few(first, second, name))]
    for names in [(name,) for name in discrete] + [tuple(discrete)] * (len(discrete) > 1):
        yield _labels(first, second, names)
    for name, column in first.numbers.items():
        for index in _promising(column, second.numbers[name]):
            yield Coordinate(name, int(index), column.shape[1] == 1)
    wide = [name for name, column in first.numbers.items() if column.shape[1] > 1]
    for names in [(name,) for name in wide] + [tuple(first.numbers)] * (len(first.numbers) > 1):
        yield Direction(tuple(_direction(name, first.numbers[name], second.numbers[name]) for name in names))


def _best_cut(
    score: Score, first: Table, second: Table, delta: float, missing: float
) -> tuple[tuple[float, float], Event]:
    """The best threshold of one score, on either side, for either order of the data sets."""
    ours, theirs = (np.sort(_filled(score.of(table), missing)) for table in (first, second))
    cuts = _thresholds(np.concatenate([ours, theirs]))
    over, other = (one.size - np.searchsorted(one, cuts, side="right") for one in (ours, theirs))
    n, m = ours.size, theirs.size
    options = [
        (over, n, other, m, True, True),
        (n - over, n, m - other, m, False, True),
        (other, m, over, n, True, False),
        (m - other, m, n - over, n, False, False),
    ]
    found = []
    for hits, runs, rest, other_runs, above, is_first in options:
        proved = certified_epsilon(hits, runs, rest, other_runs, delta, STRICT)
        apart = hits / runs - rest / other_runs  # of events that prove nothing yet, the one that differs most
        best = int(np.lexsort((apart, proved))[-1])
        found.append(
            ((float(proved[best]), float(apart[best])), Event(score, float(cuts[best]), above, missing, is_first))
        )
    return max(found, key=lambda one: one[0])


def _thresholds(values: np.ndarray) -> np.ndarray:
    values = np.unique(values)
    if values.size > THRESHOLDS:
        values = values[np.linspace(0, values.size - 1, THRESHOLDS).astype(int)]
    return values


def _filled(values: np.ndarray, missing: float) -> np.ndarray:
    return np.where(np.isnan(values), missing, values)


def _promising(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Coordinates in the order of how far apart the means are; all of them if there are few."""
    if first.shape[1] <= COORDINATES:
        return np.arange(first.shape[1])
    _, _, _, weights = _direction("", first, second)
    return np.argsort(-np.abs(weights))[:COORDINATES]


def _direction(name: str, first: np.ndarray, second: np.ndarray) -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """Centre, scale and weights: differences of standardised means, through the covariance where it can be inverted."""
    both = np.concatenate([first, second])
    finite = np.where(np.isfinite(both), both, np.nan)
    known = np.isfinite(both).any(axis=0)
    centre, scale = np.zeros(both.shape[1]), np.ones(both.shape[1])
    centre[known] = np.nanmedian(finite[:, known], axis=0)
    scale[known] = np.maximum(np.nanstd(finite[:, known], axis=0), 1e-300)
    ours, theirs = (_standard(one, centre, scale) for one in (first, second))
    gap = ours.mean(axis=0) - theirs.mean(axis=0)
    residuals = np.concatenate([ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)])
    if gap.size > COORDINATES:
        return name, centre, scale, gap / (residuals.var(axis=0) + 1e-6)
    covariance = residuals.T @ residuals / len(residuals) + 1e-6 * np.eye(gap.size)
    return name, centre, scale, np.linalg.solve(covariance, gap)


def _standard(column: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        values = (column - centre) / scale
    return np.clip(np.where(np.isnan(values), 0.0, values), -1e6, 1e6)


def _few(first: Table, second: Table, name: str) -> bool:
    one, other = first.numbers[name], second.numbers[name]
    return one.shape[1] == 1 and np.unique(np.concatenate([one, other])).size <= FEW


def _labels(first: Table, second: Table, names: tuple[str, ...]) -> Labels:
    """Log-ratios of the smoothed frequencies."""
    ours, theirs = Counter(joined(first, names)), Counter(joined(second, names))
    n, m = sum(ours.values()), sum(theirs.values())

    def ratio(label: str) -> float:
        return float(np.log((ours[label] + 0.5) / (n + 1)) - np.log((theirs[label] + 0.5) / (m + 1)))

    return Labels(names, tuple((label, ratio(label)) for label in sorted({*ours, *theirs})))


def counts(event: Event, first: Table, second: Table) -> tuple[int, int, int, int]:
    """Hits and runs on the data set where the event is more probable, then on the other."""
    tables: tuple[Any, Any] = (first, second) if event.first else (second, first)
    found = [event.happens(table) for table in tables]
    return int(found[0].sum()), found[0].size, int(found[1].sum()), found[1].size
