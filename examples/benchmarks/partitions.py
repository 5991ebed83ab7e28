"""Boosting over partitions that never move: time, bytes and memory on a local cluster of two
processes.

    python examples/benchmarks/partitions.py            # 200,000 records: a smoke test
    # 10,000,000 records of 10 columns: some minutes
    python examples/benchmarks/partitions.py --full
    # a subset search; with --full of as many records
    python examples/benchmarks/partitions.py --search

The records are made up by the workers, in partitions of 250,000. Bytes of a round are what is
pickled: calls to each worker, and sums from each. Memory is the resident memory of a process, with
the libraries in it, before the fit and in it. Processor time is that of the workers, and that of
the caller with the scheduler; seconds grow with whatever else a machine does. Many records on paper
are computed, not measured: the processor time of a worker for each record and round, and that of
the caller for each worker.
"""

from __future__ import annotations

import argparse
import pickle
import time
from typing import Any

import numpy as np
import pandas as pd
import psutil
from dask import dataframe, delayed
from distributed import Client, LocalCluster

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting._partitions import PartitionedRecords

COLUMNS = 10
SCHEMA = {**{f"x{number}": (0, 1) for number in range(COLUMNS)}, "y": ["no", "yes"]}
WORKERS = 2


def made_up(n: int, seed: int) -> pd.DataFrame:
    """Records whose label depends on three columns."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(size=(n, COLUMNS)), columns=list(SCHEMA)[:-1])
    chance = 1 / (1 + np.exp(-4 * (frame["x0"] + frame["x1"] * frame["x2"] - 0.75)))
    return frame.assign(y=np.where(rng.uniform(size=n) < chance, "yes", "no"))


def model(rounds: int) -> DPGradientBoostingClassifier:
    return DPGradientBoostingClassifier(
        SCHEMA,
        target="y",
        target_epsilon=1.0,
        target_delta=1e-9,
        max_iter=rounds,
        random_state=0,
        noise_seed=0,
    )


def processor() -> float:
    """Processor time of this process, in seconds."""
    return sum(psutil.Process().cpu_times()[:2])


def resident() -> float:
    """Resident memory of this process, in MB."""
    return psutil.Process().memory_info().rss / 2**20


class Counted:
    """Bytes of calls and of answers, seconds, and processor times, of the rounds of a fit."""

    def __init__(self, client: Client, sizes: list[int], rounds: int) -> None:
        self.sent: list[int] = []
        self.answered: list[int] = []
        seconds: list[float] = []
        used: list[tuple[float, float]] = []
        true = PartitionedRecords._collect_answers

        def answers(records: PartitionedRecords, shares: Any) -> Any:
            if not seconds:
                self.memory = client.run(resident)
                used.append((sum(client.run(processor).values()), processor()))
            self.sent.append(len(pickle.dumps(records._calls[records._made :])))
            began = time.perf_counter()
            sums = true(records, shares)
            seconds.append(time.perf_counter() - began)
            self.answered.append(max(len(pickle.dumps(answer)) for answer in sums))
            return sums

        began = time.perf_counter()
        PartitionedRecords._collect_answers = answers  # type: ignore[method-assign]
        try:
            self.model = model(rounds).fit(
                [delayed(made_up)(n, seed) for seed, n in enumerate(sizes)], "y"
            )
        finally:
            PartitionedRecords._collect_answers = true  # type: ignore[method-assign]
        self.whole = time.perf_counter() - began
        used.append((sum(client.run(processor).values()), processor()))
        self.a_round = float(np.median(seconds[2:]))
        self.workers, self.caller = (
            (after - before) / len(seconds) for before, after in zip(*used)
        )


def main(n: int, part: int, rounds: int) -> None:
    sizes = [part] * (n // part)
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        Counted(client, [1000] * WORKERS, 5)  # libraries are imported
        before = client.run(resident)
        few = Counted(client, [1000] * WORKERS, rounds)
        many = Counted(client, sizes, rounds)
    a_record = (many.workers - few.workers) / n
    print(
        f"{n:,} records of {COLUMNS} columns, {len(sizes)} partitions, {WORKERS} workers, {rounds} "
        f"rounds"
    )
    print(
        f"whole fit {many.whole:.0f} s; a round {many.a_round:.3f} s, of few records "
        f"{few.a_round:.3f} s"
    )
    print(f"processor time: {1e9 * a_record:.1f} ns of a worker for each record and round;")
    print(
        f"    a round of few records: {1e3 * few.workers:.1f} ms of workers, "
        f"{1e3 * few.caller:.1f} ms of the caller"
    )
    print(
        f"bytes of a round: to each worker {np.mean(many.sent):,.0f}, from it "
        f"{np.mean(many.answered):,.0f}"
    )
    for worker, memory in many.memory.items():
        print(f"memory of a worker: {before[worker]:.0f} MB before, {memory:.0f} MB in the fit")
    print(f"memory of the caller: {resident():.0f} MB")
    large, workers = 10**9, 100
    computed = a_record * large / workers + few.caller * workers / WORKERS
    minutes = 1200 * computed / 60
    print(
        f"on paper, {large:,} records, {workers} workers: {computed:.2f} s a round, 1,200 rounds "
        f"{minutes:.0f} min"
    )
    table = pd.concat([made_up(size, seed) for seed, size in enumerate(sizes)], ignore_index=True)
    alone = model(rounds).fit(table, table["y"])
    equal = all(np.array_equal(*pair) for pair in zip(alone.weights_, many.model.weights_))
    print(f"one process with all records: weights the same bit for bit: {equal}")


def search(n: int, part: int, rounds: int) -> None:
    """Time and memory of a subset search, about 4 % of whose records leave their workers."""
    sizes = [part] * (n // part)
    table = dataframe.from_map(made_up, sizes, range(len(sizes)), meta=made_up(1, 0))
    boosting = DPGradientBoostingClassifier(SCHEMA, target="y", max_iter=rounds)
    shared = {"epsilon": 1.0, "delta": 1e-9, "subset_fraction": 0.02, "cv": 0.02}
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        began = time.perf_counter()
        fitted = DPSubsetSearchCV(
            boosting, {"prior_factor": [0.5, 1.0, 2.0]}, n_iter=5, **shared
        ).fit(table, "y")
        seconds, workers = time.perf_counter() - began, client.run(resident)
    test = made_up(100_000, len(sizes))
    print(
        f"search over {n:,} records, {len(sizes)} partitions, {WORKERS} workers, {rounds} rounds: "
        f"{seconds:.0f} s"
    )
    print(f"accuracy on others {fitted.score(test, test['y']):.4f}; {fitted.best_params_}")
    print(
        f"memory: workers {[f'{peak:.0f} MB' for peak in workers.values()]}, this process "
        f"{resident():.0f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--search", action="store_true")
    arguments = parser.parse_args()
    run = search if arguments.search else main
    if arguments.full:
        run(10**7, 250_000, arguments.rounds or 60)
    else:
        run(200_000, 50_000, arguments.rounds or 10)
