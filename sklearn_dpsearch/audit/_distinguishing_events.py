"""Outcomes of fits as tables, and events, chosen on half of the runs, that tell them apart.

An event is a threshold on a score of the outcome. A score is one number of the outcome; a
projection onto the difference of means; or the log-ratio of the frequencies of the outcome's label
on the two data sets.
"""

from __future__ import annotations

import contextlib
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from ..privacy._checks import Array
from ._bounds import certified_epsilon

#: Thresholds tried for each score.
THRESHOLDS = 400
#: Most coordinates of one vector that are tried alone.
MOST_COORDINATES = 24
#: At most this many distinct numbers are treated as labels.
MOST_LABELS = 30
#: Labels that the text of an event names, and the first characters of each.
SHOWN_LABELS, SHOWN_CHARACTERS = 8, 80
#: Confidence at which the choosing half compares events: high, because the best of many events is
#: taken.
STRICT_CONFIDENCE = 0.999


class OutcomeScore(ABC):
    """Score of the outcomes of an audit: a real number, or NaN."""

    @abstractmethod
    def of(self, table: Table) -> Array:
        """Score of each outcome in a table, shape (n,)."""

    @abstractmethod
    def described(self, threshold: float, above: bool) -> str:
        """Event of a score above or below a threshold, in words."""


@dataclass(frozen=True)
class Coordinate(OutcomeScore):
    """Score that is one number of the outcome."""

    name: str
    index: int
    alone: bool

    def of(self, table: Table) -> Array:
        return table.numbers[self.name][:, self.index]

    def described(self, threshold: float, above: bool) -> str:
        place = "" if self.alone else f"[{self.index}]"
        return f"{self.name}{place} {'>' if above else '<='} {threshold:.6g}"


@dataclass(frozen=True)
class Projection:
    """Projection of standardised numbers on the difference of their means.

    The numbers are those of one name in both data sets.
    """

    name: str
    centre: Array
    scale: Array
    weights: Array

    def of(self, table: Table) -> Array:
        """Projection of each outcome in a table."""
        values = _standardized(table.numbers[self.name], self.centre, self.scale) @ self.weights
        return np.asarray(values)


@dataclass(frozen=True)
class Direction(OutcomeScore):
    """Score that is a weighted sum of standardised numbers."""

    projections: tuple[Projection, ...]

    def of(self, table: Table) -> Array:
        return np.asarray(sum(projection.of(table) for projection in self.projections))

    def described(self, threshold: float, above: bool) -> str:
        names = " and ".join(projection.name for projection in self.projections)
        return f"{names}, along the difference of means, {'>' if above else '<='} {threshold:.6g}"


@dataclass(frozen=True)
class Labels(OutcomeScore):
    """Score that is the log-ratio of a label's frequencies.

    They are the frequencies on the first and the second data set (several columns are joined).
    """

    names: tuple[str, ...]
    ratios: Mapping[str, float]

    def of(self, table: Table) -> Array:
        return np.array([self.ratios.get(label, 0.0) for label in joined_labels(table, self.names)])

    def described(self, threshold: float, above: bool) -> str:
        chosen = sorted(
            label for label, ratio in self.ratios.items() if (ratio > threshold) == above
        )
        shown = [f"{label:.{SHOWN_CHARACTERS}}" for label in chosen[:SHOWN_LABELS]]
        more = [] if len(chosen) <= SHOWN_LABELS else [f"… {len(chosen) - SHOWN_LABELS} more"]
        return f"{' and '.join(self.names)} in {{{', '.join([*shown, *more])}}}"


def joined_labels(table: Table, names: tuple[str, ...]) -> list[str]:
    """Labels of several columns joined; a number counts by its value."""
    numbers = [name for name in names if name not in table.labels]
    texts = {name: [f"{row[0]:.12g}" for row in table.numbers[name]] for name in numbers}
    columns = {**table.labels, **texts}
    return [" | ".join(map(str, row)) for row in zip(*(columns[name] for name in names))]


@dataclass(frozen=True)
class Event:
    """Event that an audit counts: a score above or below a threshold.

    It is more probable on one of the two data sets.

    Parameters
    ----------
    score : OutcomeScore
        Outcome ↦ number.
    threshold : float
        Threshold of the score.
    above : bool
        Whether the event is a score above the threshold, or one that is not.
    missing : float
        Value of a missing number: −∞ or ∞.
    first : bool
        Whether it is more probable on the first data set.
    """

    score: OutcomeScore
    threshold: float
    above: bool
    missing: float
    first: bool

    def happens(self, table: Table) -> npt.NDArray[np.bool_]:
        """Mask of the outcomes in which the event happened, shape (n,)."""
        values = (_fill_missing(self.score.of(table), self.missing) > self.threshold) == self.above
        return np.asarray(values)

    def __str__(self) -> str:
        note = f" (missing counts as {self.missing})" if np.isinf(self.threshold) else ""
        return self.score.described(self.threshold, self.above) + note


NO_DIFFERENCE = "no outcome differs between runs"

#: The ε that an event proves, then the difference of its frequencies.
Rank = tuple[float, float]
#: Hits and runs on the data set where the event is more probable, then on the other.
Counts = tuple[int, int, int, int]


def choose(first: Table, second: Table, delta: float) -> Event | None:
    """Choose the event with the largest certified ε on some runs, or None if all are equal."""
    ranked_events = (
        _best_cut(score, first, second, delta, missing)
        for score in candidate_scores(first, second)
        for missing in (-np.inf, np.inf)
        if missing < 0 or np.isnan(np.concatenate([score.of(first), score.of(second)])).any()
    )
    return max(ranked_events, key=lambda ranked: ranked[0], default=(None, None))[1]


def candidate_scores(first: Table, second: Table) -> Iterator[OutcomeScore]:
    """Scores by which outcomes may tell data sets apart."""
    columns = {name: (column, second.numbers[name]) for name, column in first.numbers.items()}
    single = [name for name, (column, _) in columns.items() if column.shape[1] == 1]
    few = [name for name in single if np.unique(np.concatenate(columns[name])).size <= MOST_LABELS]
    discrete = [*first.labels, *few]
    for names in [(name,) for name in discrete] + [tuple(discrete)] * (len(discrete) > 1):
        yield _label_ratios(first, second, names)
    for name, pair in columns.items():
        for index in _most_different_coordinates(*pair):
            yield Coordinate(name, int(index), name in single)
    wide = [name for name in columns if name not in single]
    for names in [(name,) for name in wide] + [tuple(first.numbers)] * (len(first.numbers) > 1):
        yield Direction(tuple(_mean_projection(name, *columns[name]) for name in names))


def _best_cut(
    score: OutcomeScore, first: Table, second: Table, delta: float, missing: float
) -> tuple[Rank, Event]:
    """Best threshold of one score, and its event.

    The event may lie on either side, for either order of the data sets.
    """
    pair = [np.sort(_fill_missing(score.of(table), missing)) for table in (first, second)]
    cuts = np.unique(np.concatenate(pair))
    if cuts.size > THRESHOLDS:
        cuts = cuts[np.linspace(0, cuts.size - 1, THRESHOLDS).astype(int)]
    over, other = (values.size - np.searchsorted(values, cuts, side="right") for values in pair)
    n, m = (values.size for values in pair)
    # above the cut?, likelier on the first?
    sides = [(True, True), (False, True), (True, False), (False, False)]
    hits, runs = np.array([over, n - over, other, m - other]), np.array([n, n, m, m])[:, None]
    other_hits, other_runs = hits[[2, 3, 0, 1]], runs[[2, 3, 0, 1]]
    proved = certified_epsilon(hits, runs, other_hits, other_runs, delta, STRICT_CONFIDENCE)
    apart = hits / runs - other_hits / other_runs  # ranks events that prove no ε yet
    ranked_events = []
    for side, (above, is_first) in enumerate(sides):
        best = int(np.lexsort((apart[side], proved[side]))[-1])
        rank = float(proved[side, best]), float(apart[side, best])
        ranked_events.append((rank, Event(score, float(cuts[best]), above, missing, is_first)))
    return max(ranked_events, key=lambda ranked: ranked[0])


def _fill_missing(values: Array, missing: float) -> Array:
    """Scores with a value in place of NaN."""
    return np.where(np.isnan(values), missing, values)


def _most_different_coordinates(first: Array, second: Array) -> npt.NDArray[np.int64]:
    """Coordinates whose means differ most between data sets; all of them if there are few."""
    if first.shape[1] <= MOST_COORDINATES:
        return np.arange(first.shape[1])
    weights = _mean_projection("", first, second).weights
    return np.argsort(-np.abs(weights))[:MOST_COORDINATES]


def _mean_projection(name: str, first: Array, second: Array) -> Projection:
    """Projection on the difference of standardised means.

    Weights are multiplied by the inverse covariance where that is small enough.
    """
    numbers = np.concatenate([first, second])
    finite = np.where(np.isfinite(numbers), numbers, np.nan)
    varied = np.isfinite(numbers).any(axis=0)
    centre, scale = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
    centre[varied] = np.nanmedian(finite[:, varied], axis=0)
    scale[varied] = np.maximum(np.nanstd(finite[:, varied], axis=0), 1e-300)
    columns = [_standardized(column, centre, scale) for column in (first, second)]
    means = [column.mean(axis=0) for column in columns]
    gap = means[0] - means[1]
    residuals = np.concatenate([column - mean for column, mean in zip(columns, means)])
    if gap.size > MOST_COORDINATES:
        return Projection(name, centre, scale, gap / (residuals.var(axis=0) + 1e-6))
    covariance = residuals.T @ residuals / len(residuals) + 1e-6 * np.eye(gap.size)
    return Projection(name, centre, scale, np.linalg.solve(covariance, gap))


def _standardized(column: Array, centre: Array, scale: Array) -> Array:
    """Numbers less the centre, divided by the scale, clipped."""
    with np.errstate(invalid="ignore", over="ignore"):
        values = (column - centre) / scale
    return np.asarray(np.clip(np.where(np.isnan(values), 0.0, values), -1e6, 1e6))


def _label_ratios(first: Table, second: Table, names: tuple[str, ...]) -> Labels:
    """Score of labels by the log-ratio of smoothed frequencies."""
    samples = [Counter(joined_labels(table, names)) for table in (first, second)]

    def ratio(label: str) -> float:
        shares = [(sample[label] + 0.5) / (sum(sample.values()) + 1) for sample in samples]
        return float(np.log(shares[0]) - np.log(shares[1]))

    return Labels(names, {label: ratio(label) for sample in samples for label in sample})


def counts(event: Event, first: Table, second: Table) -> Counts:
    """Hits and runs of an event on the likelier data set and on the other."""
    likelier, other = (first, second) if event.first else (second, first)
    hits, other_hits = event.happens(likelier), event.happens(other)
    return int(hits.sum()), hits.size, int(other_hits.sum()), other_hits.size


# --- outcomes as tables ---------------------------------------------------------------------------


Statistic = Callable[[Any], Any]

#: Outcome of a failing fit.
FAILURE: dict[str, Any] = {"failed": True}
#: Label where an outcome has no entry of that name.
MISSING_LABEL = "(missing)"
#: The most numbers that are read from one attribute.
MOST_NUMBERS = 5_000
#: Methods whose answers for the canary are read.
ANSWERS = ("decision_function", "predict_proba", "predict", "score_samples", "transform")


@dataclass(frozen=True)
class Everything:
    """Default attack of an audit: all that a model shows.

    It reads parameters and scores, every fitted number, and the answers for the canary.

    Parameters
    ----------
    canary : array-like of shape (k, n_features)
    """

    canary: Any

    def __call__(self, model: Any) -> dict[str, Any]:
        outcome = dict(_fitted_attributes("", model, 0))
        for name in ANSWERS:
            # a model that cannot answer is read by its parameters alone
            with contextlib.suppress(Exception):
                answer = getattr(model, name)(self.canary)
                outcome.update(_outcome_entries(f"{name}(canary)", answer))
        return outcome


def _fitted_attributes(prefix: str, model: object, depth: int) -> Iterator[tuple[str, Any]]:
    """Names and values of fitted attributes (numbers, texts, parameters), inner models too."""
    for name, value in sorted(getattr(model, "__dict__", {}).items()):
        if not name.endswith("_") or name.startswith("_") or name == "privacy_spent_":
            continue
        yield from _outcome_entries(f"{prefix}{name}", value)
        if depth < 3 and hasattr(value, "fit"):
            yield from _fitted_attributes(f"{prefix}{name}.", value, depth + 1)
    if depth < 3:
        for name, step in (entry[:2] for entry in getattr(model, "steps", ())):
            yield from _fitted_attributes(f"{prefix}{name}.", step, depth + 1)


def _outcome_entries(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Entries of an outcome for one value: numbers and texts alone."""
    if isinstance(value, (bool, np.bool_, str)):
        yield name, str(value)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if isinstance(key, str) and not isinstance(entry, Mapping):
                yield from _outcome_entries(f"{name}[{key}]", entry)
    elif callable(getattr(value, "parameters", None)):  # a torch module
        with contextlib.suppress(Exception):
            flat = [weights.detach().cpu().numpy().ravel() for weights in value.parameters()]
            yield from _outcome_entries(name, np.concatenate(flat))
    else:
        with contextlib.suppress(Exception):
            array = np.asarray(value.toarray() if issparse(value) else value)
            if array.dtype.kind in "iufb" and 0 < array.size <= MOST_NUMBERS:
                yield name, array.ravel()
            elif array.dtype.kind in "US" and array.size <= 8:
                yield name, str(array.tolist())


# --- many outcomes --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Outcomes of fits as columns, one row for each fit.

    Parameters
    ----------
    n_rows : int
    numbers : mapping of str to ndarray of shape (n_rows, d)
        NaN where an outcome has no entry of that name.
    labels : mapping of str to ndarray of shape (n_rows,)
        Texts.
    """

    n_rows: int
    numbers: Mapping[str, Array]
    labels: Mapping[str, npt.NDArray[Any]]

    def select_rows(self, chosen: npt.NDArray[np.int64]) -> Table:
        """Table of chosen fits."""
        numbers = {name: column[chosen] for name, column in self.numbers.items()}
        labels = {name: column[chosen] for name, column in self.labels.items()}
        return Table(len(chosen), numbers, labels)


def tabulate(outcomes: Sequence[Any], other_outcomes: Sequence[Any]) -> tuple[Table, Table]:
    """Tables of the outcomes on both data sets, with equal columns.

    Columns that never vary are left out.
    """
    all_outcomes = (*outcomes, *other_outcomes)
    named = [row if isinstance(row, Mapping) else {"outcome": row} for row in all_outcomes]
    rows = [{str(name): entry for name, entry in row.items()} for row in named]
    numbers: dict[str, Array] = {}
    labels: dict[str, npt.NDArray[Any]] = {}
    for name in sorted({name for row in rows for name in row}):
        values = [row.get(name) for row in rows]
        are_numbers = all(map(_is_number, values))
        if are_numbers:
            column = _stacked_with_nan(values)
            equal = (column == column[0]) | (np.isnan(column) & np.isnan(column[0]))
            numbers |= {} if np.all(equal) else {name: column}
        if not are_numbers or not all(map(_is_double, values)):
            label = f"{name}, exactly" if are_numbers else name
            texts = np.array([_label_of(value) for value in values], dtype=object)
            labels |= {label: texts} if np.any(texts != texts[0]) else {}
    table = Table(len(rows), numbers, labels)
    first, second = np.arange(len(outcomes)), np.arange(len(outcomes), len(rows))
    return table.select_rows(first), table.select_rows(second)


def has_failed(outcome: object) -> bool:
    """Return whether this is the outcome of a failing fit."""
    return isinstance(outcome, Mapping) and outcome.get("failed") is True


def _is_number(value: Any) -> bool:
    """Return whether an entry is a number or an array of numbers (or missing)."""
    try:
        if value is None or isinstance(value, (np.ndarray, list)):
            return value is None or np.asarray(value).dtype.kind in "iufb"
        is_real = isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
        return is_real and isinstance(float(value), float)
    except (TypeError, ValueError, OverflowError):  # lists of several lengths, numbers above all
        return False


def _is_double(value: Any) -> bool:
    """Return whether doubles hold a number, or all numbers of an array, exactly."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "bf" and value.dtype.itemsize <= 8:
        return True
    entries = np.asarray(value, dtype=object).ravel()
    return all(entry is None or entry != entry or float(entry) == entry for entry in entries)


def _label_of(value: object) -> str:
    """Text of a value, which tells it from others."""
    with np.printoptions(threshold=2**31, floatmode="unique"):
        try:
            return MISSING_LABEL if value is None else repr(value)
        except ValueError:  # a whole number of too many digits
            return pickle.dumps(value).hex()


def _stacked_with_nan(values: Sequence[Any]) -> Array:
    """Rows of numbers stacked, shorter ones filled with NaN."""
    present = ([] if value is None else value for value in values)
    flat = [np.asarray(value, dtype=float).ravel() for value in present]
    filled = np.full((len(flat), max(numbers.size for numbers in flat)), np.nan)
    for row, numbers in zip(filled, flat):
        row[: numbers.size] = numbers
    return filled
