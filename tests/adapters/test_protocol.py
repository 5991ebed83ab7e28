"""Estimators that state their own guarantee."""

from __future__ import annotations

import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters import TrainingRun, adapter_for, training_run
from sklearn_dpsearch.privacy import (
    ZCDP,
    PrivacyError,
    PureDP,
    UnknownGuaranteeError,
)

from ..search.toys import NoisyCentroids, RandomizedResponse
from .toys import promise, refused


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

    refused(UnknownGuaranteeError, Vague(), "Vague.privacy_guarantee returned float", "PureDP(epsilon=1.0)")


def test_epsilon_is_scaled_and_a_noise_multiplier_divided():
    class Noisy(NoisyCentroids):
        def __init__(self, noise_multiplier=2.0):
            self.noise_multiplier = noise_multiplier

        def privacy_guarantee(self, n_samples=None):
            return ZCDP(rho=0.5 / self.noise_multiplier**2)

    assert adapter_for(NoisyCentroids(epsilon=0.5)).scaled_privacy(NoisyCentroids(epsilon=0.5), 4.0) == {"epsilon": 2.0}
    assert adapter_for(Noisy()).scaled_privacy(Noisy(), 4.0) == {"noise_multiplier": 0.5}


def test_without_a_noise_parameter_there_is_no_calibration():
    class Fixed(NoisyCentroids):
        def __init__(self):
            pass

        def privacy_guarantee(self, n_samples=None):
            return PureDP(epsilon=1.0, neighboring="replace_one")

    with pytest.raises(PrivacyError, match="no numeric parameter epsilon or noise_multiplier"):
        DPRandomSearchCV(Fixed(), {}, epsilon=1.0).privacy_cost(10)
