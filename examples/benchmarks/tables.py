"""Models of tables at their defaults: accuracy, ROC AUC, log loss and R² of private models, and of boosting without.

    python examples/benchmarks/tables.py                         # the breast cancer table of scikit-learn: seconds
    python examples/benchmarks/tables.py --data FOLDER --fits 3  # credit default, Adult, COMPAS, California housing

FOLDER has NAME-train.csv.gz and NAME-test.csv.gz of each table and its schema NAME.yaml; Adult's files are as UCI has
them, and its schema is that of the quickstart. Every row: ε = 1 at δ = 1e-5 for one fit, zero-out neighbours, means of
the fits and the worst of them. Regressions show R² alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPTabularClassifier,
    DPTabularRegressor,
)
from sklearn_dpsearch.preprocessing import Schema, TableEncoder, schema_of

sys.path.insert(0, str(Path(__file__).parents[1] / "quickstart"))
import adult

BUDGET = {"target_epsilon": 1.0, "target_delta": 1e-5}
TARGETS = {"credit-default": "Y", "adult": "income", "compas": "two_year_recid", "california-housing": "yy"}


@dataclass(frozen=True)
class Table:
    """Records to train on and to test on, and a public schema of all columns."""

    name: str
    target: str
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame


def toy() -> Table:
    """A small table. Its bounds come from the records, which are public: this shows how the script runs."""
    frame = load_breast_cancer(as_frame=True).frame
    train, test = train_test_split(frame, random_state=0)
    return Table("breast cancer", "target", schema_of(frame), train, test)


def tables(folder: Path | None) -> Iterator[Table]:
    """The tables of a folder, or the toy."""
    if folder is None:
        yield toy()
        return
    for name, target in TARGETS.items():
        if name == "adult":
            train, test = adult.read(folder)
            path = Path(adult.__file__).with_name("adult.yaml")
        else:
            train, test = (pd.read_csv(folder / f"{name}-{part}.csv.gz") for part in ("train", "test"))
            path = folder / f"{name}.yaml"
        yield Table(name, target, Schema.from_yaml(path), train, test)


def models(table: Table) -> Iterator[tuple[str, Any]]:
    """Name and model of each row."""
    features, target = table.schema.without(table.target), table.schema[table.target]
    numbers = isinstance(target, tuple)
    given = {"bounds_y": target} if numbers else {"classes": target}
    linear, perceptron = (DPLinearRegression, DPMLPRegressor) if numbers else (DPLogisticRegression, DPMLPClassifier)
    tabular = DPTabularRegressor if numbers else DPTabularClassifier
    for name, hidden in (("tabular", "auto"), ("tabular, additive", ())):
        yield name, tabular(table.schema, target=table.target, hidden_layer_sizes=hidden, **BUDGET)
    for norm in ("rule", 1.0):
        yield f"perceptron, norm {norm}", make_pipeline(TableEncoder(features), perceptron(**given, **norm_of(norm)))
        for bins in (None, "auto"):
            model = linear(**given, **norm_of(norm))
            yield f"linear, bins={bins}, norm {norm}", make_pipeline(TableEncoder(features, bins=bins), model)
    boosting = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    yield "boosting, not private", make_pipeline(TableEncoder(features), boosting())


def norm_of(norm: float | str) -> dict[str, Any]:
    """Arguments of a model with the budget, and this clipping norm."""
    return {**BUDGET, "max_grad_norm": norm}


def scores(table: Table, model: Any) -> dict[str, float]:
    """One fit, judged on the test records."""
    X, y = (part.drop(columns=table.target) for part in (table.train, table.test)), table.train[table.target]
    train, test = X
    since = time.process_time()
    model.fit(train, y)
    seconds, truth = time.process_time() - since, table.test[table.target]
    if not hasattr(model, "predict_proba"):
        return {"R2": r2_score(truth, model.predict(test)), "CPU s": seconds}
    positive = truth == model.classes_[1]
    chance = model.predict_proba(test)[:, 1]
    return {
        "accuracy": accuracy_score(truth, model.predict(test)),
        "AUC": roc_auc_score(positive, chance),
        "log loss": log_loss(positive, chance),
        "CPU s": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--only", default="", help="models whose name starts so")
    options = parser.parse_args()
    for table in tables(options.data):
        print(f"\n{table.name}, {len(table.train):,} records, epsilon = 1")
        for name, model in models(table):
            if not name.startswith(options.only):
                continue
            found = pd.DataFrame([scores(table, model) for _ in range(options.fits)])
            worst = found.agg({name: "max" if name in ("log loss", "CPU s") else "min" for name in found})
            told = (f"{name} {found[name].mean():.3f} (worst {worst[name]:.3f})" for name in found)
            print(f"  {name:<28}", "  ".join(told), flush=True)


if __name__ == "__main__":
    main()
