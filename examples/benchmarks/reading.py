"""How long records take to be read, as ratios to what scikit-learn and pandas need for the same
columns.

    python examples/benchmarks/reading.py [--data FOLDER]

CPU seconds, the least of three. FOLDER has Adult as ``adult-train.csv.gz``; without it that row is
left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_array

from sklearn_dpsearch.data._columns import array_of, columns_of, frame_of
from sklearn_dpsearch.data._labels import positions

#: Records and columns of the large table.
N, WIDTH = 10**6, 20


def seconds(work: Callable[[], Any]) -> float:
    """Least CPU time of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def shown(name: str, read: Callable[[], Any], read_of_peer: Callable[[], Any], peer: str) -> None:
    seconds_here, other = seconds(read), seconds(read_of_peer)
    print(
        f"{name:48} {1000 * seconds_here:8.1f} ms   "
        f"{seconds_here / max(other, 1e-4):6.2f} × {peer}",
        flush=True,
    )


def main(folder: str | None) -> None:
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(
        rng.normal(size=(N, WIDTH)), columns=[f"c{place}" for place in range(WIDTH)]
    )
    names = list(numbers.columns)
    shown(
        f"{N:,} × {WIDTH} floats, a frame",
        lambda: columns_of(numbers, names),
        lambda: check_array(numbers.to_numpy()),
        "check_array",
    )
    shown(
        f"{N:,} × {WIDTH} floats, an array",
        lambda: array_of(numbers.to_numpy()),
        lambda: check_array(numbers.to_numpy()),
        "check_array",
    )
    texts = pd.DataFrame({"job": rng.choice(["clerk", "nurse", "pilot", "other"], N)}, dtype=object)
    classes = ["clerk", "nurse", "pilot"]
    shown(
        f"{N:,} texts by categories",
        lambda: positions(texts["job"], classes),
        lambda: OrdinalEncoder(
            categories=[classes], handle_unknown="use_encoded_value", unknown_value=-1
        ).fit_transform(texts),
        "OrdinalEncoder",
    )
    nullable = numbers.iloc[:100_000].convert_dtypes()
    shown(
        "100,000 × 20 of pandas' nullable types",
        lambda: frame_of(nullable),
        lambda: nullable.astype(np.float64),
        "astype",
    )
    if folder is not None:
        adult = pd.read_csv(Path(folder) / "adult-train.csv.gz", header=None)
        adult.columns = [str(name) for name in adult.columns]
        shown("Adult", lambda: columns_of(adult, list(adult.columns)), adult.to_numpy, "to_numpy")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    main(parser.parse_args().data)
