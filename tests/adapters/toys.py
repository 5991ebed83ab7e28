"""A private transformer, pipelines with it, and how promises and refusals are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from sklearn_dpsearch.adapters import training_run
from sklearn_dpsearch.privacy import PureDP

from ..search.toys import NoisyCentroids


class NoisyShift(TransformerMixin, BaseEstimator):
    """Subtracts a noisy mean of records clipped to [-1, 1]; its exact mean is what scrubbing must
    take away."""

    def __init__(self, epsilon=1.0, neighboring="replace_one", random_state=None):
        self.epsilon = epsilon
        self.neighboring = neighboring
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=self.epsilon, neighboring=self.neighboring)

    def fit(self, X, y=None):
        rng = check_random_state(self.random_state)
        scale = 2 * X.shape[1] / (len(X) * self.epsilon)
        self.mean_ = np.clip(X, -1, 1).mean(axis=0) + rng.laplace(scale=scale, size=X.shape[1])
        return self

    def transform(self, X):
        return X - self.mean_


def chain(**kwargs):
    """A transformer with ε = 1/4 and a classifier with ε = 1/2."""
    return Pipeline([("shift", NoisyShift(0.25)), ("model", NoisyCentroids(epsilon=0.5))], **kwargs)


def promise(estimator, **kwargs):
    """What one fit promises."""
    return training_run(estimator, **kwargs).guarantee


def refused(kind, estimator, *words):
    """No promise is made, and the error says all of these words."""
    with pytest.raises(kind) as caught:
        training_run(estimator)
    for word in words:
        assert word in str(caught.value)
