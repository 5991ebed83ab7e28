"""Arguments of the searches, checked without any data: nothing is spent on a search that could not run."""

from __future__ import annotations

import inspect
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np
from sklearn.base import BaseEstimator

from ...privacy import CountDistribution
from .keywords import check_one_metric, check_refit

#: Mean number of runs, and number of parts of the records, from which a search counts as a typing error.
MOST_RUNS, MOST_PARTS = 10**6, 10**6
#: Budgets below it are not private but meaningless: halves and shares of them would no longer be numbers.
SMALLEST_BUDGET = 1e-100

#: What ``pre_dispatch`` may say.
TASKS = re.compile(r"all|([1-9]\d*\*)?n_jobs|[1-9]\d*")

BUDGETS = ("epsilon", "delta", "selection_epsilon", "round_epsilon")
#: Parameters that are numbers, unless None, a word or a distribution of K.
NUMBERS = (
    *BUDGETS,
    "n_iter",
    "n_jobs",
    "n_parts",
    "error_score",
    "random_state",
    "threshold",
    "granularity",
    "lower",
    "max_rounds",
    "subset_fraction",
    "tuning_share",
    "pre_dispatch",
)


def check_arguments(search: BaseEstimator) -> None:
    """Raise for parameters of a search that are wrong for any data.

    Runs before scikit-learn's own validation, which takes True for 1 and fails on fractions.
    """
    given = search.get_params(deep=False)
    for check in CHECKS:
        check(given)


def check_values(given: Mapping[str, Any]) -> None:
    """Check the numbers of a value that a search is given."""
    for check in CHECKS_OF_NUMBERS:
        check(given)


def _check_estimators(given: Mapping[str, Any]) -> None:
    """Raise for classes given as estimator, as its parts or in the space, where objects are needed."""
    if isinstance(given["estimator"], type):
        _refuse_class("estimator", given["estimator"])
    space = given.get("param_distributions", given.get("param_grid"))
    for name, value in (*nested(given["estimator"]), *values_of(space)):
        if isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "get_params"):
            _refuse_class(f"{name!r}", value)


def _refuse_class(name: str, found: type) -> None:
    raise TypeError(f"Found the class {found.__name__} as {name}; an object is needed. Write {found.__name__}(...).")


def nested(estimator: Any) -> Iterable[tuple[str, Any]]:
    """Name and value of every parameter, and of entries in lists of named steps (a class there has no parameters)."""
    for name, value in estimator.get_params(deep=False).items() if hasattr(estimator, "get_params") else ():
        listed = (
            [step for step in value if isinstance(step, tuple) and len(step) > 1] if isinstance(value, list) else []
        )
        for inner, part in [(name, value), *((str(step[0]), step[1]) for step in listed)]:
            yield inner, part
            if not isinstance(part, type):
                yield from nested(part)


def values_of(space: object) -> Iterable[tuple[str, Any]]:
    """Name and value of every entry in the lists of a space."""
    for dictionary in [space] if isinstance(space, Mapping) else space if isinstance(space, list) else []:
        for name, values in dictionary.items() if isinstance(dictionary, Mapping) else ():
            if isinstance(values, (list, tuple)):
                yield from ((name, value) for value in values)


def _check_numbers(given: Mapping[str, Any]) -> None:
    for name in NUMBERS:
        value = given.get(name)
        if isinstance(value, (bool, np.bool_)):
            raise TypeError(f"Found {name}={value!r}; a number is needed. Write {name}=1 if 1 is meant.")
        if isinstance(value, numbers.Real) and not isinstance(value, (int, float, np.number)):
            raise TypeError(
                f"Found {name}={value!r} ({type(value).__name__}); an int or a float is needed. Write {name}="
                f"{float(value)!r}, which is used as exactly that number."
            )
        if isinstance(value, int) and abs(value) > 2**1000:
            raise ValueError(f"Found {name} with {len(str(value))} digits; no float is as large. Give a smaller one.")


def _check_budgets(given: Mapping[str, Any]) -> None:
    for name in BUDGETS:
        value = given.get(name)
        if is_real(value) and 0 < value < SMALLEST_BUDGET:
            raise ValueError(
                f"Found {name}={value!r}; at least {SMALLEST_BUDGET:g} is needed to compute with"
                f"{', or 0' * (name == 'delta')}. Give a larger {name}."
            )


def _check_error_score(given: Mapping[str, Any]) -> None:
    if isinstance(given["error_score"], numbers.Real) and given["error_score"] == math.inf:
        raise ValueError(
            "Found error_score=inf, which would make a failing candidate the best. Use error_score=np.nan (a failing "
            "candidate is the worst, as with -inf), or a finite number."
        )


def _check_runs(given: Mapping[str, Any]) -> None:
    n_iter = given.get("n_iter")
    mean = n_iter.mean if isinstance(n_iter, CountDistribution) else n_iter
    if is_real(mean) and MOST_RUNS < mean < math.inf:
        raise ValueError(
            f"Found n_iter={n_iter!r}, so {mean:g} runs on average; at most {MOST_RUNS} are drawn. Give a smaller "
            "n_iter, or a capped distribution, e.g. Geometric(100).capped(1000): the number of runs is never cut later."
        )


def _check_parts(given: Mapping[str, Any]) -> None:
    if isinstance(given.get("n_parts"), numbers.Real) and given["n_parts"] > MOST_PARTS:
        raise ValueError(f"Found n_parts={given['n_parts']!r}; at most {MOST_PARTS} are made. Give fewer parts.")


def _check_guarantee(given: Mapping[str, Any]) -> None:
    declared = given["guarantee"]
    if isinstance(declared, type):
        raise TypeError(
            f"Found the class {declared.__name__} as guarantee; a value is needed. Write e.g. "
            "guarantee=PureDP(epsilon=1.0)."
        )
    if callable(declared) and not _takes_two(declared):
        raise TypeError(
            f"Found guarantee={declared!r}, which cannot be called with (estimator, n_samples). Write a function of "
            "both, e.g. guarantee=lambda estimator, n_samples: PureDP(epsilon=estimator.epsilon)."
        )


def is_real(value: Any) -> TypeGuard[float]:
    """Return whether a value is a real number of any library."""
    return isinstance(value, numbers.Real)


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # compiled: its signature is unknown
        return True
    return True


def _check_pre_dispatch(given: Mapping[str, Any]) -> None:
    """Raise for a wrong ``pre_dispatch``: joblib would notice after the data were read, or stay silent."""
    found = given["pre_dispatch"]
    if is_real(found) and 1 <= found < math.inf:
        return
    if not isinstance(found, str) or not TASKS.fullmatch(found.replace(" ", "")):
        raise ValueError(
            f"Found pre_dispatch={found!r}; a number of tasks of at least 1, 'all', or a whole multiple of n_jobs is "
            "needed. Leave pre_dispatch='2*n_jobs'."
        )


CHECKS_OF_NUMBERS: tuple[Callable[[Mapping[str, Any]], None], ...] = (_check_numbers, _check_budgets, _check_parts)
#: In this order.
CHECKS: tuple[Callable[[Mapping[str, Any]], None], ...] = (
    _check_estimators,
    *CHECKS_OF_NUMBERS,
    _check_error_score,
    _check_runs,
    _check_guarantee,
    _check_pre_dispatch,
    check_one_metric,
    check_refit,
)
