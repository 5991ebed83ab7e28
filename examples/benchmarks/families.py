"""Families of models for a table: each alone, and a private choice among them, all for the same
total.

    python examples/benchmarks/families.py  # the breast cancer table of scikit-learn: seconds
    # the tables of tables.py and diamonds' cut
    python examples/benchmarks/families.py --data FOLDER --fits 5

Rows, each with a total of ε at δ = 1e-5 and zeroed-out neighbours: a net for data frames, the same
without a hidden part ("linear"), boosting; ``DPSubsetSearchCV`` over the three families, each tried
once on a subset (``choice``), and over their own spaces with ``search_space(…, step="model")``
(``choice, spaces``). Columns as in tables.py; "picked" counts the families that won. Hindsight is
the best of the first three rows.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.pipeline import Pipeline
from tables import DELTA, Table, fresh, scores, tables

from sklearn_dpsearch import DPSubsetSearchCV, search_space
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.nets import DPTabularClassifier, DPTabularRegressor


def families(table: Table, **budget: float) -> dict[str, Any]:
    """The three families, by name."""
    numbers = isinstance(table.schema[table.target], tuple)
    net = DPTabularRegressor if numbers else DPTabularClassifier
    boosting = DPGradientBoostingRegressor if numbers else DPGradientBoostingClassifier
    arguments = {"target": table.target, **budget}
    return {
        "net": net(table.schema, **arguments),
        "linear": net(table.schema, hidden_layer_sizes=(), **arguments),
        "boosting": boosting(table.schema, **arguments),
    }


def rows(table: Table, epsilon: float) -> Iterator[tuple[str, Any]]:
    """Name and model of each row."""
    budget = {"target_epsilon": epsilon, "target_delta": DELTA}
    yield from families(table, **budget).items()
    numbers = isinstance(table.schema[table.target], tuple)
    models = list(families(table).values())
    scoring = "neg_mean_absolute_error" if numbers else "neg_log_loss"
    spaces = {"choice": [{"model": models}], "choice, spaces": search_space(*models, step="model")}
    for name, space in spaces.items():
        pipeline = Pipeline([("model", models[0])])
        yield name, DPSubsetSearchCV(pipeline, space, epsilon=epsilon, delta=DELTA, scoring=scoring)


def picked(model: Any) -> str:
    """The family of the winner of a search; empty for a model without one."""
    if not isinstance(model, DPSubsetSearchCV):
        return ""
    winner = model.best_estimator_[-1]
    if isinstance(winner, (DPGradientBoostingClassifier, DPGradientBoostingRegressor)):
        return "boosting"
    return "net" if winner.hidden_layer_sizes else "linear"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--tables", nargs="+", default=[""], help="tables whose name starts so")
    options = parser.parse_args()
    chosen = list(tables(options.data))
    if options.data is not None:
        chosen += [table for table in fresh() if table.name.endswith("cut")]
    for table in chosen:
        if not table.name.startswith(tuple(options.tables)):
            continue
        for epsilon in options.epsilon:
            print(f"\n{table.name}, {len(table.train):,} records, epsilon = {epsilon:g}")
            for name, model in rows(table, epsilon):
                fitted, winners = [], Counter[str]()
                for _ in range(options.fits):
                    fitted.append(scores(table, model))
                    winners[picked(model)] += 1
                frame = pd.DataFrame(fitted)
                lower = "log loss" if "log loss" in frame else "R2"
                worst = frame[lower].max() if lower == "log loss" else frame[lower].min()
                means = ", ".join(f"{column} {value:.3f}" for column, value in frame.mean().items())
                won = ", ".join(f"{family} {count}" for family, count in winners.items() if family)
                print(
                    f"  {name:16} {means}, worst {lower} {worst:.3f}{'; picked ' * bool(won)}{won}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
