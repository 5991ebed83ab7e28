"""The curves of the basic mechanisms: privacy profiles, Rényi divergences, dominating pairs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from .._checks import Array
from . import loss_distribution
from .arithmetic import log_expm1, log_mills_ratio, safe_exp
from .convolution import convolve
from .loss_distribution import ROUNDING, DominatingPair, LossDistribution

#: Losses above this count as infinite: exp(−loss) would leave the range of doubles.
LARGEST_LOSS = 600.0
#: Values of μ below which the Mills ratios of a Gaussian profile agree in all of their digits.
SMALLEST_MU = 1e-12
#: Values of μ and of ρ above which δ is 1, to the last digit, at every ε ≤ 1e6.
LARGEST_MU, LARGEST_RHO = 1e4, 1e7


def randomized_response(epsilon: float, delta: float) -> LossDistribution:
    """Loss distribution of randomised response that fails with probability δ.

    Its odds are e^ε. It dominates every (ε, δ)-DP mechanism.
    """
    if epsilon == 0:
        return LossDistribution(np.array([0.0]), np.array([1.0 - delta]), delta, delta)
    if epsilon > LARGEST_LOSS:
        return LossDistribution(np.array([0.0]), np.array([0.0]), 1.0, 1.0)
    truth = 1.0 / (1.0 + np.exp(-epsilon))
    masses = (1.0 - delta) * np.array([np.exp(-epsilon) * truth, truth])
    return LossDistribution(np.array([-epsilon, epsilon], dtype=float), masses, delta, delta)


def randomized_response_renyi(epsilon: float, order: Array) -> Array:
    r"""Rényi divergence of randomised response, at most ε.

    It is log( (e^{αε} + e^{(1−α)ε}) / (1 + e^ε) ) / (α − 1) (Mironov 2017, Proposition 5).

    The fraction is 1 + (1 − e^{(1−α)ε})·(e^{αε} − 1)/(1 + e^ε), in which no digits of a small ε
    cancel.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        large = np.logaddexp(order * epsilon, (1.0 - order) * epsilon) - np.logaddexp(0.0, epsilon)
        excess = -np.expm1((1.0 - order) * epsilon) * np.expm1(np.minimum(order * epsilon, 1.0))
        small = np.log1p(excess / (1.0 + np.exp(np.minimum(epsilon, 1.0))))
        log_moment = np.where(order * epsilon < 1.0, small, large) * (1.0 + ROUNDING)
        return np.clip(np.where(np.isinf(order), epsilon, log_moment / (order - 1.0)), 0.0, epsilon)


def delta_of_gaussian(mu: float, epsilon: Array) -> Array:
    r"""δ(ε) of the Gaussian mechanism, for any real ε, rounded up.

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle & Wang 2018, Theorem 8).

    With a = ε/μ − μ/2 and b = a + μ it is φ(a)·(R(a) − R(b)), R the Mills ratio: no digits cancel
    in the tail. Rounded up; R(a) and R(b) agree in all but μ of their digits, so a small μ needs a
    larger allowance, and so does a large one, where a is a small difference of ε/μ and μ/2.
    """
    if mu == 0:
        return -np.expm1(np.minimum(epsilon, 0.0))
    if mu > LARGEST_MU:
        return np.ones_like(epsilon)
    if mu < SMALLEST_MU:
        return _delta_of_tiny_gaussian(mu, epsilon)
    a = epsilon / mu - 0.5 * mu
    log_a, log_b = log_mills_ratio(a), log_mills_ratio(a + mu)
    log_density = -0.5 * a**2 - 0.5 * np.log(2 * np.pi)
    allowance = ROUNDING + 2e-14 / mu + 1e-15 * np.abs(a) * (np.abs(epsilon) / mu + mu)
    delta = np.exp(log_density + log_a) * -np.expm1(log_b - log_a) * (1.0 + allowance)
    return np.asarray(np.minimum(delta, 1.0))


def _delta_of_tiny_gaussian(mu: float, epsilon: Array) -> Array:
    """Bound on δ(ε) of a Gaussian mechanism with tiny μ.

    R is convex and falls, so R(a) − R(a + μ) ≤ μ·(1 − a·R(a)), which for a ≥ 0 is at most μ/(1 +
    a²).
    """
    with np.errstate(over="ignore"):
        a = epsilon / mu - 0.5 * mu
        density = np.exp(-0.5 * a**2) / np.sqrt(2 * np.pi)
        slope = np.where(a >= 0, density / (1.0 + a**2), density - np.minimum(a, 0.0))
    return np.asarray(np.minimum(mu * slope * (1.0 + 10 * ROUNDING), 1.0))


def delta_of_renyi(orders: Array, epsilons: Array, epsilon: Array) -> Array:
    r"""δ(ε) from a Rényi curve at some orders, rounded up.

    It is the minimum over α of exp((α−1)(ρ(α) − ε))·(1 − 1/α)^{α−1}/α (Canonne, Kamath & Steinke
    2020, Proposition 12).

    Rounded up: ρ(α) and ε may agree in most of their digits.
    """
    with np.errstate(invalid="ignore"):
        exponent = epsilons + np.log1p(-1.0 / orders) - epsilon[..., None]
        log_delta = (orders - 1.0) * exponent - np.log(orders)
        allowance = 1e-15 * orders * (1.0 + epsilons + np.abs(epsilon[..., None]))
        log_delta = log_delta + np.where(np.isinf(orders), 0.0, allowance)
    # not a number: order ∞ at an ε that it does not reach
    says_nothing = np.isinf(epsilons) | np.isnan(log_delta)
    values = np.exp(np.minimum(np.min(np.where(says_nothing, np.inf, log_delta), axis=-1), 0.0))
    return np.asarray(values)


def delta_of_zcdp(rho: float, epsilon: Array) -> Array:
    """δ(ε) of zero-concentrated DP, minimised over Rényi orders.

    The best order is near (ε + ρ)/(2ρ); any order is valid.
    """
    if rho == 0:
        return np.zeros_like(epsilon)
    if rho > LARGEST_RHO:
        return np.ones_like(epsilon)
    best = np.maximum(epsilon[..., None] - rho, 0.0) / (2.0 * rho) + 1.0 / np.sqrt(2.0 * rho)
    for low, high, number in ((0.05, 3.0, 60), (0.93, 1.07, 41), (0.996, 1.004, 41)):
        orders = 1.0 + best * np.geomspace(low, high, number)
        exponent = rho * orders + np.log1p(-1.0 / orders) - epsilon[..., None]
        log_delta = (orders - 1.0) * exponent - np.log(orders)
        best = np.take_along_axis(orders, np.argmin(log_delta, axis=-1)[..., None], axis=-1) - 1.0
    return np.asarray(np.exp(np.minimum(log_delta.min(axis=-1), 0.0)))


def subsampled_gaussian_renyi(noise_multiplier: float, sample_rate: float, order: Array) -> Array:
    r"""Rényi divergence of one DP-SGD step.

    For integers α: log Σ_k C(α, k) (1−q)^{α−k} q^k e^{k(k−1)/(2σ²)} / (α − 1) (Mironov, Talwar &
    Zhang 2019). Between integers (α − 1)·ρ(α) is convex, so linear interpolation is an upper bound;
    the value at α = 1 is 0.
    """
    if sample_rate == 1:
        return order / (2.0 * noise_multiplier**2)
    flat = np.atleast_1d(order)
    below = np.floor(flat)
    integers = np.unique([below, below + 1])
    orders = tuple(integers.astype(int).tolist())
    moments = _subsampled_gaussian_log_moments(noise_multiplier, sample_rate, orders)
    low, high = (moments[np.searchsorted(integers, k)] for k in (below, below + 1))
    log_moment = np.where(flat == below, low, low + (flat - below) * (high - low))
    return (log_moment / (flat - 1.0)).reshape(np.shape(order))


@lru_cache(maxsize=64)
def _subsampled_gaussian_log_moments(
    noise_multiplier: float, sample_rate: float, orders: tuple[int, ...]
) -> Array:
    """Log-moments of one DP-SGD step at rising integer orders, rounded up.

    They are log Σ_k C(α, k) (1−q)^{α−k} q^k e^{k(k−1)/(2σ²)} for each α ≥ 1.

    The weights of the exponentials sum to 1: only what these exceed 1 by is summed, so that a
    moment just above 1 keeps its digits. The sums of all orders are rows of one array, one after
    the other.
    """
    larger = np.array([order for order in orders if order > 1])
    rows = np.repeat(larger, larger - 1)
    starts = np.cumsum(larger - 1) - (larger - 1)
    k = 2 + np.arange(rows.size) - np.repeat(starts, larger - 1)
    log_factorial = special.gammaln(np.arange(orders[-1] + 1) + 1.0)
    j = np.arange(2, orders[-1] + 1)
    excess = log_expm1(j * (j - 1.0) / (2.0 * noise_multiplier**2))
    terms = log_factorial[rows] - log_factorial[k] - log_factorial[rows - k] + excess[k - 2]
    terms += (rows - k) * np.log1p(-sample_rate) + k * np.log(sample_rate)
    largest = np.maximum.reduceat(terms, starts)
    scaled = np.exp(terms - np.repeat(largest, larger - 1))
    log_excess = largest + np.log(np.add.reduceat(scaled, starts))
    rounding = 1e-14 * (1.0 + log_factorial[larger])  # of the logarithms above
    log_moments = np.logaddexp(0.0, log_excess + rounding) * (1.0 + 1e-15)
    return np.concatenate([np.zeros(len(orders) - larger.size), log_moments])


@lru_cache(maxsize=32)
def dpsgd_pair(
    noise_multiplier: float, sample_rate: float, steps: int, replace_one: bool
) -> DominatingPair:
    """Dominating pair of several DP-SGD steps.

    Each step is (1−q)·N(0, σ²) + q·N(1, σ²) against N(0, σ²).
    """
    if steps == 0:
        return loss_distribution.symmetric_pair(randomized_response(0.0, 0.0))
    one_step = _replaced_gaussian_step if replace_one else _subsampled_gaussian_step
    step = one_step(noise_multiplier, sample_rate)
    return loss_distribution.combine([step], lambda parts, _: convolve(parts, [steps]))


def _subsampled_gaussian_step(noise_multiplier: float, sample_rate: float) -> DominatingPair:
    """Dominating pair of one DP-SGD step, for a record removed or added."""
    mu = 1.0 / noise_multiplier

    def removed(epsilon: Array) -> Array:
        """δ of the amplified Gaussian: q·δ_Gauss(log(1 + (e^ε − 1)/q))."""
        return sample_rate * delta_of_gaussian(mu, np.log1p(np.expm1(epsilon) / sample_rate))

    def added(epsilon: Array) -> Array:
        """The reversed pair, by duality; 0 from ε = −log(1 − q)."""
        scale = -np.expm1(-epsilon) / sample_rate  # 1 - scale = (e^{-ε} − 1 + q)/q
        if sample_rate >= 0.5:  # 1 − q is exact, and e^{-ε} has digits that 1 − e^{-ε} has not
            remainder = (np.exp(-epsilon) - (1.0 - sample_rate)) / sample_rate
            inside = remainder > 0.0
            negative = np.minimum(np.log(np.where(inside, remainder, 1.0)), 0.0)
        else:
            inside = scale < 1.0
            negative = np.log1p(-np.where(inside, scale, 0.0))
        # H_{e^ε}(N‖mix) = 1 − e^ε + e^ε·q·[1 − c' + c'·δ_Gauss(−log c')] with c' = 1 − scale
        value = np.exp(epsilon) * sample_rate * np.exp(negative) * delta_of_gaussian(mu, -negative)
        return np.where(inside, value, 0.0)

    # Losses 0 and log(1 − q + q·e^Y) at even Y ≥ 0: small and large ones are equally close for
    # their size.
    gap = float(np.clip(0.0025, 0.000125 * mu, 0.00125 * mu))
    exponents = gap * np.arange(int(np.ceil(min(0.5 * mu**2 + 10.0 * mu, LARGEST_LOSS) / gap)) + 1)
    grid = np.log1p(sample_rate * np.expm1(exponents))
    return loss_distribution.pair_through(grid, removed(grid), added(grid))


def _replaced_gaussian_step(noise_multiplier: float, sample_rate: float) -> DominatingPair:
    """Dominating pair of one DP-SGD step when a record changes.

    It is (1−q)·N(0) + q·N(1) against (1−q)·N(0) + q·N(−1), which is symmetric.
    """
    mu, q = 1.0 / noise_multiplier, sample_rate
    # In units of σ the loss grows with x; a fine grid of x gives the profile at the losses of its
    # points.
    x = np.linspace(0.0, 10.0 + mu, 40001)
    # Both densities are divided by that of N(0): else their logarithms would agree in most digits.
    shared = float(np.log(1 - q)) if q < 1 else -np.inf
    log_p = np.logaddexp(shared, np.log(q) + mu * x - 0.5 * mu**2)
    loss = log_p - np.logaddexp(shared, np.log(q) - mu * x - 0.5 * mu**2)
    tail_p = (1 - q) * special.ndtr(-x) + q * special.ndtr(mu - x)
    tail_q = (1 - q) * special.ndtr(-x) + q * special.ndtr(-mu - x)
    delta = np.maximum(tail_p - safe_exp(loss) * tail_q, 0.0) + 1e-15 * tail_p
    loss[0] = 0.0
    rising = np.append(True, loss[1:] > np.maximum.accumulate(loss)[:-1]) & (loss <= LARGEST_LOSS)
    return loss_distribution.pair_through(loss[rising], delta[rising])


def negligible_from(profile: Callable[[Array], Array], mass: float = 1e-18) -> float:
    """Value of ε from which a profile is negligible, or constant."""
    grid = np.geomspace(1e-6, LARGEST_LOSS, 400)
    enough = max(mass, float(profile(grid[-1:])[0]) * (1 + 1e-9))
    first = bisect_left(
        range(grid.size - 1), True, key=lambda i: bool(profile(grid[i : i + 1])[0] <= enough)
    )
    return float(grid[first])
