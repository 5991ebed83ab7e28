"""A seed for the noise reproduces one training alone: trainings that differ in anything share no
noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier

RNG = np.random.default_rng(0)
X, y = RNG.uniform(-1, 1, (60, 400)), RNG.integers(0, 2, 60)
SHORT = {
    "max_epochs": 1000, "sample_rate": 0.5, "bounds_X": (-1.0, 1.0), "classes": [0, 1],
    "noise_multiplier": 50.0, "max_steps": 3, "random_state": 0,
}  # fmt: skip


def net(**given):
    return DPLogisticRegression(**{**SHORT, "noise_seed": 0, **given})


def likeness(first, second):
    """Correlation of changes that are nearly all noise."""
    return float(np.corrcoef(np.ravel(first), np.ravel(second))[0, 1])


def test_the_same_training_is_reproduced(tmp_path):
    first, second = net().fit(X, y), net().fit(X, y)
    assert np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(first.fit(X, y).coef_, second.coef_)
    assert np.allclose(second.coef_, net(max_physical_batch=7).fit(X, y).coef_, rtol=1e-4)


@pytest.mark.parametrize("seed", [3, np.random.RandomState(3)], ids=["number", "generator"])
def test_other_records_have_other_noise_for_the_same_seed(seed):
    """With one noise for both, whoever has both releases could take the noise away without the
    seed."""
    one = net(noise_seed=seed)
    other = clone(one)
    changed = X.copy()
    changed[0] = 0.0
    assert abs(likeness(one.fit(X, y).coef_, other.fit(changed, y).coef_)) < 0.3


@pytest.mark.parametrize("change", [
    {"learning_rate_init": 0.7}, {"noise_multiplier": 50.001}, {"max_grad_norm": 0.9},
    {"alpha": 1e-9},
])  # fmt: skip
def test_other_arguments_have_other_noise(change):
    assert abs(likeness(net().fit(X, y).coef_, net(**change).fit(X, y).coef_)) < 0.3


def test_a_second_training_of_the_same_parameters_has_other_noise():
    model = net().fit(X, y)
    before = model.coef_.copy()
    model.partial_fit(X, y)
    assert abs(likeness(before, model.coef_ - before)) < 0.3


def test_other_initial_parameters_have_other_noise():
    def change(state):
        step = {**SHORT, "noise_seed": 0, "hidden_layer_sizes": (4,), "max_steps": 1}
        step["random_state"] = state
        trained, start = (
            DPMLPClassifier(**{**step, "learning_rate_init": size}).fit(X, y).module_
            for size in (1.0, 1e-12)
        )
        return (trained[0].weight - start[0].weight).detach().numpy()

    assert np.array_equal(change(0), change(0))
    assert abs(likeness(change(0), change(1))) < 0.3


def test_the_statement_says_that_a_seed_voids_the_guarantee_for_everybody():
    parts = net().fit(X, y).privacy_spent_.assumptions
    (said,) = (text for text in parts if "noise_seed was given" in text)
    assert "voids the guarantee for everybody" in said
    unseeded = net(noise_seed=None).fit(X, y).privacy_spent_.assumptions
    assert any("the operating system" in text for text in unseeded)
