"""Calibration: from a total (ε, δ), or a shared profile, back to a mechanism's parameter."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np

from ..errors import BudgetUnreachableError, MissingDeltaError
from ._checks import Neighboring, as_numbers, number_in, plain_number, require, require_in
from ._guarantees.base import Guarantee, as_guarantee
from ._guarantees.composition import compose
from ._guarantees.single_mechanisms import DPSGD, ApproxDP, GaussianDP
from ._numerics.bisection import Turn, geometric, geometric_mean, narrow, within
from ._numerics.bisection import bracket as first_turn

#: Parameters that are tried where no bracket is given, the first of them, and from each to the
#: next.
LEAST_PARAMETER, START, LARGEST_PARAMETER, FACTOR = 1e-9, 1.0, 1e9, 8.0
#: Largest power of FACTOR at which the direction is looked for, if all nearer parameters promise
#: nothing.
SILENT_STEPS = 4
#: If small parameters are impossible: relative distances at which the smallest possible one is
#: approached.
APPROACH = (0.5, 0.05, 0.001)
#: Two parameters this close to each other, on a logarithmic scale, are as good as one.
SAME_PARAMETER = 1e-9
#: The point that is tried next aims this much below the target, to end on the safe side of it.
AIM_BELOW = 7e-5


#: Rough bounds are followed to this share of the target, then exact bounds for at most STEPS steps.
ROUGH_TOLERANCE, STEPS = 0.01, 6
#: Relative distance from the target at which steps end; and those with exact bounds that take about
#: a second each.
TOLERANCE, SLOW_TOLERANCE = 2e-4, 5e-4


#: Guarantee by parameter.
GuaranteeOf: TypeAlias = Callable[[float], Guarantee]
#: ε by parameter; None where no mechanism has it.
Reached: TypeAlias = Callable[[float], float | None]


class Bracket(NamedTuple):
    """Parameter that meets the target ε and one that fails it, or None."""

    safe: float | None
    unsafe: float | None


def calibrate(
    guarantee_of: GuaranteeOf,
    target_epsilon: float,
    delta: float,
    bracket: tuple[float, float] | None = None,
    *,
    tolerance: float | None = None,
) -> float:
    """Find the least private parameter whose guarantee meets the target.

    Parameters
    ----------
    guarantee_of : callable
        Parameter ↦ guarantee, monotone in either direction (a noise multiplier, an ε, a factor). It
        raises ``BudgetUnreachableError`` where no mechanism has this parameter (it would need more
        noise than it can have).
    target_epsilon, delta : float
        The target, ε > 0 and 0 ≤ δ < 1.
    bracket : (float, float), optional
        Two positive parameters, one on each side of the target. By default they are found, starting
        from 1, between 1e-9 and 1e9.
    tolerance : float, optional
        Relative distance of the reached ε from the target at which the search stops. By default
        2e-4, and 5e-4 where each ε takes about a second (Theorem 6).

    Returns
    -------
    float
        A parameter whose guarantee has ``epsilon_at(delta) <= target_epsilon``.

    Raises
    ------
    BudgetUnreachableError
        If no parameter in the bracket meets the target; the message says the smallest ε in reach.
    MissingDeltaError
        If only a δ above 0 makes any ε possible.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> mu = calibrate(lambda mu: GaussianDP(mu=mu), 1.0, 1e-6)
    >>> bool(0.999 < GaussianDP(mu=mu).epsilon_at(1e-6) <= 1.0)
    True
    """
    if not callable(guarantee_of):
        raise TypeError(
            f"Found guarantee_of={guarantee_of!r}; a function from a number to a guarantee is "
            "needed, e.g. lambda mu: GaussianDP(mu=mu)."
        )
    target_epsilon = number_in("(0, inf)", target_epsilon=target_epsilon)
    delta = number_in("[0, 1)", delta=delta)
    near_enough, close = TOLERANCE, SLOW_TOLERANCE
    if tolerance is not None:
        near_enough = close = plain_number("tolerance", tolerance)
    if bracket is not None:
        ends_given = as_numbers("bracket", bracket)
        require(ends_given.shape == (2,), "a bracket of two numbers", bracket=bracket)
        valid = min(bracket) > 0 and max(bracket) < np.inf
        require(valid, "a bracket of positive numbers", bracket=bracket)
    name = "what guarantee_of returns"
    built = cache(lambda parameter: as_guarantee(guarantee_of(parameter), name))
    reached = _epsilon_by_parameter(built, delta)
    if bracket is not None:
        ends = _sorted_bracket(reached, target_epsilon, bracket)
    else:
        close_ends = _bracket_by_rough_bounds(built, reached, target_epsilon, delta, close)
        ends = close_ends or _bracket_target(reached, target_epsilon)
    if ends.safe is None:
        smallest = _or_infinite(reached(ends.unsafe) if ends.unsafe else None)
        if delta == 0 and math.isinf(smallest):
            raise MissingDeltaError(
                f"No pure guarantee is possible here: delta={delta} was found and a delta > 0 is "
                "needed. Give delta, well below 1 divided by the number of records."
            )
        wider = "" if bracket is None else f"another bracket than {bracket}, or "
        raise BudgetUnreachableError(
            f"The target epsilon={target_epsilon:g} at delta={delta:g} is out of reach: the "
            f"smallest epsilon possible here is {smallest:.4g}. Give {wider}a larger epsilon or "
            "delta, fewer runs (n_iter), or a noisier estimator."
        )
    if ends.unsafe is None:
        return ends.safe
    return _narrow_bracket(reached, target_epsilon, ends.safe, ends.unsafe, near_enough)


def _epsilon_by_parameter(guarantee_of: GuaranteeOf, delta: float) -> Reached:
    """ε at δ as a function of the parameter, computed once for each."""

    @cache
    def reached(parameter: float) -> float | None:
        try:
            guarantee = guarantee_of(parameter)
        except BudgetUnreachableError:
            return None
        return float(guarantee.epsilon_at(delta))

    return reached


def _meets_target(reached: Reached, target: float) -> Callable[[float], bool]:
    """Predicate: the guarantee of a parameter has at most the target ε."""

    def met(parameter: float) -> bool:
        epsilon = reached(parameter)
        return epsilon is not None and epsilon <= target

    return met


# --- two parameters around the target -------------------------------------------------------------


def _bracket_by_rough_bounds(
    guarantee_of: GuaranteeOf, reached: Reached, target: float, delta: float, tolerance: float
) -> Bracket | None:
    """Bracket the target ε closely by fast rough bounds; None if these fail.

    A parameter that is safe by a rough bound is safe. From there the exact bounds approach the
    target in two or three steps.
    """

    try:
        if guarantee_of(START)._roughly() is guarantee_of(START):
            return None
    except BudgetUnreachableError:
        return None
    rough = _epsilon_by_parameter(lambda point: guarantee_of(point)._roughly(), delta)
    ends = _bracket_target(rough, target)
    if ends.safe is None or ends.unsafe is None:
        return None
    point = _narrow_bracket(rough, target, ends.safe, ends.unsafe, ROUGH_TOLERANCE)
    power = _local_power(rough, point, ends.unsafe)
    for _ in range(STEPS):  # along a power law
        epsilon = _or_infinite(reached(point))
        if not 0 < epsilon < math.inf or power == 0:
            return None
        if target * (1 - tolerance) <= epsilon <= target:
            return Bracket(point, None)
        last, before = point, epsilon
        point = float(last * (target * (1 - tolerance / 2) / epsilon) ** (1.0 / power))
        now = _or_infinite(reached(point))
        if point == last or not 0 < now < math.inf or now == before:
            return None
        power = math.log(now / before) / math.log(point / last)
    return None


def _local_power(reached: Reached, safe: float, unsafe: float) -> float:
    """Exponent of ε ∝ parameter^power near a parameter; 0 if there is none."""
    point = safe * (1.05 if unsafe > safe else 1 / 1.05)
    shifted_epsilon, safe_epsilon = _or_infinite(reached(point)), _or_infinite(reached(safe))
    if not 0 < safe_epsilon < shifted_epsilon < math.inf:
        return 0.0
    return math.log(shifted_epsilon / safe_epsilon) / math.log(point / safe)


def _sorted_bracket(reached: Reached, target: float, ends: tuple[float, float]) -> Bracket:
    """Bracket of the target from the caller's two parameters."""
    met = _meets_target(reached, target)
    safe = [parameter for parameter in ends if met(parameter)]
    if len(safe) == 1:
        return Bracket(safe[0], ends[1] if safe[0] == ends[0] else ends[0])
    best = sorted(ends, key=lambda parameter: _or_infinite(reached(parameter)))
    return Bracket(best[-1], None) if safe else Bracket(None, best[0])


def _bracket_target(reached: Reached, target: float) -> Bracket:
    """Bracket the target ε by a geometric walk of parameters from START."""
    met, factor = _meets_target(reached, target), _search_direction(reached, target)
    met_at_start, end = met(START), LARGEST_PARAMETER if factor > 1 else LEAST_PARAMETER
    points = takewhile(lambda point: reached(point) is not None, geometric(START, factor, end))
    last, passed = first_turn(lambda point: met(point) != met_at_start, START, (), points)
    assert last is not None
    if met_at_start:
        return Bracket(last, passed)
    beyond = float(np.clip(last * factor, LEAST_PARAMETER, LARGEST_PARAMETER))
    if passed is None and reached(beyond) is None:
        return _bracket_next_to_impossible(reached, target, beyond, last)
    return Bracket(passed, last)


def _search_direction(reached: Reached, target: float) -> float:
    """Factor on the parameter that leads towards the target ε."""
    start = reached(START)
    needed = f"a bracket, as no mechanism has the parameter {START:g}"
    require(start is not None, needed, bracket=None)
    too_much = _or_infinite(start) > target
    towards = (1 / FACTOR, FACTOR) if too_much else (FACTOR, 1 / FACTOR)
    for power in range(1, SILENT_STEPS + 1):  # where ε is infinite all around, further out
        for factor in towards:
            epsilon = reached(START * factor**power)
            # more noise than a mechanism can have: so this is where the noise is
            if too_much and epsilon is None:
                return factor
            if epsilon not in (None, start) and (epsilon < _or_infinite(start)) == too_much:
                return factor
    return towards[0]


def _bracket_next_to_impossible(
    reached: Reached, target: float, impossible: float, unsafe: float
) -> Bracket:
    """Bracket the target ε beside parameters that no mechanism has."""
    below = impossible < unsafe
    met = _meets_target(reached, target)
    turn = Turn(min(impossible, unsafe), max(impossible, unsafe))
    edge = unsafe
    for gap in APPROACH:
        turn = narrow(
            lambda point: (reached(point) is None) != below, turn, within(gap), geometric_mean
        )
        edge = (turn.holds if below else turn.fails) or unsafe
        if met(edge):
            return Bracket(edge, unsafe)
    return Bracket(None, edge)


def _or_infinite(epsilon: float | None) -> float:
    """ε, or infinity where no mechanism has the parameter."""
    return math.inf if epsilon is None else epsilon


# --- between them ---------------------------------------------------------------------------------


def _narrow_bracket(
    reached: Reached, target: float, safe: float, unsafe: float, tolerance: float
) -> float:
    """Safe parameter of a small bracket around the target ε."""
    met, rising = _meets_target(reached, target), safe < unsafe

    def close(low: float, high: float) -> bool:
        reached_there = _or_infinite(reached(low if rising else high))
        return reached_there >= target * (1 - tolerance) or high <= low * (1 + SAME_PARAMETER)

    def middle(low: float, high: float) -> float:
        """Point at which a power law through both ends meets the target ε."""
        inner, outer = (low, high) if rising else (high, low)
        inner_epsilon, outer_epsilon = _or_infinite(reached(inner)), _or_infinite(reached(outer))
        share = 0.5
        if 0 < inner_epsilon < outer_epsilon < math.inf:
            log_step = math.log(target * (1 - AIM_BELOW) / inner_epsilon)
            share = log_step / math.log(outer_epsilon / inner_epsilon)
        share = float(np.clip(share, 0.05, 0.95))
        return float(np.exp(np.log(inner) + share * (np.log(outer) - np.log(inner))))

    ends = Turn(min(safe, unsafe), max(safe, unsafe))
    turn = narrow(lambda point: met(point) != rising, ends, close, middle)
    safe_end = turn.fails if rising else turn.holds
    assert safe_end is not None
    return safe_end


#: Points at which profiles are compared.
POINTS = 3000
#: Range of the search for noise multipliers.
LEAST_NOISE, MOST_NOISE = 1e-2, 1e6


def gaussian_target(
    mu: float, neighboring: Neighboring = "add_remove", slack: float = 1e-9
) -> Guarantee:
    """Guarantee that ``noise_multiplier_under`` keeps: μ-GDP, but for a mass ``slack``.

    DP-SGD has heavier tails than every Gaussian pair, at negligible probabilities. The slack covers
    these tails and is part of the guarantee and of every number computed from it.
    """
    gaussian = GaussianDP(mu=mu, neighboring=neighboring)
    return compose(gaussian, ApproxDP(epsilon=0.0, delta=slack, neighboring=neighboring))


@lru_cache(maxsize=1024)
def noise_multiplier_under(
    mu: float,
    sample_rate: float,
    steps: int,
    slack: float = 1e-9,
    neighboring: Neighboring = "add_remove",
) -> float:
    """Least noise multiplier with which DP-SGD keeps ``gaussian_target`` at every ε.

    Candidates with different rates and numbers of steps, each calibrated like this, share one
    guarantee (Koskela & Kulkarni 2023, §4.1 and appendix D, with the whole profile in place of a
    line of Rényi divergences).

    Parameters
    ----------
    mu : float
        μ > 0 of the Gaussian target.
    sample_rate : float
    steps : int
    slack : float
    neighboring : {"add_remove", "zero_out", "replace_one"}
        The first two need the same noise, the third needs more.

    Returns
    -------
    float
        Within 0.1 % of the least.

    Raises
    ------
    BudgetUnreachableError
        If no noise multiplier up to 1e6 is enough.

    Examples
    --------
    >>> round(noise_multiplier_under(0.5, 0.01, 1000), 2) < 1.5
    True
    """
    require_in("(0, inf)", mu=mu, sample_rate=sample_rate, steps=steps)

    def enough(noise: float) -> bool:
        run = DPSGD(
            noise_multiplier=noise, sample_rate=sample_rate, steps=steps, neighboring=neighboring
        )
        return covers(GaussianDP(mu=mu), run, slack)

    # by the central limit theorem (Bu, Dong, Long & Su 2020): the likelihood ratio of one step has
    # variance q²·(e^{1/σ²} − 1), and 4q²·sinh(1/σ²) if a record changes
    per_step = (mu / sample_rate) ** 2 / steps
    replaced = neighboring == "replace_one"
    root = math.sqrt(math.asinh(per_step / 4) if replaced else math.log1p(per_step))
    guess = float(np.clip(1.0 / root, LEAST_NOISE, MOST_NOISE))
    lower, higher = geometric(guess, 1 / 1.3, LEAST_NOISE), geometric(guess, 1.3, MOST_NOISE)
    turn = first_turn(enough, guess, falling=lower, rising=higher)
    if turn.holds is None:
        raise BudgetUnreachableError(
            f"No noise multiplier up to {MOST_NOISE:g} keeps mu={mu:g} with "
            f"sample_rate={sample_rate:g} and {steps} steps. Give a larger budget, a smaller rate "
            "or fewer steps."
        )
    enough_noise = narrow(enough, turn, within(1e-3), geometric_mean).holds
    assert enough_noise is not None
    return enough_noise


def covers(target: Guarantee, guarantee: Guarantee, slack: float) -> bool:
    """Return whether a privacy profile is at most slack + (1 − slack)·target at every ε ≥ 0.

    By duality this also holds at every real ε. Both profiles fall in ε: between two points of the
    grid, the guarantee's value at the left is compared with the target's at the right.
    """
    end = float(target.epsilon_at(max(slack * 1e-3, 1e-15)))
    grid = np.linspace(0.0, end, POINTS)
    deltas = np.asarray(guarantee.delta_at(grid))
    targets = np.append(np.asarray(target.delta_at(grid))[1:], 0.0)
    return bool(np.all(deltas <= slack + (1.0 - slack) * targets))
