"""Public facts among an estimator's parameters, for use by scorers."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from ..data.labels import as_array


def stated_facts(estimator: Any) -> Mapping[str, Any]:
    """Options of private scorers, from ``classes`` and ``bounds_y`` of an estimator, or of a pipeline's last step.

    Both may be parameters, or facts that a schema states (``public_facts``).

    Returns
    -------
    dict
        ``classes`` and ``pos_label``: 1 where it is a class, else the later of two classes, as scikit-learn sorts them.
        ``y_range``: the bounds.
    """
    while type(estimator) is Pipeline:
        estimator = estimator.steps[-1][1]
    facts = getattr(estimator, "public_facts", {})
    classes, bounds = (facts.get(name, getattr(estimator, name, None)) for name in ("classes", "bounds_y"))
    return {**_of_classes(classes), **_of_bounds(bounds)}


def _of_classes(given: Any) -> dict[str, Any]:
    if given is None or isinstance(given, str) or callable(given):
        return {}
    try:
        classes = sorted(as_array(given).tolist())
    except Exception:  # labels without an order: the user must name one
        return {}
    if 1 in classes:
        return {"classes": classes, "pos_label": 1}
    return {"classes": classes, **({"pos_label": classes[1]} if len(classes) == 2 else {})}


def _of_bounds(given: Any) -> dict[str, Any]:
    if not isinstance(given, Sequence) or len(given) != 2 or not all(isinstance(end, numbers.Real) for end in given):
        return {}
    lower, upper = float(given[0]), float(given[1])
    return {"y_range": (lower, upper)} if lower < upper else {}
