"""DP-EBM tuned: one fit at its defaults, a search at the same total ε, and the best learning rate
by hindsight.

    python examples/benchmarks/tuned_ebm.py                         # one small table, one fit each
    # Adult, credit default and COMPAS
    python examples/benchmarks/tuned_ebm.py --data FOLDER --fits 5

FOLDER holds the tables as ``tables.py`` describes them. Categories become integer codes from the
schema, so that DP-EBM reads none from the records. ``DPRandomSearchCV`` chooses the learning rate,
rounds and leaves; its ε contains the search. Hindsight is the best of four learning rates by test
accuracy, each with all of ε, which is not available in practice. Needs ``interpret-core``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import tables
from _ebm import coded

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.preprocessing import Schema

DELTA = 1e-5
RATES = (0.05, 0.1, 0.2, 0.4)


def rows(schema: Schema, target: str, epsilon: float) -> Iterator[tuple[str, Any]]:
    """Name and model of each row."""
    features = schema.without(target)
    yield "DP-EBM, defaults", coded(features, epsilon=epsilon, delta=DELTA)
    yield (
        "DPRandomSearchCV",
        DPRandomSearchCV(
            coded(features, delta=DELTA), "auto", n_iter=10, epsilon=epsilon, delta=DELTA
        ),
    )
    for rate in RATES:
        yield (
            f"learning rate {rate:g}",
            coded(features, epsilon=epsilon, delta=DELTA, learning_rate=rate),
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    options = parser.parse_args()
    for table in tables.tables(options.data):
        if isinstance(table.schema[table.target], tuple):
            continue  # DP-EBM's regressor has no finite guarantee
        for epsilon in options.epsilon:
            print(f"\n{table.name}, {len(table.train):,} records, epsilon = {epsilon:g}")
            for name, model in rows(table.schema, table.target, epsilon):
                scores = pd.DataFrame([tables.scores(table, model) for _ in range(options.fits)])
                worst = scores.agg(
                    {
                        metric: "max" if metric in ("log loss", "CPU s") else "min"
                        for metric in scores
                    }
                )
                print(
                    f"  {name:<20}",
                    "  ".join(
                        f"{metric} {scores[metric].mean():.3f} ({worst[metric]:.3f})"
                        for metric in scores
                    ),
                )


if __name__ == "__main__":
    main()
