"""Which fraction of the records should tune: scores of subset searches against q, at the same total
ε.

    python examples/benchmarks/subset_fraction.py  # a small table: seconds
    python examples/benchmarks/subset_fraction.py --data FOLDER --epsilon 0.5 1 3 \\
        --fits 5 --out FITS

The tables of ``tables.py`` and diamonds' cut; the models of ``tuning_pays.py`` whose settings
matter and whose noise can be amplified or that are cheap: diffprivlib's logistic regression, a
perceptron with plain SGD, a linear net with bins to choose (housing: the latter alone).
``DPSubsetSearchCV`` at its defaults with every q of ``FRACTIONS``; mean of accuracy (R² of housing)
and the worst fit.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from sklearn.pipeline import Pipeline
from tables import DELTA, Fits, Table, fresh, tables
from tuning_pays import BINS, Kind, kinds

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.nets import DPLinearRegression
from sklearn_dpsearch.preprocessing import TableEncoder

FRACTIONS = (0.05, 0.1, 0.2, 0.3)
MODELS = ("diffprivlib LR", "perceptron, SGD", "linear net")


def searched(table: Table) -> Iterator[tuple[str, Kind]]:
    """Name and kind of each model that is searched on the table."""
    target = table.schema[table.target]
    if not isinstance(target, tuple):
        yield from ((name, kind) for name, kind in kinds(table) if name in MODELS)
        return
    encoder = TableEncoder(table.schema.without(table.target))
    model = Pipeline([("encoder", encoder), ("model", DPLinearRegression(bounds_y=target))])
    yield "linear net", Kind(model, {}, {"encoder__bins": BINS})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--models", nargs="+", choices=MODELS)
    parser.add_argument("--out", type=Path, help="file that keeps every fit")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wanted = options.models or (MODELS if options.data else MODELS[:1])
    fits = Fits(options.out)
    chosen = list(tables(options.data))
    if options.data is not None:
        chosen += [table for table in fresh() if table.name.endswith("cut")]
    print("| table, records, model, ε | " + " | ".join(f"q = {q:g}" for q in FRACTIONS) + " |")
    print("|---|" + "---|" * len(FRACTIONS))
    for table in chosen:
        for name, kind in searched(table):
            for epsilon in options.epsilon if name in wanted else ():
                words = []
                for q in FRACTIONS:
                    search = DPSubsetSearchCV(
                        kind.model, kind.space, subset_fraction=q, epsilon=epsilon, delta=DELTA
                    )  # fmt: skip
                    scores = fits.of(table, epsilon, f"{name}, q = {q:g}", search, options.fits)
                    score = scores["accuracy" if "accuracy" in scores else "R2"]
                    words.append(f"{score.mean():.3f} ({score.min():.3f})")
                print(
                    f"| {table.name}, {len(table.train):,}, {name}, {epsilon:g} | "
                    + " | ".join(words)
                    + " |"
                )


if __name__ == "__main__":
    main()
