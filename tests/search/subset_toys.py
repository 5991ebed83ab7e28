"""Subset searches over estimators that note which records they were given."""

from __future__ import annotations

import numpy as np

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.scoring import make_private_scorer

from .toys import NoisyCentroids, RandomizedResponse, two_blobs

X, y = two_blobs(400)
IDS = np.column_stack([np.arange(400.0), np.ones(400)])  # the first feature says which record it is
SEEN: list[dict] = []


def hits(y_true, y_pred):
    return (y_true == y_pred).astype(float)


#: Each record's own answer, right or wrong.
HITS = make_private_scorer(hits, lower=0, upper=1, resolution=1)


class Watching(RandomizedResponse):
    """Notes which records each fit was given, and what it was told; promises 1-DP under any
    relation."""

    def __init__(
        self,
        rate=1.0,
        solver="sgd",
        told_n=None,
        neighboring="add_remove",
        warm_start=False,
        epsilon=1.0,
    ):
        self.rate = rate
        self.solver = solver
        self.told_n = told_n
        self.neighboring = neighboring
        self.warm_start = warm_start
        self.epsilon = epsilon

    def extrapolation(self):
        return {"rate": "linear"} if self.solver == "sgd" else {}

    def fit(self, X, y=None):
        self.fits_ = getattr(self, "fits_", 0) + 1 if self.warm_start else 1
        self.classes_, self.answer_ = np.array([0, 1]), 0
        SEEN.append({"records": set(X[:, 0].astype(int)), "fits": self.fits_, **self.get_params()})
        return self


class Told(Watching):
    """Can be told how many records to expect."""

    def expecting(self, n):
        return {"told_n": round(n)}


def rate(estimator, X, y):
    """A public score: the larger the rate, the better."""
    return estimator.rate


def search(estimator=None, space=None, **kwargs):
    estimator = NoisyCentroids(epsilon=1.0) if estimator is None else estimator
    space = {"shrink": [0.0, 0.2, 0.5]} if space is None else space
    return DPSubsetSearchCV(estimator, space, **{"n_iter": 5, "subset_fraction": 0.3, **kwargs})


def watched(estimator=None, space=None, **kwargs):
    """Fit on the numbered records, scored in public; the runs on the subset and the final one."""
    space = {"rate": [0.5, 1.0, 2.0]} if space is None else space
    one = search(
        Watching() if estimator is None else estimator, space, **{"scoring": rate, **kwargs}
    )
    one.fit(IDS, y, X_public=IDS[:5].copy(), y_public=y[:5].copy())
    return one, SEEN[:-1], SEEN[-1]
