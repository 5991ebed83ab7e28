"""Which distribution of K buys the best winner?
=============================================

One run is a Gaussian mechanism with ε = 1.995 at δ = 1e-6 (μ = √0.2). For each total ε and
distribution the largest mean that stays within the budget is found, and with it the expected
quantile of the winner among all candidates.
"""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dpsearch.privacy import (
    CountDistribution,
    GaussianDP,
    Geometric,
    Logarithmic,
    NegativeBinomial,
    Poisson,
    best_of,
)

DELTA = 1e-6
BASE = GaussianDP(mu=0.2**0.5)
BUDGETS = (2.7, 3.0, 3.5, 4.5)
LARGEST_MEAN = 2000.0
DISTRIBUTIONS: dict[str, Callable[[float], CountDistribution]] = {
    "η = −½": lambda mean: NegativeBinomial(-0.5, mean),
    "logarithmic": Logarithmic,
    "geometric": Geometric,
    "η = 5": lambda mean: NegativeBinomial(5.0, mean),
    "Poisson, K ≥ 1": lambda mean: Poisson(mean).at_least_one(),
}


def largest_mean(distribution: Callable[[float], CountDistribution], budget: float) -> float:
    """Largest mean (of the distribution's parameter) whose search stays within the budget, within
    0.5 %."""

    def affordable(mean: float) -> bool:
        return best_of(BASE, distribution(mean)).epsilon_at(DELTA) <= budget

    low, high = 1.0, 2.0
    while high < LARGEST_MEAN and affordable(high):
        low, high = high, 2 * high
    while high / low > 1.005:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low


# %%
print(
    f"one run: epsilon = {BASE.epsilon_at(DELTA):.3f} at delta = {DELTA:g}; entries: expected "
    "quantile of the winner (mean of K)"
)
print("total ε".ljust(10) + "".join(name.ljust(18) for name in DISTRIBUTIONS))
for budget in BUDGETS:
    row = []
    for distribution in DISTRIBUTIONS.values():
        mean = largest_mean(distribution, budget)
        row.append(f"{distribution(mean).expected_quantile():.3f} ({mean:.0f})".ljust(18))
    print(f"{budget:<10}" + "".join(row))

# %%
# The same mean, other distributions: how many candidates may run.
runs = np.arange(1, 50)
for name, distribution in DISTRIBUTIONS.items():
    plt.plot(runs, distribution(10).pmf(runs), label=name)
plt.xlabel("number of runs K")
plt.ylabel("probability")
_ = plt.legend()
