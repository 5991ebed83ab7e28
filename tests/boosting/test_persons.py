"""Persons: whatever records one has, he moves each released sum by no more than one record does."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch.audit import replay
from sklearn_dpsearch.boosting import _base as base
from sklearn_dpsearch.boosting import _rounds as rounds
from sklearn_dpsearch.boosting._losses import BinaryLoss, SoftmaxLoss, SquaredLoss
from sklearn_dpsearch.boosting._noise import (
    UNIT,
    bounded_records,
    cell_sums,
    squared_distance,
    whole_numbers,
)
from sklearn_dpsearch.boosting._rounds import RecordsByPerson, clip_persons
from sklearn_dpsearch.privacy import PrivacyError

from .models import MODELS, STARTS, TABLE

rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _draws():
    """Each test draws the same, whichever run before it."""
    global rng
    rng = np.random.default_rng(5)


#: Loss, and labels of n records.
LOSSES = {
    "two classes": (BinaryLoss(), lambda n: rng.choice([-1.0, 1.0], n)),
    "three classes": (SoftmaxLoss(3), lambda n: rng.integers(0, 3, n) * 1.0),
    "many classes": (SoftmaxLoss(12), lambda n: rng.integers(0, 12, n) * 1.0),
    "numbers": (SquaredLoss(), lambda n: rng.normal(0, 2, n)),
}


def added(loss, labels, scale=1.0, outputs=None):
    """What records add, in whole numbers."""
    at = rng.normal(0, scale, (loss.n_outputs, len(labels))) if outputs is None else outputs
    return bounded_records(whole_numbers(loss.derivatives(at, labels), loss), loss)


def squares_by_person(found, numbers):
    """Squared norms over all cells and outputs, as Python's whole numbers."""
    squares = [0] * (int(numbers[-1]) + 1)
    for place, column in zip(numbers.tolist(), found.astype(np.int64).T.tolist()):
        squares[place] += sum(value**2 for value in column)
    return squares


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n_cells", [1, 2, 6561])
@pytest.mark.parametrize("sizes", [[1] * 50, [2, 1, 2], [10] * 30, [1, 10, 10_000, 2]])
def test_no_person_adds_more_than_one_record_may(name, n_cells, sizes):
    """Any labels, one label for all, duplicates of one record, and a record in each cell."""
    loss, labels_of = LOSSES[name]
    most = squared_distance(loss) * UNIT**2
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    n = len(numbers)
    one = labels_of(1).repeat(n)
    zeros = np.zeros((loss.n_outputs, n))
    cases = [added(loss, labels_of(n)), added(loss, one), added(loss, one, outputs=zeros)]
    for values in cases:
        for cells in (rng.integers(0, n_cells, n), np.zeros(n, np.int64), np.arange(n) % n_cells):
            found = clip_persons(values.copy(), cells, n_cells, numbers, loss)
            assert np.array_equal(found, np.rint(found))
            assert max(squares_by_person(found, numbers)) <= most


@pytest.mark.parametrize("name", LOSSES)
def test_clipped_sums_are_those_of_each_person_and_cell(name):
    """Against a dictionary of exact whole numbers; a person within the bound adds what his records
    add."""
    loss, labels_of = LOSSES[name]
    sizes, n_cells, most = rng.integers(1, 9, 40), 5, int(squared_distance(loss) * UNIT**2)
    numbers = np.repeat(np.arange(40), sizes)
    n, cells = len(numbers), rng.integers(0, 5, len(numbers))
    values = added(loss, labels_of(n), scale=9.0)
    found = cell_sums(
        clip_persons(values.copy(), cells, n_cells, numbers, loss),
        numbers * n_cells + cells,
        40 * n_cells,
    )
    exact = cell_sums(values, numbers * n_cells + cells, 40 * n_cells)
    kept = 0
    for person in range(40):
        mine = slice(person * n_cells, (person + 1) * n_cells)
        square = int(np.square(exact[:, mine]).sum())
        if square <= most:
            kept += 1
            np.testing.assert_array_equal(found[:, mine], exact[:, mine])
        else:
            np.testing.assert_allclose(
                found[:, mine], exact[:, mine] * np.sqrt(most / square), atol=1.01
            )
    assert kept > 3


@pytest.mark.parametrize("name", LOSSES)
def test_two_persons_are_at_most_twice_the_length_of_a_record_apart(name):
    """As they are under replace-one: many records each, all of one label or of another."""
    loss, labels_of = LOSSES[name]
    numbers = np.repeat(np.arange(60), 40)
    values = added(loss, labels_of(60).repeat(40), scale=3.0)
    found = clip_persons(values, np.zeros(len(numbers), np.uint8), 1, numbers, loss)
    sums = np.array([found[:, numbers == person].sum(axis=1) for person in range(60)])
    apart = max(int(np.square(one - sums).sum(axis=1).max()) for one in sums)
    assert 0.45 * squared_distance(loss, "replace_one", True) * UNIT**2 < apart
    expected = squared_distance(loss, "replace_one", True) * UNIT**2
    assert apart <= 4 * squared_distance(loss) * UNIT**2 == expected


def clipped(values, loss):
    """What each column is clipped to, if it is the sum of a person's records, shape (2 · n_outputs
    · n_cells, n)."""
    bound = int(squared_distance(loss) * UNIT**2)
    return rounds._shorten_persons(values.astype(float), np.arange(values.shape[1]), bound)


def test_one_record_can_move_a_clipped_person_by_more_than_a_record():
    """Truncation towards zero is no projection: proofs/persons_counterexample.v has the same
    numbers."""
    loss = SoftmaxLoss(3)
    records = np.array([[262144, 321060, 321060, 0, 0, 0], [262145, 321060, 321060, 0, 0, 0]]).T
    another = np.array([[524288, -642119, -642119, 247151, 0, 0]]).T
    every = np.hstack([records, another])
    assert np.array_equal(bounded_records(every.astype(float), loss), every)
    before = records.sum(axis=1, keepdims=True)
    moved = clipped(before + another, loss) - clipped(before, loss)
    assert int(np.square(moved).sum()) == int(squared_distance(loss) * UNIT**2) + 562573


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n_cells", [1, 4])
def test_one_record_of_these_losses_moves_a_clipped_person_by_no_more_than_a_record(name, n_cells):
    """Records that add the most, and persons at the edge of the ball, in all directions and along
    few axes."""
    loss, labels_of = LOSSES[name]
    entries, n = 2 * loss.n_outputs * n_cells, 20_000
    radius = float(squared_distance(loss)) ** 0.5 * UNIT
    one = added(loss, labels_of(n), outputs=np.zeros((loss.n_outputs, n)))
    record = np.vstack([one, np.zeros((entries - len(one), n))])
    for spread in (1.0, 1e-3, 1e-6):
        ends = rng.normal(size=(entries, n)) * rng.choice([0.0, spread, 1.0], (entries, n))
        ends *= (radius + rng.uniform(-3, 3, n)) / np.maximum(
            np.sqrt(np.square(ends).sum(axis=0)), 1e-9
        )
        ends = np.rint(ends)
        for first, last in ((ends, ends + record), (ends - record, ends)):
            squares = np.square(clipped(last, loss) - clipped(first, loss)).sum(axis=0)
            assert squares.max() <= squared_distance(loss) * UNIT**2
            assert squares.max() > 0.5 * np.square(record).sum(axis=0).max()


def test_values_that_scaling_leaves_too_long_count_as_nothing(monkeypatch):
    """Whatever rounding does, the squared norm is checked as a whole number afterwards."""
    monkeypatch.setattr(np, "sqrt", lambda values: values * 0 + 1.0)
    found = rounds._shorten_persons(np.full((2, 3), 2.0**20), np.array([0, 0, 1]), 2 * UNIT**2)
    assert found.tolist() == [[0, 0, UNIT], [0, 0, UNIT]]


def test_blocks_hold_whole_persons_and_all_of_them(monkeypatch):
    monkeypatch.setattr(rounds, "PERSONS", 17)
    monkeypatch.setattr(rounds, "PAIRS", 40)
    codes = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 40, 60)))
    units = RecordsByPerson(codes)
    for n_cells in (1, 7, 39, 100):
        seen = np.empty(0, np.int64)
        for rows, numbers in units.blocks(n_cells):
            mine = codes[units.order][rows]
            assert numbers[0] == 0
            np.testing.assert_array_equal(np.unique(mine, return_inverse=True)[1], numbers)
            assert not set(mine) & set(seen)
            assert len(numbers) <= 17 or numbers[-1] == 0
            assert (numbers[-1] + 1) * n_cells <= max(40, n_cells)
            seen = np.append(seen, mine)
        np.testing.assert_array_equal(seen, np.sort(codes))


# --- whole fits -----------------------------------------------------------------------------------


def heavy(n, seed=0):
    """Persons with 1, 2, 10, and a third of all records, in a random order; the last records have
    none."""
    sizes = [n // 3, 10, 10, 2, 2, 1]
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rest = np.random.default_rng(seed).integers(10, 60, n - len(codes)).astype(object)
    rest[-3:] = None
    return np.random.default_rng(seed).permutation(np.append(codes, rest))


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


def replayed(model, groups, other):
    """Replay of a fit on a table of other records, which keep their persons."""
    return replay(
        model, TABLE, TABLE[model.target], groups=groups,
        neighbour=(other, other[model.target]), neighbour_groups=groups[other.index],
    )  # fmt: skip


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("person", [0, 1, 3, 5, 20])
def test_a_person_moves_no_released_sum_by_more_than_is_paid_for(kind, start, person):
    """Given the same noisy answers: the start, the slopes of a public one, and all rounds."""
    groups = heavy(len(TABLE))
    init = STARTS[kind] if start else None
    make = lambda: MODELS[kind](init=init, random_state=0, noise_seed=0, max_iter=20)  # noqa: E731
    gone = TABLE.index[[name == person for name in groups]]
    assert len(gone) > 0
    found = replayed(make(), groups, TABLE.drop(index=gone))
    bound = squared_distance(make()._loss_and_targets(TABLE[make().target].to_numpy())[0]) * UNIT**2
    assert {one.squared_sensitivity for one in found.releases} == {bound}
    assert found.passed
    # who has a third of all records fills the bound
    assert found.largest > (0.9**0.5 if person == 0 else 0)


def test_one_record_of_each_person_changes_nothing(kind):
    """The same model, to the last bit, whatever the names and their order; no number of records is
    public in both."""
    make = lambda: MODELS[kind](random_state=0, noise_seed=1, max_iter=30, neighboring="add_remove")  # noqa: E731
    target = TABLE[make().target]
    without = make().fit(TABLE, target)
    names = np.random.default_rng(0).permutation(len(TABLE)).astype(str)
    model = make().fit(TABLE, target, groups=names)
    for one, other in zip(without.weights_, model.weights_, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (without.privacy_spent_.unit, model.privacy_spent_.unit) == ("record", "person")


def test_the_order_of_records_changes_no_sum(kind):
    groups = heavy(len(TABLE))
    order = np.random.default_rng(1).permutation(len(TABLE))
    make = lambda: MODELS[kind](random_state=0, noise_seed=0, max_iter=20)  # noqa: E731
    found = replayed(make(), groups, TABLE.iloc[order])
    assert found.passed
    assert found.largest == 0


def test_noise_is_that_of_records_and_more_where_persons_are_replaced(kind, monkeypatch):
    """Under replace-one two persons' vectors are up to twice the length of one apart."""
    scales, true = [], base.NoisySums
    monkeypatch.setattr(base, "NoisySums", lambda *given: scales.append(given[1]) or true(*given))
    for neighboring in ("zero_out", "add_remove", "replace_one"):
        model = MODELS[kind](neighboring=neighboring, target_mu=0.7, max_iter=5)
        target = TABLE[model.target]
        model.fit(TABLE, target).fit(TABLE, target, groups=heavy(len(TABLE)))
        start, each, start_of_persons, each_of_persons = scales[-4:]
        loss = model._loss_and_targets(target.to_numpy())[0]
        spent = squared_distance(loss, neighboring, True) * UNIT**2
        bound = Fraction(0.7) ** 2
        assert spent * (Fraction(1, start_of_persons**2) + Fraction(5, each_of_persons**2)) <= bound
        assert (each_of_persons == each) == (neighboring != "replace_one")
        assert (start_of_persons == start) == (neighboring != "replace_one")


def test_delta_is_compared_with_the_number_of_persons():
    options = {"target_epsilon": 1.0, "target_delta": 0.012, "max_iter": 3}
    model = MODELS["two classes"](target_mu=None, **options)
    few = TABLE.head(90)
    model.fit(few, few["pay"], groups=np.arange(90) % 80)
    for groups, units in ((None, "90 records"), (np.arange(90) % 70, "70 persons")):
        with pytest.raises(PrivacyError, match=f"Found target_delta=0.0[0-9]+ for {units}"):
            model.set_params(target_delta=0.02).fit(few, few["pay"], groups=groups)


def test_groups_leave_no_trace():
    names = np.array([f"patient {place // 3}" for place in range(len(TABLE))])
    model = MODELS["two classes"](max_iter=3).fit(TABLE, TABLE["pay"], groups=names)
    assert b"patient" not in pickle.dumps(model)
    assert "groups" not in vars(model)
    with pytest.raises(ValueError, match="Found groups of shape") as told:
        model.fit(TABLE, TABLE["pay"], groups=names[:-1])
    assert "patient" not in str(told.value)


@pytest.mark.parametrize(("given", "grouped", "number"), [
    ({}, False, len(TABLE)),
    ({"neighboring": "add_remove"}, False, None),
    ({"expected_samples": 7.0}, False, 7.0),
    ({"neighboring": "add_remove", "expected_samples": 7.0}, False, 7.0),
    ({"expected_samples": 7.0}, True, None),
    ({}, True, None),
])  # fmt: skip
def test_the_start_uses_only_a_public_number_of_records(kind, given, grouped, number, monkeypatch):
    numbers, true = [], rounds.release_start
    monkeypatch.setattr(
        rounds, "release_start", lambda *each: numbers.append(each[1]) or true(*each)
    )
    model = MODELS[kind](max_iter=1, **given)
    model.fit(TABLE, TABLE[model.target], **({"groups": heavy(len(TABLE))} if grouped else {}))
    assert numbers == [number]
