"""Estimators that state an event of dp_accounting, as JAX Privacy's plans do."""

from __future__ import annotations

import dp_accounting as dp
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_dpsearch.privacy import DPSGD, GaussianDP, PureDP, UnknownGuaranteeError

from .toys import promise, refused

ZERO_OUT = dp.NeighboringRelation.REPLACE_SPECIAL


class NoisyMeans(ClassifierMixin, BaseEstimator):
    """Nearest of two noisy sums of records in the unit cube; an event as a property."""

    neighboring_relation = ZERO_OUT

    def __init__(self, noise_multiplier=1.0, shrink=0.0):
        self.noise_multiplier = noise_multiplier
        self.shrink = shrink

    @property
    def dp_event(self):
        return dp.GaussianDpEvent(self.noise_multiplier)

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        reach = np.sqrt(X.shape[1])
        noise = np.random.default_rng().normal(0.0, reach * self.noise_multiplier, (2, X.shape[1]))
        sums = [np.clip(X[y == label], 0, 1).sum(axis=0) for label in self.classes_]
        self.means_ = (1.0 - self.shrink) * (np.array(sums) + noise) / len(X)
        return self

    def predict(self, X):
        return np.argmin(((X[:, None] - 2 * self.means_) ** 2).sum(axis=2), axis=1)


class ByMethod(NoisyMeans):
    neighboring_relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE

    def dp_event(self):
        step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(self.noise_multiplier))
        return dp.SelfComposedDpEvent(step, 100)


def test_an_event_is_read_under_its_relation():
    assert promise(NoisyMeans(2.0)) == GaussianDP(mu=0.5, neighboring="zero_out")
    assert promise(ByMethod(2.0)) == DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=100)


@pytest.mark.parametrize("relation", [None, "zero_out", dp.NeighboringRelation.REPLACE_ONE], ids=repr)
def test_another_relation_is_refused(relation):
    class Other(NoisyMeans):
        neighboring_relation = relation

    refused(UnknownGuaranteeError, Other(), "neighboring_relation", "REPLACE_SPECIAL")


@pytest.mark.parametrize("event", [None, "gaussian", dp.UnsupportedDpEvent()], ids=repr)
def test_an_event_that_is_not_known_is_refused(event):
    class Other(NoisyMeans):
        dp_event = event

    refused(UnknownGuaranteeError, Other(), "event of kind")


def test_a_guarantee_of_its_own_comes_first():
    class Both(NoisyMeans):
        def privacy_guarantee(self, n_samples=None):
            return PureDP(epsilon=0.5)

    assert promise(Both()) == PureDP(epsilon=0.5)


def test_an_event_on_a_subclass_of_ours_counts_only_if_it_is_its_own():
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPLogisticRegression

    class Changed(DPLogisticRegression):
        dp_event, neighboring_relation = dp.GaussianDpEvent(10.0), ZERO_OUT

    assert promise(Changed(classes=[0, 1])) == GaussianDP(mu=0.1, neighboring="zero_out")
