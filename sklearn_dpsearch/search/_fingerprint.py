"""Marks by which a search and its records are recognised after a crash."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from .._disk import store
from .._disk.store import PLAIN, Marks, shown
from ..adapters.seeds import forget_seeds, seed_names
from ..data.columns import is_data_set, is_frame
from ..privacy import PrivacyError
from ._records import with_parameters
from .execution.randomness import Randomness

#: Number of candidates drawn to recognise a space, and the seed for that, independent of the search's candidates.
PROBES, PROBING = 32, 0
#: Arguments without effect on the release, and arguments that are compared in another way.
FREE = frozenset({"checkpoint", "verbose", "n_jobs", "ledger"})
COMPARED = frozenset({"estimator", "param_distributions", "param_grid"})
#: Libraries on which rounding and generators depend.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "torch", "skorch", "diffprivlib")


def marks(prepared: Any) -> Marks:
    """Marks of a search."""
    search, plan = prepared.strategy.search, prepared.plan
    arguments = {n: v for n, v in search.get_params(deep=False).items() if n not in FREE | COMPARED}
    if isinstance(arguments.get("random_state"), np.random.RandomState):
        arguments["random_state"] = "RandomState"  # it changes with use; the entropy drawn from it is kept
    settings = plan.recipe.settings, plan.final_recipe.settings
    told = [_probed(plan.space), repr(plan.spent.guarantee), *settings, _without_seeds(search.estimator)]
    X_public, y_public = prepared.public or (None, None)
    records = {"X": prepared.X, "y": prepared.y, "X_public": X_public, "y_public": y_public}
    return {
        "place": {name: (found, repr(found)) for name, found in store.place(LIBRARIES).items()},
        "argument": {name: (_digest(name, value), shown(value)) for name, value in arguments.items()},
        "candidates": {
            "candidates, estimator or numbers of records": (
                _digest("the estimator", told),
                "",
            )
        },
        "records": {
            **{name: (_digest(name, _plain(name, value)), "") for name, value in records.items()},
            "parameters of fit": (_digest("parameters of fit", dict(prepared.fit_params)), ""),
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
    """Records so that every value counts in a digest, and the layout of a data frame's columns in memory does not.

    Raises
    ------
    PrivacyError
        For data sets, of which only a description could be compared.
    """
    if isinstance(value, dict):
        return {part: np.ascontiguousarray(one) for part, one in value.items()}
    if is_data_set(value):
        raise PrivacyError(
            f"Found {name} of type {type(value).__name__} together with checkpoint=; arrays or data frames are needed, "
            "so that a search that goes on can tell whether its records are the same. Leave checkpoint=None."
        )
    if not is_frame(value):
        return value
    columns = [(label, column.to_numpy()) for label, column in value.items()]
    return [np.asarray(value.index), *((label, np.ascontiguousarray(one)) for label, one in columns)]
