"""Default spaces around the estimators' parameters, narrow enough that one draw is a decent model."""

from __future__ import annotations

import math
from typing import Any

from ...adapters import Adapter, adapter_for
from ...privacy import PrivacyError

#: Word for the estimator's own space, in place of a space.
AUTO = "auto"


def search_space(*estimators: Any, step: str | None = None, grid: bool = False) -> list[dict[str, Any]]:
    """Make the space that ``param_distributions="auto"`` stands for, or a space over several estimators.

    Parameters
    ----------
    *estimators : estimator
        Nets of ``sklearn_dpsearch.nets``, models of diffprivlib, pipelines of them, or anything with a method
        ``search_space(grid=False)``.
    step : str, optional
        Name of a step of a pipeline. The space then puts each of the estimators into it, with a space of its own;
        each is drawn equally often.
    grid : bool, default=False
        Whether lists of values are needed, for a search over a whole grid.

    Returns
    -------
    list of dict
        As ``param_distributions`` or ``param_grid`` take it.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn_dpsearch import DPRandomSearchCV, search_space
    >>> from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier
    >>> models = DPLogisticRegression(), DPMLPClassifier()
    >>> pipeline = Pipeline([("model", models[0])])
    >>> search = DPRandomSearchCV(pipeline, search_space(*models, step="model"), epsilon=1.0, delta=1e-6)
    >>> search_space(models[0], grid=True)
    [{'learning_rate_factor': [0.8, 1.0, 1.25]}]
    """
    if step is None:
        if len(estimators) != 1:
            raise ValueError(
                f"Found {len(estimators)} estimators without a step to put them in. Give one estimator, or "
                "step='model' for a Pipeline([('model', ...)])."
            )
        return own_space(estimators[0], adapter_for(estimators[0]), grid=grid)
    spaces = [
        [{step: [one], **{f"{step}__{name}": values for name, values in dictionary.items()}} for dictionary in known]
        for one in estimators
        for known in [_known(one, adapter_for(one), grid=grid)]
    ]
    if not spaces:
        raise ValueError(f"Found no estimators for the step {step!r}. Give at least one.")
    most = 1 if grid else math.lcm(*(len(space) for space in spaces))
    return [dictionary for space in spaces for dictionary in space * max(1, most // len(space))]


def own_space(estimator: Any, adapter: Adapter, *, grid: bool) -> list[dict[str, Any]]:
    """The estimator's own space.

    Raises
    ------
    PrivacyError
        Where none is known, or nothing is worth searching.
    """
    found = _known(estimator, adapter, grid=grid)
    if not any(found):
        raise PrivacyError(
            f"Found 'auto' as the space of {type(estimator).__name__}, of whose parameters none is worth a "
            "search. Fit it as it is, give a space, or let it compete with others: search_space(A(), B(), "
            "step='model')."
        )
    return found


def _known(estimator: Any, adapter: Adapter, *, grid: bool) -> list[dict[str, Any]]:
    found = adapter.search_space(estimator, grid=grid)
    if found is None:
        raise PrivacyError(
            f"Found 'auto' as the space of {type(estimator).__name__}, for which no space is known. Give a "
            "space, e.g. {'C': [0.1, 1.0]}, or give the estimator a method search_space(grid=False) that returns a "
            "list of dicts."
        )
    return found
