"""Rounds: nothing but released sums decides what comes next, and one record moves each of them
little enough."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from sklearn_dpsearch.boosting import _rounds as rounds
from sklearn_dpsearch.boosting._capacity import parts_by_cell_width
from sklearn_dpsearch.boosting._features import CodedColumns
from sklearn_dpsearch.boosting._losses import BinaryLoss, SoftmaxLoss, SquaredLoss
from sklearn_dpsearch.boosting._noise import UNIT, NoisySums, squared_distance
from sklearn_dpsearch.boosting._random_cells import SINGLE_CELL, PartitionDraws
from sklearn_dpsearch.boosting._rounds import (
    FIRST_SCALE,
    UNMEASURED_ROUNDS,
    KnownHessians,
    NoisyRecords,
    PriorScale,
    TrainingRecords,
    boost,
    release_start,
    staged_outputs,
)

from .tables import SCHEMA, table

COLUMNS = CodedColumns(SCHEMA.without("pay", "grade", "price"), 16)
CODES = COLUMNS.codes(table(120))
SETTINGS = {"learning_rate": 1.0, "prior_factor": 0.8}
rng = np.random.default_rng(1)
LOSSES = {
    "two classes": (BinaryLoss(), rng.choice([-1.0, 1.0], 121)),
    "three classes": (SoftmaxLoss(3), rng.choice([0.0, 1.0, 2.0], 121)),
    "numbers": (SquaredLoss(), rng.normal(0, 2, 121)),
}


def noise(loss, seed=0):
    return NoisySums(loss, 3 * UNIT, np.random.RandomState(seed).bytes)


def trained(loss, codes, targets, release, **changed):
    """Boosting from the start, with one release for all."""
    noisy = NoisyRecords(TrainingRecords(codes, targets, loss), release, 3.0)
    start = release_start(noisy)
    draws = PartitionDraws(
        COLUMNS.features, 60, parts_by_cell_width(16, 4), np.random.default_rng(0)
    )
    boosted = boost(noisy, start, draws, **{**SETTINGS, **changed})
    return boosted, [SINGLE_CELL, *draws.drawn]


def recorded(loss, codes, targets):
    """Sums of a training, and what was released of them."""
    sums, released, noisy = [], [], noise(loss)

    def release(found):
        sums.append(found)
        released.append(noisy.release(found))
        return released[-1]

    boosted, partitions = trained(loss, codes, targets, release)
    return sums, released, boosted, partitions


def replayed(loss, codes, targets, released):
    """Sums of other records, in a training that is shown what was released before."""
    sums, answers = [], iter(released)
    return sums, *trained(loss, codes, targets, lambda found: sums.append(found) or next(answers))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_record_moves_no_released_sum_by_more_than_is_paid_for(name, relation):
    """Every output is frozen, so that only the record itself makes the difference, as in adaptive
    composition."""
    loss, targets = LOSSES[name]
    sums, released, boosted, partitions = recorded(loss, CODES, targets[:120])
    most, bound = 0, squared_distance(loss, relation) * UNIT**2
    for place in range(0, 120, 7):
        others, labels = np.delete(CODES, place, axis=1), np.delete(targets[:120], place)
        if relation == "replace_one":
            others = np.column_stack([others, CODES[:, (place + 3) % 120]])
            labels = np.append(
                labels, -targets[place] if name != "three classes" else (targets[place] + 1) % 3
            )
        found, same, again = replayed(loss, others, labels, released)
        assert [one.features for one in again] == [one.features for one in partitions]
        for one, other in zip(again, partitions):
            assert all(np.array_equal(*both) for both in zip(one.lookups, other.lookups))
        for one, other in zip(same.weights, boosted.weights):
            np.testing.assert_array_equal(one, other)
        if relation == "add_remove":  # the record is in one cell, and others add what they did
            assert all(
                len(np.unique(np.nonzero(one - other)[1])) == 1 for one, other in zip(sums, found)
            )
        moved = [int(np.square(one - other).sum()) for one, other in zip(sums, found)]
        assert min(moved) > 0 or relation == "replace_one"
        most = max(most, *moved)
    assert 0.5 * squared_distance(loss, "zero_out") * UNIT**2 < most <= bound


@pytest.mark.parametrize("name", LOSSES)
def test_each_record_is_in_one_cell_of_every_release(name):
    """At outputs of 0 all records of numbers far away add the same: they are counted once in each
    round."""
    loss, targets = LOSSES[name]
    sums, _, _, partitions = recorded(loss, CODES, targets[:120])
    assert [len(one.T) for one in sums] == [partition.n_cells for partition in partitions]
    if name == "numbers":
        unit = (UNIT - 1) // 4
        assert {int(one[1].sum()) for one in sums} == {120 * unit}


@pytest.mark.parametrize("name", LOSSES)
def test_the_weights_add_up_to_the_outputs_of_training(name, monkeypatch):
    loss, targets = LOSSES[name]
    seen, true = [], rounds._noise.records_at
    monkeypatch.setattr(
        rounds._noise,
        "records_at",
        lambda outputs, *given: seen.append(outputs.copy()) or true(outputs, *given),
    )
    _, _, boosted, partitions = recorded(loss, CODES, targets[:120])
    start = np.zeros((loss.n_outputs, CODES.shape[1]))
    stages = staged_outputs(partitions, boosted.weights, CODES, start)
    staged = [outputs.copy() for outputs in stages]
    np.testing.assert_allclose(seen[1:], staged[:-1], atol=1e-12)


def test_each_thread_has_a_block_at_the_same_time(monkeypatch):
    loss, targets = LOSSES["two classes"]
    both, true = threading.Barrier(2, timeout=60), rounds._noise.records_at
    monkeypatch.setattr(rounds, "BLOCK", 60)
    monkeypatch.setattr(
        rounds._noise, "records_at", lambda *given: both.wait() < 2 and true(*given)
    )
    with TrainingRecords(CODES, targets[:120], loss, n_threads=2) as records:
        found = records.sums(np.zeros((1, 1)), SINGLE_CELL)
    monkeypatch.undo()
    assert np.array_equal(
        found, TrainingRecords(CODES, targets[:120], loss).sums(np.zeros((1, 1)), SINGLE_CELL)
    )


@pytest.mark.slow
def test_blocks_of_records_change_nothing(monkeypatch):
    for loss, targets in LOSSES.values():
        whole, *_ = recorded(loss, CODES, targets[:120])
        with monkeypatch.context() as patch:
            patch.setattr(rounds, "BLOCK", 17)
            parts, *_ = recorded(loss, CODES, targets[:120])
        for one, other in zip(whole, parts):
            np.testing.assert_array_equal(one, other)


def test_weights_are_newton_steps_shrunk_by_what_is_known(monkeypatch):
    loss, targets = LOSSES["two classes"]
    known, see = [], KnownHessians.see
    monkeypatch.setattr(
        KnownHessians, "see", lambda self, given: known.append(see(self, given)) or known[-1]
    )
    _, released, boosted, _ = recorded(loss, CODES, targets[:120])
    (scores, _), found = released[5], boosted.weights[5]
    hessians = np.maximum(known[4][0], 0)
    # squared: of noise and of the records' own scores
    floor = (3.0**2 + hessians) / (0.8 * FIRST_SCALE) ** 2
    assert found == pytest.approx(scores * hessians / (hessians**2 + floor))
    assert np.all(
        np.abs(found[hessians > 0])
        < np.abs(scores / np.where(hessians > 0, hessians, 1))[hessians > 0]
    )


def test_sums_of_hessians_are_better_known_than_one_noisy_round_tells():
    """Cells of few records, whose noise is larger than they are: rounds together tell the total,
    and so the mean."""
    true, noise, draws = np.full((1, 10), 40.0), 100.0, np.random.default_rng(0)
    known = KnownHessians(np.array([[900.0]]), np.array([[300.0**2]]), noise)
    noisy = [true + draws.normal(0, noise, (1, 10)) for _ in range(60)]
    found = [known.see(one)[0] for one in noisy]
    assert known.total[0, 0] == pytest.approx(400.0, abs=80.0)
    assert np.std(found[30:] - true) < 0.5 * np.std(np.array(noisy) - true)


def test_sums_of_hessians_far_above_the_noise_are_believed():
    true, draws = np.array([[4000.0, 100.0, 900.0, 2500.0]]), np.random.default_rng(0)
    known = KnownHessians(np.array([[7000.0]]), np.array([[1000.0**2]]), 10.0)
    for _ in range(20):
        noisy = true + draws.normal(0, 10.0, (1, 4))
        found, believed = known.see(noisy)
        assert believed[0, 0] > 0.99
        np.testing.assert_allclose(found, noisy, atol=1.0)


@pytest.mark.slow
def test_gains_of_all_rounds_are_the_decrease_of_the_loss():
    """Of squared residuals, whose second order is exact, in the mean of many trainings, and up to
    noise of Hessians."""
    loss, targets = SquaredLoss(), np.where(CODES[0, :120] > 8, 0.4, -0.4)
    found, true = [], []
    for seed in range(60):
        boosted, partitions = trained(
            loss, CODES, targets, noise(loss, seed).release, learning_rate=0.2
        )
        parts = staged_outputs(partitions, boosted.weights, CODES, np.zeros((1, CODES.shape[1])))
        staged = [one.copy() for one in parts]
        lost = [float(np.square(targets - one[0]).sum() / 2) for one in (staged[0], staged[-1])]
        found.append(sum(boosted.gains))
        true.append(lost[0] - lost[1])
    assert np.mean(found) == pytest.approx(np.mean(true), rel=0.4)


def see_rounds(prior, truth, noise, hessian, rounds, seed=0):
    """Show the prior rounds with weights of a true size."""
    draws = np.random.default_rng(seed)
    for _ in range(rounds):
        hessians = np.full((1, 50), hessian) * draws.uniform(0.5, 1.5, (1, 50))
        variances = noise**2 + np.maximum(hessians, 0.0)
        scores = hessians * draws.normal(0, truth, (1, 50)) + np.sqrt(variances) * draws.normal(
            size=(1, 50)
        )
        prior.see(scores, hessians, variances)


def test_the_size_of_weights_is_measured_over_all_rounds():
    prior = PriorScale(1.5, smallest=0.01)
    see_rounds(prior, 0.4, 20.0, 100.0, UNMEASURED_ROUNDS - 1)
    assert prior.value == pytest.approx(1.5 * FIRST_SCALE)
    see_rounds(prior, 0.4, 20.0, 100.0, 40)
    assert prior.value == pytest.approx(1.5 * 0.4, rel=0.1)
    see_rounds(prior, 0.05, 20.0, 100.0, 40 + UNMEASURED_ROUNDS - 1)
    assert prior.value == pytest.approx(1.5 * np.sqrt((0.4**2 + 0.05**2) / 2), rel=0.1)


@pytest.mark.parametrize("hessian", [1.0, -1.0])
def test_where_little_is_seen_the_size_of_weights_stays_as_expected(hessian):
    prior = PriorScale(1.0, smallest=0.01)
    see_rounds(prior, 0.0, 20.0, hessian, 60)
    assert prior.value == pytest.approx(FIRST_SCALE, rel=0.02)


@pytest.mark.parametrize("noise", [20.0, 0.1])
def test_noise_alone_and_the_records_own_spread_count_as_small_weights_where_cells_are_large(noise):
    prior = PriorScale(1.0, smallest=0.02)
    see_rounds(prior, 0.0, noise, 5000.0, 60)
    assert prior.value < 0.03


@pytest.mark.parametrize("name", LOSSES)
def test_the_slope_of_the_shrunk_inverse_is_its_derivative(name):
    hessians, noise, size, spread = np.array([3.0, 40.0, 900.0]), 5.0, 0.3, LOSSES[name][0].spread
    inverse = lambda h: rounds._shrunk_inverse(h, np.sqrt(noise**2 + spread * h) / size)  # noqa: E731
    slope = rounds._shrunk_inverse_slope(
        hessians, np.sqrt(noise**2 + spread * hessians) / size, noise / size
    )
    numeric = (inverse(hessians + 1e-4) - inverse(hessians - 1e-4)) / 2e-4
    np.testing.assert_allclose(slope, numeric, rtol=1e-5)


# --- the start ------------------------------------------------------------------------------------


def test_a_public_number_of_records_takes_the_noise_out_of_the_starts_hessians():
    targets = np.where(np.arange(1000) < 80, 1.0, -1.0)
    records = TrainingRecords(np.zeros((1, 1000), np.uint8), targets, BinaryLoss())
    truth, found = np.log(0.08 / 0.92), {}
    for number in (None, 1000):
        release = [
            NoisySums(BinaryLoss(), 30 * UNIT, np.random.RandomState(seed).bytes).release
            for seed in range(60)
        ]
        noisy = [NoisyRecords(records, each, 30.0) for each in release]
        starts = [release_start(each, number).outputs.item() for each in noisy]
        found[number] = np.sqrt(np.mean(np.square(np.array(starts) - truth)))
    assert found[1000] < 0.4 < found[None]


def test_many_blank_records_are_noticed_by_the_start():
    targets, blank = np.where(np.arange(1000) % 10 < 3, 1.0, -1.0), np.arange(1000) < 500
    records = TrainingRecords(np.zeros((1, 1000), np.uint8), targets, BinaryLoss(), blank=blank)
    release = NoisySums(BinaryLoss(), 3 * UNIT, np.random.RandomState(0).bytes).release
    start = release_start(NoisyRecords(records, release, 3.0), 1000)
    assert start.outputs.item() == pytest.approx(np.log(0.3 / 0.7), abs=0.2)
    assert start.n_records == pytest.approx(500, abs=60)


@pytest.mark.parametrize(
    "loss", [BinaryLoss(), SoftmaxLoss(3), SquaredLoss()], ids=lambda loss: type(loss).__name__
)
def test_a_start_that_is_mostly_noise_stays_within_what_is_possible(loss):
    """A clipped noisy share of 0.005 would cost more than a share that is not known at all."""
    far, unsure = np.full((loss.n_outputs, 1), -5.0), np.full((loss.n_outputs, 1), 2.0)
    outputs = loss.start(far, unsure)
    assert np.isfinite(outputs).all()
    assert np.abs(outputs).max() < 3.0
    sure = loss.start(np.full((loss.n_outputs, 1), 0.1), np.full((loss.n_outputs, 1), 1e-9))
    assert np.isfinite(sure).all()
