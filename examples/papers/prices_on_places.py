"""Theorem 6, prices on places: what it takes off Theorem 1 for a fixed or a Poisson number of runs.

    python examples/papers/prices_on_places.py

``best_of`` does not report this bound (docs/theory/prices.md). Columns: ε by ``best_of``, by the smaller of it and
Theorem 6, and the certified lower bound.
"""

from __future__ import annotations

from _prices import epsilon_at

from sklearn_dpsearch.privacy import DPSGD, Fixed, GaussianDP, Geometric, Poisson, PureDP, best_of, witness_epsilon

RUNS = {
    "Gaussian, mu^2 = 0.2": (GaussianDP(mu=0.2**0.5), 1e-6),
    "DP-SGD, sigma 2": (DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000), 1e-5),
    "pure, epsilon 1": (PureDP(epsilon=1.0), 1e-6),
}

if __name__ == "__main__":
    for name, (one_run, delta) in RUNS.items():
        for count in (Geometric(20), Fixed(20), Poisson(20), Poisson(100)):
            found = (
                best_of(one_run, count).epsilon_at(delta),
                epsilon_at(one_run, count, delta),
                witness_epsilon(one_run, count, delta),
            )
            print(f"{name:22s}{count!r:20s}" + "".join(f"{one:9.3f}" for one in found))
