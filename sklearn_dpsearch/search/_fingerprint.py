"""Marks by which a search and its records are recognised after a crash."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from .._disk import store
from .._disk.store import PLAIN, Marks, shown
from ..adapters.seeds import forget_seeds, seed_names
from ..privacy import PrivacyError
from ._code import codes_of
from ._records import with_parameters
from .execution.randomness import Randomness

#: Number of candidates drawn to recognise a space, and the seed for that, independent of the search's candidates.
PROBES, PROBING = 32, 0
#: Arguments without effect on the release, and arguments that are compared in another way.
FREE = frozenset({"checkpoint", "verbose", "n_jobs", "pre_dispatch", "ledger"})
COMPARED = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "torch", "skorch", "diffprivlib")


def marks(prepared: Any) -> Marks:
    """Marks of a search."""
    search, plan = prepared.search, prepared.plan
    arguments = {n: v for n, v in search.get_params(deep=False).items() if n not in FREE | COMPARED}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        arguments["random_state"] = "RandomState"  # it changes with use; the entropy drawn from it is kept
    settings = plan.recipe.settings, plan.final_recipe.settings
    told = [_probed(plan.space), repr(plan.spent.guarantee), *settings, _without_seeds(search.estimator)]
    X_public, y_public = prepared.public or (None, None)
    records = {"X": prepared.X, "y": prepared.y, "X_public": X_public, "y_public": y_public}
    return {
        "place": {name: (found, repr(found)) for name, found in store.place(LIBRARIES).items()},
        "argument": {name: (_with_code(name, value), shown(value)) for name, value in arguments.items()},
        "candidates": {
            "candidates, estimator or numbers of records": (
                _with_code("the estimator", told),
                "",
            )
        },
        "records": {
            **{name: (_digest(name, _plain(name, value)), "") for name, value in records.items()},
            "parameters of fit": (_with_code("parameters of fit", dict(prepared.fit_params)), ""),
        },
    }


def _probed(space: Any) -> list[Any]:
    """Plain values of a space, and some candidates from it."""
    drawing = Randomness.following(PROBING).drawing()
    plain = [
        {name: [v for v in values if isinstance(v, PLAIN)] for name, values in d.items() if not hasattr(values, "rvs")}
        for d in space.dictionaries
    ]
    return [plain, *(space.draw(drawing) for _ in range(PROBES))]


def _without_seeds(estimator: Any) -> Any:
    """Copy the estimator without generators, which change with use and are replaced in every run."""
    plain = clone(estimator)
    forget_seeds(plain)
    return with_parameters(plain, dict.fromkeys(seed_names(plain)))


def _with_code(name: str, value: Any) -> str:
    """Digest of a value, and of the code of functions and classes, which a pickle only names."""
    return f"{_digest(name, value)} {_digest(name, codes_of(value))}"


def _digest(name: str, value: Any) -> str:
    try:
        return str(joblib.hash(value, hash_name="sha1"))
    except Exception:
        pass
    raise PrivacyError(
        f"Found {name} ({type(value).__name__}) that cannot be pickled, so that a search with a checkpoint cannot tell "
        "whether it is the same when it goes on. Give functions and classes that a module defines, or leave "
        "checkpoint=None."
    )


def _plain(name: str, value: Any) -> Any:
    """Records as arrays, so that every value counts in a digest.

    Raises
    ------
    PrivacyError
        For other containers, whose digest may not cover every value.
    """
    if value is None or type(value) in (np.ndarray, np.memmap) or issparse(value):
        return value
    if isinstance(value, np.ndarray):  # a mask or a unit may be beside the numbers
        return [np.asarray(value), vars(value)] if hasattr(value, "__dict__") else value
    if hasattr(value, "columns") and hasattr(value, "__getitem__"):
        columns = value.items() if hasattr(value, "items") else ((name, value[name]) for name in value.columns)
        return [_names(value), *((str(name), *_column(values)) for name, values in columns)]
    if isinstance(value, dict):
        return {str(part): _plain(name, one) for part, one in value.items()}
    if isinstance(value, (list, tuple)):
        return value
    if hasattr(value, "__array__"):
        return [_names(value), *_column(value)] if hasattr(value, "dtype") else np.asarray(value)
    raise PrivacyError(
        f"Found {name} of type {type(value).__name__} together with checkpoint=; arrays, data frames, lists or dicts "
        "of them are needed, so that a search that goes on can tell whether its records are the same. Leave "
        "checkpoint=None."
    )


def _names(values: Any) -> str | None:
    """Names of rows, which pandas keeps beside the values, and which an estimator may look at."""
    found = getattr(values, "index", None)
    return None if callable(found) else _values(found)


def _column(values: Any) -> tuple[str, str, str]:
    """A column: its kind, its categories, which are not in the name of the kind, and its values."""
    return str(values.dtype), _values(getattr(values.dtype, "categories", None)), _values(values)


def _values(of: Any) -> str:
    """Digest of the values without their memory layout, which differs between a pandas frame and its copy."""
    return _digest("names or values of a data frame", np.ascontiguousarray(of))
