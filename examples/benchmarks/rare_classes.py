"""Decisions about a rare class: thresholds from costs, weights of classes, and whether a hidden
part costs something.

    python examples/benchmarks/rare_classes.py  # the breast cancer table of scikit-learn: seconds
    # credit default: 22 % positives
    python examples/benchmarks/rare_classes.py --data FOLDER --fits 5
    python examples/benchmarks/rare_classes.py --data FOLDER --fits 15 --share 0.04 \\
        --tables credit-default adult

FOLDER is that of ``tables.py``. Every row: DPTabularClassifier at its defaults, ε = 1 at δ = 1e-5
for one fit. A missed positive costs RATIO times as much as a false alarm; costs are those per 1,000
test records. With ``--share`` positives are left out at random until they have this share of at
most 20,000 records.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier
from tables import BUDGET, Table, tables

from sklearn_dpsearch.nets import DPTabularClassifier

RATIO = 5.0
#: Most records that train where positives are left out.
MOST = 20_000


def rarer(table: Table, share: float) -> Table:
    """The table with so few positives that they have this share."""
    positive = sorted(table.schema.classes(table.target))[1]

    def few(frame: pd.DataFrame) -> pd.DataFrame:
        rare = frame[table.target] == positive
        n = min(MOST, int((~rare).sum() / (1.0 - share)))
        parts = (
            frame[rare].sample(round(n * share), random_state=0),
            frame[~rare].sample(n - round(n * share), random_state=0),
        )
        return pd.concat(parts).sample(frac=1.0, random_state=0)

    return replace(table, train=few(table.train), test=few(table.test))


def models(table: Table) -> Iterator[tuple[str, Any]]:
    """Name and model of each row."""
    last = sorted(table.schema.classes(table.target))[1]
    ways = {
        "rule": {},
        "rule, no hidden layers": {"hidden_layer_sizes": ()},
        "norm 1": {"max_grad_norm": 1.0},
        f"rule, class_weight {RATIO:g}": {"class_weight": {last: RATIO}},
    }
    for name, more in ways.items():
        net = DPTabularClassifier(table.schema, target=table.target, **BUDGET, **more)
        yield f"{name}, threshold 1/2", net
        threshold = FixedThresholdClassifier(
            net, threshold=1.0 / (1.0 + RATIO), pos_label=last, response_method="predict_proba"
        )
        yield f"{name}, threshold 1/{1 + RATIO:g}", threshold


def scores(table: Table, model: Any) -> dict[str, float]:
    """One fit, judged on the test records."""
    train, test = table.train, table.test
    model.fit(train.drop(columns=table.target), train[table.target])
    records = test.drop(columns=table.target)
    chance, positive = (
        model.predict_proba(records)[:, 1],
        (test[table.target] == model.classes_[1]).to_numpy(),
    )
    predicted = model.predict(records) == model.classes_[1]
    return {
        "cost": 1000 * float(np.mean(RATIO * (positive & ~predicted) + (~positive & predicted))),
        "balanced accuracy": balanced_accuracy_score(positive, predicted),
        "AUC": roc_auc_score(positive, chance),
        "average precision": average_precision_score(positive, chance),
        "log loss": log_loss(positive, chance),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--share", type=float)
    parser.add_argument("--tables", nargs="+", default=["credit-default", "breast cancer"])
    options = parser.parse_args()
    for table in tables(options.data):
        if table.name not in options.tables:
            continue
        table = table if options.share is None else rarer(table, options.share)
        print(
            f"{table.name}, {len(table.train):,} records, a missed positive costs {RATIO:g} false "
            f"alarms"
        )
        for name, model in models(table):
            if options.share is None or name.endswith("1/2"):
                means = pd.DataFrame([scores(table, model) for _ in range(options.fits)]).mean()
                print(
                    f"  {name:<40}",
                    "  ".join(f"{kind} {value:.3f}" for kind, value in means.items()),
                    flush=True,
                )


if __name__ == "__main__":
    main()
