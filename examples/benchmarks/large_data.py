"""Time and memory of searches over an array in a file, as records and candidates grow, beside
RandomizedSearchCV.

    python examples/benchmarks/large_data.py            # 100,000 records, a random search: a minute
    # 1,000,000 × 20 and 10,000,000 × 10: searches ÷ one fit
    python examples/benchmarks/large_data.py --of-one-fit
    # up to 10,000,000 records (2 GB) and 1,000 candidates: an hour
    python examples/benchmarks/large_data.py --full
    # what it costs to read batches from the file, too
    python examples/benchmarks/large_data.py --speed

Records are 50 features in single precision in a ``numpy.memmap``; the model is
``DPLogisticRegression``, one epoch. Searches ÷ one fit are measured over
``DPGradientBoostingClassifier`` too. A search without any work of its own would take one fit for
each training on all records, and a share of one for a training on a share: "÷ fits" divides by the
number of trainings, "÷ records" by what all of them read, in multiples of all records. Each number
is of a process of its own on one thread, in which code, libraries and the plan are there already.
Memory is what this process and those that it starts hold at most together ("Pss_Anon"), over what
they held before; pages of the file, which the system takes away again where memory is short, do not
count (Linux only). K is fixed, so that the number of trainings is known. RandomizedSearchCV has one
split, and no refit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import RandomizedSearchCV, ShuffleSplit

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier
from sklearn_dpsearch.nets import _records as training_records
from sklearn_dpsearch.privacy import Fixed

FEATURES, BUDGET = 50, {"epsilon": 1.0, "delta": 1e-8}
#: Records and columns of searches ÷ one fit.
SMALL, LARGE = ((20_000, 20),), ((1_000_000, 20), (10_000_000, 10))
#: So that rows are alike from run to run; a seed voids the guarantee.
SEED = 0
SPACE = {"learning_rate_factor": [0.3, 0.5, 0.8, 1.2, 2.0]}
NET = DPLogisticRegression(classes=[0, 1], bounds_X=(-1, 1), max_epochs=1, sample_rate=0.01)
ONE = DPLogisticRegression(
    classes=[0, 1],
    bounds_X=(-1, 1),
    max_epochs=1,
    sample_rate=0.01,
    target_epsilon=1.0,
    target_delta=1e-8,
)
FACTORS = {"prior_factor": [1.3, 1.8, 2.5]}
#: What is measured, given K; of boosting also given the number of columns.
WAYS: dict[str, Callable[[int], Any]] = {
    "one training": lambda k: ONE,
    "random": lambda k: DPRandomSearchCV(
        NET, SPACE, n_iter=Fixed(k), cv=0.2, **BUDGET, random_state=SEED
    ),
    "subset": lambda k: DPSubsetSearchCV(
        NET, SPACE, n_iter=Fixed(k), subset_fraction=0.1, **BUDGET, random_state=SEED
    ),
    "grid": lambda k: DPGridSearchCV(NET, SPACE, n_parts=20, **BUDGET, random_state=SEED),
    "RandomizedSearchCV": lambda k: RandomizedSearchCV(
        ONE, {"learning_rate_factor": np.linspace(0.3, 2.0, k)}, n_iter=k, refit=False,
        error_score="raise",
        cv=ShuffleSplit(1, test_size=0.1, random_state=0),
    ),
}  # fmt: skip


def boosting(columns: int, **parameters: float) -> DPGradientBoostingClassifier:
    """Boosting over columns that are ranges."""
    return DPGradientBoostingClassifier(
        {f"x{place}": (-1.0, 1.0) for place in range(columns)}, classes=[0, 1], **parameters
    )


OF_BOOSTING: dict[str, Callable[[int, int], Any]] = {
    "boosting, one training": lambda k, columns: boosting(
        columns, target_epsilon=1.0, target_delta=1e-8
    ),
    "boosting, random": lambda k, columns: DPRandomSearchCV(
        boosting(columns), FACTORS, n_iter=Fixed(k), cv=0.2, **BUDGET, random_state=SEED
    ),
    "boosting, subset": lambda k, columns: DPSubsetSearchCV(
        boosting(columns),
        FACTORS,
        n_iter=Fixed(k),
        subset_fraction=0.1,
        **BUDGET,
        random_state=SEED,
    ),
}
#: Trainings of K candidates, and what all of them read, in multiples of all records.
TRAININGS: dict[str, Callable[[int], tuple[float, float]]] = {
    "one training": lambda k: (1, 1.0),
    "random": lambda k: (k, 0.8 * k),
    "subset": lambda k: (k + 1, 0.1 * k + 0.9),
    "grid": lambda k: (
        20 * len(SPACE["learning_rate_factor"]) + 1,
        len(SPACE["learning_rate_factor"]) + 1.0,
    ),
    "RandomizedSearchCV": lambda k: (k, 0.9 * k),
}
#: Searches that are compared with one fit: the model, its one training, and its searches.
MODELS = {
    "linear net": ("one training", ("random", "subset")),
    "boosting": ("boosting, one training", ("boosting, random", "boosting, subset")),
}

FEW = ["one training", "random", "RandomizedSearchCV"]


def write(folder: Path, number: int, columns: int) -> None:
    """Records in a file, a block at a time."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(
        folder / f"{number}x{columns}.npy", "w+", np.float32, (number, columns)
    )
    for start in range(0, number, 100_000):
        X[start : start + 100_000] = rng.uniform(-1, 1, (min(100_000, number - start), columns))
    np.save(folder / f"{number}x{columns}.y.npy", (X[:, 0] + X[:, 1] > 0).astype(np.int8))


def records(folder: Path, number: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Features in their file, and labels in memory."""
    path = folder / f"{number}x{columns}.npy"
    return np.load(path, mmap_mode="r"), np.load(path.with_suffix(".y.npy")).astype(np.int64)


class Peak(threading.Thread):
    """What this process and those that it starts hold at most, in MB, looked at every few
    milliseconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first, self.most, self.over = self.now(), 0.0, threading.Event()

    @staticmethod
    def now() -> float:
        parents, held = dict[int, int](), 0
        for path in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError, IndexError):  # it has just ended
                parents[int(path.parent.name)] = int(path.read_text().split("PPid:")[1].split()[0])
        family = {os.getpid()}
        for _ in range(4):  # server, holder, work and runs
            family |= {process for process, parent in parents.items() if parent in family}
        for process in family:
            with contextlib.suppress(OSError, IndexError):
                held += int(
                    Path(f"/proc/{process}/smaps_rollup")
                    .read_text()
                    .split("Pss_Anon:")[1]
                    .split()[0]
                )
        return held / 2**10

    def run(self) -> None:
        while not self.over.wait(0.1):
            self.most = max(self.most, self.now())

    def end(self) -> float:
        self.over.set()
        self.join()
        return max(self.most, self.now()) - self.first


class Fit(NamedTuple):
    """Outcome of a measurement: trainings, what they read in multiples of all records, seconds, and
    MB."""

    trainings: int
    trained: float
    seconds: float
    mb: float


def measure(folder: Path, way: str, number: int, columns: int, k: int) -> None:
    """Measure one fit in this process alone, and print it as JSON."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")

    def model_of(k: int) -> Any:
        return OF_BOOSTING[way](k, columns) if way in OF_BOOSTING else WAYS[way](k)

    model_of(5).fit(*records(folder, 1000, columns))
    search = model_of(k)
    if hasattr(search, "privacy_cost"):
        search.privacy_cost(number)
    X, y = records(folder, number, columns)
    peak, begin = Peak(), time.perf_counter()
    peak.start()
    search.fit(X, y)
    seconds = time.perf_counter() - begin
    print(json.dumps([*TRAININGS[way.removeprefix("boosting, ")](k), seconds, peak.end()]))


def measured(folder: Path, way: str, number: int, columns: int, k: int) -> Fit:
    """Measure one fit in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--measure",
        str(folder),
        way,
        str(number),
        str(columns),
        str(k),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return Fit(*json.loads(run.stdout.splitlines()[-1]))


def table(folder: Path, ways: Sequence[str], sizes: Sequence[tuple[int, int]]) -> None:
    """A row for each number of records and candidates: seconds for a training, how many there were,
    and MB."""
    print("| records | K | " + " | ".join(f"{way}: s × trainings | MB" for way in ways) + " |")
    print("|---" * (2 + 2 * len(ways)) + "|")
    for number, k in sizes:
        measurements = [measured(folder, way, number, FEATURES, k) for way in ways]
        cells = " | ".join(
            f"{fit.seconds / fit.trainings:.3f} × {fit.trainings} | {fit.mb:.0f}"
            for fit in measurements
        )
        print(f"| {number:,} | {k} | {cells} |", flush=True)


def of_one_fit(
    folder: Path, shapes: Sequence[tuple[int, int]], models: Sequence[str], k: int = 5
) -> None:
    """A row for each search: its time and memory, and those of one fit of its model on all
    records."""
    print(
        "| records | model | search | trainings | s | one fit | ÷ fits | ÷ records | MB | one fit "
        "| ÷ |"
    )
    print("|---" * 11 + "|")
    for number, columns in shapes:
        for model in models:
            alone, searches = MODELS[model]
            baseline = measured(folder, alone, number, columns, k)
            for way in searches:
                fit = measured(folder, way, number, columns, k)
                ratio, share = fit.seconds / baseline.seconds, fit.trained
                cells = (
                    f"{number:,} × {columns}", model, way.removeprefix("boosting, "), fit.trainings,
                    f"{fit.seconds:.1f}", f"{baseline.seconds:.1f}", f"{ratio / fit.trainings:.2f}",
                    f"{ratio / share:.2f}", f"{fit.mb:.0f}", f"{baseline.mb:.0f}",
                    f"{fit.mb / baseline.mb:.2f}",
                )  # fmt: skip
                print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def speed(folder: Path, number: int) -> None:
    """Processor time of a training whose records stay in their file, in that of one that reads them
    once."""
    X, y = records(folder, number, FEATURES)
    wide = DPMLPClassifier(
        hidden_layer_sizes=(64,), classes=[0, 1], bounds_X=(-1, 1), max_epochs=1, sample_rate=0.002
    )
    thin = DPLogisticRegression(classes=[0, 1], bounds_X=(-1, 1), max_epochs=3, sample_rate=0.002)
    torch.set_num_threads(1)
    for net in (thin, wide):
        seconds: dict[str, list[float]] = {"once": [], "batches": []}
        for _ in range(3):
            for way, large in (("once", 2**60), ("batches", 0)):
                training_records.MAPPED_BYTES["cpu"], begin = large, time.process_time()
                clone(net).set_params(noise_multiplier=1.0).fit(X, y)
                seconds[way].append(time.process_time() - begin)
        print(
            f"{type(net).__name__}, {number:,} records: "
            f"{min(seconds['batches']) / min(seconds['once']):.2f} times"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument(
        "--of-one-fit", action="store_true", help="searches ÷ one fit, at full size, and no more"
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument(
        "--measure",
        nargs=5,
        metavar=("FOLDER", "WAY", "RECORDS", "COLUMNS", "K"),
        help="one number",
    )
    arguments = parser.parse_args()
    if arguments.measure:
        folder, way, *numbers = arguments.measure
        return measure(Path(folder), way, *map(int, numbers))
    if not Path("/proc/self/status").exists():
        return print("Memory is read from /proc/self/status, which this system does not have.")
    sizes = (10_000, 100_000, 1_000_000, 10_000_000) if arguments.full else (20_000,)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shapes = LARGE if arguments.of_one_fit else SMALL
        for number, columns in {(1000, columns) for _, columns in shapes} | set(shapes):
            write(folder, number, columns)
        if arguments.of_one_fit:
            return of_one_fit(folder, shapes, list(MODELS))
        for number in (1000, *sizes):
            write(folder, number, FEATURES)
        if arguments.speed:
            return speed(folder, sizes[-1])
        table(folder, list(WAYS) if arguments.full else FEW, [(number, 5) for number in sizes])
        if arguments.full:
            print()
            table(
                folder,
                ["random", "subset", "RandomizedSearchCV"],
                [(10_000, k) for k in (10, 100, 1000)],
            )
        print()
        of_one_fit(folder, shapes, list(MODELS) if arguments.full else ["boosting"])
    return None


if __name__ == "__main__":
    main()
