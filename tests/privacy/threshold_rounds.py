"""One round of the sparse vector technique worked out exactly: the probability of every result,
enumerated.

Nothing here uses the library. Utilities are integers, of which one record moves each by at most
``STEPS``.
"""

from __future__ import annotations

import numpy as np

STEPS = 3


def laplace_tail(scale: float, first: np.ndarray) -> np.ndarray:
    """P[X ≥ first] of discrete Laplace noise P[k] ∝ exp(−|k|/scale)."""
    rate = np.exp(-1.0 / scale)
    upper = rate ** np.abs(first - (first <= 0)) / (1.0 + rate)
    return np.where(first > 0, upper, 1.0 - upper)


def noise_distribution(scale: float) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-int(45 * scale), int(45 * scale) + 1)
    weights = np.exp(-np.abs(k) / scale)
    return k, weights / weights.sum()


def one_round(
    utilities: np.ndarray, threshold: int, epsilon: float, threshold_scale: float | None = None
) -> np.ndarray:
    """Probabilities of candidate 0, 1, … being the first above, and of none, with the noise that
    the proof asks for."""
    scale = 2 * STEPS / epsilon if threshold_scale is None else threshold_scale
    z, mass = noise_distribution(scale) if scale > 0 else (np.array([0]), np.array([1.0]))
    needed = threshold + z[:, None] - utilities[None, :]
    above = laplace_tail(4 * STEPS / epsilon, needed)
    below = laplace_tail(4 * STEPS / epsilon, 1 - needed)
    first = above * np.cumprod(np.column_stack([np.ones(z.size), below[:, :-1]]), axis=1)
    return np.append(mass @ first, mass @ np.prod(below, axis=1))


def neighbours(rng: np.random.Generator, candidates: int) -> tuple[np.ndarray, np.ndarray]:
    """Utilities of two neighbours: each moves by −STEPS … STEPS, often as far as it may and all in
    one direction."""
    utilities = rng.integers(0, 40, candidates)
    kind = rng.random()
    # the last one against many good ones: where accepts and rejects both tell the most
    if candidates >= 4:
        utilities = np.append(np.full(candidates - 1, rng.integers(0, 80)), rng.integers(-40, 40))
        moved = np.append(np.full(candidates - 1, STEPS), -STEPS)
    elif kind < 0.3:
        moved = np.full(candidates, STEPS)
    elif kind < 0.6:
        moved = rng.choice([-STEPS, STEPS], candidates)
    else:
        moved = rng.integers(-STEPS, STEPS + 1, candidates)
    return utilities, utilities + moved
