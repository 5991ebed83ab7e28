"""From a target (ε, δ) back to the parameter of the base mechanism."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._checks import require
from .errors import BudgetUnreachableError, MissingDeltaError
from .guarantees.base import Guarantee, as_guarantee


def calibrate(
    guarantee_of: Callable[[float], Guarantee],
    target_epsilon: float,
    delta: float,
    bracket: tuple[float, float],
    *,
    tolerance: float = 2e-4,
) -> float:
    """The least private parameter found whose guarantee meets the target.

    Parameters
    ----------
    guarantee_of : callable
        Parameter ↦ guarantee, monotone in either direction (a noise multiplier, an ε, a factor).
    target_epsilon, delta : float
        The target, ε > 0 and 0 ≤ δ < 1.
    bracket : (float, float)
        Two positive parameters, one on each side of the target.
    tolerance : float
        Relative distance of the reached ε from the target at which the search stops.

    Returns
    -------
    float
        A parameter whose guarantee has ``epsilon_at(delta) <= target_epsilon``.

    Raises
    ------
    BudgetUnreachableError
        If no parameter in the bracket meets the target; the message says the smallest ε in reach.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> mu = calibrate(lambda mu: GaussianDP(mu=mu), 1.0, 1e-6, (0.01, 10.0))
    >>> bool(0.999 < GaussianDP(mu=mu).epsilon_at(1e-6) <= 1.0)
    True
    """
    require(0 < target_epsilon < np.inf, "0 < target_epsilon < inf", target_epsilon=target_epsilon)
    require(0 <= delta < 1, "0 <= delta < 1", delta=delta)
    require(0 < bracket[0] < np.inf and 0 < bracket[1] < np.inf, "a bracket of positive numbers", bracket=bracket)

    def reached(parameter: float) -> float:
        return float(as_guarantee(guarantee_of(parameter), "what guarantee_of returns").epsilon_at(delta))

    ends = sorted((reached(one), one) for one in bracket)
    (least, safe), (most, unsafe) = ends
    if least > target_epsilon:
        if np.isinf(least) and delta == 0:
            raise MissingDeltaError(
                f"No pure guarantee is possible here: delta={delta} was found and a delta > 0 is needed. "
                "Give delta, well below 1 divided by the number of records."
            )
        raise BudgetUnreachableError(
            f"The target epsilon={target_epsilon:g} at delta={delta:g} is out of reach: the smallest epsilon possible "
            f"here is {least:.4g}. Give a larger epsilon or delta, fewer runs (n_iter), or a noisier estimator."
        )
    if most <= target_epsilon:
        return unsafe
    best = least
    while best < target_epsilon * (1 - tolerance) and abs(np.log(unsafe / safe)) > 1e-9:
        middle = _between(safe, unsafe, best, most, target_epsilon)
        epsilon = reached(middle)
        safe, best, unsafe, most = (
            (middle, epsilon, unsafe, most) if epsilon <= target_epsilon else (safe, best, middle, epsilon)
        )
    return safe  # meets the target; the least private parameter that does lies between safe and unsafe


def _between(safe: float, unsafe: float, best: float, most: float, target: float) -> float:
    """A point inside the bracket: where a power law through both ends would meet the target, kept off the ends."""
    share = 0.5
    if 0 < best < most < np.inf:
        share = np.log(target * (1 - 7e-5) / best) / np.log(most / best)
    share = float(np.clip(share, 0.05, 0.95))
    return float(np.exp(np.log(safe) + share * (np.log(unsafe) - np.log(safe))))
