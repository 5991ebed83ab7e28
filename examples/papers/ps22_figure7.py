"""Papernot & Steinke (2022), "Hyperparameter Tuning with Rényi Differential Privacy": figure 7,
ours beside it.

    python examples/papers/ps22_figure7.py  # from 41 quantiles of the accuracies, below
    python examples/papers/ps22_figure7.py --data FILE [--out FOLDER]    # from all of them

A learning rate is searched for a convolutional net on MNIST: 60 epochs, batches of 256, clipping
norm 1, noise multiplier 1.1. The authors published the test accuracy of about 1000 such runs
(TensorFlow Privacy, research/hyperparameters_2022/lr_acc.json, Apache 2.0: a dict from learning
rate to accuracy); the candidates are the 400 largest rates. They choose by test accuracy, without
noise, and report the mean of 500 searches. Here that mean is exact: the best of K draws has the
mean Σ a_i·(f(i/n) − f((i−1)/n)), f the generating function of K and a_i the sorted accuracies.
Distributions are used given K ≥ 1.

"figure_7" has the paper's axis: the smallest bound on the Rényi divergence over all orders. No (ε,
δ) can be read off it. "figure_7_epsilon" has ε at δ = 1e-6: by the paper's theorems, and by Theorem
1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import _bounds
import numpy as np
from _show import Curves, Figure, show_all

from sklearn_dpsearch.privacy import (
    DPSGD,
    CountDistribution,
    Geometric,
    Guarantee,
    Logarithmic,
    Poisson,
    RenyiDP,
    best_of,
)
from sklearn_dpsearch.privacy._selection import published_bounds
from sklearn_dpsearch.privacy._selection.published_bounds import INTEGER_ORDERS

DELTA, CANDIDATES = 1e-6, 400
RUN = DPSGD(noise_multiplier=1.1, sample_rate=256 / 60_000, steps=60 * 60_000 // 256)
ORDERS = INTEGER_ORDERS
RENYI = RenyiDP(orders=ORDERS, epsilons=RUN.renyi(ORDERS))
DISTRIBUTIONS: dict[str, Callable[[float], CountDistribution]] = {
    "logarithmic": Logarithmic,
    "geometric": Geometric,
    "Poisson": Poisson,
}
MEANS = np.array([1.5, 3, 6, 12, 30, 100])
#: Quantiles 0, 1/40 … 1 of the accuracies of the 400 candidates.
QUANTILES = (
    0.4324, 0.4934, 0.5163, 0.5435, 0.5775, 0.6044, 0.6407, 0.6810, 0.7199, 0.7654,
    0.7946, 0.8154, 0.8366, 0.8582, 0.8824, 0.9009, 0.9112, 0.9227, 0.9313, 0.9372,
    0.9416, 0.9442, 0.9480, 0.9496, 0.9506, 0.9519, 0.9526, 0.9539, 0.9541, 0.9547,
    0.9551, 0.9555, 0.9559, 0.9562, 0.9564, 0.9567, 0.9571, 0.9575, 0.9577, 0.9583,
    0.9594,
)  # fmt: skip


def accuracies(file: Path | None) -> np.ndarray:
    """Sorted accuracies of the candidates; without a file 400 values with the quantiles above."""
    if file is None:
        return np.interp(
            (np.arange(CANDIDATES) + 0.5) / CANDIDATES, np.linspace(0, 1, len(QUANTILES)), QUANTILES
        )
    table = {
        float(rate): float(accuracy) for rate, accuracy in json.loads(file.read_text()).items()
    }
    return np.sort([table[rate] for rate in sorted(table)[-CANDIDATES:]])


def expected_best(distribution: CountDistribution, sorted_accuracies: np.ndarray) -> float:
    """Mean accuracy of the best of K candidates drawn with replacement."""
    below = np.arange(sorted_accuracies.size + 1) / sorted_accuracies.size
    return float(np.diff(distribution.pgf(below)) @ sorted_accuracies)


@cache
def renyi_bound(distribution: CountDistribution) -> Guarantee:
    """Theorem 2 of the paper, or Theorem 6 for the Poisson distribution: a Rényi curve."""
    if isinstance(distribution, Poisson):
        return published_bounds.renyi_poisson(RENYI, distribution, ORDERS)
    return _bounds.renyi_negative_binomial(RENYI, distribution, ORDERS)


@cache
def theorem_one(distribution: CountDistribution) -> float:
    """ε of Theorem 1."""
    return float(best_of(RUN, distribution.at_least_one()).epsilon_at(DELTA))


def against(
    bounds: dict[str, Callable[[CountDistribution], float]], quantiles: np.ndarray
) -> Curves:
    """Curves (bound, expected accuracy) by the mean of K."""
    curves: Curves = {"best of all candidates": (np.array([0.0]), quantiles[-1:])}
    for name, make in DISTRIBUTIONS.items():
        distributions = [make(mean) for mean in MEANS]
        accuracy = np.array(
            [
                expected_best(distribution.at_least_one(), quantiles)
                for distribution in distributions
            ]
        )
        for source, bound in bounds.items():
            curves[f"{name}, {source}"] = (
                np.array([bound(distribution) for distribution in distributions]),
                accuracy,
            )
    return curves


def smallest_divergence(distribution: CountDistribution) -> float:
    """The paper's axis."""
    return float(np.min(renyi_bound(distribution).renyi(ORDERS)))


def paper_epsilon(distribution: CountDistribution) -> float:
    return float(renyi_bound(distribution).epsilon_at(DELTA))


def figures(quantiles: np.ndarray) -> dict[str, Figure]:
    of_pairs = {"PS22": paper_epsilon, "Theorem 1": theorem_one}
    return {
        "figure_7": (
            lambda: against({"PS22": smallest_divergence}, quantiles),
            "smallest Rényi divergence over orders",
            "accuracy",
        ),
        "figure_7_epsilon": (
            lambda: against(of_pairs, quantiles),
            f"epsilon at delta = {DELTA:g}",
            "accuracy",
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="lr_acc.json of TensorFlow Privacy")
    parser.add_argument("--out", type=Path, help="folder for pictures (needs matplotlib)")
    arguments = parser.parse_args()
    quantiles = accuracies(arguments.data)
    show_all(figures(quantiles), "ps22", arguments.out)
    print(
        f"one run: epsilon {RUN.epsilon_at(DELTA):.3f} at delta = {DELTA:g}; mean accuracy "
        f"{quantiles.mean():.4f}"
    )
    for distribution in (Geometric(12), Poisson(12)):
        accuracy = expected_best(distribution.at_least_one(), quantiles)
        paper = (
            f"PS22 {paper_epsilon(distribution):.3f} (divergence "
            f"{smallest_divergence(distribution):.3f})"
        )
        print(
            f"{distribution!r}: accuracy {accuracy:.4f}, epsilon {paper}, Theorem 1 "
            f"{theorem_one(distribution):.3f}"
        )


if __name__ == "__main__":
    main()
