"""Noise of sums: whole numbers of a record within the sensitivity, and the noise that they need."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sklearn_dpsearch.boosting.losses import BinaryLoss, SoftmaxLoss, SquaredLoss
from sklearn_dpsearch.boosting.noise import SQUARED_SENSITIVITY, UNIT, NoisySums, bounded, noise_scale, whole
from sklearn_dpsearch.errors import BudgetUnreachableError

from .test_losses import LOGITS, predictions, rng

LARGEST = SQUARED_SENSITIVITY * UNIT**2


def squares(loss, outputs, targets) -> np.ndarray:
    """Squares of the norms of what records add, in whole numbers."""
    found = whole(loss.derivatives(outputs, targets), loss)
    assert np.array_equal(found, np.rint(found))
    return np.square(found.astype(np.int64)).sum(axis=0)


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_no_record_of_two_classes_adds_more_than_the_sensitivity(label):
    """All that a record can add: the outputs of a whole table of exponentials."""
    found = squares(BinaryLoss(), LOGITS[np.newaxis], np.full(len(LOGITS), label))
    assert found.max() <= LARGEST
    assert found[len(LOGITS) // 2] > 0.99999 * LARGEST  # the bound is reached
    between = rng.uniform(-50, 50, 100_000)
    assert set(squares(BinaryLoss(), between[np.newaxis], np.full(100_000, label))) <= set(found)


@pytest.mark.parametrize("n_classes", [3, 4, 7, 30])
def test_no_record_of_several_classes_adds_more_than_the_sensitivity(n_classes):
    outputs = predictions(n_classes)
    for label in range(n_classes):
        found = squares(SoftmaxLoss(n_classes), outputs, np.full(outputs.shape[1], float(label)))
        assert found.max() <= LARGEST


def test_no_number_adds_more_than_the_sensitivity():
    targets = np.concatenate([np.linspace(-3, 3, 10_001), [-1e300, 1e300]])
    assert squares(SquaredLoss(), np.zeros((1, len(targets))), targets).max() <= LARGEST


def test_what_a_record_may_not_add_counts_as_nothing():
    """Whatever a loss does wrong: vectors that are too long, or no numbers."""
    most = int(LARGEST**0.5)
    values = np.array([[most, most, -2.0 * most, np.nan, 0.0, np.inf, 1e300], [0.0, most, 0.0, 0.0, -most, 0.0, 0.0]])
    found = bounded(values)
    assert found.tolist() == [[most, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, -most, 0, 0]]


@pytest.mark.parametrize("releases", [1, 3, 801])
@pytest.mark.parametrize("mu", [0.0137, 0.26, 3.0])
def test_the_noise_is_the_least_whole_number_with_which_all_releases_are_as_private_as_stated(mu, releases):
    """Releases compose to μ² = releases · sensitivity² ÷ noise², in exact fractions."""
    scale = noise_scale(mu, releases, "zero_out")
    assert releases * LARGEST / Fraction(scale) ** 2 <= Fraction(mu) ** 2
    assert releases * LARGEST / Fraction(scale - 1) ** 2 > Fraction(mu) ** 2


def test_noise_that_cannot_be_drawn_is_an_error_with_a_remedy():
    with pytest.raises(BudgetUnreachableError, match=r"mu=1e-06 for 800 rounds.*larger target"):
        noise_scale(1e-6, 801, "zero_out")


def test_replaced_records_need_twice_the_noise():
    assert noise_scale(0.5, 9, "add_remove") == noise_scale(0.5, 9, "zero_out")
    assert noise_scale(0.5, 9, "replace_one") == pytest.approx(2 * noise_scale(0.5, 9, "zero_out"), abs=1)


def test_released_sums_have_the_stated_noise_and_their_own_units():
    loss, scale, n = SoftmaxLoss(3), 5 * UNIT, 4000
    noisy = NoisySums(loss, scale, [n, 1], np.random.RandomState(0).bytes)
    scores, hessians = noisy.release(np.full((6, n), 7 * UNIT))
    assert stats.kstest((scores.ravel() - 7) / 5, "norm").pvalue > 1e-3  # seeded
    assert stats.kstest((hessians.ravel() / 2 - 7) / 5, "norm").pvalue > 1e-3  # Hessians of 1/2 count a quarter
    again, _ = noisy.release(np.zeros((6, 1)))
    assert again.shape == (3, 1)
    with pytest.raises(StopIteration):
        noisy.release(np.zeros((6, 1)))
