"""Weights of classes: constants that change what is learned, and never what one record can do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from sklearn_dpsearch.nets import DPLogisticRegression
from sklearn_dpsearch.nets._engines import engine_choice
from sklearn_dpsearch.privacy import PrivacyError

from ...search.toys import Untouchable
from ..toys import flat, mlp, table

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
y = (X[:, 0] + rng.normal(size=400) > 1.5).astype(int)
WEIGHTED = nn.CrossEntropyLoss(reduction="sum", weight=torch.tensor([500.0, 1.0, 0.001]))


def model(kind=DPLogisticRegression, **changed):
    return kind(**{"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 15, **changed})


def test_nets_of_different_weights_are_not_trained_as_one():
    other = nn.CrossEntropyLoss(reduction="sum", weight=torch.tensor([1.0, 1.0, 1.0]))
    first, second = (
        engine_choice.choose_engine(mlp(), one, *table(8)).stack_key for one in (WEIGHTED, other)
    )
    assert first != second
    numbered = enumerate((0.1, 1.0, 0.1))
    nets = [model(class_weight={1: w}, noise_seed=i, classes=[0, 1]) for i, w in numbered]
    numbered = enumerate((0.1, 1.0, 0.1))
    alone = [model(class_weight={1: w}, noise_seed=i, classes=[0, 1]) for i, w in numbered]
    for one, single in zip(DPLogisticRegression.fit_together(nets, X, y), alone):
        torch.testing.assert_close(
            flat(one.module_), flat(single.fit(X, y).module_), rtol=1e-5, atol=1e-6
        )


@pytest.mark.slow
def test_weights_are_those_of_scikit_learn():
    """Without noise and clipping, trained to the end."""
    weights = {0: 0.2, 1: 1.0}
    one = model(
        class_weight=weights, noise_multiplier=1e-9, max_grad_norm=1e3, sample_rate=1.0,
        max_steps=3000, learning_rate_init=1.0, learning_rate="constant",
    ).fit(X, y)  # fmt: skip
    theirs = LogisticRegression(class_weight=weights, C=1e9).fit(X, y)
    np.testing.assert_allclose(one.coef_, theirs.coef_, rtol=0.02)
    np.testing.assert_allclose(one.predict_proba(X), theirs.predict_proba(X), atol=0.01)


@pytest.mark.parametrize(("changed", "error", "match"), [
    (
        {"class_weight": "balanced"}, PrivacyError,
        "(?s)'balanced', which counts the labels.*constants",
    ),
    ({"class_weight": [1.0, 2.0]}, ValueError, "a dict of labels"),
    ({"class_weight": {0: -1.0}}, ValueError, "finite weights"),
    ({"class_weight": {0: np.inf}}, ValueError, "finite weights"),
    ({"class_weight": {0: True}}, ValueError, "finite weights"),
    ({"class_weight": {7: 2.0}, "classes": [0, 1]}, ValueError, r"labels among \[0, 1\]"),
])  # fmt: skip
def test_weights_that_are_no_constants_are_refused_before_data_is_read(changed, error, match):
    with pytest.raises(error, match=match):
        model(**changed).fit(Untouchable(), Untouchable())


def test_weights_are_said_to_be_constants():
    parts = model(class_weight={0: 0.2}).privacy_assumptions()
    assert any("class_weight was not taken" in text for text in parts)
    assert not any("class_weight" in text for text in model().privacy_assumptions())
