"""Small cases worked out exactly: random mechanisms, the distribution of their best-of-K release,
its divergences.

Nothing here uses the accountant's numerics. A mechanism is a pair of probability vectors (one per
neighbour) over a few outcomes; its score is a vector of integers, and ties between runs are broken
at random.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._numerics.loss_distribution import DominatingPair, LossDistribution

#: Full size where SKLEARN_DPSEARCH_FULL=1, else about a twentieth of it.
FULL = os.environ.get("SKLEARN_DPSEARCH_FULL") == "1"
EPSILONS = np.array([0.0, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.2, 3.0, 4.5, 7.0])


def size(full: int, reduced: int) -> int:
    """Number of random cases to try: at full size, or in ordinary runs."""
    return full if FULL else reduced


def cases(full: Sequence[Any], *reduced: int) -> Sequence[Any]:
    """Parameters to try: at full size all, in ordinary runs those at the given places."""
    return full if FULL else [full[place] for place in reduced]


class Mechanism(NamedTuple):
    """Outcome probabilities on both neighbours, and the score of each outcome (equal scores are
    ties)."""

    p: np.ndarray
    q: np.ndarray
    scores: np.ndarray

    @property
    def reversed(self) -> Mechanism:
        return Mechanism(self.q, self.p, self.scores)


class Violation(AssertionError):
    """A stated guarantee lies below what a mechanism really loses."""


# --- exact quantities -----------------------------------------------------------------------------


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """∫ (P − e^ε Q)₊ of two measures on the same outcomes."""
    return float(np.sum(np.maximum(p - np.exp(epsilon) * q, 0.0)))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Rényi divergence of P from Q."""
    used = p > 0
    if np.any(q[used] == 0):
        return np.inf
    return float(np.log(np.sum(p[used] ** order * q[used] ** (1 - order))) / (order - 1))


def largest_loss(p: np.ndarray, q: np.ndarray) -> float:
    """sup log(P/Q)."""
    used = p > 0
    return np.inf if np.any(q[used] == 0) else float(np.max(np.log(p[used] / q[used])))


def release(distribution: dp.CountDistribution, p: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Probabilities of the released outcome of the best of K runs (they add up to P[K ≥ 1])."""
    out = np.zeros_like(p)
    below = 0.0
    for score in np.unique(scores):
        tied = scores == score
        group = float(p[tied].sum())
        if group > 0:
            upto = min(below + group, 1.0)
            out[tied] = p[tied] / group * (distribution.pgf(upto) - distribution.pgf(below))
            below = upto
    return out


def releases(distribution: dp.CountDistribution, p: np.ndarray) -> np.ndarray:
    """``release`` of many mechanisms at once, shape (…, n), whose outcomes are scored 0 … n − 1."""
    upto = np.minimum(np.cumsum(p, axis=-1), 1.0)
    values = np.asarray(distribution.pgf(upto))
    first = values[..., :1] - distribution.pgf(0.0)
    return np.concatenate([first, np.diff(values, axis=-1)], axis=-1)


def loss_distribution(p: np.ndarray, q: np.ndarray) -> LossDistribution:
    """Distribution under P of log(P/Q), exactly."""
    both = (p > 0) & (q > 0)
    if not both.any():
        return LossDistribution(np.array([0.0]), np.array([0.0]), float(p.sum()), float(q.sum()))
    losses, where = np.unique(np.log(p[both] / q[both]), return_inverse=True)
    masses = np.bincount(where, p[both], losses.size)
    return LossDistribution(losses, masses, float(p[q == 0].sum()), float(q[p == 0].sum()))


def exact_pair(one: Mechanism) -> DominatingPair:
    """The loss distributions of a mechanism itself."""
    return DominatingPair(loss_distribution(one.p, one.q), loss_distribution(one.q, one.p))


def lower_edge(one: Mechanism, q: np.ndarray) -> np.ndarray:
    """q_min: least probability on the neighbour of an event with probability ``q`` here
    (Neyman–Pearson)."""
    with np.errstate(divide="ignore"):
        ratio = np.where(one.q > 0, one.p / np.where(one.q > 0, one.q, 1.0), np.inf)
    order = [i for i in np.argsort(-ratio) if one.p[i] > 0]
    return np.interp(
        q, np.append(0.0, np.cumsum(one.p[order])), np.append(0.0, np.cumsum(one.q[order]))
    )


# --- random cases ---------------------------------------------------------------------------------


def random_mechanism(rng: np.random.Generator, finite_loss: bool = False) -> Mechanism:
    """2–7 outcomes: with zeros, equal atoms, tiny atoms, equal scores; or built to be bad for a
    search."""
    if rng.random() < 0.3:
        return _adversarial(rng, finite_loss)
    n = int(rng.integers(2, 8))
    p, q = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 5.0])), size=2)
    kind = rng.random()
    if kind < 0.3:  # a small loss on every outcome
        q = p * np.exp(rng.uniform(-1, 1, n) * rng.choice([0.05, 0.5, 2.0]))
    elif kind < 0.45:  # equal atoms
        p, q = rng.integers(1, 4, size=(2, n)).astype(float)
    if finite_loss:
        p, q = p + 1e-6, q + 1e-6
    elif kind > 0.6:  # outcomes that are impossible on one side
        p, q = p * (rng.random(n) > 0.15), q * (rng.random(n) > 0.15)
        p[0], q[0] = max(p[0], 0.1), max(q[0], 0.1)
    scores = rng.integers(0, n, n) if rng.random() < 0.5 else rng.permutation(n)
    return Mechanism(p / p.sum(), q / q.sum(), scores)


def _adversarial(rng: np.random.Generator, finite_loss: bool) -> Mechanism:
    """Lowest likelihood ratio on top, highest just below, the rest at the bottom: the witness's
    order."""
    top, below = np.exp(rng.uniform(-6, -1, 2))
    loss_low, loss_high = rng.uniform(0.1, 3.0, 2)
    p = np.array([1 - top - below, below, top])
    q = np.array([0.0, below * np.exp(-loss_high), min(top * np.exp(loss_low), 0.9)])
    q[0] = max(1 - q.sum(), 1e-3)
    q /= q.sum()
    if not finite_loss and rng.random() < 0.3:
        q[1] = 0.0
        q /= q.sum()
    return Mechanism(p, q, np.array([0, 1, 2]))


def small_mechanism(rng: np.random.Generator, sizes: tuple[int, ...] = (2, 3, 4)) -> Mechanism:
    """A random mechanism with one of these numbers of outcomes."""
    return next(one for one in iter(lambda: random_mechanism(rng), None) if one.p.size in sizes)


def random_distribution(rng: np.random.Generator) -> dp.CountDistribution:
    """A distribution of every kind, conditioned on K ≥ 1 and capped at random."""
    mean = float(np.exp(rng.uniform(0, np.log(50))))
    makers: list[Callable[[], dp.CountDistribution]] = [
        lambda: dp.NegativeBinomial(shape=float(rng.uniform(-0.9, 6)), mean=mean),
        lambda: dp.Geometric(mean=mean), lambda: dp.Logarithmic(mean=mean),
        lambda: dp.Poisson(mean=mean), lambda: dp.Poisson(mean=mean / 25),
        lambda: dp.Binomial(n=int(rng.integers(1, 30)), p=float(rng.uniform(0.02, 1.0))),
        lambda: dp.Fixed(k=int(rng.integers(2, 12))), lambda: dp.FromPMF(_random_pmf(rng)),
    ]  # fmt: skip
    distribution = makers[int(rng.integers(len(makers)))]()
    if rng.random() < 0.3:
        distribution = distribution.at_least_one()
    if rng.random() < 0.25:
        distribution = distribution.capped(
            max(distribution.quantile(float(rng.uniform(0.05, 0.9))), 1) + int(rng.integers(0, 4))
        )
    return distribution


def _random_pmf(rng: np.random.Generator) -> np.ndarray:
    pmf = rng.dirichlet(np.full(int(rng.integers(2, 9)), 0.6))
    pmf[rng.integers(pmf.size)] = 0.0
    pmf[-1] += 1e-3
    return pmf / pmf.sum()


# --- the checker ----------------------------------------------------------------------------------


def interesting_epsilons(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The fixed grid and the places where the release's own curve has its kinks."""
    both = (p > 0) & (q > 0)
    kinks = np.log(p[both] / q[both])
    return np.unique(np.append(EPSILONS, kinks[(kinks > 0) & (kinks < 12)]))


def check(guarantee: dp.Guarantee, distribution: dp.CountDistribution, one: Mechanism) -> float:
    """Raise ``Violation`` if the release of ``one`` loses more than ``guarantee`` says; return the
    tightest δ ratio."""
    tightest = 0.0
    for direction in (one, one.reversed):
        p = release(distribution, direction.p, one.scores)
        q = release(distribution, direction.q, one.scores)
        epsilons = interesting_epsilons(p, q)
        stated = guarantee.delta_at(epsilons)
        exact = np.array([hockey_stick(p, q, epsilon) for epsilon in epsilons])
        rounding = 4e-15 * (1 + np.exp(epsilons))
        if np.any(exact > stated + rounding):
            worst = int(np.argmax(exact - stated - rounding))
            raise Violation(
                f"delta({epsilons[worst]:.4f}) is {exact[worst]:.10g}, stated "
                f"{stated[worst]:.10g}: {one}, {distribution}"
            )
        told = exact > 1e-9
        tightest = max([tightest, *(exact[told] / stated[told])])
    return tightest


def exact_loss(one: Mechanism, distribution: dp.CountDistribution, epsilon: float) -> float:
    """δ of the release at ε, in one direction."""
    return hockey_stick(
        *(release(distribution, side, one.scores) for side in (one.p, one.q)), epsilon
    )


def all_orders(one: Mechanism) -> Iterator[Mechanism]:
    """The mechanism under every order of its outcomes without ties."""
    for scores in permutations(range(one.p.size)):
        yield one._replace(scores=np.array(scores))
