"""Boosting where little can be learnt: beside the constant, with directions of columns, and with
many categories.

    python examples/benchmarks/few_records.py  # the breast cancer table of scikit-learn
    # three tables, 1,000 records of each
    python examples/benchmarks/few_records.py --data FOLDER --fits 15
    # three tables of the package pydataset
    python examples/benchmarks/few_records.py --packaged --fits 15
    python examples/benchmarks/few_records.py --data FOLDER --fits 4 --records 100000 --epsilon 1
    # 1,000 categories of 20 records each
    python examples/benchmarks/few_records.py --shops --fits 3

FOLDER is that of ``tables.py``. ROC AUC / log loss less that of the best constant on the test
records, means of the fits at δ = 1e-5, each on other records. "shuffled" has labels in random
order; in "one turned" each fit states the opposite of one direction.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.preprocessing import Schema

#: Directions that a person who knows the subject would state, without a look at the records.
DIRECTIONS: dict[str, dict[str, int]] = {
    "breast cancer": {"worst radius": -1, "worst texture": -1, "worst concave points": -1},
    "adult": {"education-num": 1, "capital-gain": 1, "hours-per-week": 1},
    "compas": {
        "age": -1,
        "juv_fel_count": 1,
        "juv_misd_count": 1,
        "juv_other_count": 1,
        "priors_count": 1,
    },
    "credit": {
        "X1": -1,
        **{f"X{i}": 1 for i in range(6, 12)},
        **{f"X{i}": -1 for i in range(18, 24)},
    },
    "insured": {"whrswk": 1, "education": 1, "hhi": -1},
    "death": {"age": 1, "kappa": 1, "lambda": 1, "creatinine": 1},
    "stay": {"docvis": 1},
}
#: Ranges in which these directions hold: no more than 60 hours, no credit for paying early, full
#: time.
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "adult": {"hours-per-week": (1, 60)},
    "credit": {f"X{i}": (0, 8) for i in range(6, 12)},
    "insured": {"whrswk": (0, 40)},
}
TEST = 6000


def shops(seed: int, number: int = 1000, records_each: int = 20) -> tables.Table:
    """Made-up sales: an effect of each shop, and of three of four numbers."""
    draw, n = np.random.default_rng(seed), 2 * number * records_each
    effects, shop, numbers = (
        draw.normal(size=number),
        draw.integers(0, number, n),
        draw.uniform(size=(n, 4)),
    )
    logits = effects[shop] + 2 * numbers[:, 0] + numbers[:, 1] + np.sin(6 * numbers[:, 2]) - 1.5
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    frame["shop"] = [f"shop {code}" for code in shop]
    frame["sold"] = (draw.uniform(size=n) < 1 / (1 + np.exp(-logits))).astype(int)
    schema = Schema(
        {
            **dict.fromkeys("abcd", (0.0, 1.0)),
            "shop": [f"shop {i}" for i in range(number)],
            "sold": [0, 1],
        }
    )
    return tables.Table(
        "shops", "sold", schema, *train_test_split(frame, test_size=0.5, random_state=0)
    )


def rows(table: tables.Table) -> Iterator[tuple[str, tables.Table, dict[str, int]]]:
    """Settings of a table: name, table, and directions."""
    yield "plain", table, {}
    stated = next((value for name, value in DIRECTIONS.items() if table.name.startswith(name)), {})
    ranges = next((value for name, value in RANGES.items() if table.name.startswith(name)), {})
    if stated:
        narrow = tables.Table(
            table.name, table.target, Schema({**table.schema, **ranges}), table.train, table.test
        )
        yield "directions", narrow, stated
        yield "one turned", narrow, stated
    draw = np.random.default_rng(0)
    mixed = [
        part.assign(**{table.target: draw.permutation(part[table.target])})
        for part in (table.train, table.test)
    ]
    yield "shuffled", tables.Table(table.name, table.target, table.schema, *mixed), {}


def scores(table: tables.Table, records: int, seed: int, **arguments: Any) -> tuple[float, float]:
    """ROC AUC, and log loss less that of the best constant."""
    train = table.train.sample(min(records, len(table.train)), random_state=seed)
    test = table.test.sample(min(TEST, len(table.test)), random_state=0)
    model = DPGradientBoostingClassifier(
        table.schema, target=table.target, target_delta=tables.DELTA, **arguments
    )
    model.fit(train, train[table.target])
    truth, chances = (
        (test[table.target] == model.classes_[1]).to_numpy(),
        model.predict_proba(test)[:, 1],
    )
    return roc_auc_score(truth, chances), log_loss(truth, chances) - log_loss(
        truth, np.full(len(truth), truth.mean())
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--packaged", action="store_true")
    parser.add_argument("--shops", action="store_true")
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, nargs="+")
    options = parser.parse_args()
    if options.shops:
        for epsilon in options.epsilon or [0.3, 1, 3, 10]:
            pairs = [
                scores(shops(seed), 10**6, seed, target_epsilon=epsilon)
                for seed in range(options.fits)
            ]
            print(f"shops, epsilon = {epsilon:<4g} {show(pairs)}", flush=True)
        return
    for table in tables.fresh() if options.packaged else tables.tables(options.data):
        if (
            isinstance(table.schema[table.target], tuple)
            or len(table.schema.classes(table.target)) > 2
        ):
            continue
        for epsilon in options.epsilon or [0.5, 1.0]:
            for name, arguments, stated in rows(table):
                pairs = []
                for seed in range(options.fits):
                    turned = list(stated)[seed % len(stated)] if name == "one turned" else None
                    ways = {
                        column: -way if column == turned else way for column, way in stated.items()
                    }
                    pairs.append(
                        scores(
                            arguments,
                            options.records,
                            seed,
                            target_epsilon=epsilon,
                            monotonic_cst=ways or None,
                        )
                    )
                print(
                    f"{table.name:28} epsilon = {epsilon:<4g} {name:12} {show(pairs)}", flush=True
                )


def show(pairs: list[tuple[float, float]]) -> str:
    area, excess = np.mean(pairs, axis=0)
    return f"{area:.3f} / {excess:+.4f}"


if __name__ == "__main__":
    main()
