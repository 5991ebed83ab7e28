"""Estimators, scorers and neighbouring data for searches over utilities on random parts."""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.search._execution.job import Split
from sklearn_dpsearch.search._private_fit import job_of
from sklearn_dpsearch.search._rehearsal import run_publicly
from sklearn_dpsearch.search._sample_and_aggregate import utilities_of

from .toys import RandomizedResponse

RELATIONS = ("add_remove", "zero_out", "replace_one")


class Adversary(ClassifierMixin, BaseEstimator):
    """Trains to whatever its records hash to; some trainings and some scores fail. Its promise is
    made up."""

    def __init__(
        self, epsilon=1.0, label=0, neighboring="replace_one", fails=0.2, random_state=None
    ):
        self.epsilon = epsilon
        self.label = label
        self.neighboring = neighboring
        self.fails = fails
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=self.epsilon, neighboring=self.neighboring)

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.n_features_in_ = np.array([0, 1]), X.shape[1]
        self.drawn_ = np.random.default_rng(hashed(self.label, X, y)).uniform()
        self.weights_ = sample_weight
        if self.drawn_ < self.fails:
            raise RuntimeError(f"the records are {X}")
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def hashed(*values):
    text = b"".join(np.ascontiguousarray(one).tobytes() for one in values)
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def wild(estimator, X, y):
    """Scores that are anything, in and out of [0, 1]."""
    rng = np.random.default_rng(hashed(X, y, estimator.drawn_))
    kind = rng.integers(6)
    if kind == 5:
        raise RuntimeError(f"the records are {X}")
    return [rng.uniform(), -5.0, 7.0, np.nan, np.inf][kind]


def loudest(estimator, X, y):
    """All or nothing: whether a part's hash is even."""
    return float(hashed(estimator.drawn_, X, y) % 2)


def neighbours(rng, n=40, relation="replace_one"):
    """Two neighbouring data sets, and for both the numbers of their records in a common count."""
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    changed = int(rng.integers(n))
    if relation == "replace_one":
        other = X.copy()
        other[changed] = rng.normal(size=2)
        labels = y.copy()
        labels[changed] = 1 - y[changed]
        return (X, y, np.arange(n)), (other, labels, np.arange(n))
    kept = np.delete(np.arange(n), changed)
    return (X, y, np.arange(n)), (X[kept], y[kept], kept)


def folds_of(drawn, present, k, public=False):
    """Parts of the present records, each of which keeps the place that it drew."""
    part, validates = drawn[present] // 4, (drawn[present] % 4 == 0) & (not public)
    return [
        (np.flatnonzero((part == j) & ~validates), np.flatnonzero((part == j) & validates))
        for j in range(k)
    ]


def everything_everywhere(n, n_parts, public, random_bytes):
    """The broken build: every model trains on all records."""
    return [(np.arange(n), np.arange(n))] * n_parts


def by_label(estimator, X, y):
    return [0.2, 0.5, 0.9][estimator.label]


QUIET = np.full((40, 1), -1.0)  # no record with a positive first feature
LOUD = np.vstack([QUIET[1:], [[1.0]]])
LABELS = np.zeros(40, dtype=int)


class Seeing(RandomizedResponse):
    """On parts it tells everything it saw, for the audit to find; what is audited is the private
    answer."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.seen_ = int(np.any(np.asarray(X)[:, 0] > 0))
        return self


def seen(estimator, X, y):
    return float(estimator.seen_ == estimator.label)


def utilities_in_the_open(search, X, y, folds, candidates):
    """The exact utilities from which a search would choose, on parts of made-up records."""
    search._validate_params()
    plan = search._strategy().plan(len(X), False, search.delta)
    job = job_of(plan, Split(folds=folds), X, y, {})
    return run_publicly(partial(utilities_of, job, candidates, "same", [None] * len(folds)), [X, y])
