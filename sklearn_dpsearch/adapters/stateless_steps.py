"""Steps of pipelines that learn nothing from the data, and are free."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Container
from typing import Any

from ..privacy import LeakingEstimatorError

#: Largest whole number up to which double precision has all.
EXACT = 2**53


def is_skipped(part: object) -> bool:
    """Return whether a composite leaves this step out."""
    return part is None or (isinstance(part, str) and part in ("passthrough", "drop"))


def _always(part: Any) -> bool:
    return True


def _given_categories(part: Any) -> bool:
    """Categories as a list, and no merging of rare ones."""
    rare = getattr(part, "min_frequency", None), getattr(part, "max_categories", None)
    return not isinstance(part.categories, str) and rare == (None, None) and _stay_in_doubles(part.categories)


def _stay_in_doubles(categories: Any) -> bool:
    """Return whether whole numbers stay what they are where one missing value makes doubles of a column."""
    values = itertools.chain.from_iterable(categories)
    return all(abs(int(value)) <= EXACT for value in values if isinstance(value, numbers.Integral))


def _constant(part: Any) -> bool:
    """A constant for missing values, which decides their type too, and empty columns are kept."""
    given = part.strategy == "constant" and part.fill_value is not None
    return bool(given and part.keep_empty_features and not part.add_indicator)


#: Transformers of scikit-learn that treat each record alone and keep no data ↦ condition.
#: (The tag ``requires_fit`` is no guide: GaussianProcessRegressor has it unset.)
LEARN_NOTHING: dict[str, Callable[[Any], bool]] = {
    "AdditiveChi2Sampler": _always,
    "Binarizer": _always,
    "FeatureHasher": _always,
    "FunctionTransformer": _always,
    "HashingVectorizer": _always,
    "Normalizer": _always,
    "OneHotEncoder": _given_categories,
    "OrdinalEncoder": _given_categories,
    "PolynomialFeatures": _always,
    "SimpleImputer": _constant,
}

_CATEGORIES = "public categories=[[...], ...], numbers only up to 2**53, and neither min_frequency nor max_categories"
#: Settings with which transformers that may learn from the data learn nothing.
HOW_NOTHING_IS_LEARNED: dict[str, str] = {
    "OneHotEncoder": _CATEGORIES,
    "OrdinalEncoder": _CATEGORIES,
    "SimpleImputer": "strategy='constant', a public fill_value, keep_empty_features=True and add_indicator=False",
}


#: Steps of this library that learn nothing, by exact type: a subclass may learn.
OWN_THAT_LEARN_NOTHING = {
    ("sklearn_dpsearch.preprocessing.table_encoder", "TableEncoder"),
    ("sklearn_dpsearch.adapters.steps_by_parameters", "FittedByParameters"),
}

#: Assumptions that cannot be checked on a step.
ASSUMED = {
    "FunctionTransformer": "The function of step {!r} treats each record on its own.",
    "TableEncoder": "The schema of step {!r} was not taken from the records, and the types of its columns are public.",
}

#: Settings with which encoders accept undeclared categories.
HOW_UNKNOWN_IS_ENCODED: dict[str, str] = {
    "OneHotEncoder": "handle_unknown='ignore'",
    "OrdinalEncoder": "handle_unknown='use_encoded_value' and unknown_value=-1",
}


def learns_nothing(part: Any) -> bool:
    """Return whether a step learns nothing: its exact type is in one of the tables above."""
    if (type(part).__module__, type(part).__name__) in OWN_THAT_LEARN_NOTHING:
        return True
    return _of_sklearn(part, LEARN_NOTHING) and LEARN_NOTHING[type(part).__name__](part)


def what_is_assumed(name: str, part: Any) -> str | None:
    """Assumption under which a step of this name learns nothing; None if no assumption is needed."""
    return next((text.format(name) for kind, text in ASSUMED.items() if type(part).__name__ == kind), None)


def refuse_unknown_categories(name: str, part: Any) -> None:
    """Raise unless encoders accept undeclared categories: one record could fail every candidate, after spending."""
    if getattr(part, "handle_unknown", None) == "error":
        kind = type(part).__name__
        raise LeakingEstimatorError(
            f"Step {name!r} ({kind}) has handle_unknown='error': a single record with a category that was not declared "
            f"would make every candidate fail, and show. Give it {HOW_UNKNOWN_IS_ENCODED[kind]}."
        )


def how_to_learn_nothing(part: object) -> str:
    """Settings with which a step that learns would learn nothing; an empty text if nothing helps."""
    return HOW_NOTHING_IS_LEARNED[type(part).__name__] if _of_sklearn(part, HOW_NOTHING_IS_LEARNED) else ""


def _of_sklearn(part: object, names: Container[str]) -> bool:
    return type(part).__module__.startswith("sklearn.") and type(part).__name__ in names
