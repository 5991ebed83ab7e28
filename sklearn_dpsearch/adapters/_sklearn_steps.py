"""Steps that learn nothing, fitted on a made-up record.

Parameters decide types, and records are only transformed.

scikit-learn's encoders and imputers keep the type of the array that they are fitted on, and one
missing value can change the type of a whole column. So such a step sees, in ``fit``, one made-up
record with the columns of the table and the types of the step's own parameters.
"""

from __future__ import annotations

import itertools
import numbers
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FunctionType, NoneType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from .._process import contained
from ..data._columns import NUMBERS, is_frame, without_records
from ..data._records import number_of_records, read_table
from ..data._rows import rows_at, stacked
from ..privacy import LeakingEstimatorError
from ._seeds import fitted_parts

#: Types of objects without a state that a call could change.
CONSTANTS = (FunctionType, np.ufunc, np.ndarray, numbers.Number, str, bytes, NoneType)
#: Largest whole number up to which double precision has all.
LARGEST_EXACT = 2**53


def is_skipped(part: object) -> bool:
    """Return whether a composite leaves this step out."""
    return part is None or (isinstance(part, str) and part in ("passthrough", "drop"))


def _given_categories(part: Any) -> bool:
    """Categories as a list, and no merging of rare ones.

    One missing value makes doubles of a column, in which whole numbers must stay what they are.
    """
    rare = getattr(part, "min_frequency", None), getattr(part, "max_categories", None)
    if isinstance(part.categories, str) or rare != (None, None):
        return False
    values = itertools.chain.from_iterable(part.categories)
    integers = (int(value) for value in values if isinstance(value, numbers.Integral))
    return all(abs(integer) <= LARGEST_EXACT for integer in integers)


def _has_constant(part: Any) -> bool:
    """A constant for missing values, which decides their type too, and empty columns are kept."""
    has_value = part.strategy == "constant" and part.fill_value is not None
    return bool(has_value and part.keep_empty_features and not part.add_indicator)


def _keeps_no_state(part: Any) -> bool:
    """The functions, and what they are given, hold nothing that a call could change.

    It would be released.
    """
    arguments = (*(part.kw_args or {}).values(), *(part.inv_kw_args or {}).values())
    return all(map(_is_constant, (part.func, part.inverse_func, *arguments)))


def _is_constant(value: Any) -> bool:
    if isinstance(value, partial):
        return all(map(_is_constant, (value.func, *value.args, *value.keywords.values())))
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_constant, value))
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    name = getattr(value, "__name__", "")
    of_a_module = module is not None and getattr(module, name, None) is value
    return of_a_module or isinstance(value, CONSTANTS)


def _always(part: Any) -> bool:
    return True


#: Transformers that treat each record alone and keep no data ↦ condition. By library and exact name
#: of the type, as a subclass may learn. (The tag ``requires_fit`` is no guide:
#: GaussianProcessRegressor has it unset.)
STATELESS_STEPS: dict[tuple[str, str], Callable[[Any], bool]] = {
    ("sklearn", "AdditiveChi2Sampler"): _always,
    ("sklearn", "Binarizer"): _always,
    ("sklearn", "FeatureHasher"): _always,
    ("sklearn", "FunctionTransformer"): _keeps_no_state,
    ("sklearn", "HashingVectorizer"): _always,
    ("sklearn", "Normalizer"): _always,
    ("sklearn", "OneHotEncoder"): _given_categories,
    ("sklearn", "OrdinalEncoder"): _given_categories,
    ("sklearn", "PolynomialFeatures"): _always,
    ("sklearn", "SimpleImputer"): _has_constant,
    ("sklearn_dpsearch", "FittedByParameters"): _always,
    ("sklearn_dpsearch", "TableEncoder"): _always,
}
#: Condition ↦ parameters with which it holds.
SETTINGS: dict[Callable[[Any], bool], str] = {
    _given_categories: "public categories=[[...], ...], numbers only up to 2**53, and neither "
    "min_frequency nor max_categories",
    _keeps_no_state: "a function (no object with a state), and numbers, texts and arrays as its "
    "arguments",
    _has_constant: "strategy='constant', a public fill_value, keep_empty_features=True and "
    "add_indicator=False",
}
#: Assumptions that cannot be checked on a step.
ASSUMPTIONS = {
    "FunctionTransformer": "The function of step {!r} treats each record on its own.",
    "TableEncoder": "The schema of step {!r} was not taken from the records, and the types of its "
    "columns are public.",
}
#: Parameters with which encoders accept undeclared categories.
UNKNOWN_CATEGORIES = {
    "OneHotEncoder": "handle_unknown='ignore'",
    "OrdinalEncoder": "handle_unknown='use_encoded_value' and unknown_value=-1",
}


def _condition(part: Any) -> Callable[[Any], bool] | None:
    return STATELESS_STEPS.get((type(part).__module__.partition(".")[0], type(part).__name__))


def learns_nothing(part: Any) -> bool:
    """Return whether a step learns nothing with its parameters."""
    return (condition := _condition(part)) is not None and condition(part)


def how_to_learn_nothing(part: Any) -> str:
    """Parameters with which a step that learns would learn nothing.

    The text is empty if nothing helps.
    """
    return SETTINGS.get(_condition(part) or _always, "")


def assumption_of(name: str, part: Any) -> tuple[str, ...]:
    """Assumption under which a step of this name learns nothing, if one is needed."""
    return (ASSUMPTIONS[kind].format(name),) if (kind := type(part).__name__) in ASSUMPTIONS else ()


def refuse_unknown_categories(name: str, part: Any) -> None:
    """Raise unless encoders accept undeclared categories.

    One record could fail every candidate, after spending.
    """
    if getattr(part, "handle_unknown", None) == "error":
        kind = type(part).__name__
        raise LeakingEstimatorError(
            f"Step {name!r} ({kind}) has handle_unknown='error': a single record with a category "
            f"that was not declared would make every candidate fail, and show. Give it "
            f"{UNKNOWN_CATEGORIES[kind]}."
        )


#: Composites and their attributes with steps, before and after ``fit``.
STEP_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    Pipeline: ("steps",),
    FeatureUnion: ("transformer_list",),
    ColumnTransformer: ("transformers", "remainder", "transformers_", "_remainder"),
}
#: Steps whose records are texts or dictionaries; they keep nothing.
COLUMNLESS_STEPS = ("FeatureHasher", "HashingVectorizer")


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
        # by its name scikit-learn knows what is fitted
        self.step_ = self.step.fit(made_up_record(self.step, X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        """Transform records in a batch.

        One on which the step fails is blank, and fails no other.
        """
        parts = list(_transformed_parts(self.step.transform, read_table(X)))
        like = next((part[:1] for part in parts if part is not None), None)
        if like is None:
            return self.step.transform(read_table(X))  # its error, as no record can be transformed
        return stacked([0 * like if part is None else part for part in parts])

    def __getattr__(self, name: str) -> Any:
        if name == "step" or name.startswith("__"):  # a copy asks before it has a step
            raise AttributeError(name)
        return getattr(self.step, name)

    def __sklearn_tags__(self) -> Any:
        return self.step.__sklearn_tags__()


def _transformed_parts(transform: Callable[[Any], Any], X: Any) -> Iterator[Any]:
    """Yield records transformed together, or in halves where that fails.

    A single record that fails yields None.
    """
    n, transformed = number_of_records(X), None
    with contained():  # a record may raise what is no ``Exception``
        transformed = transform(X)
    if transformed is not None or n <= 1:
        yield transformed
        return
    for places in (slice(None, n // 2), slice(n // 2, None)):
        yield from _transformed_parts(transform, rows_at(X, places))


def fit_by_parameters(model: Any) -> None:
    """Let all steps that learn nothing, at any depth of a model, be fitted on a made-up record.

    Column transformers join columns densely: by default the number of zeros in all records decides.
    """
    for part in (model, *model.get_params(deep=True).values()):
        _replace(part, _by_parameters)
        if type(part) is ColumnTransformer:
            part.sparse_threshold = 0


def _by_parameters(step: Any) -> Any:
    of_sklearn = type(step).__module__.startswith("sklearn.")
    return FittedByParameters(step) if of_sklearn and learns_nothing(step) else step


def release_steps(model: Any) -> None:
    """Put the fitted steps themselves into a fitted model."""
    for part in list(fitted_parts(model)):
        _replace(part, lambda step: step.step if type(step) is FittedByParameters else step)


def _replace(composite: Any, new: Callable[[Any], Any]) -> None:
    for name in STEP_ATTRIBUTES.get(type(composite), ()):
        if name in vars(composite):
            setattr(composite, name, _with_steps_replaced(vars(composite)[name], new))


def _with_steps_replaced(steps: Any, new: Callable[[Any], Any]) -> Any:
    """Replace steps in lists of named steps."""
    if type(steps) not in (list, tuple):
        return new(steps)
    return type(steps)(_with_steps_replaced(step, new) for step in steps)


# --- the made-up record ---------------------------------------------------------------------------


def made_up_record(step: Any, X: Any) -> Any:
    """One record with X's columns and their names, of the types that the step's parameters have."""
    shape = tuple(getattr(X, "shape", ()) or np.shape(X[:1]))
    if type(step).__name__ in COLUMNLESS_STEPS or len(shape) < 2:
        return [""]
    if len(shape) > 2:
        return np.ones((1, *shape[1:]))
    types = _column_types(step, shape[1])
    return _table_of_one_record(X, [kind.type(1) if kind.kind in NUMBERS else "" for kind in types])


def _column_types(step: Any, width: int) -> Sequence[np.dtype[Any]]:
    """Types of the columns: of the categories, of the constant, or doubles."""
    if hasattr(step, "categories"):
        dtypes = [np.asarray(values).dtype for values in step.categories]
        return [dtypes[i] if i < len(dtypes) else np.dtype(float) for i in range(width)]
    if hasattr(step, "fill_value"):
        texts = isinstance(step.missing_values, (str, NoneType))
        return [np.dtype(object) if texts else np.asarray(step.fill_value).dtype] * width
    return [np.dtype(float)] * width


def _table_of_one_record(X: Any, values: list[Any]) -> Any:
    """A table of one record, of the kind of X."""
    if is_frame(X):
        import pandas as pd

        forms = [object if isinstance(value, str) else None for value in values]
        columns = [pd.Series([value], dtype=form) for value, form in zip(values, forms)]
        return pd.concat(columns, axis=1).set_axis(read_table(without_records(X)).columns, axis=1)
    texts = any(isinstance(value, str) for value in values)
    return np.array([values], dtype=object if texts else None)
