"""Refusal of a search without a finite ε, with the settings that would give one."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy

from ...privacy import ApproxDP, BudgetUnreachableError, CountDistribution, Guarantee
from ...privacy._spent import PrivacySpent
from ...privacy._statement.content import short_up
from .._records import Parameters
from .plan import Plan

#: Largest δ that is suggested where the number of records is private, and steps of a bisection.
LARGEST_DELTA, STEPS = 0.1, 40

CURVE = (
    " An (epsilon, delta) is one point of a training's curve. Of DP-SGD declare the curve, "
    "DPSGD(noise_multiplier=..., sample_rate=..., steps=...) instead of ApproxDP(epsilon=..., "
    "delta=...): 2.35 instead of infinity for the same training (noise 1.38, rate 1/16, 48 steps; "
    "20 runs, delta=1e-4)."
)


def check_finite(
    search: Parameters, plan: Plan, spent: PrivacySpent, n_samples: int | None, public: bool
) -> None:
    """Raise for an infinite ε.

    Parameters
    ----------
    search : Parameters
    plan : Plan
    spent : PrivacySpent
        The plan's cost at the δ that is asked for.
    n_samples : int or None
        Number of records.
    public : bool
        Whether candidates are scored on public data.

    Raises
    ------
    BudgetUnreachableError
    """
    if math.isfinite(spent.epsilon):
        return

    def with_n_iter(mean: int) -> Guarantee:
        other = copy(search)
        other.n_iter = mean
        plan: Plan = other._strategy().plan(n_samples, public, spent.delta)
        return plan.spent.guarantee

    remedies = _larger_delta(spent, n_samples)
    if plan.distribution is not None and hasattr(search, "n_iter"):
        remedies = _fewer_runs(plan.distribution, spent.delta, with_n_iter) + remedies
    if isinstance(plan.promises.worst, ApproxDP):
        remedies += CURVE
    raise BudgetUnreachableError(
        f"Found epsilon=infinity at delta={spent.delta:g} for the whole fit, which promises "
        f"nothing. A finite epsilon is needed.{remedies or ' Give an estimator with a guarantee.'}"
    )


def _fewer_runs(
    runs: CountDistribution, delta: float, with_n_iter: Callable[[int], Guarantee]
) -> str:
    """Suggestion of the largest whole mean number of runs with a finite ε."""
    low, high = 0, max(1, math.ceil(float(runs.mean)))
    while high - low > 1:
        middle = (low + high) // 2
        finite = math.isfinite(float(with_n_iter(middle).epsilon_at(delta)))
        low, high = (middle, high) if finite else (low, middle)
    return f" The largest mean number of runs with a finite epsilon is n_iter={low}." if low else ""


def _larger_delta(spent: PrivacySpent, n_samples: int | None) -> str:
    """Suggestion of the smallest δ with a finite ε, if it is below 1/n."""
    largest = LARGEST_DELTA if n_samples is None else 1.0 / n_samples
    low, high = spent.delta, largest
    if not low < high or not math.isfinite(spent.epsilon_at(high)):
        return ""
    for _ in range(STEPS):
        middle = math.sqrt(max(low, high * 1e-12) * high)
        low, high = (low, middle) if math.isfinite(spent.epsilon_at(middle)) else (middle, high)
    suggestion = float(short_up(high, 2))
    text = f" The smallest delta with one is about delta={suggestion:g}."
    return text if suggestion < largest else ""
