"""Stated ε of released versions: they may fall, and rise only with a security notice
(docs/versions.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import sklearn_dpsearch.privacy as dp

RUN = dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)

#: Call ↦ ε at δ = 1e-5 that version 0.3.0 states.
STATED: dict[str, tuple[Callable[[], dp.Guarantee], float]] = {
    "Gaussian": (lambda: dp.GaussianDP(mu=0.5), 1.9931),
    "zCDP": (lambda: dp.ZCDP(rho=0.1), 1.91424),
    "DP-SGD": (lambda: RUN, 1.47746),
    "two trainings": (lambda: dp.compose(RUN, dp.GaussianDP(mu=0.3)), 1.9255),
    "pure, geometric": (lambda: dp.best_of(dp.PureDP(epsilon=1.0), dp.Geometric(10)), 2.59135),
    "Gaussian, geometric": (lambda: dp.best_of(dp.GaussianDP(mu=0.5), dp.Geometric(10)), 3.00987),
    "DP-SGD, logarithmic": (lambda: dp.best_of(RUN, dp.Logarithmic(10)), 2.11639),
    "DP-SGD, Poisson": (lambda: dp.best_of(RUN, dp.Poisson(10)), 2.85186),
    "subset, rest": (
        lambda: dp.subset_then_train(dp.best_of(RUN, dp.Geometric(15)), RUN, 0.1), 1.41111,
    ),
    "subset, all": (
        lambda: dp.subset_then_train(dp.best_of(RUN, dp.Geometric(15)), RUN, 0.1, "all"), 1.64177,
    ),
    "threshold": (lambda: dp.until_above(RUN, 0.1), 1.94739),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", STATED)
def test_no_stated_epsilon_rises(name: str) -> None:
    guarantee, stated = STATED[name]
    assert 0.5 * stated < guarantee().epsilon_at(1e-5) <= stated
