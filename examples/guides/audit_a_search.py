"""Audit a search
==============

Two searches are audited: the usual one, which reports the ε of one run, and a private one.

A private mean with ε = 1 is trained twenty times, and the one that fits best is kept. Both searches
are fitted a few hundred times on two data sets that differ in one record. The usual one is refuted:
it releases nearly the exact mean.
"""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.audit import audit
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.scoring import make_private_scorer


class PrivateMean(RegressorMixin, BaseEstimator):
    """The mean of targets in [0, 1] with Laplace noise: ε-DP under replace-one neighbours."""

    def __init__(self, epsilon=1.0, candidate=0, random_state=None):
        self.epsilon = epsilon
        self.candidate = candidate  # stands for the hyperparameters
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=self.epsilon, neighboring="replace_one")

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self.mean_ = np.clip(y, 0, 1).mean() + rng.laplace(scale=1 / (self.epsilon * len(y)))
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class UsualSearch(BaseEstimator):
    """Twenty private runs, the best by its exact score on the records, and the ε of one run."""

    def privacy_guarantee(self, n_samples=None):
        return PrivateMean().privacy_guarantee()

    def fit(self, X, y):
        runs = [PrivateMean(candidate=i).fit(X, y) for i in range(20)]
        self.best_estimator_ = min(runs, key=lambda model: np.mean((y - model.predict(X)) ** 2))
        return self


def distance(y_true, y_pred):
    return np.abs(y_true - y_pred)


# %%
# Two data sets that differ in one record, and what an attacker certainly learns from each search.
rng = np.random.default_rng(0)
X, y = np.zeros((30, 1)), rng.uniform(size=30)
changed = y.copy()
y[0], changed[0] = 0.0, 1.0

private = DPRandomSearchCV(
    PrivateMean(),
    {"candidate": list(range(20))},
    n_iter=20,
    scoring=make_private_scorer(distance, lower=0, upper=1, greater_is_better=False),
)
for name, search, n_runs in (
    ("the usual search", UsualSearch(), 500),
    ("DPRandomSearchCV", private, 100),
):
    result = audit(
        search,
        X,
        y,
        other=(X, changed),
        n_runs=n_runs,
        statistic=lambda model: model.best_estimator_.mean_,
    )
    print(f"{name}\n{result}\n")
    assert result.consistent == (search is private)
