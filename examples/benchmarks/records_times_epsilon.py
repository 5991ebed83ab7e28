"""Scores of models of tables against n·ε: subsamples of real tables, and up to a million made-up
records.

    python examples/benchmarks/records_times_epsilon.py    # a small table: seconds
    python examples/benchmarks/records_times_epsilon.py --data FOLDER --epsilon 0.3 1 3 \\
        --fits 2 --out FITS
    python examples/benchmarks/records_times_epsilon.py --made-up 20000 200000 \\
        --fits 2 --out FITS --figure FILE

FOLDER, rows and --out are those of ``tables.py``. Records of a subsample are drawn once, without
replacement. The logits of made-up records are curves of eight of their 20 columns, four products of
two and two of three. n·ε says what private models can learn: models of one family meet on one
curve, whether n or ε is small.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables

from sklearn_dpsearch.preprocessing import Schema

#: Rows of ``tables.py`` that are compared, and their labels.
FAMILIES = (
    "tabular, additive",
    "tabular",
    "gradient boosting",
    "DP-EBM, learning rate 0.05",
    "diffprivlib",
)
LINES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **tables.LINES,
    "tabular, additive": (
        "DPTabular…(hidden_layer_sizes=())",
        {"color": "tab:purple", "marker": "o"},
    ),
    "DP-EBM, learning rate 0.05": ("DP-EBM, learning rate 0.05", tables.LINES["DP-EBM"][1]),
}
COLUMNS, TEST = 20, 50_000


def subsamples(table: tables.Table, sizes: Sequence[int]) -> Iterator[tables.Table]:
    """The table with fewer records to train on, and the whole."""
    for size in sizes:
        if size < len(table.train):
            yield replace(table, train=table.train.sample(size, random_state=0))
    yield table


def made_up(records: int) -> tables.Table:
    """Records whose columns act alone, in pairs and in threes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (records + TEST, COLUMNS))
    logits = np.sin(3 * X[:, :8]) @ np.linspace(1.0, 0.3, 8)
    logits += sum(2 * X[:, place] * X[:, place + 8] for place in range(4))
    logits += sum(4 * X[:, place] * X[:, place + 4] * X[:, place + 12] for place in range(2))
    names = [f"x{place}" for place in range(COLUMNS)]
    frame = pd.DataFrame(X, columns=names).assign(
        y=rng.uniform(size=len(X)) < 1 / (1 + np.exp(-logits))
    )
    frame["y"] = np.where(frame["y"], "yes", "no")
    schema = Schema({**dict.fromkeys(names, (-1.0, 1.0)), "y": ["no", "yes"]})
    return tables.Table("made up", "y", schema, frame[:records], frame[records:])


def tables_of_sizes(options: argparse.Namespace) -> Iterator[tables.Table]:
    """Tables of each size."""
    for records in options.made_up:
        yield made_up(records)
    for table in () if options.made_up else tables.tables(options.data):
        yield from subsamples(table, options.records)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--records", type=int, nargs="+", default=[2000, 8000])
    parser.add_argument("--made-up", type=int, nargs="+", default=[])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--tables", nargs="+", default=[""], help="tables whose name starts so")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[*FAMILIES, "boosting, not"],
        help="models whose name starts so",
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    fits, means = tables.Fits(options.out), {}
    for table in tables_of_sizes(options):
        if not table.name.startswith(tuple(options.tables)):
            continue
        size = len(table.train)
        for epsilon in options.epsilon:
            print(f"\n{table.name}, {size:,} records, epsilon = {epsilon:g}")
            for name, model in tables.models(table, epsilon):
                if name.startswith(tuple(options.only)):
                    scores = fits.of(
                        replace(table, name=f"{table.name}, {size}"),
                        epsilon,
                        name,
                        model,
                        options.fits,
                    )
                    tables.show(name, scores)
                    means[table.name, size * epsilon, name] = scores.mean()
    if options.figure is not None:
        draw(means, options.figure)


def draw(means: Mapping[tuple[str, float, str], pd.Series], path: Path) -> None:
    """AUC, or R², of each family against n·ε."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(name for name, *_ in means))
    figure, axes = plt.subplots(1, len(names), figsize=(3.6 * len(names), 4.2), squeeze=False)
    for ax, table in zip(axes.flat, names):
        for name, (label, style) in LINES.items():
            points = sorted(
                (at, row.get("AUC", row.get("R2")))
                for (of, at, model), row in means.items()
                if (of, model) == (table, name)
            )
            if points:
                ax.plot(*zip(*points), label=label, ms=4, **style)
        ax.set(title=table, xscale="log", xlabel="n·ε")
        ax.grid(alpha=0.3)
    figure.subplots_adjust(left=0.06, right=0.98, bottom=0.14, top=0.74)
    figure.legend(
        *axes.flat[0].get_legend_handles_labels(), loc="upper center", ncols=4, frameon=False
    )
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
