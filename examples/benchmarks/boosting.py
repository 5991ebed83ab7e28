"""Private boosting: accuracy, ROC AUC, log loss or R², and its time against boosting without
privacy.

    python examples/benchmarks/boosting.py                           # a small table: seconds
    # credit default, Adult, COMPAS, California housing
    python examples/benchmarks/boosting.py --data FOLDER --fits 5
    # made-up records of 20 columns: time, memory
    python examples/benchmarks/boosting.py --records 1000000 --n-jobs 2

FOLDER holds the tables as ``tables.py`` describes them. Zero-out neighbours, δ = 1e-5 and all
defaults; means of the fits and the worst of them. Times are of one fit on one processor; the last
row has scikit-learn's HistGradientBoosting.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.preprocessing import TableEncoder

EPSILONS = (0.3, 1.0, 3.0, 10.0)


def models(table: tables.Table) -> Iterator[tuple[str, Any]]:
    """Name and model of each row."""
    numbers = isinstance(table.schema[table.target], tuple)
    private = DPGradientBoostingRegressor if numbers else DPGradientBoostingClassifier
    plain = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    for epsilon in EPSILONS:
        model = private(
            table.schema, target=table.target, target_epsilon=epsilon, target_delta=1e-5
        )
        yield f"epsilon = {epsilon:g}", model
    encoder = TableEncoder(table.schema.without(table.target))
    yield (
        "not private, 400 rounds",
        make_pipeline(encoder, plain(max_iter=400, early_stopping=False)),
    )


def compared(table: tables.Table, fits: int) -> None:
    """Print the rows of one table."""
    print(f"\n{table.name}, {len(table.train):,} records")
    for name, model in models(table):
        scores = pd.DataFrame([tables.scores(table, model) for _ in range(fits)])
        worst = scores.agg(
            {metric: "max" if metric in ("log loss", "CPU s") else "min" for metric in scores}
        )
        print(
            f"  {name:<28}",
            "  ".join(
                f"{metric} {scores[metric].mean():.3f} (worst {worst[metric]:.3f})"
                for metric in scores
            ),
        )


def made_up(records: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Records of 20 columns, and the odds of their labels, which depend on three of them."""
    X = np.random.default_rng(seed).uniform(size=(records, 20))
    return X, 1 / (1 + np.exp(-5.0 * (X[:, 0] + X[:, 1] * X[:, 2] - 0.75)))


def resident(kind: str) -> float:
    """Memory of this process in MB: now ("VmRSS"), or at most ("VmHWM"); Linux only."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith(kind))


def large(model: str, records: int, n_jobs: int) -> None:
    """Print what one fit takes, and its scores on 100,000 other records; in a process that does
    nothing else."""
    (X, chances), (other, of_others) = made_up(records, 0), made_up(100_000, 1)
    y, truth = (
        np.random.default_rng(2).uniform(size=len(chance)) < chance
        for chance in (chances, of_others)
    )
    schema = {f"x{place}": (0.0, 1.0) for place in range(X.shape[1])}
    private = DPGradientBoostingClassifier(
        schema, classes=[False, True], target_epsilon=1.0, target_delta=1e-9, n_jobs=n_jobs
    )
    boosting = {"private": private, "scikit-learn": HistGradientBoostingClassifier()}[model]
    boosting.fit(X[:1000], y[:1000])  # all code is there
    # what is free goes back to the system, and the largest memory is from here on
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, since, began = resident("VmRSS"), time.process_time(), time.perf_counter()
    boosting.fit(X, y)
    figures = [time.process_time() - since, time.perf_counter() - began, resident("VmHWM") - before]
    since = time.process_time()
    predicted = boosting.predict_proba(other)[:, 1]
    figures += [
        time.process_time() - since,
        roc_auc_score(truth, predicted),
        log_loss(truth, predicted),
    ]
    print(json.dumps([*figures, roc_auc_score(truth, of_others), boosting.n_iter_]))


def at_scale(records: int, n_jobs: int, fits: int) -> None:
    """Print pairs of fits with scikit-learn's boosting, in turn, on as many processors as there are
    threads."""
    print(f"{records:,} records of 20 columns, {n_jobs} threads: the least time of {fits}")
    figures: dict[str, list[list[float]]] = {"private": [], "scikit-learn": []}
    for _ in range(fits):
        for model, rows in figures.items():
            command = [sys.executable, __file__, "--large", model, str(records), str(n_jobs)]
            run = subprocess.run(
                command,
                check=True,
                text=True,
                stdout=subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": str(n_jobs)},
            )
            rows.append(json.loads(run.stdout))
    for model, rows in figures.items():
        cpu, wall, memory, predicted, auc, loss, best, rounds = np.array(rows).T
        print(
            f"  {model:<13} {cpu.min():6.1f} s of CPU, {wall.min():6.1f} s, {memory.max():4.0f} MB "
            f"over the records, AUC {auc.mean():.4f} (of the truth {best[0]:.4f}), log loss "
            f"{loss.mean():.4f}, {rounds[0]:.0f} rounds; predictions of 100,000 "
            f"{predicted.min():.1f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--large", nargs=3, metavar=("MODEL", "RECORDS", "N_JOBS"), help="one fit")
    options = parser.parse_args()
    if options.large:
        model, *numbers = options.large
        large(model, *map(int, numbers))
        return
    if options.records:
        at_scale(options.records, options.n_jobs, options.fits)
        return
    for table in tables.tables(options.data):
        compared(table, options.fits)


if __name__ == "__main__":
    main()
