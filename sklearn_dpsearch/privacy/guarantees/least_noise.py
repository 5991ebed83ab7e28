"""Least noise whose whole privacy profile is at most that of a common target."""

from __future__ import annotations

import functools
import math

import numpy as np

from ...errors import BudgetUnreachableError
from .._checks import require
from .._types import Neighboring
from ..numerics.inversion import bracket, geometric, geometric_mean, narrowed, within
from .base import Guarantee
from .composition import compose
from .values import DPSGD, ApproxDP, GaussianDP

#: Points at which profiles are compared.
POINTS = 3000
#: Range of the search for noise multipliers.
LEAST_NOISE, MOST_NOISE = 1e-2, 1e6


def gaussian_target(mu: float, neighboring: Neighboring = "add_remove", slack: float = 1e-9) -> Guarantee:
    """The guarantee that ``noise_multiplier_under`` keeps under this relation: μ-GDP, except for a mass of ``slack``.

    DP-SGD has heavier tails than every Gaussian pair, at negligible probabilities. The slack covers these tails and is
    part of the guarantee and of every number computed from it.
    """
    return compose(
        GaussianDP(mu=mu, neighboring=neighboring), ApproxDP(epsilon=0.0, delta=slack, neighboring=neighboring)
    )


@functools.lru_cache(maxsize=1024)
def noise_multiplier_under(
    mu: float, sample_rate: float, steps: int, slack: float = 1e-9, neighboring: Neighboring = "add_remove"
) -> float:
    """The least noise multiplier found with which DP-SGD keeps ``gaussian_target(mu, neighboring)`` at every ε.

    Candidates with different rates and numbers of steps, each calibrated like this, share one guarantee (Koskela &
    Kulkarni 2023, §4.1 and appendix D, with the whole profile in place of a line of Rényi divergences).

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
    require(0 < mu < math.inf, "0 < mu < inf", mu=mu)

    def enough(noise: float) -> bool:
        run = DPSGD(noise_multiplier=noise, sample_rate=sample_rate, steps=steps, neighboring=neighboring)
        return covers(GaussianDP(mu=mu), run, slack)

    guess = float(np.clip(_central_limit(mu, sample_rate, steps, neighboring), LEAST_NOISE, MOST_NOISE))
    turn = bracket(
        enough, guess, falling=geometric(guess, 1 / 1.3, LEAST_NOISE), rising=geometric(guess, 1.3, MOST_NOISE)
    )
    if turn.holds is None:
        raise BudgetUnreachableError(
            f"No noise multiplier up to {MOST_NOISE:g} keeps mu={mu:g} with sample_rate={sample_rate:g} and {steps} "
            "steps. Give a larger budget, a smaller rate or fewer steps."
        )
    enough_noise = narrowed(enough, turn, within(1e-3), geometric_mean).holds
    assert enough_noise is not None
    return enough_noise


def covers(target: Guarantee, guarantee: Guarantee, slack: float = 0.0) -> bool:
    """Return whether a profile is at most the target's at every ε ≥ 0, where the target may fail with ``slack``.

    By duality this also holds at every real ε. Both profiles fall in ε: between two points of the grid, the
    guarantee's value at the left is compared with the target's at the right.
    """
    end = float(target.epsilon_at(max(slack * 1e-3, 1e-15)))
    grid = np.linspace(0.0, end, POINTS)
    ours = np.asarray(guarantee.delta_at(grid))
    theirs = np.append(np.asarray(target.delta_at(grid))[1:], 0.0)
    return bool(np.all(ours <= slack + (1.0 - slack) * theirs))


def _central_limit(mu: float, sample_rate: float, steps: int, neighboring: Neighboring) -> float:
    """First guess of the noise, from the central limit theorem of Bu, Dong, Long & Su (2020).

    The likelihood ratio of one step has variance q²·(e^{1/σ²} − 1), and 4q²·sinh(1/σ²) if a record changes.
    """
    per_step = (mu / sample_rate) ** 2 / steps
    return 1.0 / math.sqrt(math.asinh(per_step / 4) if neighboring == "replace_one" else math.log1p(per_step))
