"""How many records should validate? Test accuracy of the released winner, by ``cv``.

    python examples/benchmarks/hold_out_share.py  # breast cancer, one repetition: a smoke test
    python examples/benchmarks/hold_out_share.py --full     # 20 repetitions, digits too

``DPRandomSearchCV`` (10 runs on average) over the factor of the derived learning rate of a private
logistic net, δ = 1e-5; three quarters of the records are for the search. "one fit" has the defaults
and all of ε. Mean ± standard error over splits of the records, and the worst.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _tables import Table, breast_cancer, digits
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression

DELTA, SPACE = 1e-5, {"learning_rate_factor": loguniform(0.25, 4)}


def rows(
    net: Any, epsilon: float, validations: list[float | int | None]
) -> dict[str, Callable[[], Any]]:
    """What is compared, by name."""

    def search(cv: float | int | None) -> DPRandomSearchCV:
        return DPRandomSearchCV(net, SPACE, n_iter=10, epsilon=epsilon, delta=DELTA, cv=cv)

    single = clone(net).set_params(target_epsilon=epsilon, target_delta=DELTA)
    return {
        "one fit": lambda: clone(single),
        **{f"cv={cv}": (lambda cv=cv: search(cv)) for cv in validations},
    }


def accuracy(table: Table, model: Any, seed: int) -> float:
    X, y = np.concatenate([table.X, table.X_test]), np.concatenate([table.y, table.y_test])
    X, X_test, y, y_test = train_test_split(X, y, random_state=seed)
    return float(model.fit(X, y).score(X_test, y_test))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--cv", type=float, nargs="+", help="a share below 1, or a number of folds")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    repetitions = arguments.repetitions or (20 if arguments.full else 1)
    chosen = [0.05, 0.1, 0.2, 0.3, 2, 3, 5] if arguments.full else [0.1]
    validations = [None, *(cv if cv < 1 else int(cv) for cv in arguments.cv or chosen)]
    for make in (breast_cancer, digits)[: 2 if arguments.full else 1]:
        table = make(Path())
        net = DPLogisticRegression(
            classes=np.unique(table.y).tolist(),
            bounds_X=table.bounds,
            sample_rate=0.1,
            max_epochs=10,
        )
        for epsilon in (1.0, 3.0) if arguments.full else (3.0,):
            print(f"{table.name}, epsilon = {epsilon:g}, {repetitions} repetitions")
            for name, search in rows(net, epsilon, validations).items():
                accuracies = [accuracy(table, search(), seed) for seed in range(repetitions)]
                error = (
                    np.std(accuracies, ddof=1) / repetitions**0.5
                    if repetitions > 1
                    else float("nan")
                )
                print(
                    f"  {name:10s} {np.mean(accuracies):.3f} ± {error:.3f}, "
                    f"worst {min(accuracies):.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
