"""Boosting for numbers beside BoostedAdaSSP, private linear regression that is boosted, each at one
ε.

    python examples/benchmarks/boosted_adassp.py                  # diabetes, one seed: seconds
    # California housing, five seeds: minutes
    python examples/benchmarks/boosted_adassp.py --data FOLDER

FOLDER has california-housing-train.csv.gz, -test.csv.gz and california-housing.yaml. R² on the test
file, δ = 1e-5.

BoostedAdaSSP (Tang, Aydore, Kearns, Rho, Roth, Wang, Wang & Wu 2023, Algorithm 2) is written anew
here: XᵀX and its smallest eigenvalue are released once, and the clipped residuals' Xᵀr in each of T
rounds, with a third of μ² each. It gets the features that suit it best (with and without bins), and
the best of its settings **by hindsight on the test file**; ours has its defaults. Neighbours: a
record is added or removed, or zeroed out, at the same μ.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from sklearn_dpsearch.boosting import DPGradientBoostingRegressor
from sklearn_dpsearch.preprocessing import Schema, TableEncoder
from sklearn_dpsearch.privacy import GaussianDP, calibrate

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 3.0)
#: Clipping norms of residuals (targets are in [-1, 1]) and numbers of rounds, of which the best
#: counts by hindsight.
CLIPPING, ROUNDS = (0.05, 0.2, 1.0), (1, 10, 100)
#: Probability with which the ridge may be too small for the noise, as in the paper.
FAILURE = 0.05


def boosted_adassp(
    X: np.ndarray, y: np.ndarray, mu: float, clipping: float, rounds: int, rng: np.random.Generator
) -> np.ndarray:
    """Coefficients.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows of norm 1 at most.
    y : ndarray of shape (n_samples,)
    mu : float
        Gaussian differential privacy of the result.
    clipping : float
        Bound on residuals.
    rounds : int
    rng : Generator
    """
    mu_of_matrix, width = mu / math.sqrt(3), X.shape[1]
    exact, above = X.T @ X, np.triu(rng.normal(size=(width, width)))
    gram = exact + (above + np.triu(above, 1).T) / mu_of_matrix
    smallest = max(0.0, np.linalg.eigvalsh(exact)[0] + rng.normal() / mu_of_matrix)
    ridge = max(0.0, math.sqrt(width * math.log(2 * width**2 / FAILURE)) / mu_of_matrix - smallest)
    coefficients = np.zeros(width)
    for _ in range(rounds):
        residuals = np.clip(y - X @ coefficients, -clipping, clipping)
        noisy = (
            X.T @ residuals + rng.normal(size=width) * clipping * math.sqrt(rounds) / mu_of_matrix
        )
        coefficients += np.linalg.solve(gram + ridge * np.eye(width), noisy)
    return coefficients


def r2_of_adassp(
    schema: Schema, target: str, train: pd.DataFrame, test: pd.DataFrame, epsilon: float, seeds: int
) -> float:
    """Best mean R² of all settings, on the test file."""
    mu = calibrate(
        lambda mu: GaussianDP(mu=mu, neighboring="add_remove"), epsilon, DELTA, bracket=(1e-3, 10.0)
    )
    lower, upper = schema.bounds(target)
    middle, half = (upper + lower) / 2, (upper - lower) / 2
    y = (train[target].to_numpy(float) - middle) / half
    best = -math.inf
    for bins in (None, "auto"):
        encoder = TableEncoder(
            schema.without(target), bins=bins, indicators=False, row_norm=math.sqrt(0.5)
        )
        X, X_test = (
            np.column_stack([encoder.fit_transform(part), np.full(len(part), math.sqrt(0.5))])
            for part in (train, test)
        )
        for clipping, rounds in itertools.product(CLIPPING, ROUNDS):
            scores = []
            for seed in range(seeds):
                models = boosted_adassp(X, y, mu, clipping, rounds, np.random.default_rng(seed))
                predicted = np.clip(X_test @ models, -1, 1) * half + middle
                scores.append(r2_score(test[target], predicted))
            best = max(best, mean(scores))
    return best


def r2_of_boosting(
    schema: Schema, target: str, train: pd.DataFrame, test: pd.DataFrame, epsilon: float, seeds: int
) -> float:
    """Mean R² of boosting at its defaults."""
    fits = (
        DPGradientBoostingRegressor(
            schema, target=target, target_epsilon=epsilon, target_delta=DELTA
        )
        for _ in range(seeds)
    )
    return mean(
        r2_score(test[target], model.fit(train, train[target]).predict(test)) for model in fits
    )


def diabetes() -> tuple[Schema, str, pd.DataFrame, pd.DataFrame]:
    """A small table that needs no files."""
    table = load_diabetes(as_frame=True).frame[["bmi", "bp", "s5", "target"]]
    schema = Schema({"bmi": (-0.2, 0.2), "bp": (-0.2, 0.2), "s5": (-0.2, 0.2), "target": (25, 350)})
    return schema, "target", *train_test_split(table, random_state=0)


def housing(folder: Path) -> tuple[Schema, str, pd.DataFrame, pd.DataFrame]:
    """The schema, the target and both files."""
    parts = (
        pd.read_csv(folder / f"california-housing-{part}.csv.gz") for part in ("train", "test")
    )
    return Schema.from_yaml(folder / "california-housing.yaml"), "yy", *parts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    table, seeds = (diabetes(), 1) if arguments.data is None else (housing(arguments.data), 5)
    print("| ε | BoostedAdaSSP, best by hindsight | ours |\n|---|---|---|")
    for epsilon in EPSILONS:
        print(
            f"| {epsilon:g} | {r2_of_adassp(*table, epsilon, seeds):.3f} | "
            f"{r2_of_boosting(*table, epsilon, seeds):.3f} |",
            flush=True,
        )
