"""Noise of sums: whole numbers of a record within the sensitivity, and the noise that they need."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sklearn_dpsearch.boosting._losses import GRID, BinaryLoss, SoftmaxLoss, SquaredLoss
from sklearn_dpsearch.boosting._noise import (
    PART,
    UNIT,
    NoisySums,
    bounded_records,
    noise_scale,
    packed_records,
    packed_sums,
    records_at,
    squared_distance,
    unpacked,
    whole_numbers,
)
from sklearn_dpsearch.errors import BudgetUnreachableError

from .test_losses import LOGITS, predictions, rng

RELATIONS = ("add_remove", "zero_out", "replace_one")


def largest(loss, neighboring="zero_out") -> Fraction:
    """Bound on the squared distance of the sums of neighbours, in whole numbers."""
    return squared_distance(loss, neighboring) * UNIT**2


def added(loss, outputs, targets) -> np.ndarray:
    """What records add, in whole numbers, none of which is set to 0."""
    found = whole_numbers(loss.derivatives(outputs, targets), loss)
    assert np.array_equal(found, np.rint(found))
    assert np.array_equal(bounded_records(found.copy(), loss), found)
    return found.astype(np.int64)


def squares(loss, outputs, targets) -> np.ndarray:
    """Squares of the norms of what records add, in whole numbers."""
    return np.square(added(loss, outputs, targets)).sum(axis=0)


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_no_record_of_two_classes_adds_more_than_the_sensitivity(label):
    """All that a record can add: the outputs of a whole table of exponentials."""
    found = squares(BinaryLoss(), LOGITS[np.newaxis], np.full(len(LOGITS), label))
    assert found.max() <= largest(BinaryLoss())
    assert found[len(LOGITS) // 2] > 0.99999 * largest(BinaryLoss())  # the bound is reached
    between = rng.uniform(-50, 50, 100_000)
    assert set(squares(BinaryLoss(), between[np.newaxis], np.full(100_000, label))) <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 4, 7, 30])
def test_no_record_of_several_classes_adds_more_than_the_sensitivity(n_classes):
    outputs = predictions(n_classes)
    for label in range(n_classes):
        found = squares(SoftmaxLoss(n_classes), outputs, np.full(outputs.shape[1], float(label)))
        assert found.max() <= largest(SoftmaxLoss(n_classes))
        if n_classes <= 4:  # the bound is reached
            assert found.max() > 0.99999 * largest(SoftmaxLoss(n_classes))


def test_no_number_adds_more_than_the_sensitivity():
    targets = np.concatenate([np.linspace(-3, 3, 10_001), [-1e300, 1e300]])
    bound = largest(SquaredLoss())
    assert squares(SquaredLoss(), np.zeros((1, len(targets))), targets).max() <= bound


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [3, 4, 5, 8, 30])
def test_the_largest_hessians_of_several_classes_are_found_by_no_search(n_classes):
    """From even and uneven probabilities uphill, by many small random steps."""
    random = np.random.default_rng(n_classes)
    chances = random.dirichlet(np.full(n_classes, 0.5), 4000)
    chances[: n_classes - 1] = [
        np.repeat([1 / k, 0], [k, n_classes - k]) for k in range(2, n_classes + 1)
    ]
    for step in np.geomspace(0.3, 1e-4, 60):
        moved = np.abs(
            chances + step * random.normal(size=chances.shape) * chances.max(axis=1, keepdims=True)
        )
        moved /= moved.sum(axis=1, keepdims=True)
        better = _squared_hessians(moved) > _squared_hessians(chances)
        chances[better] = moved[better]
    bound = float(SoftmaxLoss(n_classes).squared_hessians) * (1 + 1e-12)
    assert _squared_hessians(chances).max() <= bound


def _squared_hessians(chances):
    scale = 1 - 2 * chances.min(axis=1) + np.square(chances).sum(axis=1)
    return np.square(chances * (1 - chances)).sum(axis=1) / scale


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_no_change_of_a_record_moves_sums_farther_than_is_paid_for(n_classes, neighboring):
    """Two records of any outputs and labels, in one cell and in two."""
    binary = n_classes == 2
    loss = BinaryLoss() if binary else SoftmaxLoss(n_classes)
    outputs = predictions(loss.n_outputs, 4000)
    labels = rng.choice([-1.0, 1.0], 4000) if binary else rng.integers(0, n_classes, 4000) * 1.0
    found = added(loss, outputs, labels)
    if neighboring != "replace_one":
        assert np.square(found).sum(axis=0).max() <= largest(loss, neighboring)
        return
    others = found[:, rng.permutation(4000)]
    one_cell = np.square(found - others).sum(axis=0)
    two_cells = (np.square(found) + np.square(others)).sum(axis=0)
    actual = max(one_cell.max(), two_cells.max())
    assert 0.9 * largest(loss, neighboring) < actual <= largest(loss, neighboring)


def test_distances_are_those_of_the_theory_page():
    stated = {
        "add_remove": (
            Fraction(17, 16), Fraction(17, 16), Fraction(19, 18), Fraction(67, 64),
            Fraction(67, 64),
        ),
        "replace_one": (
            4 + Fraction(1, 16), Fraction(4), 4 + Fraction(1, 9), 4 + Fraction(3, 32),
            4 + Fraction(3, 32),
        ),
    }  # fmt: skip
    losses = (BinaryLoss(), SquaredLoss(), SoftmaxLoss(3), SoftmaxLoss(4), SoftmaxLoss(9))
    for neighboring, distances in stated.items():
        assert tuple(squared_distance(loss, neighboring) for loss in losses) == distances


def test_what_a_record_may_not_add_counts_as_nothing():
    """Whatever a loss does wrong: scores or Hessians that are too long, negative Hessians, or no
    numbers."""
    most = UNIT // 4
    values = np.array(
        [
            [UNIT, UNIT + 1.0, 0.0, 0.0, np.nan, 0.0, np.inf, 1e300],
            [most, 0.0, most + 1.0, -1.0, 0.0, most, 0.0, 0.0],
        ]
    )
    found = bounded_records(values, BinaryLoss())
    assert found.tolist() == [[UNIT, 0, 0, 0, 0, 0, 0, 0], [most, 0, 0, 0, 0, most, 0, 0]]


def test_a_record_with_other_hessians_than_all_others_counts_as_nothing():
    constant = (UNIT - 1) // 4
    found = bounded_records(
        np.array([[5.0, 5.0, 5.0], [constant, constant - 1.0, 0.0]]), SquaredLoss()
    )
    assert found.tolist() == [[5, 0, 0], [constant, 0, 0]]


@pytest.mark.parametrize("label", [-1, 1])
def test_a_record_of_two_classes_is_looked_up_with_what_it_adds(label):
    """At every place of the table, between places and beyond its ends."""
    outputs = np.concatenate(
        [LOGITS, rng.uniform(-50, 50, 50_000), (rng.integers(-9, 9, 50) + 0.5) / GRID]
    )
    outputs = np.append(outputs, [-1e300, 1e300, -np.inf, np.inf])[np.newaxis]
    labels = np.int8(label)
    expected = packed_records(BinaryLoss().derivatives(outputs, labels), BinaryLoss())
    np.testing.assert_array_equal(
        records_at(outputs, np.full(outputs.size, labels), BinaryLoss()), expected
    )
    with np.errstate(invalid="ignore"):
        no_number = records_at(np.full((1, 1), np.nan), np.array([labels]), BinaryLoss())
    assert np.square(unpacked(no_number)).sum() <= largest(BinaryLoss())


@pytest.mark.parametrize("n_cells", [1, 7, PART + 1])
@pytest.mark.parametrize("score", [-UNIT, 0, UNIT])
def test_sums_in_one_number_are_exact_where_every_record_adds_the_most(score, n_cells):
    """Of more records than one number can hold."""
    number = 2 * PART + 17
    packed = np.full((2, number), score * 2**30 + UNIT // 4)
    assert unpacked(packed)[:, 0].tolist() == [score, score, UNIT // 4, UNIT // 4]
    cells = (np.arange(number) % n_cells).astype(np.uint16)
    counts = np.bincount(cells)
    expected = np.array(
        [counts * score, counts * score, counts * (UNIT // 4), counts * (UNIT // 4)]
    )
    assert np.array_equal(packed_sums(packed, cells, n_cells)[:, : len(counts)], expected)


@pytest.mark.parametrize("releases", [1, 3, 801])
@pytest.mark.parametrize("mu", [0.0137, 0.26, 3.0])
def test_the_noise_is_the_least_whole_number_with_which_all_releases_cost_as_stated(mu, releases):
    """Releases compose to μ² = releases · sensitivity² ÷ noise², in exact fractions."""
    for loss in (BinaryLoss(), SquaredLoss(), SoftmaxLoss(3)):
        for neighboring in RELATIONS:
            scale, moved = noise_scale(mu, releases, neighboring, loss), largest(loss, neighboring)
            assert releases * moved / Fraction(scale) ** 2 <= Fraction(mu) ** 2
            assert releases * moved / Fraction(scale - 1) ** 2 > Fraction(mu) ** 2


def test_noise_that_cannot_be_drawn_is_an_error_with_a_remedy():
    with pytest.raises(BudgetUnreachableError, match=r"mu=1e-06 for 801 releases.*larger target"):
        noise_scale(1e-6, 801, "zero_out", BinaryLoss())


@pytest.mark.parametrize("loss", [BinaryLoss(), SquaredLoss(), SoftmaxLoss(3)])
def test_replaced_records_need_less_than_twice_the_noise(loss):
    added, removed, replaced = (noise_scale(0.5, 9, relation, loss) for relation in RELATIONS)
    assert added == removed
    assert 1.94 * added < replaced < 1.98 * added


def test_released_sums_have_the_stated_noise_and_their_own_units():
    loss, scale, n = SoftmaxLoss(3), 5 * UNIT, 4000
    noisy = NoisySums(loss, scale, np.random.RandomState(0).bytes)
    scores, hessians = noisy.release(np.full((6, n), 7 * UNIT))
    assert stats.kstest((scores.ravel() - 7) / 5, "norm").pvalue > 1e-3  # seeded
    # Hessians of 1/2 count a quarter
    assert stats.kstest((hessians.ravel() / 2 - 7) / 5, "norm").pvalue > 1e-3
    again, _ = noisy.release(np.zeros((6, 1)))
    assert again.shape == (3, 1)
    assert not set(again.ravel()) & set(noisy.release(np.zeros((6, 1)))[0].ravel())  # fresh noise
