"""The mechanisms of diffprivlib 0.6.6: the proofs behind the adapter's table, checked; the defects,
shown; audits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sklearn_dpsearch.adapters._diffprivlib import SMALLEST_EPSILON
from sklearn_dpsearch.privacy import LeakingEstimatorError

pytest.importorskip("diffprivlib")
from diffprivlib.mechanisms import GeometricTruncated, LaplaceBoundedDomain, PermuteAndFlip
from diffprivlib.mechanisms.vector import Vector
from diffprivlib.models import LinearRegression
from diffprivlib.validation import clip_to_bounds

from .diffprivlib_toys import bayes, forest, tree
from .toys import promise, refused

# --- proofs, checked ------------------------------------------------------------------------------


def permute_and_flip(counts, epsilon):
    """Exact distribution of the label of a leaf."""
    heads = np.exp(epsilon * (np.array(counts) - max(counts)))
    distribution = np.zeros(len(counts))
    orders = list(itertools.permutations(range(len(counts))))
    for order in orders:
        left = 1.0
        for i in order:
            distribution[i] += left * heads[i]
            left *= 1 - heads[i]
    return distribution / len(orders)


def moved(counts, source, target):
    changed = list(counts)
    changed[source] -= 1
    changed[target] += 1
    return changed


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_changed_record_costs_a_tree_up_to_twice_its_epsilon(epsilon, classes):
    one_more, changed = [], []

    def loss(counts, others):
        ours, theirs = permute_and_flip(counts, epsilon), permute_and_flip(others, epsilon)
        return np.abs(np.log(ours / theirs)).max()

    for counts in itertools.product(range(4), repeat=classes):
        for i in range(classes):
            one_more.append(loss(counts, np.add(counts, np.eye(classes)[i])))
            sources = [j for j in range(classes) if j != i and counts[j]]
            changed += [loss(counts, moved(counts, j, i)) for j in sources]
    assert max(one_more) == pytest.approx(epsilon)
    assert 1.5 * epsilon < max(changed) <= 2 * epsilon * (1 + 1e-12)
    if classes == 2:
        assert max(changed) == pytest.approx(2 * epsilon)


def test_the_exact_distribution_of_a_leaf_is_the_one_sampled():
    mechanism = PermuteAndFlip(epsilon=1.0, sensitivity=1, monotonic=True, utility=[2, 1, 0])
    drawn = np.bincount([mechanism.randomise() for _ in range(4000)], minlength=3) / 4000
    assert np.abs(drawn - permute_and_flip([2, 1, 0], 1.0)).max() < 0.04


def log_bounded(x, value, scale, upper):
    """Log-density of Laplace noise conditioned on [0, upper]."""
    mass = -(np.expm1(-value / scale) + np.expm1(-(upper - value) / scale)) / 2
    return -np.abs(x - value) / scale - np.log(2 * scale * mass)


@pytest.mark.parametrize("upper", [1.0, 1.3, 2.0, 10.0, 1000.0])
@pytest.mark.parametrize("epsilon", [1e-5, 0.01, 0.3, 1.0, 5.0])
def test_bounded_laplace_noise_keeps_its_epsilon_for_a_shift_of_any_size(upper, epsilon):
    scale = LaplaceBoundedDomain(
        epsilon=epsilon, sensitivity=1.0, lower=0.0, upper=upper
    )._find_scale()
    worst = 0.0
    for shift in np.linspace(0.05, 1.0, 20):
        values = np.linspace(0, upper - shift, 200)
        for x in (0.0, upper):
            loss = log_bounded(x, values, scale, upper) - log_bounded(
                x, values + shift, scale, upper
            )
            worst = max(worst, np.abs(loss).max())
    assert worst <= epsilon * (1 + 1e-5)
    assert worst >= 0.99 * epsilon


def test_bounded_laplace_noise_is_too_small_at_tiny_epsilons():
    scale = LaplaceBoundedDomain(epsilon=1e-8, sensitivity=1.0, lower=0.0, upper=1.3)._find_scale()
    loss = log_bounded(0.0, 0.0, scale, 1.3) - log_bounded(0.0, 1.0, scale, 1.3)
    assert loss > 1.2e-8
    assert SMALLEST_EPSILON > 1e4 * 1e-8


def log_geometric(k, value, epsilon, top):
    """Log-probability of a truncated geometric count on 1..top."""
    p = math.exp(-epsilon)
    distance = abs(k - value)
    return -epsilon * distance - math.log(1 + p) + (0 if k in (1, top) else math.log(1 - p))


def log_tail(distance, rate):
    """Log-probability that Laplace noise of this rate carries a sum beyond a bound at this
    distance."""
    if distance >= 0:
        return math.log(0.5) - rate * distance
    return math.log1p(-0.5 * math.exp(rate * distance))


def log_mean(mu, n, total, rate, low, high):
    """Log-density of a class's mean, cut off at the bounds; there, log-probability."""
    if mu == low:
        return log_tail(total - n * low, rate)
    return log_tail(n * high - total, rate) if mu == high else -rate * abs(n * mu - total)


def bayes_class_losses(records, others, epsilon, low, high):
    """Losses of one class's count, mean and variance over a grid of outcomes, for one feature."""
    share, top = epsilon / 3, 20
    for n, mu in itertools.product((1, 3, 20), np.linspace(low, high, 21)):
        upper = max(mu - low, high - mu) ** 2 * n
        options = {"sensitivity": upper / n, "lower": 0.0, "upper": upper}
        mechanism = LaplaceBoundedDomain(epsilon=share, **options)
        scale, loss = mechanism._find_scale(), 0.0
        for sign, rows in ((1, np.array(records)), (-1, np.array(others))):
            loss += sign * log_geometric(n, len(rows), share, top)
            loss += sign * log_mean(mu, n, rows.sum(), share / (high - low), low, high)
            square = min(float(((rows - mu) ** 2).sum()), upper)
            loss = loss + sign * log_bounded(np.linspace(0, upper, 50), square, scale, upper)
        yield from loss


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (2.0, 3.0)])
def test_a_record_that_changes_its_class_costs_naive_bayes_more_than_its_epsilon(bounds):
    """The class that it leaves and the class that it enters, each at its worst (their other records
    are arbitrary)."""
    epsilon, (low, high) = 1.5, bounds
    leaving = entering = 0.0
    for rest in ([low], [high], [low, high], [low] * 4, [high] * 4):
        for x in (low, (low + high) / 2, high):
            losses = list(bayes_class_losses([*rest, x], rest, epsilon, low, high))
            leaving, entering = max(leaving, *losses), max(entering, -min(losses))
    stated = promise(bayes(epsilon=epsilon, bounds=bounds)).epsilon
    assert epsilon < leaving + entering <= stated * (1 + 1e-6)


def test_the_count_distribution_of_naive_bayes_is_the_one_assumed():
    mechanism = GeometricTruncated(epsilon=0.5, sensitivity=1, lower=1, upper=20)
    drawn = np.array([mechanism.randomise(3) for _ in range(4000)])
    for k in (1, 3, 5):
        expected = pytest.approx(math.exp(log_geometric(k, 3, 0.5, 20)), abs=0.04)
        assert np.mean(drawn == k) == expected


def log_density_logistic(w, records, epsilon, C, norm):
    """Log-density of the minimiser for one feature, no intercept, up to a constant that no record
    changes."""
    x, y = np.array(records).T
    noise, penalty = epsilon - 2 * math.log(1 + norm * C / 4), 1 / C
    if noise <= 0:
        noise, penalty = epsilon / 2, norm / 4 / math.expm1(epsilon / 4)
    s = 1 / (1 + np.exp(-np.outer(w, x)))
    gradient = ((s - y) * x).sum(axis=1) + penalty * w
    return -np.abs(gradient) * noise / (2 * norm) + np.log(
        (s * (1 - s) * x**2).sum(axis=1) + penalty
    )


def logistic_loss(epsilon, C, norm):
    w, worst = np.linspace(-40, 40, 8001), 0.0
    for base in ([], [(norm, 1)], [(norm, 1), (norm, 0)]):
        distributions = [
            log_density_logistic(w, [*base, (x, y)], epsilon, C, norm)
            for x in (norm, norm / 2, 0)
            for y in (0, 1)
        ]
        worst = max(
            worst, *(np.abs(a - b).max() for a, b in itertools.combinations(distributions, 2))
        )
    return worst


@pytest.mark.parametrize("norm", [0.01, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
def test_logistic_regression_keeps_its_epsilon_for_norms_up_to_two(norm, C, epsilon):
    assert logistic_loss(epsilon, C, norm) <= epsilon


def test_logistic_regression_breaks_its_epsilon_for_large_norms():
    assert logistic_loss(0.3, 0.1, 6.0) > 1.5 * 0.3


@pytest.mark.slow
def test_the_mechanism_of_logistic_regression_is_the_one_in_the_proof():
    options = {"function_sensitivity": 0.25, "data_sensitivity": 1.0, "n": 10}
    mechanism = Vector(epsilon=1.0, dimension=2, alpha=2.0, **options)
    noisy = [
        mechanism.randomise(lambda w: (0.0, np.zeros(2)))(np.zeros(2))[1] * 10 for _ in range(3000)
    ]
    # norm of the noise: Gamma(dimension, 2 R / epsilon')
    expected = 2 * 2 / (1 - 2 * math.log(1 + 0.25 / 2))
    assert np.linalg.norm(noisy, axis=1).mean() == pytest.approx(expected, rel=0.1)


# --- defects that are refused, shown --------------------------------------------------------------


def test_an_unpenalised_intercept_has_no_bound():
    """Far out, the others' curvature vanishes and the Jacobian's ratio grows without end."""

    def log_density(theta, records, epsilon=1.0, C=1.0, norm=1.0):
        X, y = np.array([[x, 1.0] for x, _ in records]), np.array([label for _, label in records])
        s = 1 / (1 + np.exp(-(X @ theta)))
        gradient = X.T @ (s - y) + np.array([theta[0] / C, 0.0])
        hessian = (X * (s * (1 - s))[:, None]).T @ X + np.diag([1 / C, 0.0])
        radius = math.hypot(norm, 1)
        noise = epsilon - 2 * math.log(1 + radius * C / 4)
        return -np.linalg.norm(gradient) * noise / (2 * radius) + np.linalg.slogdet(hessian)[1]

    others = [(-1.0, 0)] * 5
    losses = []
    for far in (5.0, 10.0, 20.0, 40.0):
        # the record at x = 1 is on the border, those at -1 are far from it
        theta = np.array([far, -far])
        losses.append(
            log_density(theta, [*others, (1.0, 1)]) - log_density(theta, [*others, (-1.0, 0)])
        )
    assert all(b > a + 4 for a, b in itertools.pairwise(losses))
    assert losses[-1] > 30


def test_linear_regression_with_an_intercept_or_one_sided_bounds_adds_no_noise_to_a_square():
    X, y = np.array([[0.0], [1.0], [1.0]]), np.array([0.0, 1.0, 1.0])
    one_sided = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False).fit(X, y)
    assert one_sided._obj_coefs[2][0, 0] == (X**2).sum()
    fits = [
        LinearRegression(epsilon=2.0, bounds_X=(0, 1), bounds_y=(0, 1), random_state=i).fit(X, y)
        for i in range(60)
    ]
    without_noise = [one for one in fits if one._obj_coefs[2][0, 0] == (X**2).sum()]
    assert without_noise  # whenever the noisy mean is cut off at the lower bound


def leaf_values(fitted):
    return fitted.tree_.__getstate__()["values"]


def test_the_noise_of_a_forest_can_be_recomputed_from_the_model():
    """Whoever knows all but one record replays the seed for each value of it; a wrong value gives
    another tree."""
    X, y = np.random.default_rng(0).uniform(0, 1, (40, 1)), np.arange(40) % 2
    released, recognised = forest(max_depth=2, epsilon=0.5, random_state=0).fit(X, y), 0
    for part, rows in zip(released.estimators_, (slice(0, 20), slice(20, 40))):
        assert isinstance(part.random_state, int)

        def replayed(labels, part=part, rows=rows):
            replay = tree(max_depth=2, epsilon=0.5, random_state=part.random_state)
            return leaf_values(replay.fit(X[rows], labels))

        assert np.array_equal(replayed(y[rows]), leaf_values(part))
        for j in range(20):
            guess = y[rows].copy()
            guess[j] = 1 - guess[j]
            recognised += not np.array_equal(replayed(guess), leaf_values(part))
    assert recognised


def test_nearly_equal_bounds_are_clipped_to_the_widest():
    lower, upper = np.array([1000.0, 1000.0]), np.array([1000.005, 1000.01])
    clipped = clip_to_bounds(np.array([[1000.01, 1000.01]]), (lower, upper))
    assert clipped[0, 0] > upper[0] + 0.004
    refused(LeakingEstimatorError, bayes(bounds=(lower, upper)), "np.allclose")
    assert promise(bayes(bounds=([0.0, 0.0], [1.0, 2.0]))).epsilon == pytest.approx(2.0)
