"""A record's part in a score comes from that record and the model alone, whatever else is in its
block."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_squared_error

from sklearn_dpsearch._process.containment import PRIVATE_VARIABLE
from sklearn_dpsearch.scoring import make_private_scorer, private_scorer
from sklearn_dpsearch.scoring._counts import BalancedAccuracyScorer
from sklearn_dpsearch.scoring._r2 import R2Scorer

#: Of records.
NUMBER = 48

pd = pytest.importorskip("pandas")
BIG = 2**53
ERROR = make_private_scorer(lambda t, p: np.abs(t - p), lower=0, upper=255, greater_is_better=False)
ACCURACY = private_scorer("accuracy")


class Says:
    """Gives every record the same answer."""

    def __init__(self, answer, shape=lambda n: (n,)):
        self.answer, self.shape, self.classes_ = answer, shape, np.asarray([answer])

    def predict(self, X):
        return np.full(self.shape(len(X)), self.answer, np.asarray(self.answer).dtype)

    predict_proba = decision_function = predict


def moved(scorer, model, one, other):
    X = np.zeros((len(one), 1))
    first, second = (np.array(scorer.statistic(model, X, y, "replace_one")) for y in (one, other))
    return np.abs(first - second).sum()


# --- shapes ---------------------------------------------------------------------------------------


NUMBERS = {
    "own metric": ERROR,
    "largest of a row": make_private_scorer(
        lambda t, p: np.abs(t - p).reshape(len(p), -1).max(axis=1), lower=0, upper=2,
        greater_is_better=False,
    ),
    "accuracy": ACCURACY, "absolute error": private_scorer("neg_mean_absolute_error", clip=2.0),
    "r2": R2Scorer(y_range=(-2, 2)), "balanced accuracy": BalancedAccuracyScorer(classes=[0, 5]),
    "f1": private_scorer("f1", pos_label=0),
}  # fmt: skip
SHAPES = {
    "flat": lambda n: (n,), "column": lambda n: (n, 1),
    "as many columns as records": lambda n: (n, n), "a row": lambda n: (1, n),
    "one for all": lambda n: (1,), "a number": lambda n: (), "one more": lambda n: (n + 1,),
}  # fmt: skip


@pytest.mark.parametrize("y_shape", [(NUMBER,), (NUMBER, 1), "frame", "list", "list of lists"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NUMBERS)
def test_no_shape_of_labels_and_answers_mixes_records(name, shape, y_shape):
    """Once (n, 1) and (n,) gave (n, n), and the label of one record was compared with all
    predictions."""
    scorer, model = NUMBERS[name], Says(0.0, SHAPES[shape])
    one = np.zeros(NUMBER)
    other = one.copy()
    other[7] = 5.0
    if y_shape == "frame":
        one, other = pd.DataFrame({"y": one}), pd.DataFrame({"y": other})
    elif y_shape == "list":
        one, other = one.tolist(), other.tolist()
    elif y_shape == "list of lists":
        one, other = one[:, None].tolist(), other[:, None].tolist()
    else:
        one, other = one.reshape(y_shape), other.reshape(y_shape)
    assert moved(scorer, model, one, other) <= scorer.sensitivity("replace_one").l1
    if shape in ("flat", "column"):
        X = np.zeros((NUMBER, 1))
        wrong = scorer.statistic(Says(5.0), X, one, "replace_one")
        assert scorer.statistic(model, X, one, "replace_one") != wrong


@pytest.mark.parametrize("name", ["top_k_accuracy", "neg_log_loss", "roc_auc"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_shape_of_probabilities_mixes_records(name, shape):
    scorer = private_scorer(name, **({"pos_label": 1} if name == "roc_auc" else {}))
    model = Says(1, SHAPES[shape])
    one, other = np.ones(NUMBER, int), np.ones(NUMBER, int)
    other[7] = 0
    assert moved(scorer, model, one, other) <= scorer.sensitivity("replace_one").l1


def test_one_answer_for_a_whole_call_is_an_error_outside_of_a_search_and_the_worst_inside():
    class Largest(Says):
        def predict(self, X):
            return np.array([np.asarray(X).max()])

    X = np.zeros((NUMBER, 1))
    other = X.copy()
    other[7] = 1.0
    y = np.zeros(NUMBER, int)
    assert [ACCURACY.statistic(Largest(0), X, y, "replace_one") for X in (X, other)] == [[0], [0]]
    match = f"Found 1 answers of the estimator to {NUMBER} records.*one for each"
    with pytest.raises(ValueError, match=match):
        ACCURACY(Largest(0), X, y)


def test_sets_of_labels_of_another_number_are_wrong():
    class Two(Says):
        def predict(self, X):
            return np.tile([1, 0], (len(X), 1))

    X, sets = np.zeros((3, 1)), [[1, 0], [1, 1], [1, 0]]
    cases = ((sets, 2), (np.array(sets), 2), ([[1, 0], [1], [1, 0, 0]], 1), ([1, [1, 0], None], 1))
    for y, right in cases:
        assert ACCURACY.statistic(Two(0), X, y, "replace_one") == [right]
    assert ACCURACY.statistic(Two(0), X, np.ones((3, 3)), "replace_one") == [0]


def test_a_label_that_holds_itself_is_one_wrong_label():
    endless = []
    endless.append(endless)
    assert ACCURACY.statistic(Says(1), np.zeros((3, 1)), [1, endless, 1], "replace_one") == [2]


# --- a caller's own metric ------------------------------------------------------------------------


def test_a_metric_sees_one_record_at_a_time():
    seen = []

    def metric(y, p):
        seen.append((y.shape, p.shape))
        return (y - p) ** 2 / (1 + np.var(y))

    scorer = make_private_scorer(metric, lower=0, upper=1)
    y = np.random.default_rng(0).normal(size=300)
    X = np.zeros((300, 1))
    assert scorer(Says(0.0), X, y) == pytest.approx(np.mean(np.minimum(y**2, 1)))
    assert scorer.statistic(Says(0.0), X, y, "replace_one")
    assert set(seen) == {((1,), (1,))}
    assert len(seen) == 600  # records that fill a block up are not asked for


def test_a_metric_that_gives_a_number_is_a_metric_of_one_record():
    scorer = make_private_scorer(lambda y, p: float(mean_squared_error(y, p)), lower=0, upper=9)
    assert scorer(Says(0.0), np.zeros((3, 1)), np.array([1.0, 2.0, 3.0])) == pytest.approx(14 / 3)


def test_a_metric_that_gives_several_values_is_an_error_with_the_remedy():
    scorer = make_private_scorer(lambda y, p: [1.0, 2.0], lower=0, upper=9)
    match = r"Found 2 values of score_func for one record; one is needed.*shape \(1,\)"
    with pytest.raises(ValueError, match=match):
        scorer(Says(0.0), np.zeros((3, 1)), np.zeros(3))
    assert scorer.statistic(Says(0.0), np.zeros((3, 1)), np.zeros(3), "replace_one") == [0]


@pytest.mark.parametrize(
    "many", [[0.5, 1.5, 3.0], [[0.5], [1.5], [3.0]], pd.Series([0.5, 1.5, 3.0], dtype="Float64")]
)
def test_a_metric_gets_arrays_of_numbers_also_from_lists(many):
    scorer = make_private_scorer(lambda y, p: np.sqrt(y) - np.isclose(y, p), lower=0, upper=4)
    expected = np.mean(np.sqrt([0.5, 1.5, 3.0]))
    assert scorer(Says(0.0), np.zeros((3, 1)), many) == pytest.approx(expected)


# --- types of labels ------------------------------------------------------------------------------


DAY, NEXT = np.datetime64("2020-01-01"), np.datetime64("2020-01-02")
DATES = private_scorer("balanced_accuracy", classes=[DAY, NEXT])
#: Each way in: ``test_door`` has every container and every odd value.
ODD = {
    "own metric, pandas": (
        ERROR, Says(np.uint8(5)), lambda y: pd.Series(y, dtype="UInt8"), 3, None,
    ),
    "own metric, list": (ERROR, Says(np.uint8(5)), list, np.uint8(3), 3.0),
    "accuracy, frame": (
        ACCURACY, Says(BIG), lambda y: pd.DataFrame({"y": pd.array(y, "Int64")}), BIG + 1, None,
    ),
    "accuracy, list": (ACCURACY, Says(float(BIG)), list, BIG + 1, None),
    "balanced accuracy, dates": (DATES, Says(DAY), list, DAY, np.datetime64("2020-01-01", "ns")),
}  # fmt: skip


@pytest.mark.parametrize("place", [0, 100, 199])
@pytest.mark.parametrize("name", ODD)
def test_no_record_decides_the_type_of_other_labels(name, place):
    """Once a missing value made doubles of all whole numbers of its block."""
    scorer, model, container, usual, odd = ODD[name]
    one, other = [usual] * 200, [usual] * 200
    other[place] = odd
    bound = scorer.sensitivity("replace_one").l1
    assert moved(scorer, model, container(one), container(other)) <= bound


# --- what a record may raise ----------------------------------------------------------------------


class Panic(BaseException):
    """No ``Exception``, as that of polars."""


class Refuses(BaseEstimator):
    """Raises on a record with 13."""

    def __init__(self, error=Panic):
        self.error = error

    def fit(self, X, y=None):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        if (np.asarray(X) == 13).any():
            raise self.error
        return np.zeros(len(X), int)


@pytest.mark.parametrize(
    "error", [Panic, NotFittedError, KeyboardInterrupt, SystemExit, ValueError]
)
def test_whatever_a_record_raises_it_alone_counts_as_the_worst(error, monkeypatch):
    """Once a candidate failed without noise, which showed, where its record raised no
    ``Exception``."""
    X, y = np.zeros((300, 1)), np.zeros(300, int)
    X[7] = 13
    monkeypatch.setenv(PRIVATE_VARIABLE, "1")
    assert ACCURACY.statistic(Refuses(error).fit(X), X, y, "replace_one") == [299]


@pytest.mark.parametrize("error", [Panic, KeyboardInterrupt])
def test_outside_of_a_search_an_interrupt_arrives(error):
    with pytest.raises(error):
        ACCURACY.statistic(
            Refuses(error).fit([]), np.full((3, 1), 13.0), np.zeros(3), "replace_one"
        )


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "f1", "r2"])
@pytest.mark.parametrize("n", [0, 3])
def test_whether_a_model_is_fitted_follows_from_its_state(name, n):
    options = {
        "balanced_accuracy": {"classes": [0, 1]}, "f1": {"pos_label": 1}, "r2": {"y_range": (0, 1)},
    }  # fmt: skip
    scorer = private_scorer(name, **options.get(name, {}))
    for model in (LogisticRegression(), Refuses()):
        with pytest.raises(NotFittedError):
            scorer.statistic(model, np.zeros((n, 2)), np.zeros(n), "zero_out")


def test_a_model_whose_attributes_do_not_end_with_an_underscore_is_fitted():
    class Own(Refuses):
        def fit(self, X, y=None):
            self._mean = 0
            return self

    actual = ACCURACY.statistic(Own().fit([]), np.zeros((3, 1)), np.zeros(3, int), "replace_one")
    assert actual == [3]
