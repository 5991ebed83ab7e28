"""A search over an estimator that is defined in a script, in workers of joblib: run by ``test_tasks.py``."""

import sys

import numpy as np
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed, PureDP


class Mine(ClassifierMixin, BaseEstimator):
    """Predicts zeros."""

    def __init__(self, a=1.0):
        self.a = a

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=1.0, neighboring="replace_one")

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(50, 2))
    with parallel_config(backend=sys.argv[1]):
        search = DPRandomSearchCV(Mine(), {"a": [1.0]}, n_iter=Fixed(4), n_jobs=2).fit(X, (X[:, 0] > 0).astype(int))
    print(search.best_estimator_)
