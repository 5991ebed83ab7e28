"""Pictures of what a search costs
===============================

Every picture of the library. Each class computes first (``from_…``) and draws then (``plot``), as in scikit-learn.
Nothing here needs data: a guarantee is known before. ``python examples/guides/pictures.py FOLDER`` saves them to a
folder; without one, to a new one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from sklearn_dpsearch.privacy import DPSGD, Geometric, Logarithmic, Poisson, best_of, compose
from sklearn_dpsearch.privacy.spent import Component, PrivacySpent
from sklearn_dpsearch.report import (
    CostPartsDisplay,
    CountDistributionDisplay,
    PrivacyProfileDisplay,
    TradeOffDisplay,
)

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
print(f"one run: ε = {one_run.epsilon_at(DELTA):.2f}, the whole search: ε = {search.epsilon_at(DELTA):.2f}")

# %%
# The privacy profile
# -------------------
# For each ε the δ of one run, of the whole search, and what published theorems say of the same search. The crosses are
# a certificate: some search with such runs really loses so much, so no true bound lies below.
PrivacyProfileDisplay.from_guarantee(search).plot()
save("profile")

# %%
# What attacks can reach
# ----------------------
# No attack has a higher true positive rate than the line, at any false positive rate. Two curves on the same axes can
# be compared.
whole = TradeOffDisplay.from_guarantee(search).plot(name="whole search")
TradeOffDisplay.from_guarantee(one_run).plot(whole.ax_, name="one run")
save("trade_off")

# %%
# Where few are wrongly accused, logarithmic scales show more.
TradeOffDisplay.from_guarantee(search, rates=(0.001, 0.01)).plot(log=True)
save("trade_off_log")

# %%
# How many runs
# -------------
# Distributions with the same mean differ in how likely a single candidate is, and in the quantile of the winner.
distributions = CountDistributionDisplay.from_distribution([Geometric(10), Poisson(10), Logarithmic(10)])
distributions.plot()
save("distribution")

# %%
distributions.plot(kind="success")
save("distribution_success")

# %%
# Parts of the cost
# -----------------
# A search, and one more training of the winner. Together they cost less than what both cost alone.
spent = PrivacySpent(
    guarantee=compose(search, one_run),
    delta=DELTA,
    components=(
        Component(name="best of K runs, K ~ Geometric(10)", guarantee=search),
        Component(name="refit of the winner on all records", guarantee=one_run),
    ),
)
CostPartsDisplay.from_statement(spent).plot()
save("parts")
