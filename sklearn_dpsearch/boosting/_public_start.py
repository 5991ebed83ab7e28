"""Outputs of a fitted model at which boosting starts: a free function of each record alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..data._columns import names_of
from ..data._records import number_of_records
from ..scoring._contributions import contributions, response_function
from ._losses import LEAST_PROBABILITY, Array

MOST_PROBABILITY = 1.0 - LEAST_PROBABILITY
#: Answers of a model, one row for each record ↦ outputs, shape (n_samples, n_outputs).
ToOutputs = Callable[[NDArray[Any]], Array]


def check_init(init: Any, method: str, owner: str, neighboring: str) -> None:
    """Raise unless ``init`` is a fitted model that predicts.

    It is asked for each record, whatever the others are.

    Raises
    ------
    ValueError, NotFittedError
    """
    if not hasattr(init, method):
        raise ValueError(
            f"Found init={init!r} of {owner}; a fitted estimator with {method} is needed, or None."
        )
    try:
        check_is_fitted(init)
    except NotFittedError:
        raise NotFittedError(
            f"Found an init of {owner} that is not fitted: fit it on public records before. Copies "
            "of estimators, as searches and cross-validation make them, are unfitted: "
            "init=sklearn.frozen.FrozenEstimator(model)."
        ) from None
    if neighboring == "add_remove":
        raise ValueError(
            f"Found init and neighboring='add_remove' of {owner}: one more record moves the others "
            "to other places, where other code may predict other last digits. Give "
            "neighboring='zero_out', at the same epsilon."
        )


def init_outputs(init: Any, method: str, X: Any, to_outputs: ToOutputs, n_outputs: int) -> Array:
    """Outputs of ``init`` for records behind the door, each predicted by itself.

    Shape (n_outputs, n_samples); 0 where it fails on a record.

    A record is predicted in a call of a fixed size, and whatever goes wrong with one leaves the
    others as they are.
    """
    records = columns_of_init(init, X)
    unused = np.zeros(number_of_records(records))
    respond, worst = response_function(init, method), [0.0] * n_outputs
    by_record: Array = contributions(
        respond, lambda _, answers: to_outputs(answers), records, unused, worst
    )
    return np.ascontiguousarray(by_record.T)


def columns_of_init(init: Any, X: Any) -> Any:
    """Columns of a table that ``init`` was fitted on.

    Raises
    ------
    ValueError
        If some are missing; names are public.
    """
    wanted, names = getattr(init, "feature_names_in_", None), names_of(X)
    if wanted is None or names is None:
        return X
    if missing := [str(name) for name in wanted if str(name) not in names]:
        needed = "Give X with all of its columns."
        raise ValueError(f"Found no column {missing} in X, which init was fitted on. {needed}")
    return X[list(wanted)]


def logits_from_probabilities(classes: NDArray[Any], labels: NDArray[Any]) -> ToOutputs:
    """Map from class probabilities to outputs: one logit for two classes, else one for each.

    Probabilities are cut off where those of a start are; a class that is not known has the
    smallest.

    Raises
    ------
    ValueError
        If no class is known: labels are of another kind, or of another question.
    """
    places = {name: place for place, name in enumerate(labels.tolist())}
    columns = [places.get(name) for name in classes.tolist()]
    if columns.count(None) == len(columns):
        raise ValueError(
            f"Found an init with the classes {labels.tolist()}, of which none is declared: "
            f"{classes.tolist()}. Fit it on labels of the same kind."
        )

    def to_outputs(answers: NDArray[Any]) -> Array:
        chances = np.full((len(answers), len(columns)), LEAST_PROBABILITY)
        for column, place in enumerate(columns):
            if place is not None:
                chances[:, column] = np.clip(answers[:, place], LEAST_PROBABILITY, MOST_PROBABILITY)
        logits: Array = np.log(chances)
        base: Array = logits[:, :1] if len(columns) == 2 else logits.mean(axis=1, keepdims=True)
        return logits[:, 1:] - base if len(columns) == 2 else logits - base

    return to_outputs
