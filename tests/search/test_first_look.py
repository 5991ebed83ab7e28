"""What cannot succeed is refused before a private record is used, and nothing is spent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder
from sklearn.svm import SVC

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.preprocessing import TableEncoder
from sklearn_dpsearch.privacy import LeakingEstimatorError, PrivacyError, PureDP
from sklearn_dpsearch.scoring import private_scorer
from sklearn_dpsearch.scoring._r2 import R2Scorer
from sklearn_dpsearch.search._planning.checks import first_look

from .toys import Bounded, NoisyCentroids, refuses_to_fit, search_of, two_blobs

X, y = two_blobs(400)
TEXT = np.where(y == 1, "yes", "no")
DECLARED = PureDP(epsilon=1.0, neighboring="replace_one")


def refused(search, match, error=ValueError, X=X, y=y, **kwargs):
    refuses_to_fit(search, error, match, X, y, **kwargs)


@pytest.mark.parametrize(("X_public", "error", "match"), [
    (np.zeros((0, 2)), ValueError, "X_public with 0 records"),
    ("records.csv", TypeError, "X_public of type str"),
    (5, TypeError, "X_public of type int"),
    (iter([[0.0, 0.0]]), TypeError, "X_public of type list_iterator; an array"),
    (X, PrivacyError, "shares its memory.*not public"),
    (X[10:20], PrivacyError, "shares its memory"),
    (X[::-1], PrivacyError, "shares its memory"),
], ids=[
    "empty", "path", "number", "iterator", "the private records", "some of them", "a view of them",
])  # fmt: skip
def test_public_data_that_is_none(make, X_public, error, match):
    n = len(X_public) if hasattr(X_public, "shape") else 1
    refused(make(NoisyCentroids(), {}), match, error, X_public=X_public, y_public=np.zeros(n, int))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("part", [slice(None), slice(10, 20)])
def test_rows_of_a_private_frame_are_not_public(make, library, part):
    frame = pytest.importorskip(library).DataFrame({"a": X[:, 0], "b": X[:, 1]})
    search = make(NoisyCentroids(), {})
    options = {"X_public": frame[part], "y_public": np.zeros(len(frame[part]), int)}
    refuses_to_fit(search, PrivacyError, "shares its memory", frame, y, **options)


def test_private_labels_are_not_public_either(make):
    options = {"X_public": X.copy(), "y_public": y}
    refused(make(NoisyCentroids(), {}), "y_public that shares", PrivacyError, **options)


def test_different_records_of_one_array_are_not_the_same_records(make):
    search = make(NoisyCentroids(), {}, random_state=0)
    search.fit(X[:300], y[:300], X_public=X[300:], y_public=y[300:])
    assert search.privacy_spent_.epsilon > 0
    frame = pytest.importorskip("pandas").DataFrame(X)
    search.fit(frame[:300], y[:300], X_public=frame[300:], y_public=y[300:])


@pytest.mark.parametrize(("estimator", "space"), [
    (SVC(kernel="precomputed"), {"C": [1.0]}),
    (SVC(), {"kernel": [*["rbf"] * 99, "precomputed"]}),  # whether or not it would be drawn
    (
        make_pipeline(LogisticRegression()),
        {"logisticregression": [SVC(), SVC(kernel="precomputed")]},
    ),
    (
        Pipeline([("last", LogisticRegression())]),
        {"last": [LogisticRegression(), SVC()], "last__kernel": ["rbf", "precomputed"]},
    ),
    (make_pipeline(SVC(kernel="precomputed")), {}),
])  # fmt: skip
def test_kernels_between_records(make, estimator, space):
    refused(make(estimator, space, guarantee=DECLARED), "precomputed kernel", LeakingEstimatorError)


@pytest.mark.parametrize("name", ["sample_weight", "svc__sample_weight"])
def test_weights_of_another_length(make, name):
    estimator = make_pipeline(Normalizer(), SVC()) if "__" in name else SVC()
    search = make(estimator, {}, guarantee=DECLARED)
    refused(search, f"{name} with 7 entries for 400 records", **{name: np.ones(7)})


def test_weights_come_in_the_form_of_numpy(make):
    class Weighed(NoisyCentroids):
        def fit(self, X, y, sample_weight):
            assert type(sample_weight) is np.ndarray
            assert sample_weight.dtype == np.float64
            return super().fit(X, y)

    weights = pd.Series(np.ones(400), dtype="Float64")
    make(Weighed(), {}, guarantee=DECLARED, random_state=0).fit(X, y, sample_weight=weights)


def test_records_of_one_dimension(make):
    refused(make(NoisyCentroids(), {}), "Expected 2D array, got 1D array.*reshape", X=X[:, 0])


@pytest.mark.parametrize("scoring", ["f1", "precision", make_scorer(f1_score, pos_label=1)])
def test_a_public_metric_that_cannot_work_on_text(scoring):
    refused(search_of("grid", NoisyCentroids(), {}, scoring=scoring), "pos_label", y=TEXT)


@pytest.mark.parametrize(
    "scoring", [make_scorer(f1_score, pos_label="yes"), "accuracy", "f1_macro", "balanced_accuracy"]
)
def test_a_public_metric_that_works_on_text(scoring):
    search = search_of("grid", NoisyCentroids(), {"shrink": [0.0]}, scoring=scoring)
    assert set(search.fit(X, TEXT).predict(X)) <= {"yes", "no"}


@pytest.mark.parametrize("classes", [None, ["no", "yes"]])
def test_a_private_metric_that_names_labels_there_are_none_of(classes):
    one = Bounded(classes=classes)
    cases = (private_scorer("f1", pos_label=1), private_scorer("balanced_accuracy", classes=[0, 1]))
    for scoring in cases:
        message = "names .*1.*every score"
        refused(search_of("random", one, {}, scoring=scoring), message, PrivacyError, y=TEXT)
    search_of("random", one, {}, scoring=private_scorer("f1", pos_label="yes")).fit(X, TEXT)


@pytest.mark.parametrize(("classes", "labels", "match"), [
    (["no", "yes"], y, r"\(text\) for labels in y that are numbers"),
    ([0, 1], TEXT, r"\(numbers\).*are text"),
])  # fmt: skip
def test_labels_of_another_kind_than_the_declared_classes(make, classes, labels, match):
    refused(make(Bounded(classes=classes), {}), match, y=labels)


@pytest.mark.parametrize("given", [{"X": np.array(5.0)}, {"y": np.array(1)}])
def test_a_single_value_is_no_container_of_records(make, given):
    refused(make(NoisyCentroids(), {}), "with a single value; an array", TypeError, **given)


# --- lists ----------------------------------------------------------------------------------------


def seen_of(estimator, X, y):
    search = DPRandomSearchCV(estimator, {}, guarantee=DECLARED)
    scorer = (
        private_scorer("accuracy") if is_classifier(estimator) else R2Scorer(y_range=(0.0, 1.0))
    )
    return first_look(search, [estimator], scorer, X, y, {})


WORDS, ROWS = ["some words", "others"], [["a"], ["b"]]


@pytest.mark.parametrize(("step", "X", "dtype"), [
    ("passthrough", [[2**53 + 1, 1], ["secret", 2]], float),
    (FeatureHasher(), [{"a": 1}, {"b": 2.5}], object),
    (FeatureUnion([("words", HashingVectorizer())]), WORDS, object),
    (OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"), ROWS, object),
    (TableEncoder({"a": ["x", "y"]}), ROWS, object),
    (ColumnTransformer([("kept", "passthrough", [0])]), [["x"], [1]], object),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_a_list_for_a_step_that_reads_text_or_tables_keeps_its_entries(step, X, dtype):
    seen = seen_of(make_pipeline(step, LogisticRegression()), X, [0, 1])
    assert seen.X.dtype == seen.headers[0].dtype == dtype
    assert dtype is float or seen.X.tolist() == X
