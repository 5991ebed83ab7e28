"""Boosting over partitions that never move: time, bytes and memory on a local cluster of two processes.

    python examples/benchmarks/partitions.py            # 200,000 records: a smoke test
    python examples/benchmarks/partitions.py --full     # 10,000,000 records of 10 columns: some minutes

The records are made up by the workers, in partitions of 250,000. "Here" is one process with all records in memory.
Bytes of a round are what is pickled: calls to each worker, and sums from each. Memory is the resident memory of a
process, with the libraries in it, before and after the fit. The last line is computed, not measured: many workers at
the measured cost of a record and a round, and a round of few records that takes longer in proportion to their number.
"""

from __future__ import annotations

import argparse
import pickle
import time
from typing import Any

import numpy as np
import pandas as pd
import psutil
from dask import delayed
from distributed import Client, LocalCluster

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting.partitions import PartitionedRecords

COLUMNS = 10
SCHEMA = {**{f"x{number}": (0, 1) for number in range(COLUMNS)}, "y": ["no", "yes"]}
WORKERS = 2


def made_up(n: int, seed: int) -> pd.DataFrame:
    """Records whose label depends on three columns."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(rng.uniform(size=(n, COLUMNS)), columns=list(SCHEMA)[:-1])
    chance = 1 / (1 + np.exp(-4 * (found["x0"] + found["x1"] * found["x2"] - 0.75)))
    return found.assign(y=np.where(rng.uniform(size=n) < chance, "yes", "no"))


def model(rounds: int) -> DPGradientBoostingClassifier:
    return DPGradientBoostingClassifier(
        SCHEMA, target="y", target_epsilon=1.0, target_delta=1e-9, max_iter=rounds, random_state=0, noise_seed=0
    )


def resident() -> float:
    """Resident memory of this process, in MB."""
    return psutil.Process().memory_info().rss / 2**20


class Counted:
    """Bytes of calls and of answers, and times, of the rounds of a fit."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.answered: list[int] = []
        self.seconds: list[float] = []
        self._answers = PartitionedRecords._answers
        counted = self

        def answers(records: PartitionedRecords, shares: Any) -> Any:
            counted.sent.append(len(pickle.dumps(records._calls[records._made :])))
            began = time.perf_counter()
            found = counted._answers(records, shares)
            counted.seconds.append(time.perf_counter() - began)
            counted.answered.append(max(len(pickle.dumps(one)) for one in found))
            return found

        PartitionedRecords._answers = answers  # type: ignore[method-assign]


def fitted(client: Client, sizes: list[int], rounds: int) -> tuple[Any, Counted, float]:
    counted = Counted()
    began = time.perf_counter()
    found = model(rounds).fit([delayed(made_up)(n, seed) for seed, n in enumerate(sizes)], "y")
    return found, counted, time.perf_counter() - began


def main(n: int, part: int, rounds: int, here: bool) -> None:
    sizes = [part] * (n // part)
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        fitted(client, [1000] * WORKERS, 5)  # libraries are imported
        before = client.run(resident)
        _, few, _ = fitted(client, [1000] * WORKERS, rounds)
        there, counted, seconds = fitted(client, sizes, rounds)
        after = client.run(resident)
    a_round, idle = float(np.median(counted.seconds[2:])), float(np.median(few.seconds[2:]))
    a_record = (a_round - idle) * WORKERS / n
    print(f"{n:,} records of {COLUMNS} columns, {len(sizes)} partitions, {WORKERS} workers, {rounds} rounds")
    print(f"whole fit {seconds:.0f} s; a round {a_round:.3f} s, of few records {idle:.3f} s")
    print(f"a record and a round: {1e9 * a_record:.1f} ns of one worker")
    print(f"bytes of a round: to each worker {np.mean(counted.sent):,.0f}, from it {np.mean(counted.answered):,.0f}")
    for name, memory in after.items():
        print(f"memory of worker {name.rpartition(':')[2]}: {before[name]:.0f} MB before, {memory:.0f} MB after")
    print(f"memory of the caller: {resident():.0f} MB")
    if here:
        table = pd.concat([made_up(size, seed) for seed, size in enumerate(sizes)], ignore_index=True)
        began = time.perf_counter()
        alone = model(rounds).fit(table, table["y"])
        same = all(np.array_equal(*both) for both in zip(alone.weights_, there.weights_))
        print(f"here: {time.perf_counter() - began:.0f} s; weights the same bit for bit: {same}")
    large, workers = 10**9, 100
    computed = a_record * large / workers + idle * workers / WORKERS
    minutes = 1200 * computed / 60
    print(f"on paper, {large:,} records, {workers} workers: {computed:.2f} s a round, 1,200 rounds {minutes:.0f} min")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rounds", type=int, default=None)
    given = parser.parse_args()
    if given.full:
        main(10**7, 250_000, given.rounds or 60, True)
    else:
        main(200_000, 50_000, given.rounds or 10, True)
