"""Steps that learn nothing, fitted on a made-up record: parameters decide types, and records are only transformed.

scikit-learn's encoders and imputers keep the type of the array that they are fitted on, and one missing value can
change the type of a whole column. So such a step sees, in ``fit``, one made-up record with the columns of the table and
the types of the step's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from ..data.columns import NUMBERS, is_frame, typed
from .fitted_parts import fitted_parts
from .stateless_steps import learns_nothing

#: Composites and their attributes with steps, before and after ``fit``.
STEPS_OF: dict[type, tuple[str, ...]] = {
    Pipeline: ("steps",),
    FeatureUnion: ("transformer_list",),
    ColumnTransformer: ("transformers", "remainder", "transformers_", "_remainder"),
}
#: Steps whose records are texts or dictionaries; they keep nothing.
WITHOUT_COLUMNS = ("FeatureHasher", "HashingVectorizer")


class FittedByParameters(BaseEstimator):
    """A step that learns nothing, in place of it while a composite is fitted and scored.

    Parameters
    ----------
    step : transformer
        Fitted on one made-up record; the records of ``fit`` are only transformed.
    """

    def __init__(self, step: Any) -> None:
        self.step = step

    def fit(self, X: Any, y: Any = None) -> FittedByParameters:
        self.step.fit(made_up_record(self.step, X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        return self.step.transform(typed(X))

    def __getattr__(self, name: str) -> Any:
        if name == "step" or name.startswith("__"):  # a copy asks before it has a step
            raise AttributeError(name)
        return getattr(self.step, name)

    def __sklearn_tags__(self) -> Any:
        return self.step.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self.step)
        except NotFittedError:
            return False
        return True


def fit_by_parameters(model: Any) -> None:
    """Let all steps that learn nothing, at any depth of a model, be fitted on a made-up record."""
    for part in (model, *model.get_params(deep=True).values()):
        _replace(part, lambda step: FittedByParameters(step) if _of_sklearn(step) else step)


def release_steps(model: Any) -> None:
    """Put the fitted steps themselves into a fitted model."""
    for part in list(fitted_parts(model)):
        _replace(part, lambda step: step.step if type(step) is FittedByParameters else step)


def _of_sklearn(step: Any) -> bool:
    return type(step).__module__.startswith("sklearn.") and learns_nothing(step)


def _replace(composite: Any, new: Callable[[Any], Any]) -> None:
    for name in STEPS_OF.get(type(composite), ()):
        if name in vars(composite):
            setattr(composite, name, _with(vars(composite)[name], new))


def _with(found: Any, new: Callable[[Any], Any]) -> Any:
    """Replace steps in lists of named steps."""
    return type(found)(_with(one, new) for one in found) if type(found) in (list, tuple) else new(found)


# --- the made-up record -----------------------------------------------------------------------------------------------


def made_up_record(step: Any, X: Any) -> Any:
    """One record with the columns of X and their names, of the types that the step's parameters have."""
    shape = tuple(getattr(X, "shape", ()) or np.shape(X[:1]))
    if type(step).__name__ in WITHOUT_COLUMNS or len(shape) < 2:
        return [""]
    if len(shape) > 2:
        return np.ones((1, *shape[1:]))
    values = [dtype.type(1) if dtype.kind in NUMBERS else "" for dtype in _types(step, shape[1])]
    return _table(X, values)


def _types(step: Any, width: int) -> Sequence[np.dtype[Any]]:
    """Types of the columns: of the categories, of the constant, or doubles."""
    if hasattr(step, "categories"):
        given = [np.asarray(values).dtype for values in step.categories]
        return [given[i] if i < len(given) else np.dtype(float) for i in range(width)]
    if hasattr(step, "fill_value"):
        texts = isinstance(step.missing_values, (str, NoneType))
        return [np.dtype(object) if texts else np.asarray(step.fill_value).dtype] * width
    return [np.dtype(float)] * width


def _table(X: Any, values: list[Any]) -> Any:
    """A table of one record, of the kind of X."""
    if is_frame(X):
        import pandas as pd

        kinds = [object if isinstance(value, str) else None for value in values]
        made_up = pd.concat([pd.Series([value], dtype=kind) for value, kind in zip(values, kinds)], axis=1)
        made_up.columns = typed(X[:0]).columns
        return made_up
    texts = any(isinstance(value, str) for value in values)
    return np.array([values], dtype=object if texts else None)
