"""Should C of diffprivlib's logistic regression grow with the number of records?

    python examples/benchmarks/extrapolating_c.py          one ε, fewer fits
    python examples/benchmarks/extrapolating_c.py --full   the table of docs/theory/extrapolation.md

For each ε, the C that is best for m synthetic records (mean test accuracy, or log loss, of many
fits) is used for ten times as many: kept, or in proportion to the number of records, beside the
best C there.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.models import LogisticRegression

EPSILONS = (0.3, 1.0, 3.0)
SIZES = (300, 3000)
GROWTH = 10
CS = np.geomspace(1e-3, 1e3, 13)  # a factor of ten is two places


def records(
    number: int, rng: np.random.Generator, features: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm at most 1, labels by a logistic distribution."""
    X = rng.normal(size=(number, features))
    p = 1 / (1 + np.exp(-2 * X.sum(axis=1) / features**0.5))
    y = (rng.uniform(size=number) < p).astype(int)
    X = X / 6
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), y


def quality(
    epsilon: float, number: int, C: float, fits: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Mean accuracy, and minus the mean log loss, on fresh records."""
    X_test, y_test = records(20_000, np.random.default_rng(1))
    qualities = []
    for _ in range(fits):
        model = LogisticRegression(
            epsilon=epsilon, data_norm=1.0, fit_intercept=False, C=C, tol=1e-10, max_iter=2000,
            accountant=BudgetAccountant(),
        )  # fmt: skip
        margins = (2 * y_test - 1) * (X_test @ model.fit(*records(number, rng)).coef_.ravel())
        qualities.append((np.mean(margins > 0), -np.mean(np.logaddexp(0, -margins))))
    mean = np.mean(qualities, axis=0)
    return float(mean[0]), float(mean[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    shift = round(np.log(GROWTH) / np.log(CS[1] / CS[0]))
    print("ε     m      measure     best C at m   kept     linear   best   (at 10 m)")
    for epsilon in EPSILONS if full else EPSILONS[1:2]:
        for number in SIZES:
            small = np.array([quality(epsilon, number, C, 60 if full else 20, rng) for C in CS])
            large = np.array(
                [quality(epsilon, GROWTH * number, C, 20 if full else 5, rng) for C in CS]
            )
            for k, name in enumerate(("accuracy", "-log loss")):
                best = int(small[:, k].argmax())
                column = large[:, k]
                row = (column[best], column[min(best + shift, CS.size - 1)], column.max())
                print(
                    f"{epsilon:<5} {number:<6} {name:10}  {CS[best]:<12.3g}  "
                    + "  ".join(f"{entry:.3f}" for entry in row)
                )


if __name__ == "__main__":
    main()
