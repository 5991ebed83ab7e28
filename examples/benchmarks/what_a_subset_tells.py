"""What training on a tenth of the records tells about training on all: settings compared by many
fits of each.

    python examples/benchmarks/what_a_subset_tells.py                       # digits: some seconds
    # three tables of 30,000 records and more
    python examples/benchmarks/what_a_subset_tells.py --full --data FOLDER

A search on a random subset ranks candidates by one fit each. For every setting this prints the mean
score of a fit on a random tenth (with the noise that is made for all records, as the search trains
it), its standard deviation from one fit to the next, and the mean score of a fit on all records. A
search can find what is best on all only if settings differ by more than fits do, and in the same
direction on both. Nothing here is private: scores are exact.

FOLDER and the tables are those of perceptrons.py.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import torch
from _tables import Table, adult, cuts, digits, mnist
from perceptrons import SETTINGS, net

#: Of the settings of perceptrons.py: no hidden layer, one, two, and one with fewer epochs.
COMPARED = {"no hidden layer": 0, "(64,)": 2, "(64, 64)": 4, "(64,), 10 epochs": 5}
SHARE = 0.1


def score(table: Table, setting: int, epsilon: float, records: np.ndarray) -> float:
    """Of one fit on these records, on the test records."""
    model = (
        net(table, epsilon).set_params(**SETTINGS[setting]).fit(table.X[records], table.y[records])
    )
    return float(model.score(table.X_test, table.y_test))


def compare(table: Table, epsilon: float, on_a_tenth: int, on_all: int) -> None:
    """One line for each setting."""
    generator, n = np.random.default_rng(0), len(table.y)
    everything = np.arange(n)
    for name, setting in COMPARED.items():
        parts = [np.flatnonzero(generator.random(n) < SHARE) for _ in range(on_a_tenth)]
        few = np.array([score(table, setting, epsilon, part) for part in parts])
        many = np.array([score(table, setting, epsilon, everything) for _ in range(on_all)])
        print(
            f"| {table.name}, {epsilon:g} | {name} | {few.mean():.3f} | {few.std(ddof=1):.3f} | "
            f"{many.mean():.3f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(
        "| table, ε | setting | on a tenth: mean | from fit to fit | on all: mean "
        "|\n|---|---|---|---|---|"
    )
    for load in (cuts, adult, mnist) if arguments.full else (digits,):
        for epsilon in (0.5, 1.0) if arguments.full else (3.0,):
            compare(load(arguments.data), epsilon, *((15, 3) if arguments.full else (4, 2)))


if __name__ == "__main__":
    main()
