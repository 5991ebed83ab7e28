"""Several records of one person: what a guarantee for persons costs, and how long a fit takes.

    python examples/benchmarks/persons.py  # the breast cancer table of scikit-learn: seconds
    python examples/benchmarks/persons.py --data FOLDER --fits 5  # Adult and credit default
    # of DPTabularClassifier
    python examples/benchmarks/persons.py --data FOLDER --fits 2 --nets --epsilon 1
    # seconds of fits on made-up records of persons
    python examples/benchmarks/persons.py --time 1_000_000 100_000

FOLDER is that of ``tables.py``. Persons are made up: numbers of records are drawn until all records
have a person, and records are dealt out at random. Rows: every record counts as a person (more
persons than there are: what could be reached), ``fit(X, y, groups=persons)``, one record of each
person, drawn at random, and the noise with which ``for_group`` gives the guarantee for the largest
number of records. Models at their defaults, δ = 1e-5.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score
from tables import DELTA, Table, tables

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting._base import calibrated_mu
from sklearn_dpsearch.privacy import GaussianDP

#: Numbers of records of one person: name ↦ draw.
SIZES: dict[str, Callable[[np.random.Generator], int]] = {
    "1 to 10, uniform": lambda rng: int(rng.integers(1, 11)),
    "geometric, mean 3": lambda rng: int(rng.geometric(1 / 3)),
    "Pareto, up to 1,000": lambda rng: min(int(1 + rng.pareto(1.1)), 1000),
}
EPSILONS = (0.3, 1.0, 3.0)


def persons_of(
    n: int, draw: Callable[[np.random.Generator], int], rng: np.random.Generator
) -> np.ndarray:
    """Person of each of n records."""
    sizes = [draw(rng)]
    while sum(sizes) < n:
        sizes.append(draw(rng))
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes)[:n])


def fits(
    kind: Any, table: Table, persons: np.ndarray, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Fitted models by name."""
    X, y = table.train.drop(columns=table.target), table.train[table.target]
    budget = {"target_epsilon": epsilon, "target_delta": DELTA}
    mixed = rng.permutation(len(persons))
    first_records = mixed[np.unique(persons[mixed], return_index=True)[1]]
    group = GaussianDP(mu=calibrated_mu(epsilon, DELTA) / np.bincount(persons).max())

    def model(**changes: Any) -> Any:
        return kind(table.schema, target=table.target, **changes)

    yield "every record a person", model(**budget).fit(X, y)
    yield "groups=persons", model(**budget).fit(X, y, groups=persons)
    yield "one record of each", model(**budget).fit(X.iloc[first_records], y.iloc[first_records])
    yield "for_group", model(**{**budget, "target_epsilon": group.epsilon_at(DELTA)}).fit(X, y)


def compared(options: argparse.Namespace) -> None:
    """Print AUC and log loss of each way, means over fits."""
    kind: Any = DPGradientBoostingClassifier
    if options.nets:
        from sklearn_dpsearch.nets import DPTabularClassifier as kind
    epsilons = options.epsilon or (EPSILONS if options.data else EPSILONS[-1:])
    for table in tables(options.data):
        if table.name not in ("adult", "credit-default", "breast cancer"):
            continue
        X, y = table.test.drop(columns=table.target), table.test[table.target]
        for name, draw in SIZES.items():
            for epsilon in epsilons:
                metrics: dict[str, list[list[float]]] = {}
                for seed in range(options.fits):
                    rng = np.random.default_rng(seed)
                    persons = persons_of(len(table.train), draw, rng)
                    for way, model in fits(kind, table, persons, epsilon, rng):
                        chances = model.predict_proba(X)[:, 1]
                        scores = [
                            roc_auc_score(y == model.classes_[1], chances),
                            log_loss(y, chances),
                        ]
                        metrics.setdefault(way, []).append(scores)
                print(
                    f"{table.name}, {name} ({len(np.unique(persons)):,} persons), ε = {epsilon:g}"
                )
                for way, rows in metrics.items():
                    auc, loss = np.mean(rows, axis=0)
                    print(f"  {way:22} AUC {auc:.4f}   log loss {loss:.4f}", flush=True)


def timed(n: int, n_persons: int) -> None:
    """Print processor seconds of fits without and with persons."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"x{place}": rng.uniform(0, 1, n) for place in range(10)})
    y = (X["x0"] + X["x1"] * X["x2"] + rng.normal(0, 0.5, n) > 0.9).to_numpy(int)
    schema = dict.fromkeys(X, (0.0, 1.0))
    persons = rng.integers(0, n_persons, n)
    for name, groups in (("records", {}), ("persons", {"groups": persons})) * 2:
        model = DPGradientBoostingClassifier(
            schema, classes=[0, 1], target_epsilon=1.0, target_delta=1e-7
        )
        start = time.process_time()
        model.set_params(max_iter=200).fit(X, y, **groups)
        print(
            f"{n:,} records of {n_persons:,} persons, by {name}: {time.process_time() - start:.1f} "
            f"s",
            flush=True,
        )


def main() -> None:
    """Compare, or time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--nets", action="store_true", help="nets for tables in place of boosting")
    parser.add_argument("--epsilon", type=float, nargs="+")
    parser.add_argument("--time", type=int, nargs=2, metavar=("RECORDS", "PERSONS"))
    options = parser.parse_args()
    if options.time:
        timed(*options.time)
    else:
        compared(options)


if __name__ == "__main__":
    main()
