"""Private boosting: accuracy, ROC AUC, log loss or R², and its time against boosting without privacy.

    python examples/benchmarks/boosting.py                           # a small table: seconds
    python examples/benchmarks/boosting.py --data FOLDER --fits 5    # credit default, Adult, COMPAS, California housing
    python examples/benchmarks/boosting.py --records 1000000         # made-up records of 20 columns: time and memory

FOLDER holds the tables as ``tables.py`` describes them. Zero-out neighbours, δ = 1e-5 and all defaults; means of the
fits and the worst of them. Times are of one fit on one processor; the last row has scikit-learn's
HistGradientBoosting.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
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
        model = private(table.schema, target=table.target, target_epsilon=epsilon, target_delta=1e-5)
        yield f"epsilon = {epsilon:g}", model
    encoder = TableEncoder(table.schema.without(table.target))
    yield "not private, 400 rounds", make_pipeline(encoder, plain(max_iter=400, early_stopping=False))


def compared(table: tables.Table, fits: int) -> None:
    """Print the rows of one table."""
    print(f"\n{table.name}, {len(table.train):,} records")
    for name, model in models(table):
        found = pd.DataFrame([tables.scores(table, model) for _ in range(fits)])
        worst = found.agg({one: "max" if one in ("log loss", "CPU s") else "min" for one in found})
        print(f"  {name:<28}", "  ".join(f"{one} {found[one].mean():.3f} (worst {worst[one]:.3f})" for one in found))


def at_scale(records: int, columns: int = 20) -> None:
    """Print time and largest memory of one fit on made-up records, which are read from a file."""
    rng = np.random.default_rng(0)
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, rng.uniform(size=(records, columns)))
        X = np.load(file.name, mmap_mode="r")
        fitted_at_scale(X, rng)


def fitted_at_scale(X: np.ndarray, rng: np.random.Generator) -> None:
    """Print time and largest memory of one fit."""
    records, columns = X.shape
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(0, 0.3, records) > 0.75).astype(int)
    schema = {f"x{place}": (0.0, 1.0) for place in range(columns)}
    model = DPGradientBoostingClassifier(schema, classes=[0, 1], target_epsilon=1.0, target_delta=1e-9)
    tracemalloc.start()
    since = time.process_time()
    model.fit(X, y)
    seconds, (_, most) = time.process_time() - since, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"{records:,} records of {columns} columns: {seconds:.1f} s of CPU, {most / 2**20:.0f} MB of memory, "
        f"{records * columns / 2**20:.0f} MB of codes, accuracy {model.score(X[:10_000], y[:10_000]):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--records", type=int, default=0)
    options = parser.parse_args()
    if options.records:
        at_scale(options.records)
        return
    for table in tables.tables(options.data):
        compared(table, options.fits)


if __name__ == "__main__":
    main()
