"""Papernot & Steinke (2022), "Hyperparameter Tuning with Rényi Differential Privacy": figures 2–6,
ours beside them.

    python examples/papers/ps22_figures.py [--out FOLDER]

One run is 0.1-zCDP in all of them (here the Gaussian mechanism with μ = √0.2), and δ = 1e-6.
Figures 2 and 3 show Rényi divergences, which our Theorem 1 does not speak of: its ε at δ is printed
with them. Figures 4–6 have ε on one axis: the paper's bound (Theorem 2, Theorem 6) and the smallest
of ours side by side. In the paper's text at hand the signs of η are lost in the legends of figures
5 and 6; η = ½ and 2 are read as they stand, and −½ is added.
"""

from __future__ import annotations

from collections.abc import Callable

import _bounds
import numpy as np
from _show import Curves, Figure, show

from sklearn_dpsearch.privacy import (
    ZCDP,
    CountDistribution,
    Fixed,
    GaussianDP,
    Geometric,
    Guarantee,
    Logarithmic,
    NegativeBinomial,
    Poisson,
    best_of,
)
from sklearn_dpsearch.privacy._selection import published_bounds

RHO, DELTA = 0.1, 1e-6
BASE = GaussianDP(mu=(2 * RHO) ** 0.5)
DISTRIBUTIONS: dict[str, Callable[[float], CountDistribution]] = {
    "eta = -1/2": lambda mean: NegativeBinomial(-0.5, mean),
    "logarithmic": Logarithmic,
    "eta = 1/2": lambda mean: NegativeBinomial(0.5, mean),
    "geometric": Geometric,
    "eta = 2": lambda mean: NegativeBinomial(2.0, mean),
    "eta = 5": lambda mean: NegativeBinomial(5.0, mean),
    "Poisson": Poisson,
}
MEANS = np.unique(np.round(np.geomspace(2, 1000, 13)))
ORDERS = np.linspace(1.5, 50, 98)


def renyi_bound(distribution: CountDistribution) -> Guarantee:
    """The paper's bound for a 0.1-zCDP run: Theorem 2 (of which Corollary 4 is a case), or 6 for
    Poisson."""
    fine = 1 + np.geomspace(0.05, 2000, 600)
    if isinstance(distribution, Poisson):
        # the Rényi curve gives (ε̂, δ̂) too
        return published_bounds.renyi_poisson(ZCDP(rho=RHO), distribution, fine)
    return _bounds.renyi_negative_binomial(ZCDP(rho=RHO), distribution, fine)


def figure_2(means: tuple[float, ...] = (10, 100, 1e3, 1e4, 1e5, 1e6)) -> Curves:
    """Rényi divergence by order for the logarithmic distribution, with one run and ten runs
    composed."""
    orders = np.linspace(1.5, 30, 58)
    curves = {
        f"mean {mean:g}": (orders, renyi_bound(Logarithmic(mean)).renyi(orders)) for mean in means
    }
    return {"one run": (orders, RHO * orders), "ten runs": (orders, 10 * RHO * orders), **curves}


def figure_3(mean: float = 10) -> Curves:
    """Rényi divergence by order for several distributions with one mean."""
    named = {
        name: DISTRIBUTIONS[name](mean)
        for name in ("logarithmic", "geometric", "eta = 5", "Poisson")
    }
    curves = {
        name: (ORDERS, renyi_bound(distribution).renyi(ORDERS))
        for name, distribution in named.items()
    }
    return {"one run": (ORDERS, RHO * ORDERS), "ten runs": (ORDERS, 10 * RHO * ORDERS), **curves}


def epsilons(
    distribution: Callable[[float], CountDistribution], means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """ε at δ for each mean: by the paper, and by Theorem 1."""
    renyi = [renyi_bound(distribution(mean)).epsilon_at(DELTA) for mean in means]
    exact = [best_of(BASE, distribution(mean)).epsilon_at(DELTA) for mean in means]
    return np.array(renyi), np.array(exact)


def privacy_against(
    utility: Callable[[CountDistribution], float], names: tuple[str, ...], means: np.ndarray = MEANS
) -> Curves:
    """Curves (ε, utility) for each distribution, by the paper and by Theorem 1."""
    curves: Curves = {}
    for name in names:
        values = np.array([utility(DISTRIBUTIONS[name](mean)) for mean in means])
        renyi, exact = epsilons(DISTRIBUTIONS[name], means)
        curves[f"{name}, PS22"], curves[f"{name}, Theorem 1"] = (renyi, values), (exact, values)
    return curves


def naive(
    utility: Callable[[CountDistribution], float], runs: tuple[int, ...] = (1, 2, 4, 8, 16)
) -> tuple[np.ndarray, np.ndarray]:
    """A fixed number of runs, composed."""
    composed = [GaussianDP(mu=BASE.mu * k**0.5).epsilon_at(DELTA) for k in runs]
    return np.array(composed), np.array([utility(Fixed(k)) for k in runs])


def figure_4() -> Curves:
    """Expected number of runs by ε."""
    curves = privacy_against(
        lambda distribution: distribution.mean, ("logarithmic", "geometric", "eta = 5", "Poisson")
    )
    return {"naive repetition": naive(lambda distribution: distribution.mean), **curves}


def figure_5() -> Curves:
    """Expected quantile of the winner by ε."""
    names = ("eta = -1/2", "logarithmic", "eta = 1/2", "geometric", "eta = 2", "Poisson")
    return privacy_against(CountDistribution.expected_quantile, names)


def figure_6(share: float = 0.01) -> Curves:
    """Probability that the winner is among the best hundredth of all candidates, by ε."""
    curves = privacy_against(
        lambda distribution: distribution.success_probability(share),
        ("logarithmic", "eta = 1/2", "geometric", "Poisson"),
    )
    return {
        "naive repetition": naive(lambda distribution: distribution.success_probability(share)),
        **curves,
    }


# --- all of them ----------------------------------------------------------------------------------

FIGURES: dict[str, Figure] = {
    "figure_2": (figure_2, "Rényi order", "Rényi divergence"),
    "figure_3": (figure_3, "Rényi order", "Rényi divergence"),
    "figure_4": (figure_4, "epsilon at delta = 1e-6", "expected number of runs"),
    "figure_5": (figure_5, "epsilon at delta = 1e-6", "expected quantile"),
    "figure_6": (figure_6, "epsilon at delta = 1e-6", "success probability"),
}


def main() -> None:
    show(FIGURES, "ps22")
    for distribution in (Logarithmic(10), Geometric(10), Poisson(10)):
        renyi, exact = (
            renyi_bound(distribution).epsilon_at(DELTA),
            best_of(BASE, distribution).epsilon_at(DELTA),
        )
        print(
            f"epsilon at delta = {DELTA:g}, {distribution}: PS22 {renyi:.3f}, Theorem 1 {exact:.3f}"
        )


if __name__ == "__main__":
    main()
