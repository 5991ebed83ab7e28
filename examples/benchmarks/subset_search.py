"""What tuning on a random subset saves, and what it costs in accuracy.

    # 20,000 synthetic records, few repetitions: about a minute
    python examples/benchmarks/subset_search.py
    python examples/benchmarks/subset_search.py --full  # 200,000 × 50, 10 repetitions of everything

DPSubsetSearchCV and DPRandomSearchCV over the same net and space, with the same distribution of the
number of candidates and the same total (ε, δ). (a) Wall time of fit without its plan (the
calibration of the noise does not grow with the data), with the same seeds and so the same numbers
of candidates; beside it the prediction (μq + 1 − q)/μ of Koskela & Kulkarni (2023, §3.4), or (μq +
1)/μ where the final model sees all records. (b) Accuracy on records that no search has seen, mean ±
standard error. PyTorch uses one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import loguniform
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier
from sklearn_dpsearch.privacy import Geometric

DELTA = 1e-6


@dataclass(frozen=True)
class Case:
    """One data set with one kind of net."""

    name: str
    net: Any
    space: dict[str, Any]
    X: np.ndarray
    y: np.ndarray
    epsilon: float
    fraction: float
    mean: float = 15.0


def synthetic(number: int) -> Case:
    """A table of numbers in [-1, 1] with two classes, not quite separable."""
    X, y = make_classification(
        number + number // 4, 50, n_informative=20, n_redundant=10, n_clusters_per_class=2,
        class_sep=0.8, flip_y=0.05, random_state=0,
    )  # fmt: skip
    net = DPLogisticRegression(classes=[0, 1], bounds_X=(-8, 8), sample_rate=0.01, max_epochs=5)
    space = {"learning_rate_init": loguniform(0.02, 20.0), "max_grad_norm": loguniform(0.05, 2.0)}
    return Case(
        f"synthetic {number} × 50, logistic regression", net, space, X, y, epsilon=0.5, fraction=0.1
    )


def digits(hidden: bool) -> Case:
    """Scikit-learn's digits."""
    X, y = load_digits(return_X_y=True)
    shared = {"classes": range(10), "bounds_X": (0, 16), "sample_rate": 0.05, "max_epochs": 15}
    net = DPMLPClassifier((64,), **shared) if hidden else DPLogisticRegression(**shared)
    space = {"learning_rate_init": loguniform(0.01, 2.0), "max_grad_norm": loguniform(0.2, 5.0)}
    name = f"digits, {'perceptron 64-64-10' if hidden else 'logistic regression'}"
    return Case(name, net, space, X, y, epsilon=3.0, fraction=0.2)


def searches(case: Case, seed: int | None) -> Iterator[tuple[str, Any]]:
    """Name and search: on all records, on a subset and the rest, on a subset and all."""
    shared = {
        "n_iter": Geometric(case.mean),
        "epsilon": case.epsilon,
        "delta": DELTA,
        "random_state": seed,
    }
    yield "random search", DPRandomSearchCV(case.net, case.space, **shared)
    for train_on in ("rest", "all"):
        on_subset = {
            "subset_fraction": case.fraction,
            "train_on": train_on,
            "validate_on": "subset",
        }
        yield (
            f"subset, then {train_on}",
            DPSubsetSearchCV(case.net, case.space, **on_subset, **shared),
        )


def predicted(case: Case, name: str) -> float:
    """Share of random search's gradient evaluations."""
    final = {
        "random search": 0.0,
        "subset, then rest": 1.0 - case.fraction,
        "subset, then all": 1.0,
    }[name]
    tuning = 1.0 if name == "random search" else case.fraction
    return (case.mean * tuning + final) / case.mean


def seconds_of_fit(search: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds that ``fit`` takes beyond its plan."""
    search.privacy_cost(len(X))  # fills the caches of the accountant
    begin = time.perf_counter()
    search.privacy_cost(len(X))
    planned = time.perf_counter()
    search.fit(X, y)
    return time.perf_counter() - planned - (planned - begin)


def measure(case: Case, repetitions: int) -> dict[str, tuple[list[float], list[float], float]]:
    """Seconds and accuracies of each search, and ε of one of its training runs."""
    rows: dict[str, tuple[list[float], list[float], float]] = {}
    # a seed voids the guarantee; here it makes both searches draw the same K
    for seed in range(repetitions):
        X, X_test, y, y_test = train_test_split(case.X, case.y, test_size=0.2, random_state=seed)
        for name, search in searches(case, seed):
            seconds = seconds_of_fit(search, X, y)
            one_run = float(search.best_estimator_.privacy_guarantee().epsilon_at(DELTA))
            row = rows.setdefault(name, ([], [], one_run))
            row[0].append(seconds)
            row[1].append(search.score(X_test, y_test))
    return rows


def show(case: Case, repetitions: int) -> None:
    print(
        f"{case.name}: total epsilon = {case.epsilon:g} at delta = {DELTA:g}, K ~ "
        f"Geometric({case.mean:g}), q = {case.fraction:g}, {repetitions} repetitions"
    )
    print(
        f"  {'':20}{'seconds':>9}{'÷ random':>10}{'predicted':>11}{'one run':>10}{'accuracy':>18}"
    )
    rows = measure(case, repetitions)
    total = sum(rows["random search"][0])
    for name, (seconds, scores, one_run) in rows.items():
        error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
        print(
            f"  {name:20}{np.mean(seconds):9.2f}{sum(seconds) / total:10.3f}"
            f"{predicted(case, name):11.3f}"
            f"{one_run:10.3f}{np.mean(scores):10.4f} ± {error:.4f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    show(synthetic(200_000 if full else 20_000), 10 if full else 2)
    for hidden in (False, True) if full else (False,):
        show(digits(hidden), 20 if full else 2)


if __name__ == "__main__":
    main()
