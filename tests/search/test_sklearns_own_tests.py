"""scikit-learn's own tests of its searches, on private searches: each passes, or fails as a reason below says.

The tests are read twice, while ``sklearn.model_selection`` holds private searches: once with ``DPRandomSearchCV`` for
both searches of scikit-learn, once with ``DPGridSearchCV`` for ``GridSearchCV`` alone. Tests and cases that make no such
search (those of halving, of ``ParameterGrid``, of helpers) would test scikit-learn alone, and are not run.

Each search has a declared guarantee, without which it refuses scikit-learn's estimators, and a fixed seed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import unwrap
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import sklearn
import sklearn.model_selection

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.search._base import BasePrivateSearch

#: The version whose tests were compared.
VERSION = "1.7"

if not sklearn.__version__.startswith(f"{VERSION}."):
    pytest.skip(f"tests of scikit-learn {VERSION} were compared, not {sklearn.__version__}", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

#: Reason ↦ the failure, and the tests that fail so on DPRandomSearchCV and on DPGridSearchCV, without "test_".
REASONS = {
    "losers' scores stay secret: cv_results_ holds the released row alone, and no times or scores of splits": (
        r"KeyError: '(param_\w+|split0_test_score)'|IndexError: index 1 is out of bounds|\(shapes \(1,\), \(3,\)",
        "grid_search_cv_results random_search_cv_results search_cv_results_rank_tie_breaking search_default_iid "
        "search_with_2d_array",
        "grid_search_pipeline_steps grid_search_cv_results search_cv_results_rank_tie_breaking",
    ),
    "losers' scores stay secret: several metrics, or a choice by a function of all scores": (
        r"PrivacyError: Found (scoring=[\[({]|a function as refit=|refit='\w+', which names)|"
        r"Expected regex: 'For multi-metric scoring",
        "refit_callable refit_callable_invalid_type refit_callable_out_bound refit_callable_multi_metric "
        "unsupervised_grid_search grid_search_cv_results_multimetric random_search_cv_results_multimetric "
        "callable_multimetric_confusion_matrix callable_multimetric_same_as_list_of_strings "
        "callable_multimetric_error_on_invalid_key multi_metric_search_forwards_metadata",
        "unsupervised_grid_search",
    ),
    "the score has no known sensitivity: bounds of y, pos_label or a private scorer must be stated": (
        "UnknownSensitivityError|Actual message: 'scoring=",
        "grid_search_pipeline_steps grid_search_score_method classes__property grid_search_sparse_scoring refit "
        "gridsearch_no_predict search_cv_results_none_param grid_search_correct_score_results "
        "grid_search_with_multioutput_data custom_run_search callable_single_metric_same_as_single_string "
        "cv_results_dtype_issue_29074 search_with_estimators_issue_29157 search_cv_score_samples_method "
        "empty_cv_iterator_error random_search_bad_cv",
        "",
    ),
    "errors, warnings and prints of candidates would tell about records: error_score='raise', and reports of fits": (
        r"Found error_score='raise'|DID NOT WARN|Expected regex: re.compile\('All the 15 fits|AssertionError: $",
        "SearchCV_with_fit_params search_cv_using_minimal_compatible_estimator grid_search_failing_classifier "
        "grid_search_classifier_all_fits_fail callable_multimetric_clf_all_fits_fail search_cv_verbose_3 "
        "callable_multimetric_error_failing_clf searchcv_raise_warning_with_non_finite_score "
        "unsupported_sample_weight_scorer",
        "",
    ),
}


def random_search(estimator: Any, space: Any, *, return_train_score: bool = False, **given: Any) -> DPRandomSearchCV:
    """Make a random search by the arguments of either search; train scores are left out."""
    guarantee = PureDP(epsilon=50.0, neighboring="replace_one")
    return DPRandomSearchCV(estimator, space, guarantee=guarantee, **{"random_state": 0, **given})


def grid_search(
    estimator: Any, param_grid: Any, *, cv: Any = None, refit: Any = True, return_train_score: bool = False, **given: Any
) -> DPGridSearchCV:
    """Make a grid search, which always trains the winner once more, and has no folds: a number of them is left out."""
    given |= {} if refit is True else {"refit": refit}
    given |= {} if cv is None or isinstance(cv, int) else {"cv": cv}
    guarantee = PureDP(epsilon=50.0, neighboring="replace_one")
    return DPGridSearchCV(
        estimator, param_grid, guarantee=guarantee, selection_epsilon=50.0, **{"random_state": 0, **given}
    )


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
    """Read scikit-learn's module of tests while its searches are private ones: lists of cases hold them, too."""
    found = find_spec("sklearn.model_selection.tests.test_search")
    name = f"sklearns_tests_of_searches_{len(sys.modules)}"
    module = module_from_spec(spec := spec_from_file_location(name, found.origin))
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
    return set(code.co_names).union(*(names_in(part) for part in code.co_consts if isinstance(part, CodeType)))


def is_of_searches(test: Callable[..., None], substitutes: Iterable[Substitute]) -> bool:
    """Return whether a test, or a case of it, makes a private search."""
    cases = [case for mark in getattr(test, "pytestmark", ()) for case in cases_of(mark)]
    names = {substitute.__name__ for substitute in substitutes}
    return any(map(is_private, cases)) or not names.isdisjoint(names_in(unwrap(test).__code__))


def failing(test: Callable[..., None], failure: str) -> Callable[..., None]:
    """Make a test that passes if each case fails with a text in which the pattern is found."""

    @wraps(test)
    def fails(*args: Any, **given: Any) -> None:
        try:
            test(*args, **given)
        except pytest.skip.Exception:
            raise
        except (Exception, pytest.fail.Exception) as error:
            text = f"{type(error).__name__}: {error}"
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
    return type(search.__name__, (), {f"test_{name}": staticmethod(test) for name, test in TESTS[search].items()})


TestRandomSearch, TestGridSearch = collected(DPRandomSearchCV), collected(DPGridSearchCV)
