"""Refusals of estimators, each with the private model to use instead.

Several of them are joined in one error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..privacy import (
    LeakingEstimatorError,
    PrivacyError,
    UnknownGuaranteeError,
    UnknownSensitivityError,
)
from ._adapter import Adapter
from ._sklearn_steps import how_to_learn_nothing

#: Private counterpart ↦ names of scikit-learn's estimators.
_COUNTERPARTS = {
    "DPLogisticRegression(classes=[...]) of sklearn_dpsearch.nets":
    "LogisticRegression LogisticRegressionCV SGDClassifier LinearSVC",
    "DPLinearRegression(bounds_y=(..., ...)) of sklearn_dpsearch.nets":
    "LinearRegression Ridge RidgeCV Lasso ElasticNet SGDRegressor",
    "DPGradientBoostingClassifier(schema, ...) of sklearn_dpsearch.boosting":
    "RandomForestClassifier GradientBoostingClassifier HistGradientBoostingClassifier",
    "DPGradientBoostingRegressor(schema, ...) of sklearn_dpsearch.boosting":
    "RandomForestRegressor GradientBoostingRegressor HistGradientBoostingRegressor",
    "DPMLPClassifier(classes=[...]) of sklearn_dpsearch.nets": "MLPClassifier",
    "DPMLPRegressor(bounds_y=(..., ...)) of sklearn_dpsearch.nets": "MLPRegressor",
    "TableEncoder(schema) of sklearn_dpsearch.preprocessing, which takes bounds and categories "
    "from a public schema":
    "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler QuantileTransformer KBinsDiscretizer "
    "PowerTransformer OneHotEncoder OrdinalEncoder SimpleImputer IterativeImputer KNNImputer",
}  # fmt: skip
#: Names of scikit-learn's estimators ↦ private counterpart.
COUNTERPARTS = {name: private for private, names in _COUNTERPARTS.items() for name in names.split()}

#: Errors that no setting of the search could mend: an estimator or a score has to be replaced.
REFUSALS = (UnknownGuaranteeError, LeakingEstimatorError, UnknownSensitivityError)
#: For other estimators.
ANY_REMEDY = (
    "a private one (sklearn_dpsearch.nets, sklearn_dpsearch.boosting, diffprivlib.models) or one "
    "that learns nothing (TableEncoder of sklearn_dpsearch.preprocessing with a public schema, "
    "FunctionTransformer with public constants)"
)
DECLARATION = (
    "give it a method privacy_guarantee(n_samples), or declare guarantee= for the whole estimator"
)
#: The way out for a table. A test runs it as it stands in the message.
TABLE_SCRIPT = """
For a table, one model with the encoder inside replaces all steps. With your columns, ranges and
values, which must be public knowledge, this is the whole script (docs/learn/from_grid_search.md
explains it):

    from sklearn_dpsearch import DPRandomSearchCV  # from 30,000 records on: DPSubsetSearchCV
    from sklearn_dpsearch.boosting import DPGradientBoostingClassifier

    schema = {"age": (17, 90), "job": ["clerk", "nurse"], "income": ["low", "high"]}
    model = DPGradientBoostingClassifier(schema, target="income")
    search = DPRandomSearchCV(model, "auto", scoring="neg_log_loss", epsilon=1.0, delta=1e-6)
    search.fit(table, table["income"])

DPTabularClassifier of sklearn_dpsearch.nets takes the same place; for numbers, the regressors of
both.
"""


def learning_step_error(name: str, part: Any) -> UnknownGuaranteeError:
    """Error for a step whose training has no guarantee, with what to use instead."""
    kind = type(part).__name__
    settings, private = how_to_learn_nothing(part), COUNTERPARTS.get(kind, ANY_REMEDY)
    use = f"Give it {settings}; or use {private}" if settings else f"Use {private}"
    why = "is not known to learn nothing from the data"
    if type(part).__module__.partition(".")[0] == "sklearn":
        why = "learns from the data without privacy"
    what = f"Step {name!r} ({kind}) {why}. {use}"
    error = UnknownGuaranteeError(f"{what}; or {DECLARATION}.")
    error.listed = (f"{what}.",)
    return error


def error_in_step(name: str, error: PrivacyError) -> PrivacyError:
    """The error of a part, with the name of the part.

    Inner parts are named as their parameters are.
    """

    def named(text: str) -> str:
        for start in ("Step '", "In step '"):
            if text.startswith(start):
                return f"{start}{name}__{text.removeprefix(start)}"
        return f"In step {name!r}: {text}"

    outer = type(error)(named(str(error)))
    outer.listed = tuple(map(named, error.listed))
    return outer


def is_per_record(name: str, value: Any) -> bool:
    """Return whether a parameter of ``fit`` may hold a value for each record.

    Sample weights always may.
    """
    if name.rpartition("__")[2] == "sample_weight":
        return value is not None
    return hasattr(value, "__len__") and not isinstance(value, (str, dict))


def refuse_values_of_records(params: Mapping[str, Any]) -> None:
    """Raise for parameters of ``fit`` with a value for each record."""
    per_record = sorted(name for name, value in params.items() if is_per_record(name, value))
    if per_record:
        raise PrivacyError(
            f"Found {', '.join(per_record)} with one value per record: weights and the like "
            "change how much one record matters, and with it the guarantee. Leave them out, or "
            "declare guarantee= of a search for a fit that uses them (private scores never do). "
            "Weights of whole classes that are public constants are fine: our nets take "
            "class_weight={label: weight}."
        )


def check_all(checks: Iterable[Callable[[], Any]]) -> list[Any]:
    """Call all checks, and return their values; raise one error that lists every refusal.

    Raises
    ------
    PrivacyError
        If one check refuses: its error. If several do: an error of the first one's class, which
        lists them all.
    """
    values, errors = list[Any](), list[PrivacyError]()
    for check in checks:
        try:
            values.append(check())
        except PrivacyError as error:
            errors.append(error)
    refusals = [error for error in errors if isinstance(error, REFUSALS)]
    if len(refusals) > 1:
        raise _several_refusals(refusals) from refusals[0]
    if errors:
        raise (refusals + errors)[0]
    return values


def _several_refusals(refusals: Sequence[PrivacyError]) -> PrivacyError:
    """One error that lists several, with the private script that replaces all of it.

    Its class is that of the first refusal.
    """
    texts = [text for error in refusals for text in error.listed or (str(error),)]
    numbered = "\n".join(f"  {number}. {text}" for number, text in enumerate(texts, 1))
    several = type(refusals[0])(
        f"{len(texts)} things stand in the way of a private search:\n{numbered}\n{TABLE_SCRIPT}For "
        f"another model: {DECLARATION}."
    )
    several.listed = tuple(texts)
    return several


def refuse_steps(adapter: Adapter, estimator: Any) -> None:
    """Raise for all steps of an estimator that are not private.

    Missing noise is no reason, as a search may set it.
    """
    try:
        adapter.training_run(estimator, None)
    except PrivacyError as error:
        if isinstance(error, REFUSALS):
            raise
