"""What ε means for the people in the data
=======================================

The best of 20 runs on average is released. One run is a Gaussian mechanism, as noisy as a total of
ε = 3 at δ = 1e-5 needs. Beside it stands the worst mechanism with the same ε and δ: all that could
be said if only these were known.
"""

from __future__ import annotations

import math

from sklearn_dpsearch.privacy import ApproxDP, GaussianDP, Guarantee, best_of, calibrate, for_group
from sklearn_dpsearch.report import TradeOffDisplay

EPSILON, DELTA, RUNS = 3.0, 1e-5, 20


def search() -> Guarantee:
    """A search with the total."""
    return best_of(
        GaussianDP(mu=calibrate(lambda mu: best_of(GaussianDP(mu=mu), RUNS), EPSILON, DELTA)), RUNS
    )


def readings(guarantee: Guarantee) -> dict[str, str]:
    """Question by question."""
    return {
        "advantage": up(guarantee.advantage()),
        "found of those used, if 1 of 100 others is accused": up(1 - guarantee.trade_off(0.01)),
        "right about who was used, half of them were": up(guarantee.bayes_risk(0.5, "membership")),
        "right about one of four, all as likely": up(guarantee.bayes_risk(0.25)),
        "right about a number of four digits": up(guarantee.bayes_risk(1e-4), 5),
    }


def up(bound: float, digits: int = 3) -> str:
    """A bound with a few decimals, rounded up."""
    return (
        f"{math.ceil(bound * 10**digits) / 10**digits:.{digits}f}"
        if math.isfinite(bound)
        else "none"
    )


# %%
total, worst = search(), ApproxDP(epsilon=EPSILON, delta=DELTA)
profile, point = readings(total), readings(worst)
print(f"{f'ε = {EPSILON:g} at δ = {DELTA:g}':52}{'this search':>16}{'ε and δ alone':>16}")
for question, answer in profile.items():
    print(f"{question:52}{answer:>16}{point[question]:>16}")
print("\nrecords of one person, ε at the same δ, advantage")
for records in (1, 2, 5):
    person = for_group(total, records)
    print(f"{records:7d}{up(person.epsilon_at(DELTA), 2):>17}{up(person.advantage()):>15}")

# %%
# The same for every attack: what it finds at most, against its false alarms.
TradeOffDisplay.from_guarantee(total).plot(name="this search")
