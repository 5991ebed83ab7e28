"""Persons in searches: they draw coins, all records of those that train are used, and one of each
that validates."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..data.persons import PersonCodes, number_of_persons, one_of_each
from ..privacy import PrivacyError
from ..privacy.mechanisms.array_sampling import RandomBytes
from ..scoring.validation import Indices, numbers_where
from ._records import takes_groups
from ._strategy import Strategy
from .execution.job import Split


def name_of_groups(strategy: Strategy) -> str:
    """Name of the parameter by which the ``fit`` of all candidates takes persons.

    Raises
    ------
    PrivacyError
        For candidates whose guarantee is for single records, and for folds by record number.
    """
    search, names = strategy.search, {_name_in(kind) for kind in strategy.kinds}
    name = names.pop() if search.guarantee is None and len(names) == 1 else None
    if name is None:
        raise PrivacyError(
            f"Found groups in fit, and {type(search.estimator).__name__}, whose guarantee is for "
            "single records; boosting, or a net for tables (DPTabular..., DPMLP..., "
            "DPLogisticRegression), is needed for persons with several. Keep one record of each "
            "person, or leave groups out and read privacy_spent_.for_group(k), where no person has "
            "more than k records. If groups stand for something else, and are public, so that "
            "folds may follow them, DPRandomSearchCV takes cv=list(GroupKFold(5).split(X, "
            "groups=groups)). Nothing was spent."
        )
    if not isinstance(cv := getattr(search, "cv", None), numbers.Real | None):
        raise PrivacyError(
            f"Found groups in fit, and cv={cv!r}; None, a fraction or a number of folds is needed, "
            "as each person has one coin for all of his records. Write e.g. cv=0.2 or cv=5. "
            "Nothing was spent."
        )
    return name


def _name_in(estimator: Any) -> str | None:
    if type(estimator) is Pipeline:
        last, step = estimator.steps[-1]
        inner = _name_in(step)
        return None if inner is None else f"{last}__{inner}"
    return "groups" if takes_groups(estimator) else None


def in_records(split: Split, persons: PersonCodes, random_bytes: RandomBytes) -> Split:
    """Roles of records, from those of persons.

    Parameters
    ----------
    split : Split
        With numbers of persons.
    persons : ndarray of shape (n_samples,)
        Person of each record.
    random_bytes : callable
        Secret randomness.
    """
    every, representatives = np.arange(len(persons)), one_of_each(persons, random_bytes)

    def records_of(chosen: Indices, among: Indices = every) -> Indices:
        is_chosen = np.zeros(number_of_persons(persons), np.bool_)
        is_chosen[chosen] = True
        records: Indices = among[numbers_where(is_chosen[persons[among]])]
        return records

    folds = [(records_of(train), records_of(test, representatives)) for train, test in split.folds]
    final = split.final and replace(split.final, records=records_of(split.final.records))
    return replace(split, folds=folds, final=final, n_trained=len(split.folds[0][0]))
