"""Distributions on the integers, summed up by brute force."""

from __future__ import annotations

import math

import numpy as np

EPSILONS = np.array([0.0, 0.01, 0.1, 0.3, 0.5, 1.0, 1.7, 2.0, 3.0, 5.0, 8.0])


def gaussian_masses(variance: float, reach: int) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * variance))
    return weights / math.fsum(weights)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0).ravel())


def moved(masses: np.ndarray, shift: int) -> np.ndarray:
    """Masses of X + shift, cut at the same ends, where they vanish."""
    return np.roll(masses, shift)
