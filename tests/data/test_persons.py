"""Persons of records: equal names are one person, missing ones are each one of their own, and no
text quotes one."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

from sklearn_dpsearch.data._persons import number_of_persons, one_of_each, persons_in

pd = pytest.importorskip("pandas")
NAMES = ["ann", "bob", "ann", "cy", "bob", "ann"]


def partition(groups):
    """Places of the records of each person."""
    codes = persons_in(groups, len(groups))
    assert codes.dtype == np.int64
    # no code is left out
    assert sorted(set(codes.tolist())) == list(range(number_of_persons(codes)))
    return sorted(np.flatnonzero(codes == code).tolist() for code in set(codes.tolist()))


@pytest.mark.parametrize("groups", [
    NAMES, tuple(NAMES), np.array(NAMES), np.array(NAMES, object), pd.Series(NAMES),
    pd.Series(NAMES, dtype="category"), pd.Series(NAMES, dtype="string"),
    pd.DataFrame({"person": NAMES}), np.array([5, -1, 5, 2, -1, 5]),
    [5.0, -1, 5, True + 1, -1.0, np.int8(5)], [(1, "a"), "b", (1, "a"), None, "b", (1, "a")],
    [2**60, 2**60 + 1, 2**60, 2**60 + 2, 2**60 + 1, 2**60],
    pd.Series([2**60, 2**60 + 1, 2**60, None, 2**60 + 1, 2**60], dtype="Int64"),
    pd.to_datetime(
        pd.Series(["2020-01-01", "2021-01-01", "2020-01-01", None, "2021-01-01", "2020-01-01"]),
    ),
    [datetime.date(2020, 1, day) for day in (1, 2, 1, 3, 2, 1)],
])  # fmt: skip
def test_equal_names_are_one_person_in_every_container(groups):
    assert partition(groups) == [[0, 2, 5], [1, 4], [3]]


@pytest.mark.parametrize("groups", [
    [
        None, float("nan"), "a", np.nan, None, pd.NaT, pd.NA, "a", decimal.Decimal("nan"),
        np.datetime64("NaT", "s"),
    ],
    pd.Series([None, None, 3, None, None, None, None, 3, None, None], dtype="Int64"),
    np.array([np.nan, np.nan, 3, np.nan, np.nan, np.nan, np.nan, 3, np.nan, np.nan]),
    np.array(["NaT"] * 2 + ["2020"] + ["NaT"] * 4 + ["2020"] + ["NaT"] * 2, dtype="datetime64[s]"),
])  # fmt: skip
def test_each_record_without_a_person_is_a_person_of_its_own(groups):
    assert partition(groups) == [[0], [1], [2, 7], [3], [4], [5], [6], [8], [9]]


@pytest.mark.parametrize("library", ["polars", "pyarrow", "torch"])
def test_other_libraries_are_read(library):
    module = pytest.importorskip(library)
    make = {"polars": "Series", "pyarrow": "chunked_array", "torch": "tensor"}[library]
    numbers = [5, 1, 5, 2, 1, 5]
    actual = partition(getattr(module, make)([numbers] if library == "pyarrow" else numbers))
    assert actual == [[0, 2, 5], [1, 4], [3]]


@pytest.mark.parametrize("odd", ["A123456", "0.5", "1e3", None, "9" * 5000])
def test_a_number_and_its_text_are_one_person(odd):
    """One name that is no number makes text of some numbers of a CSV file, and leaves others what
    they are."""
    expected = [[0, 1, 2, 3, 4], [5], [6, 7], [8]]
    assert partition(["17", 17, "017", 17.0, " 17.0", odd, "-5", -5, "0.17"]) == expected
    assert partition(["1000", odd, 1000, "2"]) == [[0, 2], [1], [3]]
    assert number_of_persons(persons_in([], 0)) == 0


@pytest.mark.parametrize("groups", [NAMES[:-1], [*NAMES, "dan"], np.zeros((6, 2)), [[1, 2]] * 5])
def test_another_number_of_persons_is_an_error_that_quotes_none(groups):
    match = r"Found groups of shape .* for 6 records.*Give the column"
    with pytest.raises(ValueError, match=match) as told:
        persons_in(groups, 6)
    assert "ann" not in str(told.value)


class Secret:
    __hash__ = None

    def __repr__(self):
        return "secret"


def test_names_without_a_hash_are_one_person_who_is_protected_as_a_whole():
    """An error would tell of the record; a person for each would split one whose name is a set."""
    assert partition(["ann", Secret(), {"secret": 1}, "ann", {17}, {17}]) == [[0, 3], [1, 2, 4, 5]]


def test_one_name_decides_nothing_about_the_others():
    """Whole numbers that double precision would make equal stay different beside a fraction, a text
    or a gap."""
    for odd in (0.5, "text", None, float("nan"), float("inf"), 10**400):
        assert partition([2**60, 2**60 + 1, odd, 2**60 + 1]) == [[0], [1, 3], [2]]


def test_one_record_of_each_person_is_drawn():
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(50), np.arange(1, 51)))
    draw = np.random.default_rng(1).bytes
    times = np.zeros(len(codes))
    for _ in range(400):
        chosen = one_of_each(codes, draw)
        assert sorted(codes[chosen]) == list(range(50))
        assert np.all(np.diff(chosen) > 0)
        times[chosen] += 1
    expected = 400 / np.bincount(codes)[codes]
    assert np.all(np.abs(times - expected) < 6 * np.sqrt(expected) + 1)
    assert one_of_each(codes[:0], draw).tolist() == []
