"""DP-SGD from a rate of 1e-7 to 1 and from one step to ten millions: close to dp_accounting, and
monotone."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from sklearn_dpsearch.privacy import DPSGD, RenyiDP, best_of, compose
from sklearn_dpsearch.privacy._guarantees.single_mechanisms import ORDERS
from tests.privacy.brute_force import FULL

pytestmark = pytest.mark.slow
RATES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0) if FULL else (1e-7, 1e-4, 0.1)
STEPS = (1, 10, 1000, 10**5, 10**7) if FULL else (1, 10**7)
SIGMAS = (0.4, 0.6, 1.0, 3.0, 10.0) if FULL else (0.4, 10.0)
DELTAS = np.array([1e-10, 1e-7, 1e-4])
#: Far out, in the middle, and where one step or every record counts.
FEW = [
    (0.4, 1e-7, 10**7), (0.6, 1e-6, 10**5), (0.6, 1e-5, 10), (1.0, 1e-3, 1000), (10.0, 1e-2, 10**5),
    (3.0, 1.0, 10),
]  # fmt: skip
GRID = sorted({*FEW, *itertools.product(SIGMAS, RATES, STEPS)})


def sgd(sigma: float, rate: float, steps: int) -> DPSGD:
    return DPSGD(noise_multiplier=sigma, sample_rate=rate, steps=steps)


def of_dp_accounting(sigma: float, rate: float, steps: int) -> np.ndarray | None:
    """ε by a pessimistic loss distribution on a grid of 1e-4; None where it would take minutes or
    all memory."""
    spread = rate * math.sqrt(steps * math.expm1(min(sigma**-2, 50.0)))
    if spread > 3.0 or steps * rate > 1e4:
        return None
    one = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-4, pessimistic_estimate=True
    )
    composed = one.self_compose(steps) if steps > 1 else one
    return np.array([composed.get_epsilon_for_delta(delta) for delta in DELTAS])


@pytest.mark.parametrize(("sigma", "rate", "steps"), GRID)
def test_epsilon_is_close_and_consistent(sigma: float, rate: float, steps: int) -> None:
    run = sgd(sigma, rate, steps)
    begin = time.process_time()
    epsilon = run.epsilon_at(DELTAS)
    seconds = time.process_time() - begin
    assert np.all(np.diff(epsilon[np.isfinite(epsilon)]) <= 0)
    assert np.all(epsilon <= RenyiDP(orders=ORDERS, epsilons=run.renyi(ORDERS)).epsilon_at(DELTAS))
    longer = compose(run, sgd(sigma, rate, 1))
    apart = np.where(epsilon > 100, 1e-3, 1e-8)  # above 100, which promises nothing, grids differ
    assert np.all(longer.epsilon_at(DELTAS) >= epsilon * (1 - apart))
    if epsilon[0] < 50:
        assert np.all(best_of(run, 10).epsilon_at(DELTAS) >= epsilon * (1 - 1e-8))
    theirs = of_dp_accounting(sigma, rate, steps)
    if theirs is not None:
        finite = np.isfinite(theirs)
        assert np.all(epsilon[finite] <= 1.05 * theirs[finite] + 1e-12)
        print(
            f"ratio {np.max(epsilon[finite] / np.maximum(theirs[finite], 1e-12), initial=0.0):.4f}",
            end=", ",
        )
    print(f"{seconds:.2f} s: {epsilon}")


def test_epsilon_falls_with_the_noise_and_rises_with_the_rate_and_the_steps() -> None:
    settings = itertools.product(SIGMAS, RATES, STEPS)
    found = np.array([sgd(*setting).epsilon_at(DELTAS) for setting in settings])
    found = found.reshape(len(SIGMAS), len(RATES), len(STEPS), len(DELTAS))
    with np.errstate(invalid="ignore"):
        for axis, sign in ((0, -1), (1, 1), (2, 1), (3, -1)):
            steps = sign * np.diff(found, axis=axis)
            assert np.all((steps >= 0) | np.isnan(steps))  # both infinite: not a number


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "stated"), [
    (0.6, 2.56e-5, 390_625, 1e-5, 0.235), (0.5, 1e-5, 10**6, 1e-5, 0.498),
    (0.7, 1e-5, 10**5, 1e-5, 0.024), (0.5, 1e-6, 10**4, 1e-10, 0.297),
])  # fmt: skip
def test_rare_large_losses_do_not_count_for_all(sigma, rate, steps, delta, stated) -> None:
    """A bulk of tiny losses, and rare large ones: .541, 17.6, 2.24 and 157 if one grid had to hold
    both."""
    assert 0.9 * stated < sgd(sigma, rate, steps).epsilon_at(delta) < stated


def test_many_steps_at_a_tiny_rate_show_at_least_what_one_step_alone_does() -> None:
    """T independent chances to see the loss of one step: δ_T(ε) is near the sum of all."""
    run, one = sgd(0.4, 1e-7, 10**5), sgd(0.4, 1e-7, 1)
    at = np.array([0.95, 1.5, 3.0])
    assert np.all(run.delta_at(at) >= 10**5 * one.delta_at(at) * (1 - 1e-3))
    assert np.all(run.delta_at(at) <= 10**5 * one.delta_at(at) * 1.05)
