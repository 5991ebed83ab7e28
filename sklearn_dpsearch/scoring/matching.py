"""Noise that keeps a promise: the one of the training, or one given for the score."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..privacy import ZCDP, ApproxDP, GaussianDP, Guarantee, NonPrivate, PrivacyError, PureDP
from .noise import DiscreteGaussianNoise, DiscreteLaplaceNoise, Noise, Sensitivity

#: Part of a training guarantee's tail that matching ignores.
NEGLIGIBLE = 1e-12
#: Relative step of the variances tried.
FINENESS = 4096


def matched_noise(training: Guarantee, sensitivity: Sensitivity) -> Noise:
    """The least noise that promises at every ε what the training promises.

    A record that is scored by such noise is no worse off than a record that is trained on, so held-out scores
    cost nothing where the two never happen to one record.

    Parameters
    ----------
    training : Guarantee
        One training run. Pure and (ε, δ) guarantees are matched by discrete Laplace noise with that ε, ρ-zCDP
        by discrete Gaussian noise with that ρ, all others by the discrete Gaussian noise of least variance
        whose profile stays under theirs, their tail below 1e-12 excepted.
    sensitivity : Sensitivity
        Of the statistic, under the relation of ``training``.

    Returns
    -------
    Noise

    Raises
    ------
    PrivacyError
        If the training promises nothing, or everything (ε = 0).

    Examples
    --------
    >>> matched_noise(PureDP(epsilon=0.5), Sensitivity(1, 1))
    DiscreteLaplaceNoise(scale=Fraction(2, 1))
    """
    if isinstance(training, NonPrivate):
        raise PrivacyError(
            "The training guarantee is NonPrivate: there is nothing that noise could match. Give the score its "
            "own guarantee, e.g. score_noise=PureDP(epsilon=1.0), or validate on public data "
            "(fit(..., X_public=..., y_public=...))."
        )
    matching = MATCHING.get(type(training), _laplace_if_pure)
    return matching(training, sensitivity)


def noise_for(guarantee: Guarantee, sensitivity: Sensitivity) -> Noise:
    """The least noise that keeps a guarantee given for one scoring.

    Laplace for ``PureDP`` and ``ApproxDP``, Gaussian for ``ZCDP`` and ``GaussianDP``; whatever else a
    training run may promise is matched (``matched_noise``).

    Parameters
    ----------
    guarantee : Guarantee
        Of one scoring.
    sensitivity : Sensitivity
        Of the statistic, under the relation of the guarantee.

    Returns
    -------
    Noise
        To be drawn on integers.
    """
    if isinstance(guarantee, NonPrivate):
        raise PrivacyError(
            "NonPrivate is no guarantee for a score on private records. Give one, e.g. "
            "score_noise=PureDP(epsilon=1.0), or validate on public data."
        )
    return matched_noise(guarantee, sensitivity)


def _same_epsilon(training: Any, sensitivity: Sensitivity) -> Noise:
    """ε = l1/scale, in exact arithmetic."""
    if training.epsilon == 0 and training.delta_at(0.0) > 0:
        return _least_gaussian(training, sensitivity)
    return _laplace(training.epsilon, sensitivity)


def _same_rho(training: Any, sensitivity: Sensitivity) -> Noise:
    """ρ = l2²/(2σ²), in exact arithmetic."""
    _require_room(training.rho > 0, training)
    return DiscreteGaussianNoise(Fraction(sensitivity.l2_squared) / (2 * Fraction(float(training.rho))))


def _nearly_same_mu(training: Any, sensitivity: Sensitivity) -> Noise:
    """σ ≥ l2/μ: a little more, since the integers make steps in the profile."""
    _require_room(training.mu > 0, training)
    return _least_gaussian(training, sensitivity, least=sensitivity.l2_squared / Fraction(float(training.mu)) ** 2)


def _laplace_if_pure(training: Guarantee, sensitivity: Sensitivity) -> Noise:
    if training.pure_epsilon is not None:
        return _laplace(training.pure_epsilon, sensitivity)
    return _least_gaussian(training, sensitivity)


MATCHING = {PureDP: _same_epsilon, ApproxDP: _same_epsilon, ZCDP: _same_rho, GaussianDP: _nearly_same_mu}


def _laplace(epsilon: float, sensitivity: Sensitivity) -> DiscreteLaplaceNoise:
    _require_room(epsilon > 0, PureDP(epsilon=epsilon))
    return DiscreteLaplaceNoise(sensitivity.l1 / Fraction(float(epsilon)))


def _least_gaussian(
    training: Guarantee, sensitivity: Sensitivity, least: Fraction = Fraction(0)
) -> DiscreteGaussianNoise:
    """Bisection on whole multiples of l2²/4096: the end that satisfies the condition."""
    epsilon, allowed = _allowed_profile(training)
    unit = Fraction(sensitivity.l2_squared, FINENESS)

    def noise(multiple: int) -> DiscreteGaussianNoise:
        return DiscreteGaussianNoise(multiple * unit)

    def fits(multiple: int) -> bool:
        guarantee = noise(multiple).guarantee(sensitivity, training.neighboring)
        return bool(np.all(guarantee.delta_at(epsilon) <= allowed))

    low = max(-(-least // unit) - 1, 0)
    high = low + 1
    while not fits(high):
        low, high = high, 2 * high
        _require_room(high < FINENESS * 2**80, training)
    while high - low > max(1, high // FINENESS):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return noise(high)


def _allowed_profile(training: Guarantee) -> tuple[np.ndarray, np.ndarray]:
    """ε_i and δ_training(ε_{i+1}): noise whose δ(ε_i) is never larger is nowhere above the training, as both fall."""
    reach = _negligible_from(training)
    grid = np.unique(np.concatenate([[0.0], np.geomspace(1e-4 * reach, reach, 800), np.linspace(0.0, reach, 1600)[1:]]))
    return grid[:-1], np.maximum(training.delta_at(grid[1:]), NEGLIGIBLE)


def _negligible_from(training: Guarantee) -> float:
    """An ε from which the profile is negligible or no longer falls."""
    grid = np.geomspace(1e-6, 500.0, 400)
    delta = training.delta_at(grid)
    return float(grid[np.flatnonzero((delta <= NEGLIGIBLE) | (delta <= delta[-1] * (1 + 1e-9)))[0]])


def _require_room(condition: bool, training: Guarantee) -> None:
    if not condition:
        raise PrivacyError(
            f"{training!r} promises ε = 0, and only infinite noise could match it. Give the score its own "
            f"guarantee, e.g. score_noise=PureDP(epsilon=1.0), or validate on public data."
        )
