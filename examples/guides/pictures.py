"""Pictures of what a search costs
===============================

``TradeOffDisplay`` computes first (``from_…``) and draws then (``plot``), as in scikit-learn; all
else is a few lines of matplotlib. Nothing here needs data: a guarantee is known before.
``python examples/guides/pictures.py FOLDER`` saves the pictures to a folder; without one, to a new
one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dpsearch.privacy import (
    DPSGD,
    Geometric,
    Logarithmic,
    Poisson,
    best_of,
    compose,
    verify,
)
from sklearn_dpsearch.report import TradeOffDisplay

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
FOLDER.mkdir(parents=True, exist_ok=True)
DELTA = 1e-6


def save(name: str) -> None:
    """Keep the picture that was drawn last."""
    plt.savefig(FOLDER / f"{name}.png", dpi=110)
    print(f"{name}.png")


# %%
# The search
# ----------
# The best of 10 nets on average, each trained with DP-SGD. One training alone has ε = 1.3.
one_run = DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=3000)
search = best_of(one_run, Geometric(10))
print(
    f"one run: ε = {one_run.epsilon_at(DELTA):.2f}, the whole search: ε = "
    f"{search.epsilon_at(DELTA):.2f}"
)

# %%
# The privacy profile
# -------------------
# For each ε the δ of one run, of the whole search, and what published theorems say of the same
# search. The crosses are a certificate: some search with such runs really loses so much, so no true
# bound lies below.
at = np.linspace(0.0, 3.0, 150)
published = {
    name: bound
    for name, bound in search.bounds.items()
    if name.startswith(("PS22", "KRW24", "KK23"))
}
for name, guarantee in {"whole search": search, "one run": one_run, **published}.items():
    plt.plot(at, guarantee.delta_at(at), label=name)
places = np.linspace(0.25, 2.25, 5)
losses = [
    verify(one_run, Geometric(10), place, 0.999 * search.delta_at(place)).witness
    for place in places
]
plt.plot(places, losses, "kx", label="some search really loses this much")
plt.yscale("log")
plt.ylim(1e-10, 2.0)
plt.xlabel("ε")
plt.ylabel("δ")
plt.legend()
save("profile")

# %%
# What attacks can reach
# ----------------------
# No attack has a higher true positive rate than the line, at any false positive rate. Two curves on
# the same axes can be compared.
display = TradeOffDisplay.from_guarantee(search).plot(name="whole search")
TradeOffDisplay.from_guarantee(one_run).plot(display.ax_, name="one run")
save("trade_off")

# %%
# Where few are wrongly accused, logarithmic scales show more.
TradeOffDisplay.from_guarantee(search, rates=(0.001, 0.01)).plot(log=True)
save("trade_off_log")

# %%
# How many runs
# -------------
# Distributions with the same mean differ in how likely a single candidate is, and in the quantile
# of the winner.
distributions = {
    "geometric": Geometric(10),
    "Poisson": Poisson(10).at_least_one(),
    "logarithmic": Logarithmic(10),
}
runs = np.arange(1, 50)
plt.figure()
for name, count in distributions.items():
    plt.plot(
        runs, count.pmf(runs), label=f"{name}, expected quantile {count.expected_quantile():.3f}"
    )
plt.xlabel("number of runs K")
plt.ylabel("probability")
plt.legend()
save("distribution")

# %%
shares = np.geomspace(1e-3, 0.5, 120)
plt.figure()
for name, count in distributions.items():
    plt.plot(shares, [count.success_probability(share) for share in shares], label=name)
plt.xscale("log")
plt.xlabel("share of good candidates")
plt.ylabel("chance that the winner is one")
plt.legend()
save("distribution_success")

# %%
# Parts of the cost
# -----------------
# A search, and one more training of the winner. Together they cost less than what both cost alone.
parts = {"search": search.epsilon_at(DELTA), "refit of the winner": one_run.epsilon_at(DELTA)}
total = compose(search, one_run).epsilon_at(DELTA)
bars = {**parts, f"added up (δ = {2 * DELTA:g})": sum(parts.values()), "together": total}
plt.figure()
plt.barh(list(bars), list(bars.values()))
plt.xlabel(f"ε at δ = {DELTA:g}")
plt.tight_layout()
save("parts")
