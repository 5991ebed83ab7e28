"""Private scorers: what one record can do to their integers, and what they say without noise."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    f1_score,
    get_scorer,
    mean_squared_error,
    precision_score,
    recall_score,
    top_k_accuracy_score,
)

from sklearn_dpsearch.scoring import _named_scorers as named_scorers
from sklearn_dpsearch.scoring import make_private_scorer, private_scorer
from sklearn_dpsearch.scoring._contributions import BLOCK, contributions
from sklearn_dpsearch.scoring._counts import BalancedAccuracyScorer
from sklearn_dpsearch.scoring._r2 import R2Scorer

RELATIONS = ("zero_out", "replace_one")

POISON = 666.0


class Reader(ClassifierMixin, BaseEstimator):
    """Reads its answer off the record: column 0 is the prediction, the others are class
    probabilities.

    Refuses a whole batch if one record in it is poisoned.
    """

    def __init__(self, classes=(0, 1, 2)):
        self.classes = classes
        self.classes_ = np.array(classes)

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        X = np.asarray(X, dtype=float)
        if (X == POISON).any():
            raise ValueError("A record is poisoned.")
        return X[:, 0]

    def predict_proba(self, X):
        self.predict(X)
        return np.asarray(X, dtype=float)[:, 1:]


def pinball(y_true, y_pred):
    return np.maximum(0.9 * (y_true - y_pred), 0.1 * (y_pred - y_true))


def cubed(y_true, y_pred):
    return y_pred**3


SCORERS = {
    "accuracy": private_scorer("accuracy"),
    "top_k_accuracy": private_scorer("top_k_accuracy", k=2),
    "neg_log_loss": private_scorer("neg_log_loss", clip=3.0),
    "neg_mean_absolute_error": private_scorer("neg_mean_absolute_error", clip=2.0, resolution=7),
    "neg_mean_squared_error": private_scorer("neg_mean_squared_error", clip=2.0),
    "pinball": make_private_scorer(
        pinball, lower=0, upper=1.5, greater_is_better=False, resolution=10
    ),
    "cubed": make_private_scorer(cubed, lower=-3, upper=5, resolution=1),
    "balanced_accuracy": private_scorer("balanced_accuracy", classes=[0, 1, 2]),
    "f1": private_scorer("f1", pos_label=1),
    "precision": private_scorer("precision", pos_label=1),
    "recall": private_scorer("recall", pos_label=2),
    "roc_auc": private_scorer("roc_auc", pos_label=1, n_bins=5),
    "roc auc of a class that the model does not know": private_scorer("roc_auc", pos_label=3),
    "average_precision": private_scorer("average_precision", pos_label=2),
    "r2": private_scorer("r2", y_range=(-1.0, 3.0)),
    "r2 with odd resolution": private_scorer("r2", y_range=(-1.0, 3.0), clip=0.5, resolution=11),
}
SPECIAL = [0.0, 1.0, 2.0, 7.0, -1.0, 3.0, np.nan, np.inf, -np.inf, POISON, 1e200, 0.4999]

records = st.tuples(
    st.sampled_from(SPECIAL),
    *[st.sampled_from([*SPECIAL, 0.3])] * 3,
    st.sampled_from(SPECIAL) | st.floats(-5, 5),
)


def statistic(scorer, rows, neighboring):
    table = np.array(rows, dtype=float).reshape(len(rows), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scorer.statistic(Reader(), table[:, :4], table[:, 4], neighboring)
    assert all(type(value) is int for value in found)
    return np.array(found)


def assert_within(change, sensitivity):
    assert np.abs(change).sum() <= sensitivity.l1
    assert (change**2).sum() <= sensitivity.l2_squared


def test_every_private_metric_is_tried_here_and_compared_with_scikit_learn():
    names = set(named_scorers.SCORERS)
    assert names <= set(SCORERS)
    in_bins = {"roc_auc", "average_precision"}  # test_ranking
    assert names - in_bins <= {name for _, name, *_ in REFERENCES}


# --- sensitivity ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORERS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=st.lists(records, max_size=6), one=records, other=records)
def test_one_record_never_moves_the_integers_further_than_stated(name, rows, one, other):
    scorer = SCORERS[name]
    for relation, neighbour in (("zero_out", rows), ("replace_one", [*rows, other])):
        integers, others = (statistic(scorer, data, relation) for data in ([*rows, one], neighbour))
        assert_within(integers - others, scorer.sensitivity(relation))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", SCORERS)
def test_some_record_moves_the_integers_as_far_as_stated(name, relation):
    scorer, rng = SCORERS[name], np.random.default_rng(0)
    extremes = [
        [prediction, *probabilities, y]
        for prediction in (-1.0, 0.0, 1.0, 2.0, 3.0)
        for probabilities in ([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0])
        for y in (-1.0, 0.0, 1.0, 2.0, 3.0)
    ]
    rows = [extremes[i] for i in rng.integers(len(extremes), size=4)]
    single = [statistic(scorer, [*rows, one], relation) for one in extremes]
    others = single if relation == "replace_one" else [statistic(scorer, rows, relation)]
    moved = [a - b for a in single for b in others]
    stated = scorer.sensitivity(relation)
    slack = stated.l1 // 4 if isinstance(scorer, R2Scorer) and relation == "replace_one" else 0
    assert max(np.abs(change).sum() for change in moved) >= stated.l1 - slack
    assert max((change**2).sum() for change in moved) == stated.l2_squared


@pytest.mark.parametrize("resolution", [*range(10, 40), 101, 200])
def test_the_sensitivity_of_r2_covers_every_pair_of_targets(resolution):
    scorer = R2Scorer(y_range=(-1, 1), resolution=resolution)
    target = np.arange(-resolution, resolution + 1)
    square = (2 * target**2 + resolution) // (2 * resolution)
    first, second = np.subtract.outer(target, target), np.subtract.outer(square, square)
    stated = scorer.sensitivity("replace_one")
    actual = (np.abs(first) + np.abs(second)).max() + resolution
    assert actual <= stated.l1 <= 1.01 * 3.25 * resolution + 2
    assert (first**2 + second**2).max() + resolution**2 == stated.l2_squared
    for part, change in zip(stated.l1_of_blocks, (resolution, first, second), strict=True):
        assert np.abs(change).max() <= part
    middle = resolution // 2
    stated, error = scorer.sensitivity("zero_out"), resolution - middle
    assert (np.abs(target) + np.abs(square - middle)).max() + error == stated.l1
    assert (target**2 + (square - middle) ** 2).max() + error**2 == stated.l2_squared


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_records_give_zeros_without_asking_the_model(name, relation):
    scorer = SCORERS[name]
    empty = statistic(scorer, [], relation)
    assert not empty.any()
    assert len(empty) == len(statistic(scorer, [[0.0, 1.0, 0.0, 0.0, 0.0]], relation))
    assert np.isfinite(scorer.score(empty.tolist(), 0, relation))


def test_a_record_that_cannot_be_scored_counts_as_the_worst():
    bad = [[POISON, 0, 0, 0, 1.0]]
    assert list(statistic(SCORERS["accuracy"], bad, "zero_out")) == [-1]
    assert list(statistic(SCORERS["neg_log_loss"], bad, "replace_one")) == [1000]
    assert list(statistic(SCORERS["balanced_accuracy"], bad, "zero_out")) == [0, 0, 0, 1, 0, 0]
    assert list(statistic(SCORERS["f1"], bad, "zero_out")) == [0, 0, 1]
    assert list(statistic(SCORERS["roc_auc"], bad, "zero_out")) == [1, *[0] * 9]
    expected = [*[0] * 9, 1]
    assert list(statistic(SCORERS["roc_auc"], [[POISON, 0, 0, 0, 2.0]], "zero_out")) == expected
    assert statistic(SCORERS["r2"], bad, "zero_out")[0] == 500


# --- without noise --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classified():
    X, y = make_classification(300, n_informative=4, n_classes=3, random_state=0)
    return LogisticRegression(max_iter=500).fit(X[:150], y[:150]), X[150:], y[150:]


@pytest.fixture(scope="module")
def regressed():
    X, y = make_regression(300, noise=20.0, random_state=0)
    return LinearRegression().fit(X[:220], y[:220]), X[220:], y[220:]


def retrieved(metric, model, X, y):
    return metric(y == 2, model.predict(X) == 2)


def noiseless(scorer, model, X, y, relation):
    return scorer.score(scorer.statistic(model, X, y, relation), len(y), relation)


BOUNDS, CLIPPED = {"y_range": (-900.0, 900.0)}, {"clip": 500.0, "resolution": 10**6}
#: Whether of a classifier, name, options, and the metric of scikit-learn.
REFERENCES = [
    (True, "accuracy", {}, get_scorer("accuracy")),
    (True, "balanced_accuracy", {"classes": [0, 1, 2]}, get_scorer("balanced_accuracy")),
    (True, "neg_log_loss", {"clip": 30.0, "resolution": 10**7}, get_scorer("neg_log_loss")),
    (
        True, "top_k_accuracy", {},
        lambda model, X, y: top_k_accuracy_score(y, model.decision_function(X), k=2),
    ),
    (True, "f1", {"pos_label": 2}, partial(retrieved, f1_score)),
    (True, "precision", {"pos_label": 2}, partial(retrieved, precision_score)),
    (True, "recall", {"pos_label": 2}, partial(retrieved, recall_score)),
    (False, "neg_mean_absolute_error", CLIPPED, get_scorer("neg_mean_absolute_error")),
    (False, "neg_mean_squared_error", CLIPPED, get_scorer("neg_mean_squared_error")),
    (False, "r2", {"resolution": 10**6, **BOUNDS}, get_scorer("r2")),
    (False, "r2", {"resolution": 10**6, "clip": 200.0, **BOUNDS}, get_scorer("r2")),
]  # fmt: skip


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("classifies", "name", "options", "reference"), REFERENCES)
def test_without_noise_scores_are_those_of_scikit_learn(
    classified, regressed, relation, classifies, name, options, reference
):
    model, X, y = classified if classifies else regressed
    scorer = private_scorer(name, **options)
    expected = reference(model, X, y)
    actual = noiseless(scorer, model, X, y, relation)
    assert actual == pytest.approx(expected, **({"abs": 1e-6} if classifies else {"rel": 1e-3}))
    assert scorer(model, X, y) == pytest.approx(expected, rel=1e-9)


def test_values_beyond_the_bounds_are_clipped(regressed):
    model, X, y = regressed
    scorer = private_scorer("neg_mean_absolute_error", clip=5.0)
    expected = -np.mean(np.minimum(np.abs(y - model.predict(X)), 5.0))
    assert scorer(model, X, y) == pytest.approx(expected)
    assert noiseless(scorer, model, X, y, "replace_one") == pytest.approx(expected, abs=0.0025)


def test_r2_is_clipped_to_its_range(regressed):
    _, X, y = regressed
    bad = LinearRegression().fit(X, -3 * y)
    scorer = private_scorer("r2", y_range=(-600, 600))
    assert scorer(bad, X, y) == -1.0
    assert noiseless(scorer, bad, X, y, "zero_out") == -1.0


# --- with noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", SCORERS)
def test_whatever_the_noise_the_score_is_a_finite_number(name, relation):
    scorer, rng = SCORERS[name], np.random.default_rng(1)
    length = len(statistic(scorer, [], relation))
    for size in (1, 10**3, 10**40, 10**400):
        for _ in range(20):
            noisy = [int(sign) * size for sign in rng.integers(-1, 2, size=length)]
            for n_scored in (0, 1, 50):
                value = scorer.score(noisy, n_scored, relation)
                assert type(value) is float
                assert np.isfinite(value)


def test_a_mean_over_public_records_is_not_cut_at_its_bounds_so_that_noise_makes_no_ties():
    scorer = private_scorer("accuracy")
    assert scorer.score([104], 100, "replace_one") == pytest.approx(1.04)
    assert scorer.score([105], 100, "replace_one") > scorer.score([104], 100, "replace_one")


# --- data of all kinds ----------------------------------------------------------------------------


def test_binary_scores_in_one_column_are_read_as_two():
    X, y = make_classification(80, random_state=2)
    model = LogisticRegression().fit(X, y)
    assert private_scorer("top_k_accuracy", k=1)(model, X, y) == pytest.approx(model.score(X, y))
    assert private_scorer("top_k_accuracy", k=2)(model, X, y) == 1.0


def test_labels_the_model_does_not_know_count_as_wrong(classified):
    model, X, y = classified
    unknown = np.full(len(y), 9)
    assert private_scorer("neg_log_loss", clip=4.0)(model, X, unknown) == -4.0
    assert private_scorer("top_k_accuracy")(model, X, unknown) == 0.0
    balanced = private_scorer("balanced_accuracy", classes=[0, 1, 2])
    assert balanced.statistic(model, X, unknown, "zero_out") == [0] * 6


# --- a scikit-learn citizen -----------------------------------------------------------------------


# --- a caller's own -------------------------------------------------------------------------------


def test_a_callers_own_value_per_record_is_averaged(regressed):
    model, X, y = regressed
    scorer = make_private_scorer(pinball, lower=0, upper=200, greater_is_better=False)
    assert scorer.name == "pinball"
    expected = pytest.approx(-pinball(y, model.predict(X)).mean(), abs=0.2)
    assert noiseless(scorer, model, X, y, "zero_out") == expected


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -np.inf])
def test_a_callers_own_value_that_is_not_finite_counts_as_the_worst(spoilt):
    X, y = np.ones((2, 4)), np.array([1.0, spoilt])
    for greater_is_better, expected in ((True, [10]), (False, [20])):
        options = {"upper": 1, "resolution": 10, "greater_is_better": greater_is_better}
        scorer = make_private_scorer(lambda y, p: y, lower=0, **options)
        assert scorer.statistic(Reader(), X, y, "replace_one") == expected
        assert scorer(Reader(), X, y) == (0.5 if greater_is_better else -1.0)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: make_private_scorer(mean_squared_error, lower=0, upper=1), "before averaging"),
    (lambda: make_private_scorer(pinball, lower=1, upper=1), "lower < upper"),
    (lambda: make_private_scorer(pinball, lower=0, upper=np.inf), "finite"),
    (lambda: make_private_scorer(pinball, lower=0, upper=1, resolution=0), "resolution"),
    (lambda: make_private_scorer(pinball, lower=0, upper=1, resolution=1.5), "resolution"),
    (lambda: R2Scorer(y_range=(1, 1)), "y_range"),
    (lambda: R2Scorer(y_range=(0, np.inf)), "y_range"),
    (lambda: R2Scorer(y_range=(0, 1), resolution=9), "resolution"),
    (lambda: R2Scorer(y_range=(0, 1), clip=0), "clip"),
    (lambda: R2Scorer(y_range=(0, 1), score_range=(1, 0)), "score_range"),
    (lambda: BalancedAccuracyScorer(classes=[1, 1]), "repetition"),
    (lambda: BalancedAccuracyScorer(classes=[]), "at least one"),
    (lambda: private_scorer("top_k_accuracy", k=0), "k >= 1"),
])  # fmt: skip
def test_what_no_scorer_could_be_is_refused_when_it_is_built(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_resolution_of_numpy_does_not_wrap_around(relation: str) -> None:
    """100 000² does not fit into 32 bits: too small a sensitivity would be accounted."""
    mean = partial(make_private_scorer, np.subtract, lower=0, upper=1)
    for kind in (mean, partial(R2Scorer, y_range=(0, 1))):
        one, other = kind(resolution=np.int32(100_000)), kind(resolution=100_000)
        assert one.sensitivity(relation) == other.sensitivity(relation)
        assert type(one.resolution) is int


class RowByPlace:
    """A model whose last digit depends on the size of a call and on the row's place in it, as BLAS
    does."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        if np.isnan(X).any():
            raise ValueError("a gap")
        place = np.arange(len(X)) + len(X)
        return (
            np.where(place % 2, X[:, 0] + X[:, 1] + X[:, 2], X[:, 0] + (X[:, 1] + X[:, 2])) > 0.6
        ).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1 - self.predict(X), self.predict(X)])


@pytest.mark.parametrize("places", [[1], [501], [999], [3, 4, 500], [*range(1000)]])
@pytest.mark.parametrize("scorer", [
    private_scorer("accuracy"),
    private_scorer("balanced_accuracy", classes=[0, 1]),
    private_scorer("roc_auc", pos_label=1),
], ids=["accuracy", "balanced accuracy", "roc auc"])  # fmt: skip
def test_a_record_that_fails_changes_the_count_of_no_other(scorer, places) -> None:
    """0.1 + 0.2 + 0.3 is above 0.6 or not, by 1e-16: a call of another size once moved all 1000."""
    X, y = np.tile([0.1, 0.2, 0.3], (1000, 1)), np.ones(1000, dtype=int)
    with_gaps = X.copy()
    with_gaps[places] = np.nan
    one, other = (
        scorer.statistic(RowByPlace(), table, y, "replace_one") for table in (X, with_gaps)
    )
    moved = sum(abs(a - b) for a, b in zip(one, other))
    assert 0 < moved <= len(places) * scorer.sensitivity("replace_one").l1


class BySize:
    """A model whose last digit depends on the number of records in a call, as BLAS does."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        sums = X[:, 0] + X[:, 1] + X[:, 2] if len(X) % 2 else X[:, 0] + (X[:, 1] + X[:, 2])
        return (sums > 0.6).astype(int)


@pytest.mark.parametrize("place", [0, 500, 1000])
def test_one_more_record_changes_the_size_of_no_call(place: int) -> None:
    """Who validates in a subset is secret: once one record more moved all 1000."""
    X = np.tile([0.1, 0.2, 0.3], (1000, 1))
    y = np.ones(1000, dtype=int)
    scorer = private_scorer("accuracy")
    cases = ((X, y), (np.insert(X, place, 0.0, axis=0), np.insert(y, place, 0)))
    one, other = (scorer.statistic(BySize(), *both, "zero_out") for both in cases)
    assert abs(one[0] - other[0]) == scorer.sensitivity("zero_out").l1


@pytest.mark.parametrize("n", [0, 1, 2, 100, BLOCK - 1, BLOCK, 2 * BLOCK + 5])
def test_records_that_fail_alone_are_the_worst(n: int) -> None:
    failing, sizes = {3, 700, BLOCK, n - 1}, []

    def respond(X):
        sizes.append(len(X))
        if failing & set(X[:, 0].astype(int)):
            raise ValueError("a gap")
        return X[:, 0]

    found = contributions(
        respond, lambda y, response: response, np.arange(float(n))[:, None], np.zeros(n), [-1.0]
    )
    assert np.array_equal(found[:, 0], [-1.0 if place in failing else place for place in range(n)])
    assert set(sizes) <= {BLOCK}
