"""Nets in the ONNX format answer like the nets, in a runtime that is not Python."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPTabularClassifier,
    to_onnx,
)

SETTINGS = {"noise_multiplier": 0.5, "max_steps": 20, "random_state": 0, "noise_seed": 0}
BOUNDS = ([-1.0, 0.0, -3.0], [1.0, 10.0, 3.0])


def records(n=200):
    """Records inside and outside of the bounds."""
    return np.random.default_rng(0).normal(0.0, 2.0, (n, 3))


def answers(net, X):
    session = runtime.InferenceSession(to_onnx(net).SerializeToString())
    return dict(zip((one.name for one in session.get_outputs()), session.run(None, {"X": X})))


@pytest.mark.parametrize("classes", [[0, 1], ["a", "b", "c"], [True, False]], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda **given: DPLogisticRegression(**given),
        lambda **given: DPLogisticRegression(bounds_X=(0, 4), **given),
        lambda **given: DPMLPClassifier((8, 4), "tanh", bounds_X=BOUNDS, **given),
        lambda **given: DPMLPClassifier((8,), "logistic", **given),
    ],
    ids=["linear", "bounded", "tanh", "logistic"],
)
def test_labels_and_probabilities_are_those_of_the_net(make, classes):
    X = records()
    y = np.array(classes)[np.arange(200) % len(classes)]
    net = make(classes=classes, **SETTINGS).fit(X, y)
    found = answers(net, X)
    np.testing.assert_allclose(found["probabilities"], net.predict_proba(X), rtol=0, atol=1e-6)
    assert found["label"].tolist() == net.predict(X).tolist()


@pytest.mark.parametrize("bounds", [None, (-1.0, 1.5)])
@pytest.mark.parametrize("make", [DPLinearRegression, DPMLPRegressor])
def test_numbers_are_those_of_the_net(make, bounds):
    X = records()
    net = make(bounds_y=bounds, bounds_X=BOUNDS, **SETTINGS).fit(X, X[:, 0])
    np.testing.assert_allclose(answers(net, X)["variable"], net.predict(X), rtol=0, atol=1e-6)


def test_other_models_are_refused():
    with pytest.raises(NotFittedError):
        to_onnx(DPLogisticRegression())
    with pytest.raises(TypeError, match="Found DPTabularClassifier"):
        to_onnx(DPTabularClassifier({"a": (0, 1)}))
