"""Pairs of data sets: checked against the relation, or built."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from sklearn_dpsearch.audit import Neighbours, audit, worst_case
from sklearn_dpsearch.privacy import PrivacyError, PureDP

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 1, 1])
FRAME, GROUPS = pd.DataFrame(X, columns=["b", "a"]), np.array(["a", "b", "a", "c", "b", "b"])


def changed(X, y, place=2):
    other, labels = X.copy(), y.copy()
    other[place] += 1
    return other, labels


@pytest.mark.parametrize("place", [0, 3, 5])
def test_one_record_more_is_found_wherever_it_stands(place) -> None:
    less = np.delete(X, place, axis=0), np.delete(Y, place)
    for data, other in (((X, Y), less), (less, (X, Y))):
        assert Neighbours.of(data, other, "add_remove").canary.tolist() == [X[place].tolist()]


@pytest.mark.parametrize("as_given", [np.asarray, csr_matrix, pd.DataFrame, lambda X: X.tolist()])
def test_every_kind_of_table_is_compared(as_given) -> None:
    pair = Neighbours.of((as_given(X), Y), (as_given(changed(X, Y)[0]), Y), "replace_one")
    shown = pair.canary.toarray() if hasattr(pair.canary, "toarray") else np.asarray(pair.canary)
    assert shown.tolist() == [[4.0, 5.0], [5.0, 6.0]]


def test_a_changed_target_is_a_changed_record_and_missing_values_are_equal() -> None:
    with_missing = X.copy()
    with_missing[1, 1] = np.nan
    labels = Y.copy()
    labels[4] = 0
    assert Neighbours.of((with_missing, Y), (with_missing.copy(), labels), "replace_one").steps == 1
    of_pandas = pd.DataFrame(X).astype("Int64")
    of_pandas.iloc[1, 1] = pd.NA
    other = of_pandas.copy()
    other.iloc[4, 0] = pd.NA
    shown = Neighbours.of((of_pandas, Y), (other, Y), "replace_one").canary
    assert shown.index.tolist() == [4, 4]


@pytest.mark.parametrize(("absent", "steps"), [(False, 2), (True, 1)])
def test_two_values_of_a_record_are_two_steps_of_zero_out_unless_one_is_absent(absent, steps):
    assert Neighbours.of((X, Y), changed(X, Y), "zero_out", absent).steps == steps
    without_persons = Neighbours.of((X, Y), (*changed(X, Y), None), "zero_out", absent)
    assert without_persons.canary.tolist() == [[4.0, 5.0], [5.0, 6.0]]


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "replace_one"])
@pytest.mark.parametrize("other", [
    (X, Y), (X[:4], Y[:4]), (X[::-1], Y[::-1]), (X + 1, Y), (X[:, :1], Y),
    (np.vstack([X, X[:1] + 1])[::-1], [0] * 7),
], ids=[
    "equal", "two less", "reversed", "all changed", "a feature less", "another order",
])  # fmt: skip
def test_pairs_that_are_not_neighbours_are_refused(relation, other) -> None:
    match = f"not neighbours under '{relation}': .* needed are .* Give"
    with pytest.raises(PrivacyError, match=match):
        Neighbours.of((X, Y), other, relation)


def test_the_relation_must_fit_the_pair() -> None:
    with pytest.raises(PrivacyError, match="1 of 6 records differ"):
        Neighbours.of((X, Y), changed(X, Y), "add_remove")
    match = "Expected neighboring to be one of .*, got neighboring='swap'"
    with pytest.raises(ValueError, match=match):
        Neighbours.of((X, Y), changed(X, Y), "swap")
    with pytest.raises(ValueError, match="6 records and 3 targets"):
        Neighbours.of((X, Y), (X, Y[:3]), "add_remove")


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "replace_one"])
@pytest.mark.parametrize("y", [
    None, Y, Y.astype(str), np.linspace(-1.5, 2, 6),
], ids=["none", "labels", "texts", "numbers"])  # fmt: skip
def test_a_built_canary_makes_neighbours_and_stays_within_what_occurs(relation, y) -> None:
    pair = worst_case(X, y, neighboring=relation)
    assert len(pair.other_X) - len(pair.X) == (relation == "add_remove")
    assert np.all(pair.other_X >= X.min(axis=0))
    assert np.all(pair.other_X <= X.max(axis=0))
    if y is not None:
        assert set(pair.other_y) <= set(y)


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "replace_one"])
def test_neighbours_of_a_frame_keep_the_names_of_its_columns(relation) -> None:
    """A model with a schema would read an array in another order, and a canary not at all."""
    pair, plain = (worst_case(table, Y, GROUPS, neighboring=relation) for table in (FRAME, X))
    for name in ("X", "other_X", "canary"):
        frame, array = getattr(pair, name), getattr(plain, name)
        assert list(frame.columns) == ["b", "a"]
        assert np.array_equal(frame, array)


def test_a_canary_contradicts_what_the_others_say() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    pair = worst_case(values, values @ [1.0, -2.0, 3.0], neighboring="add_remove")
    assert np.all(np.sign(pair.canary[0]) == [-1, 1, -1])
    assert pair.other_y[-1] == pytest.approx((values @ [1.0, -2.0, 3.0]).max())
    far = worst_case(values, neighboring="add_remove", scale=10.0)
    assert np.all(np.abs(far.canary) > 5)


COUNTS = np.array([5.0, 3080.0, 12.0, 3080.0, 40.0, 7.0])


class Recording(BaseEstimator):
    """Model that keeps the targets of each fit."""

    targets = []

    def fit(self, X, y):
        self.targets.append(y)
        self.count_ = float(len(X))
        return self


class Regressor(RegressorMixin, Recording):
    targets = []


class Classifier(ClassifierMixin, Recording):
    targets = []


@pytest.mark.parametrize(
    ("kind", "different"),
    [(Regressor, {5.0, 3080.0}), (Recording, {5.0, 3080.0}), (Classifier, {5.0, 7.0})],
)
def test_targets_are_labels_for_a_classifier_alone(kind, different) -> None:
    kind.targets.clear()
    stated = PureDP(epsilon=1.0, neighboring="replace_one")
    options = {"stated": stated, "n_runs": 10, "statistic": lambda model: model.targets[-1]}
    audit(kind(), X, COUNTS, **options)
    first, other = kind.targets[0], kind.targets[-1]
    assert {*first[first != other], *other[first != other]} == different


@pytest.mark.parametrize(
    ("classification", "targets"), [(None, [7.0, 5.0]), (True, [7.0, 5.0]), (False, [5.0, 3080.0])]
)
def test_without_an_estimator_whole_numbers_are_labels_unless_the_caller_says(
    classification, targets
) -> None:
    pair = worst_case(X, COUNTS, neighboring="replace_one", classification=classification)
    place = np.flatnonzero(pair.y != pair.other_y)
    assert [*pair.y[place], *pair.other_y[place]] == targets


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "replace_one"])
@pytest.mark.parametrize("y", [
    [1, "a", 1, "a", "b", 1], ["a", None, "a", "b", "b", "b"],
    pd.Series(["a", np.nan, "a", "b", "b", "b"]), pd.Series([1, None, 1, 2, 2, 2], dtype="Int64"),
    [1.5, None, 1.5, 2.0, 3.0, 2.0], COUNTS.reshape(-1, 1),
], ids=["mixed", "None", "nan", "NA", "numbers", "a column"])  # fmt: skip
def test_targets_keep_their_types_and_a_canary_has_none_that_is_missing(relation, y) -> None:
    given = list(y.ravel() if isinstance(y, np.ndarray) else y)
    pair = worst_case(X, y, neighboring=relation)
    changed_place = len(X) if relation == "add_remove" else 0
    assert pair.other_y.shape[1:] == np.shape(y)[1:]
    for label, expected in zip(pair.other_y.ravel()[1:6], given[1:]):
        assert pd.isna(label) if pd.isna(expected) else label == expected
    assert pair.other_y.ravel()[changed_place] in [label for label in given if not pd.isna(label)]


@pytest.mark.parametrize(("table", "y", "relation", "match"), [
    ([["a", "b"], ["c", "d"]], None, "add_remove", "values that are not finite numbers"),
    (np.array([["a", "b"], ["c", "d"]]), None, "add_remove", "values that are not finite numbers"),
    (np.where(X == 3.0, np.nan, X), Y, "add_remove", "values that are not finite numbers"),
    (X[:1], None, "add_remove", r"shape \(1, 2\); a table of finite numbers .* Give other="),
    (X, np.ones((6, 2)), "add_remove", "several targets"),
    (X, Y[:5], "add_remove", "inconsistent numbers of samples"),
    (X, [None] * 6, "add_remove", "or none for all of them"),
    (0 * X, None, "zero_out", "equals the record that it replaces under 'zero_out'; .* Give "),
    (0 * X + 3.0, None, "replace_one", "equals the record that it replaces under 'replace_one'"),
    (0 * X, 0 * Y, "replace_one", "equals the record that it replaces under 'replace_one'"),
])  # fmt: skip
def test_records_from_which_no_canary_can_be_built_are_named(table, y, relation, match) -> None:
    with pytest.raises(ValueError, match=match) as error:
        worst_case(table, y, neighboring=relation)
    assert "leave other out" not in str(error.value)


@pytest.mark.parametrize("relation", ["add_remove", "zero_out", "replace_one"])
def test_a_built_person_has_as_many_records_as_anybody_has(relation) -> None:
    pair = worst_case(X, Y, GROUPS, neighboring=relation)
    if relation == "add_remove":
        assert len(pair.other_X) == len(pair.X) + 3
        assert not set(pair.groups) & set(pair.other_groups[6:])
    else:
        assert (np.asarray(pair.other_groups) == pair.groups).all()
        changed_rows = (pair.other_X != pair.X).any(axis=1) | (pair.y != pair.other_y)
        assert changed_rows.tolist() == (GROUPS == "b").tolist()
    assert len(pair.canary) == (1 if relation == "add_remove" else 2)


def test_all_records_of_one_person_may_differ_and_no_others() -> None:
    of_b = GROUPS == "b"
    without, other = (X[~of_b], Y[~of_b], GROUPS[~of_b]), (X + of_b[:, np.newaxis], Y, GROUPS)
    assert Neighbours.of((X, Y, GROUPS), without, "add_remove").canary.tolist() == [X[1].tolist()]
    assert Neighbours.of(without, (X, Y, GROUPS), "add_remove").canary.tolist() == [X[1].tolist()]
    expected = [X[1].tolist(), (X[1] + 1).tolist()]
    assert Neighbours.of((X, Y, GROUPS), other, "replace_one").canary.tolist() == expected
    for pair, relation in [
        (without, "replace_one"),
        (other, "add_remove"),
        ((X, Y, GROUPS), "replace_one"),
        ((X + np.arange(6)[:, np.newaxis], Y, GROUPS), "replace_one"),
        ((X, Y, np.array(["a", "b", "a", "c", "b", "c"])), "replace_one"),
        ((X[:-1], Y[:-1], GROUPS[:-1]), "add_remove"),
        ((X[:3], Y[:3], GROUPS[:3]), "add_remove"),
    ]:
        with pytest.raises(PrivacyError, match=f"not neighbours under '{relation}'"):
            Neighbours.of((X, Y, GROUPS), pair, relation)
    with pytest.raises(ValueError, match="6 records and 3 groups"):
        Neighbours.of((X, Y, GROUPS[:3]), without, "add_remove")
