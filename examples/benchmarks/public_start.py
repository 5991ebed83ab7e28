"""Boosting from public records: what a start that costs nothing is worth.

    python examples/benchmarks/public_start.py  # the breast cancer table of scikit-learn: seconds
    python examples/benchmarks/public_start.py --data FOLDER --fits 5  # Adult and credit default

FOLDER is that of ``tables.py``. Some of the training records count as public: boosting of
scikit-learn is fitted on them. Others are private. Rows: the public model alone,
``DPGradientBoostingClassifier`` on the private records alone, and the same with ``init`` the public
model; ``DPTabularClassifier`` without hidden layers alone, and with the public log odds as one more
column. Means over fits, each on other records.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from tables import DELTA, Table, tables

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.nets import DPTabularClassifier
from sklearn_dpsearch.preprocessing import Schema

#: Public records, private records, ε.
CASES = (
    (300, 2_000, 1.0),
    (300, 2_000, 0.3),
    (300, 10_000, 0.3),
    (1_000, 10_000, 1.0),
    (1_000, 30_000, 1.0),
)


def public_model(table: Table) -> Any:
    """Boosting without privacy, on numbers and codes of listed values."""
    listed = [
        name
        for name, stated in table.schema.without(table.target).items()
        if isinstance(stated, list)
    ]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    numbers = [name for name in table.schema.without(table.target) if name not in listed]
    columns = ColumnTransformer([("codes", codes, listed), ("numbers", "passthrough", numbers)])
    return make_pipeline(
        columns, HistGradientBoostingClassifier(max_iter=50, learning_rate=0.1, max_leaf_nodes=8)
    )


def with_column(public: Any, records: pd.DataFrame) -> pd.DataFrame:
    """Records with the log odds of a public model as one more column: a function of each record
    alone."""
    chances = np.clip(public.predict_proba(records), 0.02, 0.98)
    return records.assign(public=np.log(chances[:, 1] / chances[:, 0]))


def scores(model: Any, records: pd.DataFrame, labels: pd.Series) -> list[float]:
    """Accuracy, AUC and log loss."""
    chances = np.clip(model.predict_proba(records), 1e-6, 1 - 1e-6)
    predicted = model.classes_[chances.argmax(axis=1)]
    return [
        accuracy_score(labels, predicted),
        roc_auc_score(labels == model.classes_[1], chances[:, 1]),
        log_loss(labels, chances, labels=model.classes_),
    ]  # fmt: skip


def main() -> None:
    """Print a row for each way and case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    arguments = parser.parse_args()
    for table in tables(arguments.data):
        if table.name not in ("adult", "credit-default", "breast cancer"):
            continue
        for n_public, n_private, epsilon in CASES:
            if arguments.data is None:
                n_public, n_private = n_public // 10, min(n_private, 300)
            metrics: dict[str, list[list[float]]] = {}
            for seed in range(arguments.fits):
                mixed = table.train.sample(frac=1.0, random_state=seed)
                public, private = mixed[:n_public], mixed[n_public : n_public + n_private]
                model_of_others = public_model(table).fit(
                    public.drop(columns=table.target), public[table.target]
                )
                X, y = private.drop(columns=table.target), private[table.target]
                test, truth = table.test.drop(columns=table.target), table.test[table.target]
                ways = {"public alone": scores(model_of_others, test, truth)}
                budget = {"target": table.target, "target_epsilon": epsilon, "target_delta": DELTA}
                for name, init in (
                    ("private alone", None),
                    ("private from public", FrozenEstimator(model_of_others)),
                ):
                    model = DPGradientBoostingClassifier(table.schema, init=init, **budget)
                    ways[name] = scores(model.fit(X, y), test, truth)
                linear = DPTabularClassifier(table.schema, hidden_layer_sizes=(), **budget)
                ways["linear net alone"] = scores(linear.fit(X, y), test, truth)
                linear.set_params(
                    schema=Schema({**dict(table.schema.items()), "public": (-4.0, 4.0)})
                )
                ways["linear net, column"] = scores(
                    linear.fit(with_column(model_of_others, X), y),
                    with_column(model_of_others, test),
                    truth,
                )
                for name, row in ways.items():
                    metrics.setdefault(name, []).append(row)
            print(f"{table.name}: {n_public:,} public, {n_private:,} private, ε = {epsilon:g}")
            for name, rows in metrics.items():
                accuracy, auc, loss = np.mean(rows, axis=0)
                print(f"  {name:20} accuracy {accuracy:.3f}   AUC {auc:.4f}   log loss {loss:.3f}")


if __name__ == "__main__":
    main()
