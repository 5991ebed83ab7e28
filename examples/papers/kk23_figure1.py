"""Koskela & Kulkarni (NeurIPS 2023), "Practical DP Hyperparameter Tuning with Subsampling": figure
1, ours beside it.

    python examples/papers/kk23_figure1.py [--full] [--out FOLDER]

ε at δ = 1e-5 of tuning on a random subset and then training, by the probability q of being in the
subset. One run is DP-SGD with noise multiplier 2, sampling rate 0.01 and 50 epochs (5000 steps);
the number of runs is Poisson with mean 15 or 45. "variant 1" trains on the rest (the paper's
Theorem 1), "variant 2" on all records (its Theorem 4, composed), with Rényi curves all the way and
Papernot & Steinke's Theorem 6 for the tuning. Ours is Theorem 2 (docs/theory/subset.md) over
Theorem 1, for the same distribution and for the geometric distribution of the same mean. Floors:
one training run, and what tuning alone certainly gives away, q·δ_tune(log(1 + (e^ε − 1)/q)) with a
certified δ_tune, whatever the final training does.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np
from _show import Curves, Figure, show

from sklearn_dpsearch.privacy import (
    DPSGD,
    CountDistribution,
    Geometric,
    Guarantee,
    Poisson,
    ProfileDP,
    RenyiDP,
    best_of,
    subset_then_train,
    witness,
)
from sklearn_dpsearch.privacy._numerics.loss_distribution import DominatingPair
from sklearn_dpsearch.privacy._selection import published_bounds
from sklearn_dpsearch.privacy._selection.published_bounds import (
    INTEGER_ORDERS,
    renyi_all,
    renyi_rest,
)

DELTA = 1e-5
RUN = DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)
RENYI = RenyiDP(orders=INTEGER_ORDERS, epsilons=RUN.renyi(INTEGER_ORDERS))
FRACTIONS = np.array([0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
FEW = FRACTIONS[[0, 1, 4, 7, 9]]


def published_bound(mean: float, fraction: float, train_on: str) -> float:
    """ε of the paper: Rényi curves all the way."""
    tune = published_bounds.renyi_poisson(RENYI, Poisson(mean), INTEGER_ORDERS)
    bound = renyi_rest if train_on == "rest" else renyi_all
    return float(bound(tune, RENYI, fraction).epsilon_at(DELTA))


@lru_cache
def tuning(distribution: CountDistribution) -> Guarantee:
    """What the whole search costs on the records that it is given."""
    return best_of(RUN, distribution)


def epsilon(distribution: CountDistribution, fraction: float, train_on: str) -> float:
    return float(subset_then_train(tuning(distribution), RUN, fraction, train_on).epsilon_at(DELTA))


def certain(distribution: CountDistribution, fraction: float) -> float:
    """An ε below which no accounting of tuning on the subset can be, to 1 %."""
    one_run = ProfileDP.from_pair(DominatingPair(RUN.pair.removed, RUN.pair.removed))

    def exceeds(epsilon: float) -> bool:
        return (
            fraction * witness(one_run, distribution, float(np.log1p(np.expm1(epsilon) / fraction)))
            > DELTA
        )

    low, high = 0.0, 8.0
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low


def figure_1(mean: float, fractions: np.ndarray) -> Curves:
    """Curves (q, ε) of both variants, with the floors."""
    poisson, geometric = Poisson(mean), Geometric(mean)
    on_all_records = np.full(
        fractions.size,
        published_bounds.renyi_poisson(RENYI, poisson, INTEGER_ORDERS).epsilon_at(DELTA),
    )
    return {
        "search on all records, PS22": (fractions, on_all_records),
        "variant 1, KK23": (
            fractions,
            np.array([published_bound(mean, q, "rest") for q in fractions]),
        ),
        "variant 2, KK23": (
            fractions,
            np.array([published_bound(mean, q, "all") for q in fractions]),
        ),
        "variant 1, Theorem 2": (
            fractions,
            np.array([epsilon(poisson, q, "rest") for q in fractions]),
        ),
        "variant 2, Theorem 2": (
            fractions,
            np.array([epsilon(poisson, q, "all") for q in fractions]),
        ),
        "variant 1, Theorem 2, geometric": (
            fractions,
            np.array([epsilon(geometric, q, "rest") for q in fractions]),
        ),
        "variant 2, Theorem 2, geometric": (
            fractions,
            np.array([epsilon(geometric, q, "all") for q in fractions]),
        ),
        "certain, Poisson": (fractions, np.array([certain(poisson, q) for q in fractions])),
        "one training run": (fractions, np.full(fractions.size, RUN.epsilon_at(DELTA))),
    }


def figures(fractions: np.ndarray) -> dict[str, Figure]:
    axes = ("probability q of being in the subset", "epsilon at delta = 1e-5")
    return {
        "figure_1_mean_15": (lambda: figure_1(15, fractions), *axes),
        "figure_1_mean_45": (lambda: figure_1(45, fractions), *axes),
    }


def main() -> None:
    full = "--full" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--full"]
    show(figures(FRACTIONS if full else FEW), "kk23")
    print(f"at q = 0.1; one run has epsilon = {RUN.epsilon_at(DELTA):.3f}")
    for distribution in (Geometric(15), Geometric(45), Poisson(15), Poisson(45)):
        on_rest, on_all = (epsilon(distribution, 0.1, train_on) for train_on in ("rest", "all"))
        search = float(tuning(distribution).epsilon_at(DELTA))
        print(
            f"  {distribution!r}: search on all {search:.3f}; then train on the rest "
            f"{on_rest:.3f}, on all {on_all:.3f}"
        )


if __name__ == "__main__":
    main()
