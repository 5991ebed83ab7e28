"""Which search? All four at the same total (ε, δ) on the same grid of candidates.

    python examples/benchmarks/which_search.py            # 2 repetitions, 4 candidates: a smoke test of half a minute
    python examples/benchmarks/which_search.py --full     # 20 repetitions, 12 candidates: about 10 minutes

Breast cancer (569 records) and digits (1797) with private logistic regression; three quarters of the records are for
the search. Accuracy on the rest, which no search has seen, mean ± standard error, and median wall time of ``fit``. "One
fit" spends everything on one candidate: the estimator's defaults, or the corner of the grid with the smallest steps. A
search that ends with nothing counts with the largest class, and how often that happened is shown. One thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression

DELTA = 1e-5
#: Round numbers above every measurement of a cell nucleus: mean, standard error and worst value of ten of them.
LARGEST = np.concatenate(
    [
        [30, 40, 200, 2500, 0.2, 0.4, 0.5, 0.2, 0.4, 0.1],
        [3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.1, 0.03],
        [50, 60, 300, 5000, 0.3, 1.2, 1.5, 0.4, 0.8, 0.3],
    ]
)


@dataclass(frozen=True)
class Case:
    """A data set, its net, and a score that is known to be good."""

    name: str
    net: Any
    X: np.ndarray
    y: np.ndarray
    threshold: float


def cases(epochs: int) -> list[Case]:
    """Both data sets."""
    common = {"sample_rate": 0.1, "max_epochs": epochs}
    cancer, digits = load_breast_cancer(return_X_y=True), load_digits(return_X_y=True)
    two = DPLogisticRegression(classes=[0, 1], bounds_X=(np.zeros(30), LARGEST), **common)
    ten = DPLogisticRegression(classes=range(10), bounds_X=(0, 16), **common)
    return [Case("breast cancer", two, *cancer, threshold=0.88), Case("digits", ten, *digits, threshold=0.85)]


def grid(full: bool) -> dict[str, list[float]]:
    """Learning rates and clipping norms over factors of 64 and 10."""
    if full:
        return {"learning_rate_init": [0.03, 0.12, 0.5, 2.0], "max_grad_norm": [0.3, 1.0, 3.0]}
    return {"learning_rate_init": [0.03, 0.5], "max_grad_norm": [0.3, 3.0]}


def rows(case: Case, space: dict[str, list[float]], epsilon: float) -> dict[str, Callable[[], Any]]:
    """What is compared."""
    total = {"epsilon": epsilon, "delta": DELTA}
    single = {"target_epsilon": epsilon, "target_delta": DELTA}
    worst = {"learning_rate_init": 0.03, "max_grad_norm": 0.3}
    return {
        "one fit, defaults": lambda: clone(case.net).set_params(**single),
        "one fit, small steps": lambda: clone(case.net).set_params(**single, **worst),
        "DPRandomSearchCV": lambda: DPRandomSearchCV(case.net, space, n_iter=10, **total),
        "DPSubsetSearchCV": lambda: DPSubsetSearchCV(case.net, space, n_iter=10, subset_fraction=0.2, **total),
        f"DPThresholdSearchCV, {case.threshold:g}": lambda: DPThresholdSearchCV(
            case.net, space, threshold=case.threshold, n_iter=20, **total
        ),
        "DPThresholdSearchCV, auto": lambda: DPThresholdSearchCV(case.net, space, **total),
        "DPGridSearchCV": lambda: DPGridSearchCV(case.net, space, **total),
    }


def one_repetition(case: Case, make: Callable[[], Any], seed: int) -> tuple[float, float, bool]:
    """Accuracy on the records left out, seconds of ``fit``, and whether there is a model."""
    X, X_test, y, y_test = train_test_split(case.X, case.y, random_state=seed)
    model, start = make(), time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    if getattr(model, "found_", True):
        return float(model.score(X_test, y_test)), seconds, True
    return float(np.mean(y_test == np.bincount(y).argmax())), seconds, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[3.0])
    given = parser.parse_args()
    torch.set_num_threads(1)
    repetitions = 20 if given.full else 2
    for case in cases(epochs=10 if given.full else 3):
        for epsilon in given.epsilon:
            print(f"{case.name}: total epsilon = {epsilon:g} at delta = {DELTA:g}, {repetitions} repetitions")
            for name, make in rows(case, grid(given.full), epsilon).items():
                found = np.array([one_repetition(case, make, seed) for seed in range(repetitions)])
                mean, error = found[:, 0].mean(), found[:, 0].std(ddof=1) / repetitions**0.5
                without = (
                    f"   {int(repetitions - found[:, 2].sum())} without a model" if np.any(found[:, 2] == 0) else ""
                )
                seconds = f"{np.median(found[:, 1]):5.1f} s{without}"
                print(f"  {name:26} accuracy {mean:.3f} ± {error:.3f}   {seconds}", flush=True)


if __name__ == "__main__":
    main()
