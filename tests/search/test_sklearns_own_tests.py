"""scikit-learn's own tests of its searches, on private searches: each passes, or fails as a reason
below says.

The tests are read twice, while ``sklearn.model_selection`` holds private searches: once with
``DPRandomSearchCV`` for both searches of scikit-learn, once with ``DPGridSearchCV`` for
``GridSearchCV`` alone. Tests and cases that make no such search (those of halving, of
``ParameterGrid``, of helpers) would test scikit-learn alone, and are not run.

Each search has a declared guarantee, without which it refuses scikit-learn's estimators, and a
fixed seed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import unwrap
from traceback import extract_tb
from types import CodeType, ModuleType
from typing import Any

import pytest
import sklearn
import sklearn.model_selection

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.search._base import BasePrivateSearch

from ..pages import LEARN

#: The version whose tests were compared.
VERSION = "1.7"

if not sklearn.__version__.startswith(f"{VERSION}."):
    pytest.skip(
        f"tests of scikit-learn {VERSION} were compared, not {sklearn.__version__}",
        allow_module_level=True,
    )

FILE = find_spec("sklearn.model_selection.tests.test_search").origin

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

#: Reason ↦ the failure, and the tests that fail so on DPRandomSearchCV and on DPGridSearchCV,
#: without "test_".
REASONS = {
    "cv_results_ holds the released row alone: no losers, no scores of splits, no times": (
        r"KeyError: '(param_\w+|split0_test_score|mean_fit_time)'|"
        r"IndexError: index 1 is out of bounds|\(shapes \(1,\), \([23],\) mismatch\)|"
        r"assert all\(np.isin\(expected_keys, result_keys\)\)|"
        r"assert sorted\(results.keys\(\)\) == ",
        "grid_search_cv_results random_search_cv_results search_cv_results_rank_tie_breaking "
        "search_default_iid search_with_2d_array",
        "grid_search_pipeline_steps grid_search_cv_results search_cv_results_rank_tie_breaking "
        "custom_run_search grid_search_correct_score_results grid_search_with_multioutput_data "
        "search_cv_results_none_param grid_search_cv_splits_consistency search_default_iid",
    ),
    "several metrics, or a choice by all scores: the losers' scores never leave fit": (
        r"PrivacyError: Found (scoring=[\[({]|a function as refit=|refit='\w+', which names)|"
        r"Expected regex: 'For multi-metric scoring",
        "refit_callable refit_callable_invalid_type refit_callable_out_bound "
        "refit_callable_multi_metric unsupervised_grid_search grid_search_cv_results_multimetric "
        "random_search_cv_results_multimetric callable_multimetric_confusion_matrix "
        "callable_multimetric_same_as_list_of_strings callable_multimetric_error_on_invalid_key "
        "multi_metric_search_forwards_metadata",
        "",
    ),
    "a private score needs a known sensitivity: bounds of y, pos_label or a private scorer": (
        "UnknownSensitivityError|Actual message: 'scoring=",
        "grid_search_pipeline_steps grid_search_score_method classes__property "
        "grid_search_sparse_scoring refit gridsearch_no_predict search_cv_results_none_param "
        "grid_search_correct_score_results grid_search_with_multioutput_data custom_run_search "
        "callable_single_metric_same_as_single_string cv_results_dtype_issue_29074 "
        "search_with_estimators_issue_29157 search_cv_score_samples_method empty_cv_iterator_error "
        "random_search_bad_cv",
        "",
    ),
    "a grid search chooses by scores in [0, 1], and releases none": (
        r"make_scorer\(f1_loss, .* whose values are negative|assert search.best_score_ == 42",
        "",
        "grid_search_sparse_scoring gridsearch_no_predict",
    ),
    "a grid search has neither cv= nor refit=: random parts, and the winner trains once more": (
        r"DPGridSearchCV does not have. Unknown: refit|"
        r"Invalid parameter 'cv' for estimator DPGridSearchCV|"
        r"DID NOT RAISE ValueError\nwith pytest.raises\(ValueError, match=error_msg\)",
        "",
        "grid_search_groups no_refit refit_callable refit_callable_invalid_type "
        "refit_callable_out_bound refit_callable_multi_metric grid_search_cv_results_multimetric "
        "unsupervised_grid_search grid_search_failing_classifier "
        "grid_search_failing_classifier_raise callable_multimetric_confusion_matrix "
        "callable_multimetric_same_as_list_of_strings classes__property "
        "callable_single_metric_same_as_single_string callable_multimetric_error_on_invalid_key "
        "callable_multimetric_error_failing_clf callable_multimetric_clf_all_fits_fail "
        "search_html_repr search_cv_sample_weight_equivalence "
        "multi_metric_search_forwards_metadata",
    ),
    "candidates' errors, warnings and prints tell about records: error_score='raise', verbose=3": (
        r"Found error_score='raise'|DID NOT WARN|"
        r"Expected regex: re.compile\('All the 15 fits|assert len\(match\) == 3",
        "SearchCV_with_fit_params search_cv_using_minimal_compatible_estimator "
        "grid_search_failing_classifier grid_search_classifier_all_fits_fail "
        "callable_multimetric_clf_all_fits_fail search_cv_verbose_3 "
        "callable_multimetric_error_failing_clf searchcv_raise_warning_with_non_finite_score "
        "unsupported_sample_weight_scorer",
        "SearchCV_with_fit_params search_cv_using_minimal_compatible_estimator "
        "grid_search_classifier_all_fits_fail search_cv_verbose_3 "
        "searchcv_raise_warning_with_non_finite_score unsupported_sample_weight_scorer",
    ),
    "the choice is noisy: of equal candidates any may win": (
        r"assert grid_search.best_estimator_.foo_param == 2",
        "",
        "grid_search grid_search_when_param_grid_includes_range",
    ),
    "a released score has noise, and no sample weights, which change a record's part": (
        r"mean_test_score values are not equal for weighted/repeated datasets|"
        r"for Ridge, which is no classifier",
        "search_cv_sample_weight_equivalence",
        "",
    ),
    "the winner's own model is released, which saw the records of its run alone": (
        r"\(shapes \(1, 200\), \(1, \d+\) mismatch\)",
        "grid_search_one_grid_point",
        "",
    ),
    "a row of distances to other records (a precomputed kernel) is not one record": (
        "LeakingEstimatorError: .* takes a precomputed kernel",
        "grid_search_precomputed_kernel search_cv_pairwise_property_equivalence_of_precomputed",
        "grid_search_precomputed_kernel search_cv_pairwise_property_equivalence_of_precomputed",
    ),
    "containers are read entry by entry into arrays: code of their own, and types that follow from "
    "all records, may "
    "tell anything": (
        r"Found X of type MockDataFrame|assert (checked_[Xy]|isinstance\(tuple_of_arrays, tuple\))",
        "pandas_input X_as_list y_as_list scalar_fit_param_compat",
        "pandas_input X_as_list y_as_list scalar_fit_param_compat",
    ),
    "the toy model gives one answer for all records: one record would enter the scores of others": (
        "ValueError: Found 1 answers of the estimator to 200 records",
        "grid_search grid_search_when_param_grid_includes_range trivial_cv_results_attr pickle "
        "no_refit grid_search_allows_nans transform_inverse_transform_round_trip",
        "",
    ),
    "groups are persons, of whom these estimators know nothing": (
        "PrivacyError: Found groups in fit",
        "grid_search_groups",
        "",
    ),
    "a splitter travels to the private process, where a generator inside of it cannot": (
        "cannot pickle 'generator' object",
        "grid_search_cv_splits_consistency",
        "",
    ),
    "what would fail for every record fails at the rehearsal, before anything is spent": (
        "The 'C' parameter of LinearSVC must be a float|requires y to be passed, but the target y "
        "is None",
        "search_cv_timing grid_search_no_score",
        "search_cv_timing",
    ),
    "refused like in scikit-learn, by a message that says what to write instead": (
        r"Expected regex: .Parameter\\+ grid\\+ for\\+ parameter",
        "grid_search_bad_param_grid",
        "grid_search_bad_param_grid",
    ),
}


def random_search(
    estimator: Any, space: Any, *, return_train_score: bool = False, **given: Any
) -> DPRandomSearchCV:
    """Make a random search by the arguments of either search; train scores are left out."""
    guarantee = PureDP(epsilon=50.0, neighboring="replace_one")
    return DPRandomSearchCV(estimator, space, guarantee=guarantee, **{"random_state": 0, **given})


def grid_search(
    estimator: Any,
    param_grid: Any,
    *,
    cv: Any = None,
    refit: Any = True,
    return_train_score: bool = False,
    **given: Any,
) -> DPGridSearchCV:
    """Make a grid search, which has random parts instead of ``cv=``, and always trains the winner
    once more."""
    given |= {} if refit is True else {"refit": refit}
    guarantee = PureDP(epsilon=50.0, neighboring="replace_one")
    options = {"guarantee": guarantee, "selection_epsilon": 50.0}
    return DPGridSearchCV(estimator, param_grid, **options, **{"random_state": 0, **given})


class Substitute:
    """A private search under the name of scikit-learn's.

    Parameters
    ----------
    name : str
        Name of scikit-learn's search, also in the names of cases.
    space : str
        scikit-learn's name of the space, by which tests give it.
    search : callable
        (estimator, space, ...) to a private search.
    """

    def __init__(self, name: str, space: str, search: Callable[..., BasePrivateSearch]) -> None:
        self.__name__, self.space, self.search = name, space, search

    def __call__(self, estimator: Any, *space: Any, **given: Any) -> BasePrivateSearch:
        (space,) = space or (given.pop(self.space),)
        return self.search(estimator, space, **given)


SUBSTITUTES = {
    DPRandomSearchCV: (
        Substitute("GridSearchCV", "param_grid", random_search),
        Substitute("RandomizedSearchCV", "param_distributions", random_search),
    ),
    DPGridSearchCV: (Substitute("GridSearchCV", "param_grid", grid_search),),
}


def module_with(substitutes: Iterable[Substitute]) -> ModuleType:
    """Read scikit-learn's module of tests while its searches are private ones: lists of cases hold
    them, too."""
    name = f"sklearns_tests_of_searches_{len(sys.modules)}"
    module = module_from_spec(spec := spec_from_file_location(name, FILE))
    sys.modules[name] = module  # classes of the tests are pickled by name
    with pytest.MonkeyPatch.context() as patch:
        for substitute in substitutes:
            patch.setattr(sklearn.model_selection, substitute.__name__, substitute)
        spec.loader.exec_module(module)
    return module


def is_private(case: Any) -> bool:
    """Return whether a case of a test, or one of its parameters, is a private search."""
    values = case if isinstance(case, tuple) else (case,)
    return any(isinstance(value, (Substitute, BasePrivateSearch)) for value in values)


def cases_of(mark: pytest.Mark) -> list[Any]:
    """Cases that a mark lists; a generator, which is read once, lists none."""
    return mark.args[1] if mark.name == "parametrize" and isinstance(mark.args[1], list) else []


def private_cases(mark: pytest.Mark) -> pytest.Mark:
    """Leave out the cases of other searches, where a parameter is a search."""
    private = list(filter(is_private, cases_of(mark)))
    return pytest.mark.parametrize(mark.args[0], private, **mark.kwargs).mark if private else mark


def names_in(code: CodeType) -> set[str]:
    """Global names that a function reads, and the functions inside of it."""
    return set(code.co_names).union(
        *(names_in(part) for part in code.co_consts if isinstance(part, CodeType))
    )


def is_of_searches(test: Callable[..., None], substitutes: Iterable[Substitute]) -> bool:
    """Return whether a test, or a case of it, makes a private search."""
    cases = [case for mark in getattr(test, "pytestmark", ()) for case in cases_of(mark)]
    names = {substitute.__name__ for substitute in substitutes}
    return any(map(is_private, cases)) or not names.isdisjoint(names_in(unwrap(test).__code__))


def text_of(error: BaseException) -> str:
    """Type and message of an error, its traceback in a rehearsal, and the line of scikit-learn's
    test that failed."""
    lines = [entry.line for entry in extract_tb(error.__traceback__) if entry.filename == FILE]
    return "\n".join(
        [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ()), lines[-1]]
    )


def failing(test: Callable[..., None], failure: str) -> Callable[..., None]:
    """Make a test that passes if each case fails with a text in which the pattern is found."""

    @wraps(test)
    def fails(*args: Any, **given: Any) -> None:
        try:
            test(*args, **given)
        except pytest.skip.Exception:
            raise
        except (Exception, pytest.fail.Exception) as error:
            text = text_of(error)
        else:
            pytest.fail("The test passes now: take it from the list of reasons.")
        assert re.search(failure, text), f"The test fails for another reason: {text}"

    return fails


def private_tests(search: type) -> dict[str, Callable[..., None]]:
    """Tests of scikit-learn for a private search, those of the list turned around."""
    tests = {
        name.removeprefix("test_"): test
        for name, test in vars(module_with(SUBSTITUTES[search])).items()
        if name.startswith("test_") and is_of_searches(test, SUBSTITUTES[search])
    }
    for failure, *names in REASONS.values():
        for name in names[search is DPGridSearchCV].split():
            tests[name] = failing(tests[name], failure)
    for test in tests.values():
        test.pytestmark = list(map(private_cases, getattr(test, "pytestmark", ())))
    return tests


TESTS = {search: private_tests(search) for search in SUBSTITUTES}


def collected(search: type) -> type:
    """Make a class of tests."""
    entries = TESTS[search].items()
    return type(search.__name__, (), {f"test_{name}": staticmethod(test) for name, test in entries})


TestRandomSearch, TestGridSearch = collected(DPRandomSearchCV), collected(DPGridSearchCV)


@pytest.mark.parametrize("search", TESTS)
def test_the_page_tells_how_many_pass(search):
    column = 1 + list(TESTS).index(search)
    refused = sum(len(reason[column].split()) for reason in REASONS.values())
    total = len(TESTS[search]) - 1  # arrays of other libraries: scikit-learn skips that test here
    page = " ".join((LEARN / "from_grid_search.md").read_text().split())
    assert f"{total - refused} of {total} pass on `{search.__name__}`" in page
