"""Guarantees on the caller's word."""

from __future__ import annotations

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters import adapter_for, training_run
from sklearn_dpsearch.privacy import (
    ApproxDP,
    PrivacyError,
    PureDP,
    UnknownGuaranteeError,
)

from ..search.toys import NoisyCentroids
from .toys import chain, promise


def test_a_declaration_comes_before_what_is_known():
    assert promise(NoisyCentroids(epsilon=9.0), declared=PureDP(epsilon=1.0)) == PureDP(epsilon=1.0)


def test_a_declaration_is_marked_as_unchecked():
    run = training_run(RandomForestClassifier(), declared=ApproxDP(epsilon=1.0, delta=1e-6))
    assert "RandomForestClassifier" in run.assumptions[0]
    assert "not checked" in run.assumptions[0]


def test_a_declared_callable_sees_the_parameters_and_the_number_of_records():
    def declared(estimator, n_samples):
        return PureDP(epsilon=estimator.C / n_samples)

    assert promise(LogisticRegression(C=5.0), n_samples=10, declared=declared) == PureDP(epsilon=0.5)


def test_a_declared_callable_must_return_a_guarantee():
    with pytest.raises(UnknownGuaranteeError, match="guarantee gave 1.0"):
        training_run(LogisticRegression(), declared=lambda estimator, n_samples: 1.0)


def test_a_fixed_declaration_cannot_be_calibrated():
    search = DPRandomSearchCV(NoisyCentroids(), {}, epsilon=1.0, guarantee=PureDP(epsilon=1.0))
    with pytest.raises(PrivacyError, match="cannot be calibrated"):
        search.privacy_cost(10)


def test_a_declared_callable_can_be_calibrated():
    search = DPRandomSearchCV(
        NoisyCentroids(), {}, n_iter=3, epsilon=2.0, guarantee=lambda model, n: PureDP(epsilon=2 * model.epsilon)
    )
    assert 1.99 < search.privacy_cost(10).epsilon <= 2.0


def test_a_fixed_declaration_depends_on_no_parameter_and_a_callable_on_all():
    assert adapter_for(chain(), PureDP(epsilon=1.0)).privacy_parameters(chain()) == ()
    assert adapter_for(chain(), lambda model, n: PureDP(epsilon=1.0)).privacy_parameters(chain()) is None
