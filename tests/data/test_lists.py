"""A list has no declared type: each entry is read by itself, and none decides how others are
read."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.data._labels import positions
from sklearn_dpsearch.data._lists import labels_in, numbers_in, objects, objects_in

BIG = 2**53


@pytest.mark.parametrize(
    "last", [1, 1.5, True, "1", "secret", None, 1j, 10**400, BIG + 1, np.complex128(1)]
)
@pytest.mark.filterwarnings("error")
def test_no_entry_changes_others(last):
    assert numbers_in([[7, BIG], [1, last]], "X")[0].tolist() == [7.0, BIG]
    assert objects_in([[BIG + 1], [last]], "X")[0].tolist() == [BIG + 1]
    read = labels_in([BIG, BIG + 1, last], [BIG, BIG + 1])
    assert read.dtype == np.int64
    assert read[:2].tolist() == [BIG, BIG + 1]


def test_what_is_no_number_is_missing():
    found = numbers_in(["a", None, 1j, {}, "2", True, 0.5], "X")
    assert np.isnan(found[:4]).all()
    assert numbers_in([np.array(1), 2.5, np.float32(3)], "y").tolist() == [1.0, 2.5, 3.0]
    assert found[4:].tolist() == [2.0, 1.0, 0.5]


def test_rows_of_different_lengths_are_refused_without_a_word_about_them():
    for rows in (
        [[1], [2, 3]],
        [[1], 2],
        [[[1]], [[2], [3]]],
        [[[1, 2]], [[3, 4]], [5, 6]],
        [np.zeros((2, 2)), np.zeros((2, 3))],
    ):
        with pytest.raises(ValueError, match="lists must be rectangular") as error:
            numbers_in(rows, "X")
        assert error.value.__context__ is None


@pytest.mark.parametrize("cell", [[0.3], [], [[1]], np.zeros(2), (1, 2)])
def test_a_list_in_place_of_a_value_is_missing_and_a_list_among_labels_no_class(cell):
    rows = [[1.0, BIG + 1], [2.0, 3], [4.0, 5]]
    for place in range(3):
        given = [[cell, 7] if place == row else values for row, values in enumerate(rows)]
        with pytest.raises(ValueError, match="lists must be rectangular"):
            objects_in(given, "X")
        expected = [[None, 7] if place == row else values for row, values in enumerate(rows)]
        assert objects_in(given, "X", (2,)).tolist() == expected
    assert labels_in([0, 1, 0, cell], [0, 1])[:3].tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="list of lists"):
        labels_in([0, 1, 0, cell], None)


def test_rows_that_are_arrays_are_read_each_in_its_own_type():
    rows = [
        np.array([BIG + 1, 1]), np.array([0.5, 2.0]), np.array([True, False]),
        np.array([7, 8], np.uint8),
    ]  # fmt: skip
    assert numbers_in(rows, "X").tolist() == [[BIG, 1], [0.5, 2], [1, 0], [7, 8]]
    assert numbers_in([*rows, ["2", None]], "X")[0].tolist() == [BIG, 1]
    with pytest.raises(ValueError, match="lists must be rectangular"):
        numbers_in([*rows, np.zeros(3)], "X")


@pytest.mark.parametrize("odd", [
    [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], 7, None, np.zeros(3), np.zeros((2, 1)),
    np.zeros((1,) * 6), np.float32(3), np.ma.masked_array([1.0, 2.0], [True, False]),
    np.array([1.0, 2.0], np.float32), np.array(["a", "b"]),
], ids=lambda odd: f"{type(odd).__name__} {np.shape(odd)}")  # fmt: skip
def test_a_row_that_does_not_fit_the_declared_shape_is_missing_and_changes_no_other(odd):
    rows = [np.array([0.1, BIG + 1]), [0.2, 3], np.array([4, 5])]
    for place in range(4):
        given = [*rows[:place], odd, *rows[place:]]
        for read in (numbers_in, objects_in):
            expected = read(rows, "X", (2,)).tolist()
            assert np.delete(read(given, "X", (2,)), place, axis=0).tolist() == expected


@pytest.mark.parametrize(("classes", "given", "read"), [
    ([0, 1], [1.0, True, np.int8(0), np.array(1)], [1, 1, 0, 1]),
    ([0.5, 1.0], [1, 0.5], [1.0, 0.5]),
    (np.array(["a", "b"]), ["b", np.str_("a")], ["b", "a"]),
    (["a", 1], ["a", 1], ["a", "1"]),
    ([False, True], [True, 0], [1, 0]),
])  # fmt: skip
def test_labels_have_the_type_of_the_classes(classes, given, read):
    assert labels_in(given, classes).tolist() == read


@pytest.mark.parametrize("classes", [[0, 1], [0.0, 1.0], ["a", "no class 0"], [False, True]])
def test_whatever_is_no_class_is_one_label_outside_of_the_classes(classes):
    (found,) = set(labels_in(["other", 0.3, None, 7, {}], classes).tolist())
    assert found not in classes


def test_without_classes_equal_labels_are_one():
    assert labels_in([0, 1.0, True], None).dtype == labels_in([0, 1, 1], None).dtype == np.int64
    assert labels_in(["a", "b"], None).tolist() == ["a", "b"]


def test_several_labels_of_a_record_are_no_list():
    with pytest.raises(ValueError, match="y as a list of lists"):
        labels_in([[0, 1], [1, 0]], [0, 1])


@pytest.mark.parametrize("odd", [
    "?", "", None, "9" * 5000, pytest.param(10**5000, id="huge"), 1e308, float("nan"), float("inf"),
    [1], b"1",
])  # fmt: skip
def test_a_label_and_the_text_that_says_it_are_one(odd):
    """One label that is no number makes text of some labels of a CSV file."""
    expected = [1, 1, -1, 0, 0, 1, 1]
    assert positions(objects(["1", 1, odd, "0", 0.0, " 1.0 ", "true"]), [0, 1]).tolist() == expected
    assert positions(objects([str(2**60 + 1), str(2**60)]), [2**60, 2**60 + 1]).tolist() == [1, 0]
    assert positions(objects(["1", "01", 1, odd]), ["1", "01"]).tolist() == [0, 1, 0, -1]
    actual = positions(objects(["a", object(), 0.5, odd]), ["a", None]).tolist()
    assert actual == [0, -1, -1, 1 if odd is None else -1]
