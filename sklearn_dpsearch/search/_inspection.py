"""Intermediate results of a search on public or made-up records, for tests and audits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from ..scoring.validation import Fold
from ._base import BasePrivateSearch
from ._public_work import in_the_open
from ._records import n_records
from ._types import Candidate
from .execution.candidate_utilities import utilities_of
from .execution.job import Job, Split
from .strategies.sample_and_aggregate import SampleAndAggregate


def utilities_in_the_open(
    search: BasePrivateSearch, X: Any, y: Any, folds: Sequence[Fold], candidates: Sequence[Candidate]
) -> list[Fraction]:
    """Compute the exact utilities from which a search would choose, on parts of **public or made-up** records.

    For tests and audits of the effect of one record. Nothing is spent, so private records must not be given.

    Parameters
    ----------
    search : DPGridSearchCV or DPThresholdSearchCV
        A threshold search with ``Doubling``.
    X, y : array-like
        Public or made-up records.
    folds : sequence of (training indices, validation indices)
        One for each part.
    candidates : sequence of dict

    Returns
    -------
    list of Fraction
        One for each candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn_dpsearch import DPGridSearchCV
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> from sklearn_dpsearch.search._inspection import utilities_in_the_open
    >>> search = DPGridSearchCV(DummyClassifier(), {}, n_parts=2, selection_epsilon=1.0, guarantee=PureDP(epsilon=1.0))
    >>> X, y = np.zeros((20, 1)), np.repeat([0, 1], 10)
    >>> folds = [(np.arange(10), np.arange(5)), (np.arange(10, 20), np.arange(5))]
    >>> utilities_in_the_open(search, X, y, folds, [{}])
    [Fraction(1, 2)]
    """
    search._validate_params()
    strategy = search._strategy()
    if not isinstance(strategy, SampleAndAggregate):
        raise TypeError(
            f"Found {type(search).__name__}, which does not choose by utilities on parts of the records. Give a "
            "DPGridSearchCV, or a DPThresholdSearchCV with threshold=Doubling(...)."
        )
    plan = search._plan(strategy, n_records(X), False, search.delta)
    job = Job(recipe=plan.recipe, split=Split(folds=folds), X=X, y=y)
    work = partial(utilities_of, job, candidates, "same", [None] * len(folds))
    return in_the_open(work, [X, y])
