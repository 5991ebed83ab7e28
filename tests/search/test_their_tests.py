"""scikit-learn's own tests of its searches, on private searches: each passes, or stands below with the reason.

``GridSearchCV`` and ``RandomizedSearchCV`` become ``DPRandomSearchCV`` with a fixed seed and a declared guarantee, and
``return_train_score`` is left out; nothing else is changed. Searches by halving stay scikit-learn's.
"""

from __future__ import annotations

from typing import Any

import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PureDP

theirs = pytest.importorskip("sklearn.model_selection.tests.test_search")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

#: Reason ↦ tests of scikit-learn that cannot pass here, without "test_".
REASONS = {
    "the score has no known sensitivity: bounds of y, pos_label or a private scorer must be stated": """
        grid_search_pipeline_steps grid_search_score_method classes__property grid_search_sparse_scoring refit
        gridsearch_no_predict unsupported_sample_weight_scorer search_cv_results_none_param
        grid_search_correct_score_results grid_search_with_multioutput_data custom_run_search
        callable_single_metric_same_as_single_string callable_multimetric_error_failing_clf cv_results_dtype_issue_29074
        search_with_estimators_issue_29157
    """,
    "several metrics, or a choice by a function of all scores: losers' scores never leave fit": """
        refit_callable refit_callable_invalid_type refit_callable_multi_metric unsupervised_grid_search
        grid_search_cv_results_multimetric random_search_cv_results_multimetric callable_multimetric_confusion_matrix
        callable_multimetric_same_as_list_of_strings callable_multimetric_error_on_invalid_key
    """,
    "cv_results_ holds the released row alone, and no times": """
        grid_search_one_grid_point grid_search_cv_results random_search_cv_results search_cv_results_rank_tie_breaking
        search_cv_timing grid_search_cv_splits_consistency search_with_2d_array
    """,
    "candidates are drawn, so that the best point of a small grid may be missing":
        "grid_search grid_search_when_param_grid_includes_range",
    "fits that fail, warn or print say nothing: they would tell about records, or the number of candidates": """
        grid_search_failing_classifier grid_search_classifier_all_fits_fail callable_multimetric_clf_all_fits_fail
        search_cv_verbose_3
    """,
    "rows that hold distances to other records (a precomputed kernel) have no guarantee for one record":
        "grid_search_precomputed_kernel search_cv_pairwise_property_equivalence_of_precomputed",
    "records are rows of numbers or of a data frame, with a target; others are refused before anything is spent":
        "grid_search_no_score",
    "a list becomes an array, entry by entry: its type would follow from all records": "X_as_list y_as_list",
    "the toy model gives one number for all records: one record would enter the score of others":
        "trivial_cv_results_attr pickle grid_search_allows_nans transform_inverse_transform_round_trip",
    "refused too, in other words that say what to write instead":
        "grid_search_groups no_refit grid_search_bad_param_grid empty_cv_iterator_error random_search_bad_cv",
    "containers are known by exact type: a class that only looks like a data frame may do anything": "pandas_input",
    "a callback that sees records or scores is refused":
        "search_callbacks_receive_sample_weight search_callbacks_with_partial_fit_failures",
}  # fmt: skip
REFUSED = {f"test_{name}": reason for reason, names in REASONS.items() for name in names.split()}


def private(estimator: Any, space: Any, *, return_train_score: bool = False, **given: Any) -> DPRandomSearchCV:
    """Make the private search in the place of scikit-learn's."""
    guarantee = PureDP(epsilon=50.0, neighboring="replace_one")
    return DPRandomSearchCV(estimator, space, guarantee=guarantee, **{"random_state": 0, **given})


@pytest.fixture(autouse=True)
def exchanged(monkeypatch):
    def grid(estimator, param_grid, **given):
        return private(estimator, param_grid, **given)

    def drawn(estimator, param_distributions, **given):
        return private(estimator, param_distributions, **given)

    monkeypatch.setattr(theirs, "GridSearchCV", grid)
    monkeypatch.setattr(theirs, "RandomizedSearchCV", drawn)


def marked(name: str, test: Any) -> Any:
    reason = REFUSED.get(name)
    return test if reason is None else pytest.mark.xfail(reason=reason, strict=True)(test)


globals().update({name: marked(name, one) for name, one in vars(theirs).items() if name.startswith("test_")})
