"""Estimators that state their own guarantee, or an event of dp_accounting; and guarantees on the
caller's word."""

from __future__ import annotations

import dp_accounting as dp
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters import TrainingRun, adapter_for, training_run
from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    ApproxDP,
    GaussianDP,
    PrivacyError,
    PureDP,
    UnknownGuaranteeError,
)

from ..search.toys import NoisyCentroids, RandomizedResponse
from .toys import chain, promise, refused

ZERO_OUT = dp.NeighboringRelation.REPLACE_SPECIAL


# --- a guarantee of its own -----------------------------------------------------------------------


def test_an_estimator_may_state_its_own_guarantee():
    run = training_run(RandomizedResponse(epsilon=0.5, neighboring="zero_out"))
    assert isinstance(run, TrainingRun)
    assert run.guarantee == PureDP(epsilon=0.5, neighboring="zero_out")
    assert "RandomizedResponse states its own guarantee" in run.assumptions[0]


def test_the_number_of_records_is_passed_on():
    class Sized(NoisyCentroids):
        def privacy_guarantee(self, n_samples=None):
            return PureDP(epsilon=1 / n_samples)

    assert promise(Sized(), n_samples=10).epsilon == 0.1


def test_a_stated_guarantee_must_be_one():
    class Vague(NoisyCentroids):
        def privacy_guarantee(self, n_samples=None):
            return 1.0

    message = "Vague.privacy_guarantee returned float"
    refused(UnknownGuaranteeError, Vague(), message, "PureDP(epsilon=1.0)")


def test_epsilon_is_scaled_and_a_noise_multiplier_divided():
    class Noisy(NoisyCentroids):
        def __init__(self, noise_multiplier=2.0):
            self.noise_multiplier = noise_multiplier

        def privacy_guarantee(self, n_samples=None):
            return ZCDP(rho=0.5 / self.noise_multiplier**2)

    assert adapter_for(NoisyCentroids(epsilon=0.5)).scaled_privacy(
        NoisyCentroids(epsilon=0.5), 4.0
    ) == {"epsilon": 2.0}
    assert adapter_for(Noisy()).scaled_privacy(Noisy(), 4.0) == {"noise_multiplier": 0.5}


def test_without_a_noise_parameter_there_is_no_calibration():
    class Fixed(NoisyCentroids):
        def __init__(self):
            pass

        def privacy_guarantee(self, n_samples=None):
            return PureDP(epsilon=1.0, neighboring="replace_one")

    with pytest.raises(PrivacyError, match="no numeric parameter epsilon or noise_multiplier"):
        DPRandomSearchCV(Fixed(), {}, epsilon=1.0).privacy_cost(10)


# --- an event, as JAX Privacy's plans have --------------------------------------------------------


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


@pytest.mark.parametrize(
    "relation", [None, "zero_out", dp.NeighboringRelation.REPLACE_ONE], ids=repr
)
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


# --- the caller's word ----------------------------------------------------------------------------


def test_a_declaration_comes_before_what_is_known():
    assert promise(NoisyCentroids(epsilon=9.0), declared=PureDP(epsilon=1.0)) == PureDP(epsilon=1.0)


def test_a_declaration_is_marked_as_unchecked():
    run = training_run(RandomForestClassifier(), declared=ApproxDP(epsilon=1.0, delta=1e-6))
    assert "RandomForestClassifier" in run.assumptions[0]
    assert "not checked" in run.assumptions[0]


def test_a_declared_callable_sees_the_parameters_and_the_number_of_records():
    def declared(estimator, n_samples):
        return PureDP(epsilon=estimator.C / n_samples)

    expected = PureDP(epsilon=0.5)
    assert promise(LogisticRegression(C=5.0), n_samples=10, declared=declared) == expected


def test_a_declared_callable_must_return_a_guarantee():
    with pytest.raises(UnknownGuaranteeError, match="guarantee gave 1.0"):
        training_run(LogisticRegression(), declared=lambda estimator, n_samples: 1.0)


def test_a_fixed_declaration_cannot_be_calibrated():
    search = DPRandomSearchCV(NoisyCentroids(), {}, epsilon=1.0, guarantee=PureDP(epsilon=1.0))
    with pytest.raises(PrivacyError, match="cannot be calibrated"):
        search.privacy_cost(10)


def test_a_declared_callable_can_be_calibrated():
    options = {"epsilon": 2.0, "guarantee": lambda model, n: PureDP(epsilon=2 * model.epsilon)}
    search = DPRandomSearchCV(NoisyCentroids(), {}, n_iter=3, **options)
    assert 1.99 < search.privacy_cost(10).epsilon <= 2.0


def test_a_fixed_declaration_depends_on_no_parameter_and_a_callable_on_all():
    assert adapter_for(chain(), PureDP(epsilon=1.0)).privacy_parameters(chain()) == ()
    actual = adapter_for(chain(), lambda model, n: PureDP(epsilon=1.0)).privacy_parameters(chain())
    assert actual is None
