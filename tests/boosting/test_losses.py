"""Losses: unbiased scores, within the sensitivity that is paid for, for every prediction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from sklearn_dpsearch.boosting._losses import (
    GRID,
    TABLE_LENGTH,
    BinaryLoss,
    SoftmaxLoss,
    SquaredLoss,
    exp_of_minus,
)

rng = np.random.default_rng(0)
#: All logits of the table of exponentials.
LOGITS = np.arange(-TABLE_LENGTH * GRID, TABLE_LENGTH * GRID + 1) / GRID


def predictions(n_classes: int, n: int = 20_000) -> np.ndarray:
    """Outputs of all kinds, on the grid of the table: even, all on one class, on several, shape
    (n_classes, n)."""
    scales = 10.0 ** rng.uniform(-3, 2.5, n)
    found = rng.normal(size=(n_classes, n)) * scales
    found[:, :: n // 50] = 0.0
    # corners, edges and faces of the simplex
    edges = rng.integers(0, 2, (n_classes, n // 2)) * 60.0
    found[:, : n // 2] = np.where(rng.random(n // 2) < 0.5, edges, found[:, : n // 2])
    return np.rint(found * GRID) / GRID


@pytest.mark.slow
def test_scores_of_two_classes_are_unbiased_and_one_of_them_is_the_largest():
    ups, downs = (
        BinaryLoss().derivatives(LOGITS[np.newaxis], np.full(len(LOGITS), one))
        for one in (1.0, -1.0)
    )
    chances = 1 / (1 + np.exp(-np.clip(LOGITS, -700, 700)))
    expected = pytest.approx(0.0, abs=1e-15)
    assert chances * ups.scores[0] + (1 - chances) * downs.scores[0] == expected
    assert np.maximum(abs(ups.scores), abs(downs.scores)) == pytest.approx(1.0, abs=0)
    np.testing.assert_array_equal(ups.hessians, downs.hessians)
    assert ups.hessians[0] == pytest.approx(np.minimum(chances, 1 - chances), abs=1e-15)


def test_hessians_are_expected_slopes_of_the_scores():
    """The expected score of records with one chance, differentiated at the logit of that chance."""
    logits, step = np.arange(-5 * GRID, 5 * GRID, 99) / GRID, 1 / GRID
    logits = logits[np.abs(logits) > step]  # the slope jumps at 0
    chances = 1 / (1 + np.exp(-logits))
    expected = [
        sum(
            share * BinaryLoss().derivatives(moved[np.newaxis], np.full(len(moved), one)).scores[0]
            for one, share in ((1.0, chances), (-1.0, 1 - chances))
        )
        for moved in (logits - step, logits + step)
    ]
    found = BinaryLoss().derivatives(logits[np.newaxis], np.ones(len(logits))).hessians[0]
    assert (expected[0] - expected[1]) / (2 * step) == pytest.approx(found, abs=1e-6)


def test_exponentials_are_looked_up_within_half_a_step_of_the_table():
    values = np.concatenate([np.linspace(0, 45, 100_001), [1e9, np.inf]])
    assert np.max(np.abs(exp_of_minus(values) - np.exp(-values))) <= 1 / (2 * GRID)
    assert exp_of_minus(np.zeros(1)) == 1.0
    assert len(np.unique(exp_of_minus(values))) <= TABLE_LENGTH * GRID + 1


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 30])
def test_scores_of_several_classes_are_unbiased_and_one_of_them_is_the_largest(n_classes):
    outputs, loss = predictions(n_classes), SoftmaxLoss(n_classes)
    labels = [np.full(outputs.shape[1], float(label)) for label in range(n_classes)]
    scores = np.array([loss.derivatives(outputs, one).scores for one in labels])
    expected = pytest.approx(0.0, abs=1e-12)
    assert (softmax(outputs, axis=0)[:, np.newaxis] * scores).sum(axis=0) == expected
    norms = np.sqrt(np.square(scores).sum(axis=1))
    assert norms.max() <= 1 + 1e-12
    assert norms.max(axis=0) == pytest.approx(1.0)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 30])
def test_hessians_of_several_classes_are_within_their_bound(n_classes):
    outputs, loss = predictions(n_classes), SoftmaxLoss(n_classes)
    hessians = loss.derivatives(outputs, np.zeros(outputs.shape[1])).hessians
    squares, bound = np.square(hessians).sum(axis=0), float(loss.squared_hessians)
    assert hessians.min() >= 0
    assert squares.max() <= bound + 1e-12
    if n_classes <= 4:  # the bound is reached
        assert squares.max() == pytest.approx(bound)


def test_softmax_of_two_classes_is_the_binary_loss():
    logits = np.linspace(-6, 6, 97)
    two = SoftmaxLoss(2).derivatives(np.array([0 * logits, logits]), np.ones(97))
    one = BinaryLoss().derivatives(logits[np.newaxis], np.ones(97))
    assert two.scores[1] * np.sqrt(2) == pytest.approx(one.scores[0])
    assert two.hessians[1] * np.sqrt(2) == pytest.approx(one.hessians[0])


@pytest.mark.parametrize("loss", [BinaryLoss(), SquaredLoss(), *map(SoftmaxLoss, (3, 8, 20, 100))])
def test_a_record_adds_the_same_bits_wherever_it_stands(loss):
    """Otherwise the presence of one record would change what another one adds."""
    outputs = predictions(loss.n_outputs, 300)
    classes = [-1.0, 1.0] if loss.n_outputs == 1 else np.arange(1.0 * loss.n_outputs)
    targets = rng.choice(classes, 300)
    among = loss.derivatives(outputs, targets)
    for place in range(300):
        alone, behind = (slice(place, place + 1), slice(place, None))
        for rows in (alone, behind):
            found = loss.derivatives(outputs[:, rows], targets[rows])
            assert all((a[:, 0] == b[:, place]).all() for a, b in zip(found, among))


def test_residuals_are_clipped():
    found = SquaredLoss().derivatives(np.array([[0.0, 0.0, 3.0]]), np.array([0.5, 7.0, 1.0]))
    assert found.scores.tolist() == [[0.5, 1.0, -1.0]]
    assert found.hessians.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize(("loss", "targets", "expected"), [
    (BinaryLoss(), np.repeat([1.0, -1.0], [30, 70]), [np.log(3 / 7)]),
    (SoftmaxLoss(3), np.repeat([0.0, 1.0, 2.0], [20, 30, 50]), np.log([0.2, 0.3, 0.5])),
    (SquaredLoss(), np.repeat([0.0, 0.5], [20, 80]), [0.4]),
])  # fmt: skip
def test_the_start_without_noise_is_the_best_constant(loss, targets, expected):
    found = loss.derivatives(np.zeros((loss.n_outputs, len(targets))), targets)
    means = found.scores.sum(axis=1) / found.hessians.sum(axis=1)
    start = loss.start(means, np.full(loss.n_outputs, 1e-6))
    shift = np.mean(expected) if len(expected) > 1 else 0.0
    assert start == pytest.approx(np.array(expected) - shift)
