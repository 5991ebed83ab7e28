"""Models of tables at their defaults: accuracy, ROC AUC, log loss and R² of private models, and of
boosting without.

    python examples/benchmarks/tables.py  # the breast cancer table of scikit-learn: seconds
    # credit default, Adult, COMPAS, California housing
    python examples/benchmarks/tables.py --data FOLDER --fits 5
    # eight tables of the package pydataset
    python examples/benchmarks/tables.py --packaged --fits 5
    python examples/benchmarks/tables.py --data FOLDER --epsilon 0.3 1 3 --only tabular "DP-EBM"
    python examples/benchmarks/tables.py --data FOLDER --epsilon 0.1 0.3 1 3 --fits 5 \\
        --tables credit adult compas --only "boosting, not" "gradient" "search over" "DP-EBM" \\
        "diffprivlib" --figure FILE

FOLDER has NAME-train.csv.gz and NAME-test.csv.gz of each table and its schema NAME.yaml; Adult's
files are as UCI has them, and its schema is that of the quickstart. Every row: one fit with all of
ε at δ = 1e-5, or a search that costs as much; means of the fits and the worst of them. Neighbours
are zeroed-out records, of diffprivlib replaced ones. Regressions show R² alone; the AUC of several
classes is the mean of each against the rest. DP-EBM has two classes only, and needs
``interpret-core``; ``diffprivlib`` is needed too. With --out every fit is kept as it ends, and a
run that was stopped goes on. --figure draws the mean AUC of the given tables with classes against
the total ε.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _ebm import coded
from _packaged import packaged
from diffprivlib.models import LogisticRegression as DiffprivlibRegression
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
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

DELTA = 1e-5
BUDGET = {"target_epsilon": 1.0, "target_delta": DELTA}
TARGETS = {
    "credit-default": "Y",
    "adult": "income",
    "compas": "two_year_recid",
    "california-housing": "yy",
}


@dataclass(frozen=True)
class Table:
    """Records to train on and to test on, and a public schema of all columns."""

    name: str
    target: str
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame


def toy() -> Table:
    """A small table. Its bounds come from the records, which are public: this shows how the script
    runs."""
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
            train, test = (
                pd.read_csv(folder / f"{name}-{part}.csv.gz") for part in ("train", "test")
            )
            path = folder / f"{name}.yaml"
        yield Table(name, target, Schema.from_yaml(path), train, test)


def fresh() -> Iterator[Table]:
    """The tables of ``_packaged.py``, a quarter of their records to test on."""
    for name, target, records, schema in packaged():
        train, test = train_test_split(records[list(schema)], random_state=0)
        yield Table(name, target, Schema(schema), train, test)


def models(table: Table, epsilon: float = 1.0) -> Iterator[tuple[str, Any]]:
    """Name and model of each row."""
    budget = {"target_epsilon": epsilon, "target_delta": DELTA}
    features, target = table.schema.without(table.target), table.schema[table.target]
    numbers = isinstance(target, tuple)
    public = {"bounds_y": target} if numbers else {"classes": target}
    linear, perceptron = (
        (DPLinearRegression, DPMLPRegressor) if numbers else (DPLogisticRegression, DPMLPClassifier)
    )
    tabular = DPTabularRegressor if numbers else DPTabularClassifier
    for name, hidden in (("tabular", "auto"), ("tabular, additive", ())):
        yield name, tabular(table.schema, target=table.target, hidden_layer_sizes=hidden, **budget)
    boosted = DPGradientBoostingRegressor if numbers else DPGradientBoostingClassifier
    yield "gradient boosting", boosted(table.schema, target=table.target, **budget)
    yield (
        "search",
        DPSubsetSearchCV(
            tabular(table.schema, target=table.target), "auto", epsilon=epsilon, delta=DELTA
        ),
    )
    for norm in ("rule", 1.0):
        options = {**public, **budget, "max_grad_norm": norm}
        yield (
            f"perceptron, norm {norm}",
            make_pipeline(TableEncoder(features), perceptron(**options)),
        )
        for bins in (None, "auto"):
            encoder = TableEncoder(features, bins=bins)
            yield f"linear, bins={bins}, norm {norm}", make_pipeline(encoder, linear(**options))
    if not numbers:
        yield from peers(features, n_classes=len(target), epsilon=epsilon)
    boosting, plain = (
        (HistGradientBoostingRegressor(), LinearRegression())
        if numbers
        else (HistGradientBoostingClassifier(), LogisticRegression(max_iter=1000))
    )
    yield "boosting, not private", make_pipeline(TableEncoder(features), boosting)
    yield "linear, not private", make_pipeline(TableEncoder(features, bins="auto"), plain)


def peers(features: Schema, *, n_classes: int, epsilon: float) -> Iterator[tuple[str, Any]]:
    """Private classifiers of other libraries."""
    if n_classes == 2:
        yield "DP-EBM", coded(features, epsilon=epsilon, delta=DELTA)
        yield (
            "DP-EBM, learning rate 0.05",
            coded(features, epsilon=epsilon, delta=DELTA, learning_rate=0.05),
        )
        yield (
            "search over DP-EBM",
            DPSubsetSearchCV(coded(features), "auto", epsilon=epsilon, delta=DELTA),
        )
    encoder = TableEncoder(features)
    model = DiffprivlibRegression(
        epsilon=epsilon, data_norm=encoder.max_norm, fit_intercept=False, max_iter=1000
    )
    yield "diffprivlib's logistic regression", make_pipeline(encoder, model)


def scores(table: Table, model: Any) -> dict[str, float]:
    """One fit, judged on the test records."""
    X, y = (
        (part.drop(columns=table.target) for part in (table.train, table.test)),
        table.train[table.target],
    )
    train, test = X
    since = time.process_time()
    model.fit(train, y)
    seconds, truth = time.process_time() - since, table.test[table.target]
    if not hasattr(model, "predict_proba"):
        return {"R2": r2_score(truth, model.predict(test)), "CPU s": seconds}
    chances, classes = model.predict_proba(test), list(model.classes_)
    areas = [
        roc_auc_score(truth == label, chances[:, place]) for place, label in enumerate(classes)
    ]
    return {
        "accuracy": accuracy_score(truth, model.predict(test)),
        "AUC": sum(areas) / len(areas),
        "log loss": log_loss(truth, chances, labels=classes),
        "CPU s": seconds,
    }


class Fits:
    """Scores of all fits, by table, ε, model and number of the fit.

    Parameters
    ----------
    path : Path or None
        File that keeps every fit as it ends.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.done = {(*key,): row for key, row in map(json.loads, lines)}

    def of(self, table: Table, epsilon: float, name: str, model: Any, count: int) -> pd.DataFrame:
        """Scores of the first fits of a model, one a row; those that are missing are made."""
        return pd.DataFrame(
            [self._fit(table, epsilon, name, model, number) for number in range(count)]
        )

    def _fit(
        self, table: Table, epsilon: float, name: str, model: Any, number: int
    ) -> dict[str, float]:
        key = (table.name, None if name.endswith("not private") else epsilon, name, number)
        if key not in self.done:
            self.done[key] = scores(table, model)
            if self.path is not None:
                with self.path.open("a") as out:
                    out.write(json.dumps([key, self.done[key]]) + "\n")
        return self.done[key]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--packaged", action="store_true", help="the tables of pydataset")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--only", nargs="+", default=[""], help="models whose name starts so")
    parser.add_argument("--tables", nargs="+", default=[""], help="tables whose name starts so")
    parser.add_argument("--out", type=Path, help="file that keeps every fit")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    fits, means = Fits(options.out), {}
    for table in fresh() if options.packaged else tables(options.data):
        if not table.name.startswith(tuple(options.tables)):
            continue
        for epsilon in options.epsilon:
            print(f"\n{table.name}, {len(table.train):,} records, epsilon = {epsilon:g}")
            for name, model in models(table, epsilon):
                if name.startswith(tuple(options.only)):
                    scores_of_fits = fits.of(table, epsilon, name, model, options.fits)
                    show(name, scores_of_fits)
                    means[table.name, epsilon, name] = scores_of_fits.mean()
    if options.figure is not None:
        draw(means, options.figure)


def show(name: str, scores_of_fits: pd.DataFrame) -> None:
    """Print means of the fits, and the worst of them."""
    worst = scores_of_fits.agg(
        {kind: "max" if kind in ("log loss", "CPU s") else "min" for kind in scores_of_fits}
    )
    columns = (
        f"{kind} {scores_of_fits[kind].mean():.3f} (worst {worst[kind]:.3f})"
        for kind in scores_of_fits
    )
    print(f"  {name:<34}", "  ".join(columns), flush=True)


#: Label and style of a row in the figure.
LINES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "boosting, not private": ("boosting, not private", {"color": "0.5", "ls": "--"}),
    "gradient boosting": (
        "DPGradientBoostingClassifier",
        {"color": "tab:blue", "marker": "o", "lw": 2.5},
    ),
    "search over DP-EBM": ("DPSubsetSearchCV over DP-EBM", {"color": "tab:green", "marker": "o"}),
    "DP-EBM": ("DP-EBM", {"color": "tab:orange", "marker": "s"}),
    "diffprivlib's logistic regression": (
        "diffprivlib's logistic regression",
        {"color": "tab:red", "marker": "s"},
    ),
}


def draw(means: Mapping[tuple[str, float, str], pd.Series], path: Path) -> None:
    """Mean AUC over the tables with classes, against the total ε."""
    import matplotlib.pyplot as plt

    areas = {key: float(row["AUC"]) for key, row in means.items() if "AUC" in row}
    count, epsilons = (
        len({table for table, *_ in areas}),
        sorted({epsilon for _, epsilon, _ in areas}),
    )
    figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
    for name, (label, style) in LINES.items():
        row = [
            [
                area
                for (_, at, other), area in areas.items()
                if (at, other) == (epsilon_of_point, name)
            ]
            for epsilon_of_point in epsilons
        ]
        if all(len(of_tables) == count for of_tables in row):
            ax.plot(epsilons, np.mean(row, axis=1), label=label, ms=5, **style)
    ax.set(xscale="log", xticks=epsilons, xticklabels=[f"{epsilon:g}" for epsilon in epsilons])
    ax.set(xlabel="total ε at δ = 1e-5", ylabel=f"ROC AUC, mean of {count} tables")
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
