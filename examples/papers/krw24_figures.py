"""Koskela, Redberg & Wang (2024), "Privacy Profiles for Private Selection": figures 2 and 4, ours beside them.

    python examples/papers/krw24_figures.py [--out FOLDER]

Figure 2: δ(ε) of the search under the truncated negative binomial law with a Gaussian base. Figure 4: for the same ε,
how the binomial law (Theorem 5.7) concentrates K compared with the Poisson law under Rényi accounting. All numbers are
lost in the text of the paper at hand (σ, η, γ, n, p, δ), so the ones here are ours: σ = 4, η = 1, mean 10; δ = 1e-6, a
mean of 10 runs for the Poisson law, n = 20.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from sklearn_dpsearch.privacy import (
    ZCDP,
    Binomial,
    CountLaw,
    GaussianDP,
    Geometric,
    Poisson,
    best_of,
    published,
    witness,
)

SIGMA, DELTA, MEAN, N = 4.0, 1e-6, 10.0, 20
BASE = GaussianDP(mu=1 / SIGMA)
Curves = dict[str, tuple[np.ndarray, np.ndarray]]


def figure_2(law: CountLaw | None = None) -> Curves:
    """δ by ε: Rényi accounting (PS22 Theorem 2), Theorem 5.2, Corollary 5.5, our Theorem 1 and the witness."""
    law = Geometric(MEAN) if law is None else law
    grid = np.linspace(0.4, 2.4, 41)
    curves = {
        "one run": BASE.delta_at(grid),
        "Theorem 2, PS22": published.renyi_negative_binomial(BASE, law).delta_at(grid),
        "Corollary 5.5, KRW24": published.gaussian_negative_binomial(BASE, law).delta_at(grid),
        "Theorem 5.2, KRW24": published.profile_negative_binomial(BASE, law).delta_at(grid),
        "Theorem 1": best_of(BASE, law).delta_at(grid),
        "witness": np.array([witness(BASE, law, epsilon) for epsilon in grid]),
    }
    return {name: (grid, delta) for name, delta in curves.items()}


def largest_share(epsilon_of: Callable[[CountLaw], float], budget: float) -> Binomial:
    """The binomial law with the largest p whose search stays within the budget."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_of(Binomial(N, middle)) <= budget else (low, middle)
    return Binomial(N, max(low, 1e-4))


def figure_4() -> Curves:
    """P[K = k] by k at the ε that Rényi accounting gives the Poisson law: the laws that each bound allows."""
    poisson = Poisson(MEAN)
    budget = published.renyi_poisson(ZCDP(rho=0.5 * BASE.mu**2), poisson).epsilon_at(DELTA)
    theirs = largest_share(lambda law: published.profile_binomial(BASE, law).epsilon_at(DELTA), budget)
    ours = largest_share(lambda law: best_of(BASE, law).epsilon_at(DELTA), budget)
    k = np.arange(0, 26)
    laws: dict[str, CountLaw] = {
        f"Poisson({MEAN:g}), Theorem 6, PS22": poisson,
        f"Binomial({N}, {theirs.p:.2f}), Theorem 5.7, KRW24": theirs,
        f"Binomial({N}, {ours.p:.2f}), Theorem 1": ours,
    }
    return {name: (k.astype(float), law.pmf(k)) for name, law in laws.items()}


# --- print and draw -----------------------------------------------------------------------------------------------

FIGURES: dict[str, tuple[Callable[[], Curves], str, str]] = {
    "figure_2": (figure_2, "epsilon", "delta"),
    "figure_4": (figure_4, "number of runs k", "P[K = k]"),
}


def print_table(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], points: int = 6) -> None:
    """A few points (x, y) of each curve."""
    for name, (x, y) in curves.items():
        chosen = np.unique(np.linspace(0, x.size - 1, points).astype(int))
        print(f"  {name:40s}" + "".join(f"  ({x[i]:.3g}, {y[i]:.3g})" for i in chosen))


def draw(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], x_label: str, y_label: str, path: Path) -> None:
    """One picture; dashed lines are the papers'."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4.5))
    for name, (x, y) in curves.items():
        axes.plot(x, y, "--" if name.endswith(("PS22", "KRW24")) else "-", label=name)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if y_label == "delta":
        axes.set_yscale("log")
    axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, help="folder for pictures (needs matplotlib)")
    out = parser.parse_args().out
    for name, (make, x_label, y_label) in FIGURES.items():
        curves = make()
        print(f"{name}: {y_label} by {x_label}")
        print_table(curves)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            draw(curves, x_label, y_label, out / f"krw24_{name}.png")


if __name__ == "__main__":
    main()
