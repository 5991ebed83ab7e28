"""The least noise that makes a score as private as the training, or as the caller asks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ..privacy import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    NonPrivate,
    PrivacyError,
    PureDP,
    mixture,
)
from ..privacy._checks import Array, check_kind
from ..privacy._guarantees.base import as_guarantee
from ..privacy._guarantees.composition import Mixture
from ..privacy._numerics.basic_mechanisms import negligible_from
from ..privacy._numerics.bisection import Turn, bracket, geometric, narrow, whole_midpoint, within
from ._noise import DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise, Sensitivity

#: δ below which a training guarantee's profile is ignored.
NEGLIGIBLE_DELTA = 1e-12
#: The variances tried differ by a relative step of 1/4096.
FINENESS = 4096
#: End of the search for a variance, in such steps.
LARGEST_MULTIPLE = FINENESS * 2**80


def matched_noise(training: Guarantee, sensitivity: Sensitivity) -> Noise:
    """Least noise of a score that is as private as training at every ε.

    With such noise a record that is only scored loses no more privacy than a record that is only
    trained on. So scores on held-out records cost nothing extra.

    Parameters
    ----------
    training : Guarantee
        Of one training run, or of one scoring. Pure and (ε, δ) guarantees are matched by discrete
        Laplace noise with that ε; an average over different ε by discrete Laplace noise with the
        largest ε whose profile is below the average; ρ-zCDP by discrete Gaussian noise with that ρ;
        all others by the discrete Gaussian noise of least variance whose profile is below the
        training's (or below 1e-12).
    sensitivity : Sensitivity
        Of the statistic, under the relation of ``training``.

    Returns
    -------
    Noise

    Raises
    ------
    PrivacyError
        If the training promises nothing (``NonPrivate``), or reveals nothing (ε = 0).

    Examples
    --------
    >>> matched_noise(PureDP(epsilon=0.5), Sensitivity(1, 1))
    DiscreteLaplaceNoise(scale=Fraction(2, 1))
    """
    training = as_guarantee(training, "training")
    check_kind("sensitivity", sensitivity, Sensitivity, "a Sensitivity, e.g. Sensitivity(1, 1),")
    if isinstance(training, NonPrivate):
        raise PrivacyError(
            "Found NonPrivate, which promises nothing that the noise of a score could match. Give "
            "the score a guarantee, e.g. score_noise=PureDP(epsilon=1.0), or validate on public "
            "data (fit(..., X_public=..., y_public=...))."
        )
    if training.delta_at(0.0) <= np.finfo(float).tiny:
        raise _no_room_error(training)
    return _matched_by_kind(training, sensitivity)


@lru_cache(maxsize=128)
def _matched_by_kind(training: Guarantee, sensitivity: Sensitivity) -> Noise:
    return MATCHING.get(type(training), _laplace_if_pure)(training, sensitivity)


def _laplace_of_epsilon(training: PureDP | ApproxDP, sensitivity: Sensitivity) -> Noise:
    """Laplace noise with ε = l1/scale, exact."""
    if training.epsilon == 0:
        return _least_gaussian(training, sensitivity)
    return _laplace(training.epsilon, sensitivity)


def _gaussian_of_rho(training: ZCDP, sensitivity: Sensitivity) -> Noise:
    """Gaussian noise with ρ = l2²/(2σ²), exact."""
    rho = Fraction(float(training.rho))
    return DiscreteGaussianNoise(Fraction(sensitivity.l2_squared) / (2 * rho))


def _gaussian_of_mu(training: GaussianDP, sensitivity: Sensitivity) -> Noise:
    """Gaussian noise with σ a little above l2/μ.

    On the integers the profile has steps.
    """
    minimum = sensitivity.l2_squared / Fraction(float(training.mu)) ** 2
    return _least_gaussian(training, sensitivity, minimum)


def _laplace_if_pure(training: Guarantee, sensitivity: Sensitivity) -> Noise:
    """Laplace noise for pure training, Gaussian noise for other training."""
    if training.pure_epsilon is not None:
        return _laplace(training.pure_epsilon, sensitivity)
    return _least_gaussian(training, sensitivity)


def _laplace_if_all_are_pure(training: Mixture, sensitivity: Sensitivity) -> Noise:
    """Laplace noise for candidates with different ε.

    Their largest ε would exceed the average guarantee.
    """
    if training.pure_epsilon is None:
        return _least_gaussian(training, sensitivity)
    parts = [PureDP(epsilon=float(part.pure_epsilon or 0.0)) for part in training.parts]
    return _laplace(_largest_epsilon_under(mixture(parts, training.weights)), sensitivity)


def _largest_epsilon_under(training: Guarantee) -> float:
    """Largest pure ε with a profile at most that of a public mixture of randomised responses.

    The profile of ε′ is a line in e^ε that reaches 0 at ε′. The training's profile is convex and
    bends only at its losses, so a comparison there and at 0 is enough.
    """
    largest, losses = float(training.pure_epsilon or 0.0), training.pair.removed.losses
    epsilon = np.append(0.0, losses[(losses > 0) & (losses < largest)])
    allowed = training.delta_at(epsilon) * (1.0 + 1e-9)

    def too_much(candidate: float) -> bool:
        return bool(np.any(PureDP(epsilon=candidate).delta_at(epsilon) > allowed))

    turn = Turn(0.0, largest) if too_much(largest) else Turn(largest, largest)
    return float(narrow(too_much, turn, within(1e-9)).fails or 0.0)


#: Kind of training guarantee ↦ how it is matched; all others by ``_laplace_if_pure``.
MATCHING: dict[type[Guarantee], Callable[[Any, Sensitivity], Noise]] = {
    PureDP: _laplace_of_epsilon,
    ApproxDP: _laplace_of_epsilon,
    ZCDP: _gaussian_of_rho,
    GaussianDP: _gaussian_of_mu,
    Mixture: _laplace_if_all_are_pure,
}


def _laplace(epsilon: float, sensitivity: Sensitivity) -> DiscreteLaplaceNoise:
    """Laplace noise for a pure ε."""
    return DiscreteLaplaceNoise(sensitivity.l1 / Fraction(float(epsilon)))


def _least_gaussian(
    training: Guarantee, sensitivity: Sensitivity, minimum: Fraction = Fraction(0)
) -> DiscreteGaussianNoise:
    """Least Gaussian noise with a profile under an allowed one.

    Bisection on multiples of l2²/4096; returns the end of the bracket that meets the condition.
    """
    epsilon, allowed = _profile_one_step_on(training)
    unit = Fraction(sensitivity.l2_squared, FINENESS)
    # one block is cheap to check, and most variances that are too small fail there
    changes = [*(Sensitivity(l1, l1**2) for l1 in sensitivity.l1_of_blocks[:1]), sensitivity]

    def noise(multiple: float) -> DiscreteGaussianNoise:
        return DiscreteGaussianNoise(int(multiple) * unit)

    def fits(multiple: float) -> bool:
        drawn = noise(multiple)
        guarantees = (drawn.guarantee(change, training.neighboring) for change in changes)
        return all(np.all(guarantee.delta_at(epsilon) <= allowed) for guarantee in guarantees)

    def close(low: float, high: float) -> bool:
        return high - low <= max(1, high // FINENESS)

    first = max(-(-minimum // unit), 1)
    wide = bracket(fits, first, [], geometric(first, 2, LARGEST_MULTIPLE))
    turn = narrow(fits, wide, close, whole_midpoint)
    if turn.holds is None:
        raise _no_room_error(training)
    return noise(turn.holds)


def _profile_one_step_on(training: Guarantee) -> tuple[Array, Array]:
    """Values of ε, and the training's δ at the next one.

    Profiles never rise. Noise with δ(ε_i) ≤ δ_training(ε_{i+1}) is therefore nowhere above the
    training.
    """
    reach = negligible_from(training.delta_at, NEGLIGIBLE_DELTA)
    grid = np.union1d(np.geomspace(1e-4 * reach, reach, 800), np.linspace(0.0, reach, 1600))
    return grid[:-1], np.maximum(training.delta_at(grid[1:]), NEGLIGIBLE_DELTA)


def _no_room_error(training: Guarantee) -> PrivacyError:
    """Error for a guarantee that leaves no room for noise."""
    return PrivacyError(
        f"{training!r} reveals nothing (ε = 0), and only infinite noise could match it. Give the "
        f"score its own guarantee, e.g. score_noise=PureDP(epsilon=1.0), or validate on public "
        f"data."
    )
