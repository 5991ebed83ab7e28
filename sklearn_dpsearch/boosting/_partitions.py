"""Boosting over partitions that never move: workers of Dask keep records, and send sums of cells.

A worker reads a partition through the door, once, and keeps it under the name of the fit. In a
round it is told the step and the cells, and answers with whole numbers: sums over cells, exact.
They add up to those of one process in any order, so that weights do not depend on how the records
are cut. Noise is added by the caller, who is trusted, as workers are. All that a worker is told
follows from noisy sums: whatever was lost is read again, and told again.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._process import at_most_threads, in_fixed_words
from .._process.containment import STOPPED_TRAINING, TrainingStoppedError
from ..data._files import is_parquet, read_file
from ..data._partitions import (
    check_partition,
    column_named,
    is_file,
    is_partitioned,
    parts_of,
    parts_of_targets,
)
from ..data._persons import texts_of_persons
from ..errors import TrainingError
from ._losses import Array, Loss
from ._random_cells import Partition
from ._rounds import TrainingRecords

#: Persons, under random numbers.
Pseudonyms: TypeAlias = NDArray[np.uint64]
NOBODY: Pseudonyms = np.empty(0, np.uint64)
#: Name of a method of ``TrainingRecords``, and its arguments.
Call = tuple[str, tuple[Any, ...]]
#: Times that a partition is read again before the fit is given up.
MOST_LOSSES = 5
#: Types of errors that name columns, types and files alone; subclasses of other libraries may quote
#: a record.
HARMLESS_ERRORS = (ValueError, TypeError, KeyError, TrainingError)
TRUSTED_WORKERS = (
    "{}: the workers that hold partitions, their scheduler and the connections are trusted as the "
    "caller is: exact sums of cells go to the caller, who adds the noise."
)
#: Assumptions about CSV files, by ``newlines_in_values``.
LINES = {
    False: "{}: in the files each record is one line: a quoted end of line makes several of one.",
    True: "{}: in the files every quote is closed: with newlines_in_values it swallows records.",
}


def lazy_on_partitions(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of a fitted model answer lazily for Dask's DataFrames."""

    @functools.wraps(method)
    def answer(self: Any, X: Any) -> Any:
        if not is_partitioned(X):
            return method(self, X)
        if not hasattr(X, "columns"):
            needed = "predictions need a DataFrame of Dask."
            raise TypeError(f"Found a {type(X).__name__} of partitions; {needed}")
        meta = _predict_frame(X._meta, self, method.__name__)
        return X.map_partitions(_predict_frame, self, method.__name__, meta=meta)

    return answer


def _predict_frame(frame: Any, model: Any, method: str) -> Any:
    """Predictions for a frame of pandas, in one thread, as Dask has others for other frames."""
    pandas = sys.modules["pandas"]
    with at_most_threads(1):
        predictions = getattr(model, method)(frame)
    if predictions.ndim == 1:
        return pandas.Series(predictions, frame.index, name="predictions")
    return pandas.DataFrame(predictions, frame.index, columns=list(model.classes_))


# --- on workers -----------------------------------------------------------------------------------


@dataclass
class WorkerPartition:
    """Partition that a worker keeps, with its number of calls and last answer.

    ``records`` is None for an empty one.
    """

    records: TrainingRecords | None
    done: int = 0
    answer: Any = 0

    def catch_up(self, first: int, calls: Sequence[Call]) -> Any:
        """Make the calls that a kept partition has not made yet.

        ``first`` is the number of the first of the calls.
        """
        for name, arguments in calls[self.done - first :]:
            if self.records is not None:
                self.answer = getattr(self.records, name)(*arguments)
            self.done += 1
        return self.answer


#: Partitions that this process keeps, by fit and number.
PARTITIONS: dict[tuple[str, int], WorkerPartition] = {}


@dataclass(frozen=True)
class PartitionReader:
    """Public facts by which a worker reads a partition.

    The key is for the names of persons.

    Parameters
    ----------
    fit : str
        Name of the fit.
    model : GradientBoosting
        Without a seed of noise.
    target, groups : str or None
        Columns of the labels, where they are in the table, and of persons.
    key : bytes
    newlines_in_values : bool
        Whether quoted values of CSV files may hold ends of lines.
    """

    fit: str
    model: Any
    target: str | None
    groups: str | None
    key: bytes = field(repr=False)
    newlines_in_values: bool = False

    def records(
        self, part: Any, y: Any = None, place: int = 0
    ) -> tuple[TrainingRecords | None, Pseudonyms]:
        """Records of a partition, None if empty, and its persons."""
        wanted = [name for name in (self.target, self.groups) if name is not None]
        if is_file(part):
            columns = [*self.model._facts.features, *wanted]
            read = functools.partial(read_file, part, columns, self.newlines_in_values)
            part = in_fixed_words(type(self.model).__name__, read)
        frame = check_partition(part, wanted)
        if len(frame) == 0:
            return None, NOBODY
        targets = y if self.target is None else column_named(frame, self.target)
        if self.groups is None:
            return self.model._records(frame, targets), NOBODY
        persons = self._pseudonyms(column_named(frame, self.groups))
        records = self.model._records(frame, targets, persons)
        records.persons, records.place = np.unique(persons), place
        return records, records.persons

    def _pseudonyms(self, persons: Any) -> Pseudonyms:
        """Keyed digest of the name of each record's person, the same in all partitions.

        Each record without a name is a person of its own.
        """

        @functools.cache
        def digest(text: str) -> bytes:
            written = text.encode("utf-8", "surrogatepass")
            return hashlib.blake2b(written, digest_size=8, key=self.key).digest()

        texts = texts_of_persons(persons)
        of_each = (secrets.token_bytes(8) if text is None else digest(text) for text in texts)
        return np.frombuffer(b"".join(of_each), np.uint64)


class PartitionFacts(NamedTuple):
    """Worker, number of units, and persons' pseudonyms of a partition read."""

    worker: str
    n_units: int
    persons: Pseudonyms


def _read_partition(
    reading: PartitionReader, calls: Sequence[Call], number: int, part: Any, y: Any = None
) -> PartitionFacts | Exception:
    """Read a partition on a worker, and make the calls of earlier rounds.

    Errors are answers, as Dask logs those that are raised.

    Errors of the door name columns and types; those of other code have a fixed text.
    """
    try:
        records, persons = reading.records(part, y, number)
        PARTITIONS[reading.fit, number] = partition = WorkerPartition(records)
        partition.catch_up(0, calls)
        return PartitionFacts(_worker_address(), 0 if records is None else records.n_units, persons)
    except Exception as error:
        if type(error) in HARMLESS_ERRORS:
            return type(error)(*error.args)
        return TrainingStoppedError(STOPPED_TRAINING.format(type(reading.model).__name__))


def _sum_of_answers(fit: str, numbers: Sequence[int], first: int, calls: Sequence[Call]) -> Any:
    """Sum of the answers of a worker's partitions to the last call.

    If it does not keep them all, it answers with its name.
    """
    numbers_of_calls = range(first, first + len(calls) + 1)
    partitions = [PARTITIONS.get((fit, number)) for number in numbers]
    held = [part for part in partitions if part is not None and part.done in numbers_of_calls]
    if len(held) < len(numbers):
        return _worker_address()
    try:
        return functools.reduce(np.add, (partition.catch_up(first, calls) for partition in held))
    except Exception:
        return TrainingStoppedError(STOPPED_TRAINING.format("a model over partitions"))


def _forget_fit(fit: str) -> None:
    for place in [place for place in PARTITIONS if place[0] == fit]:
        del PARTITIONS[place]


def _worker_address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


# --- beside the caller ----------------------------------------------------------------------------


class PartitionedRecords:
    """Records in training that workers keep, with the methods of ``TrainingRecords``.

    Parameters
    ----------
    client : distributed.Client
    reading : Reading
    parts : sequence of tuple
        Delayed frames or files, with their targets where those are apart.
    loss : Loss
    """

    def __init__(
        self, client: Any, reading: PartitionReader, parts: Sequence[tuple[Any, ...]], loss: Loss
    ) -> None:
        self.loss, self.of_persons = loss, reading.groups is not None
        name = type(reading.model).__name__
        has_csv = any(is_file(part) and not is_parquet(part) for part, *_ in parts)
        lines = [LINES[reading.newlines_in_values].format(name)] if has_csv else []
        self.assumptions: tuple[str, ...] = (TRUSTED_WORKERS.format(name), *lines)
        self._client, self._reading, self._parts = client, reading, parts
        self._calls: list[Call] = []
        self._made, self._workers, self._threads = 0, dict[int, str](), dict[str, int]()

    def __enter__(self) -> Self:
        try:
            work = functools.partial(self._read_partitions, range(len(self._parts)))
            answers = in_fixed_words(type(self._reading.model).__name__, work)
            for answer in answers:
                if isinstance(answer, Exception):
                    raise answer
            persons = np.concatenate([answer.persons for answer in answers])
            places = np.repeat(np.arange(len(answers)), [len(each.persons) for each in answers])
            persons, first, number = np.unique(persons, return_index=True, return_counts=True)
            several = persons[number > 1], places[first[number > 1]]
            self._calls = [("leave_out", several)] if self.of_persons else []
            self.n_units = len(persons) or sum(answer.n_units for answer in answers)
            if self.n_units == 0 and self._reading.model.neighboring != "add_remove":
                raise ValueError(f"Found no record in {len(answers)} partitions.")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._client.run(_forget_fit, self._reading.fit, on_error="ignore")

    def fingerprint(self) -> NDArray[np.uint64]:
        return self._ask_workers("fingerprint")

    def sums(self, step: Array, partition: Partition) -> NDArray[np.int64]:
        return self._ask_workers("sums", step, partition)

    def sums_on_line(self, constant: Array, way: float | None = None) -> NDArray[np.int64]:
        return self._ask_workers("sums_on_line", constant, way)

    def advance(self, step: Array) -> None:
        self._calls.append(("advance", (step,)))

    def start_at(self, constant: Array, way: float) -> None:
        self._calls.append(("start_at", (constant, way)))

    def move_on_line(self, constant: Array, way: float) -> None:
        self._calls.append(("move_on_line", (constant, way)))

    def _ask_workers(self, name: str, *arguments: Any) -> NDArray[Any]:
        """Sum of the answers of all partitions to a call.

        Calls without an answer are sent with the next one that has one.
        """
        self._calls.append((name, arguments))
        total: Any = 0
        missing = list(self._workers)
        for _ in range(MOST_LOSSES):
            shares = self._shares(missing)
            missing, lost = [], list[int]()
            for (worker, numbers), answer in zip(shares, self._collect_answers(shares)):
                if isinstance(answer, Exception):
                    raise answer
                if not isinstance(answer, str):
                    total = total + answer
                    continue
                missing += numbers
                if answer == worker or worker not in self._client.nthreads():
                    lost += numbers
            if not missing:
                self._made = len(self._calls)
                return np.asarray(total)
            self._read_partitions(lost)
        raise TrainingStoppedError(
            f"Found partitions that were lost {MOST_LOSSES} times in a round. Give workers more "
            "memory, or cut the table into more partitions."
        )

    def _collect_answers(self, shares: Sequence[tuple[str, list[int]]]) -> list[Any]:
        """Answers of workers to the calls that were not made yet.

        Each is computed where the partitions are, if that worker is there.
        """
        calls, fit = self._calls[self._made :], self._reading.fit
        submit = functools.partial(self._client.submit, allow_other_workers=True, pure=False)
        futures = [
            submit(_sum_of_answers, fit, numbers, self._made, calls, workers=[worker])
            for worker, numbers in shares
        ]
        return list(self._client.gather(futures))

    def _shares(self, numbers: Sequence[int]) -> list[tuple[str, list[int]]]:
        """Partitions of each thread of each worker."""
        by_worker: dict[str, list[int]] = {}
        for number in numbers:
            by_worker.setdefault(self._workers[number], []).append(number)
        shares = []
        for worker, partitions in by_worker.items():
            threads = self._threads.get(worker, 1)
            parts = (partitions[first::threads] for first in range(threads))
            shares += [(worker, part) for part in parts if part]
        return shares

    def _read_partitions(self, numbers: Sequence[int]) -> list[Any]:
        """Let workers read partitions, and make the calls that were made before."""
        from dask import delayed

        read = functools.partial(_read_partition, self._reading, self._calls[: self._made])
        tasks = [delayed(read, pure=False)(number, *self._parts[number]) for number in numbers]
        answers: list[Any] = self._client.gather(self._client.compute(tasks))
        self._threads = self._client.nthreads()
        pairs = zip(numbers, answers)
        done = {number: answer for number, answer in pairs if isinstance(answer, PartitionFacts)}
        self._workers |= {number: facts.worker for number, facts in done.items()}
        return answers


def partitioned_records(
    model: Any, X: Any, y: Any, groups: Any = None, newlines_in_values: bool = False
) -> PartitionedRecords:
    """Records in partitions, for boosting on workers of Dask.

    They are read as they are entered, and forgotten in the end.

    Raises
    ------
    TypeError, ValueError
        For other containers or targets than partitions have, and without a client of Dask.
    """
    from distributed import get_client

    named, column_of_persons = (name if isinstance(name, str) else None for name in (y, groups))
    parts: list[tuple[Any, ...]] = [(part,) for part in parts_of(X)]
    if (targets := parts_of_targets(y)) is not None:
        if len(targets) != len(parts):
            numbers = f"{len(parts)} partitions of X and {len(targets)} of y"
            raise ValueError(f"Found {numbers}; y as a column of X is needed.")
        parts = [(*part, target) for part, target in zip(parts, targets)]
    elif named is None:
        needed = "the name of a column of X is needed."
        raise TypeError(f"Found y of type {type(y).__name__} for partitions; {needed}")
    else:
        model.check_target_of_partitions(named)
    if groups is not None and column_of_persons is None:
        raise TypeError(
            f"Found groups of type {type(groups).__name__} for partitions; the name of a column of "
            "X is needed, whose persons have all of their records in one partition: X = "
            "X.shuffle(on=name)."
        )
    loss = model._loss_and_targets(np.empty(0))[0]
    model = copy.copy(model)
    model.noise_seed = None
    fit, key = secrets.token_hex(16), secrets.token_bytes(16)
    reading = PartitionReader(fit, model, named, column_of_persons, key, newlines_in_values)
    return PartitionedRecords(get_client(), reading, parts, loss)
