"""Keywords of scikit-learn's searches that are refused or differ here: why, and the remedy.

A message names keywords and metrics and quotes nothing else: a value given by mistake may be a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer_names

from ...adapters import adapter_for
from ...adapters.refusals import REFUSALS, as_list, refuse_steps, together
from ...errors import did_you_mean
from ...privacy import PrivacyError
from ...scoring import get_private_scorer

#: Keyword of a constructor ↦ why it is missing here, and the remedy. Looked up only where a search lacks the keyword.
NOT_TAKEN: dict[str, str] = {
    "return_train_score": "scores on training records tell most about single records, each would have to be paid for, "
    "and the choice uses none. Leave it out: candidates are scored on records that did not train them.",
    "cv": "candidates are trained and scored on random parts of the records, which take the place of folds. Leave it "
    "out, or give the number of parts: n_parts=20.",
    "refit": "one private training always follows the choice, and the total covers it. Leave it out; DPRandomSearchCV "
    "can do without, or release the winning run's own model for nothing.",
    "n_iter": "every candidate is tried, and their number does not change the cost. Leave it out; DPRandomSearchCV and "
    "DPSubsetSearchCV draw candidates.",
    "param_grid": "candidates are drawn, from lists or distributions. Write param_distributions=...; DPGridSearchCV "
    "tries every point of a param_grid.",
    "param_distributions": "every candidate is tried, so lists of values are needed. Write param_grid=...; "
    "DPRandomSearchCV and DPSubsetSearchCV draw from param_distributions.",
}

#: Parameter of ``fit`` ↦ why it is refused, and the remedy; even where the estimator's ``fit`` takes it.
NOT_FITTED: dict[str, str] = {
    "groups": "which record is in which group is a part of the records, and folds may not depend on them. A guarantee "
    "for single records also says little about a whole group: if a person has several records, keep one. Leave groups "
    "out. If they are public, and so is the number of records (neighbours: replace_one, zero_out), DPRandomSearchCV "
    "takes cv=list(GroupKFold(5).split(X, groups=groups)).",
}


def check_keywords(kind: type, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise for keywords that a search's constructor does not take, with all that ``fit`` would refuse, at once."""
    parameters = signature(kind.__init__).parameters  # type: ignore[misc]
    known, open_ended = list(parameters)[1:], any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    wrong = [name for name in named if name not in known]
    if not wrong or open_ended:
        return
    told = [_told(kind, name) for name in wrong if name in NOT_TAKEN]
    strange = [name for name in wrong if name not in NOT_TAKEN]
    if strange:
        told.append(
            f"{kind.__name__} got an unexpected keyword argument {', '.join(map(repr, strange))}. Its parameters are "
            f"{', '.join(known)}." + did_you_mean(strange[0], known)
        )
    refused = _refused_by_fit({**dict(zip(known, positional)), **named})
    raise TypeError(as_list([*told, *refused]) if refused else " ".join(told))


def _refused_by_fit(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Refusals of the estimator and of the score that ``fit`` would raise next."""
    estimator: Any = given.get("estimator")
    scoring = given.get("scoring")
    checks: list[Callable[[], Any]] = [lambda: refuse_steps(adapter_for(estimator), estimator)]
    if isinstance(scoring, str) and scoring in get_scorer_names():
        checks.append(lambda: get_private_scorer(scoring, estimator))
    if not isinstance(estimator, BaseEstimator) or given.get("guarantee") is not None:
        return ()
    try:
        together(checks)
    except REFUSALS as error:
        return error.listed or (str(error),)
    except Exception:  # an estimator with faults of another kind, which ``fit`` reports
        return ()
    return ()


def check_names(kind: type, names: Mapping[str, Any]) -> None:
    """Raise for parameters to be set that scikit-learn's searches have and this one does not."""
    known = signature(kind.__init__).parameters  # type: ignore[misc]
    told = [_told(kind, name) for name in names if name in NOT_TAKEN and name not in known]
    if told:
        raise ValueError(" ".join(told))


def _told(kind: type, name: str) -> str:
    return f"Found {name} for {kind.__name__}, which has none: {NOT_TAKEN[name]}"


#: Most parameters of an estimator that a message lists, and most that it proposes.
LISTED, PROPOSED = 20, 5


def unknown_parameter(name: str, estimator: Any) -> str:
    """Message for a parameter that an estimator does not have, with the most similar names, or those of its step."""
    known = sorted(estimator.get_params(deep=True))
    message = f"Invalid parameter {name!r} for estimator {type(estimator).__name__}."
    if near := _nearest(name, known):
        return f"{message} Did you mean {' or '.join(map(repr, near))}?"
    for valid in (_of_step(name, known), known):
        if 0 < len(valid) <= LISTED:
            return f"{message} Valid parameters are: {', '.join(valid)}."
    return f"{message} estimator.get_params() lists the valid ones."


def _of_step(name: str, known: list[str]) -> list[str]:
    """Parameters of the step that a name begins with."""
    step = name.rpartition("__")[0]
    return [other for other in known if step and other.rpartition("__")[0] == step]


def _nearest(name: str, known: list[str]) -> list[str]:
    """Most similar names, of the same step if possible."""
    last = name.rpartition("__")[2]
    similarities = {other: _similarity(last, other.rpartition("__")[2]) for other in _of_step(name, known) or known}
    least = 1.0 if 1.0 in similarities.values() else 0.6
    likely = [other for other, similarity in similarities.items() if similarity >= least]
    return sorted(likely, key=lambda other: (-similarities[other], other))[:PROPOSED]


def _similarity(name: str, other: str) -> float:
    """Similarity from 0 to 1: initials (``lr`` of ``learning_rate``) and parts of a name count as similar."""
    if name != other and name.casefold() == other.casefold():
        return 0.95
    initials = "".join(word[0] for word in other.split("_") if word.isalpha())
    if len(name) > 1 and initials.startswith(name):
        return 0.9
    if name == other:
        return 1.0
    if min(len(name), len(other)) > 3 and (name in other or other in name):
        return 0.8
    return SequenceMatcher(None, name, other).ratio()


def known_to_fit(given: Mapping[str, Any]) -> dict[str, Any]:
    """Drop parameters of ``fit`` that no private search can use; raise unless they are None."""
    for name in NOT_FITTED:
        if given.get(name) is not None:
            raise PrivacyError(f"Found {name} in fit: {NOT_FITTED[name]} Nothing was spent.")
    return {name: value for name, value in given.items() if name not in NOT_FITTED}


def is_per_record(name: str, value: Any) -> bool:
    """Return whether a parameter of ``fit`` may hold a value for each record; sample weights always may."""
    if name.rpartition("__")[2] == "sample_weight":
        return value is not None
    return hasattr(value, "__len__") and not isinstance(value, (str, dict))


def check_one_metric(given: Mapping[str, Any]) -> None:
    """Raise for several metrics: a private search has one."""
    scoring = given["scoring"]
    if isinstance(scoring, (list, tuple, set, frozenset, dict)):
        names = ", ".join(str(name) for name in scoring if isinstance(name, str))
        first = next((name for name in _metrics_in(scoring) if isinstance(name, str)), "accuracy")
        raise ValueError(
            f"Found several metrics in scoring ({names}); one is needed: the choice uses one, and every other score on "
            f"private records would have to be paid for. Write scoring={first!r}, and ask the released model for the "
            "others on test data, e.g. f1_score(y_test, search.predict(X_test))."
        )


def _metrics_in(scoring: Any) -> Any:
    return scoring.values() if isinstance(scoring, dict) else scoring


def check_refit(given: Mapping[str, Any]) -> None:
    """Raise for a metric's name or a callable as ``refit``, which scikit-learn takes."""
    refit = given.get("refit")
    if callable(refit):
        raise PrivacyError(
            "Found refit as a function, which would choose by the scores of all candidates: they never leave fit. "
            "Leave refit='winner' for the best by scoring. To choose by a rule of your own, use "
            "DPRandomSearchCV(release='all', refit=False), which releases every score and is charged for it, and read "
            "cv_results_."
        )
    if isinstance(refit, str) and refit in get_scorer_names():
        raise ValueError(
            f"Found refit={refit!r}; 'winner', True or False is needed. The name of a metric chooses among several, "
            f"and there is one: scoring. Write scoring=..., refit='winner' (free) or refit=True (one more training, "
            f"which is paid for)."
        )
