"""Arguments that scikit-learn's constraints do not cover, checked without any data."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.utils._param_validation import Interval, Options

from ...privacy import CountDistribution

#: Mean number of runs from which a search counts as a typing error: the number of runs is never cut later.
MOST_RUNS = 10**6
#: Budgets below it are not private but meaningless: halves and shares of them would no longer be numbers.
SMALLEST_BUDGET = 1e-100

BUDGET = [None, Interval(numbers.Real, SMALLEST_BUDGET, None, closed="left")]
DELTA = [None, Options(numbers.Real, {0}), Interval(numbers.Real, SMALLEST_BUDGET, 1, closed="left")]
RUNS = [Interval(numbers.Real, 1, MOST_RUNS, closed="both"), CountDistribution]
PARTS = [None, Interval(numbers.Integral, 2, 10**6, closed="both")]


def check_estimator(found: Any) -> None:
    """Raise for a class, where an object is needed."""
    if isinstance(found, type):
        name = found.__name__
        raise TypeError(f"Found the class {name} as estimator; an object is needed. Write {name}(...).")


def check_mean(n_iter: Any) -> None:
    """Raise for a distribution of the number of runs that would run for ever."""
    if isinstance(n_iter, CountDistribution) and n_iter.mean > MOST_RUNS:
        raise ValueError(
            f"Found n_iter={n_iter!r}, so {n_iter.mean:g} runs on average; at most {MOST_RUNS} are drawn. Give a "
            "smaller mean, or a capped distribution, e.g. Geometric(100).capped(1000)."
        )


# --- parameters of ``fit`` --------------------------------------------------------------------------------------------


def is_per_record(name: str, value: Any) -> bool:
    """Return whether a parameter of ``fit`` may hold a value for each record; sample weights always may."""
    if name.rpartition("__")[2] == "sample_weight":
        return value is not None
    return hasattr(value, "__len__") and not isinstance(value, (str, dict))


# --- values inside of arguments ---------------------------------------------------------------------------------------


def nested(estimator: Any) -> Iterable[Any]:
    """Value of every parameter, at any depth, and of entries in lists of named steps; a class has no parameters."""
    known = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    for value in estimator.get_params(deep=False).values() if known else ():
        steps = value if isinstance(value, list) else []
        for part in [value, *(step[1] for step in steps if isinstance(step, tuple) and len(step) > 1)]:
            yield part
            yield from nested(part)


def values_of(space: object) -> Iterable[Any]:
    """Value of every entry in the lists of a space."""
    for dictionary in [space] if isinstance(space, Mapping) else space if isinstance(space, list) else []:
        for values in dictionary.values() if isinstance(dictionary, Mapping) else ():
            if isinstance(values, (list, tuple)):
                yield from values
