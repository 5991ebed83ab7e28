"""Capacity of private boosting: number of rounds and fineness of cells on a grid, beside the rule
of the package.

    python examples/benchmarks/capacity.py  # a small table, two epsilons: a minute
    python examples/benchmarks/capacity.py --data FOLDER --fits 4 --epsilon 0.3 1 3 10 --full

FOLDER holds the tables as ``tables.py`` describes them, --packaged takes those of the package
pydataset. Means of the fits at δ = 1e-5. Steps follow from the number of rounds by the rule. --rare
keeps so few positives of a table of two classes that they are 4.5 % of at most 20,000 records.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
import tables
from rare_classes import rarer

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor

#: Parts of a column alone in a cell, and rounds.
FEW, FULL = (
    ((8, 200), (16, 400)),
    ((8, 200), (8, 400), (16, 400), (32, 400), (32, 800), (64, 800), (64, 1600)),
)


def shown(table: tables.Table, name: str, fits: int, **parameters: Any) -> None:
    """Print the scores of one setting."""
    numbers = isinstance(table.schema[table.target], tuple)
    kind = DPGradientBoostingRegressor if numbers else DPGradientBoostingClassifier
    model = kind(table.schema, target=table.target, target_delta=tables.DELTA, **parameters)
    tables.show(name, pd.DataFrame([tables.scores(table, model) for _ in range(fits)]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--packaged", action="store_true")
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 3.0])
    parser.add_argument("--tables", nargs="+", default=[""], help="tables whose name starts so")
    parser.add_argument("--rare", action="store_true")
    parser.add_argument("--rule", action="store_true", help="the rule alone")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    for table in tables.fresh() if options.packaged else tables.tables(options.data):
        if not table.name.startswith(tuple(options.tables)):
            continue
        records = rarer(table, 0.045) if options.rare else table
        for epsilon in options.epsilon:
            print(f"\n{table.name}, {len(records.train):,} records, epsilon = {epsilon:g}")
            shown(records, "rule", options.fits, target_epsilon=epsilon)
            for parts, rounds in () if options.rule else FULL if options.full else FEW:
                name = f"{parts} parts, {rounds} rounds"
                shown(
                    records,
                    name,
                    options.fits,
                    target_epsilon=epsilon,
                    parts=parts,
                    max_iter=rounds,
                )


if __name__ == "__main__":
    main()
