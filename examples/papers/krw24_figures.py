"""Koskela, Redberg & Wang (2024), "Privacy Profiles for Private Selection": figures 2 and 4, ours
beside them.

    python examples/papers/krw24_figures.py [--out FOLDER]

Figure 2: δ(ε) of the search under the truncated negative binomial distribution with a Gaussian
base. Figure 4: for the same ε, how the binomial distribution (Theorem 5.7) concentrates K compared
with the Poisson distribution under Rényi accounting. All numbers are lost in the text of the paper
at hand (σ, η, γ, n, p, δ), so the ones here are ours: σ = 4, η = 1, mean 10; δ = 1e-6, a mean of 10
runs for the Poisson distribution, n = 20.
"""

from __future__ import annotations

from collections.abc import Callable

import _bounds
import numpy as np
from _show import Curves, Figure, show

from sklearn_dpsearch.privacy import (
    ZCDP,
    Binomial,
    CountDistribution,
    GaussianDP,
    Geometric,
    Poisson,
    best_of,
    witness,
)
from sklearn_dpsearch.privacy._selection import published_bounds

SIGMA, DELTA, MEAN, N = 4.0, 1e-6, 10.0, 20
BASE = GaussianDP(mu=1 / SIGMA)


def figure_2(distribution: CountDistribution | None = None) -> Curves:
    """δ by ε: Rényi accounting (PS22 Theorem 2), Theorem 5.2, Corollary 5.5, our Theorem 1 and the
    witness."""
    distribution = Geometric(MEAN) if distribution is None else distribution
    grid = np.linspace(0.4, 2.4, 41)
    curves = {
        "one run": BASE.delta_at(grid),
        "Theorem 2, PS22": _bounds.renyi_negative_binomial(BASE, distribution).delta_at(grid),
        "Corollary 5.5, KRW24": _bounds.gaussian_negative_binomial(BASE, distribution).delta_at(
            grid
        ),
        "Theorem 5.2, KRW24": _bounds.profile_negative_binomial(BASE, distribution).delta_at(grid),
        "Theorem 1": best_of(BASE, distribution).delta_at(grid),
        "witness": np.array([witness(BASE, distribution, epsilon) for epsilon in grid]),
    }
    return {name: (grid, delta) for name, delta in curves.items()}


def largest_share(epsilon_of: Callable[[CountDistribution], float], budget: float) -> Binomial:
    """The binomial distribution with the largest p whose search stays within the budget."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_of(Binomial(N, middle)) <= budget else (low, middle)
    return Binomial(N, max(low, 1e-4))


def figure_4() -> Curves:
    """P[K = k] by k at the ε that Rényi accounting gives Poisson: the distributions that each bound
    allows."""
    poisson = Poisson(MEAN)
    budget = published_bounds.renyi_poisson(ZCDP(rho=0.5 * BASE.mu**2), poisson).epsilon_at(DELTA)
    published = largest_share(
        lambda distribution: published_bounds.profile_binomial(BASE, distribution).epsilon_at(
            DELTA
        ),
        budget,
    )
    exact = largest_share(
        lambda distribution: best_of(BASE, distribution).epsilon_at(DELTA), budget
    )
    k = np.arange(0, 26)
    distributions: dict[str, CountDistribution] = {
        f"Poisson({MEAN:g}), Theorem 6, PS22": poisson,
        f"Binomial({N}, {published.p:.2f}), Theorem 5.7, KRW24": published,
        f"Binomial({N}, {exact.p:.2f}), Theorem 1": exact,
    }
    return {
        name: (k.astype(float), distribution.pmf(k)) for name, distribution in distributions.items()
    }


# --- all of them ----------------------------------------------------------------------------------

FIGURES: dict[str, Figure] = {
    "figure_2": (figure_2, "epsilon", "delta"),
    "figure_4": (figure_4, "number of runs k", "P[K = k]"),
}


def main() -> None:
    show(FIGURES, "krw24")


if __name__ == "__main__":
    main()
