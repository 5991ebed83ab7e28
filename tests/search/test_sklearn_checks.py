"""scikit-learn's own checks of estimators, with a reason for every one that is expected to fail."""

from __future__ import annotations

import pytest
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB as NaiveBayes
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.scoring._r2 import R2Scorer
from sklearn_dpsearch.search import _random_subset as members

from .toys import doubling

# checks want accurate models, not private ones
WEAK = PureDP(epsilon=50.0, neighboring="replace_one")
# and some of them give fewer records than a subset search over a public number takes
UNSIZED = PureDP(epsilon=50.0)


@pytest.fixture(autouse=True)
def _few_records(monkeypatch):
    """Some checks give fewer records than a subset search takes."""
    monkeypatch.setattr(members, "FEWEST_RECORDS", 0.1)


FIXED = (
    "errors and warnings that depend on the records are replaced by one fixed text: they would "
    "reveal a record"
)
ONE_TARGET = (
    "the scorer here is for one target of a record, and refuses several before anything is spent"
)

NOTHING = (
    "candidates that all fail end a threshold search with nothing, an ordinary result that tells "
    "no more than that"
)
CONTAINERS = "containers are known by exact type: an object with __array__ may do anything"
NOT_ARRAYS = (
    "check_classifier_data_not_an_array",
    "check_regressor_data_not_an_array",
    "check_transformer_data_not_an_array",
)
STOPPED = (
    "check_supervised_y_no_nan", "check_estimators_empty_data_messages", "check_estimators_nan_inf",
    "check_fit1d",
    # ten records, of which some parts have none with a weight
    "check_classifiers_one_label_sample_weights",
)  # fmt: skip

SEARCHES = [
    DPRandomSearchCV(LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, n_iter=3, guarantee=WEAK),
    DPRandomSearchCV(
        Ridge(), {"alpha": [0.1, 1.0]}, n_iter=3, guarantee=WEAK,
        scoring=R2Scorer(y_range=(-300.0, 300.0)),
    ),
    DPSubsetSearchCV(
        LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=3, guarantee=UNSIZED, subset_fraction=0.7,
        train_on="all",
    ),
    DPGridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, selection_epsilon=50.0, guarantee=WEAK),
    DPGridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, selection_epsilon=50.0, guarantee=WEAK),
    doubling(NaiveBayes(), {"var_smoothing": [1e-9, 0.1]}, round_epsilon=5000.0, guarantee=WEAK),
    # with the seed below no coin ends the search before the first run
    DPThresholdSearchCV(
        NaiveBayes(), {"var_smoothing": [1e-9]}, threshold=-100.0, n_iter=20, guarantee=WEAK,
    ),
]  # fmt: skip
# Some checks have so few records that a part may hold one class: the same result in every run of
# the tests.
for search in SEARCHES:
    search.set_params(random_state=0)
    # by default three of ten records validate, the missing number among them
    if type(search) is DPRandomSearchCV:
        search.set_params(cv=0.2)


def expected_failures(search):
    failures = {"check_dtype_object": FIXED, **dict.fromkeys(NOT_ARRAYS, CONTAINERS)}
    if isinstance(search.scoring, R2Scorer):
        failures["check_regressor_multioutput"] = ONE_TARGET
    if is_classifier(search.estimator):
        failures |= {"check_classifiers_regression_target": FIXED, "check_supervised_y_2d": FIXED}
    if isinstance(search, DPThresholdSearchCV):
        failures |= dict.fromkeys(STOPPED, NOTHING)
    return failures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(SEARCHES, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
