"""Models in the ONNX format answer like the models, in a runtime that is not Python."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor, to_onnx

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

SCHEMA = {
    "age": (18, 90),
    "income": (-1.5, 1e6),
    "city": ["Ur", "Uruk", "Eridu"],
    "rooms": [1, 2, 4],
    "owner": [False, True],
}
BUDGET = {"target_mu": 2.0, "max_iter": 30, "noise_seed": 0, "random_state": 0}


def table(n=300):
    """Records that fit the schema, lie beyond it, are missing or not listed."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(10, 99, n).astype(float),
            "income": rng.normal(0.0, 3e5, n),
            "city": rng.choice(["Ur", "Uruk", "Eridu", "Nippur"], n).astype(object),
            "rooms": rng.integers(0, 5, n).astype(float),
            "owner": rng.integers(0, 2, n).astype(bool),
        }
    )
    frame.loc[::7, ["age", "income", "rooms"]] = np.nan
    frame.loc[3, "income"], frame.loc[4, "income"], frame.loc[5, "city"] = np.inf, -np.inf, None
    return frame


def answers(model, frame):
    """Outputs of the runtime, by name."""
    graph = to_onnx(model)
    texts = {one.name for one in graph.graph.input if one.type.tensor_type.elem_type == 8}
    given = {
        name: frame[[name]].fillna("").to_numpy(object) if name in texts else frame[[name]].to_numpy(np.float64)
        for name in model.schema
    }
    session = runtime.InferenceSession(graph.SerializeToString())
    return dict(zip((one.name for one in session.get_outputs()), session.run(None, given)))


@pytest.mark.parametrize(
    "classes", [[0, 1], [3, 1, 2], ["no", "yes"], ["a", "b", "c"], [False, True]], ids=lambda given: str(given)
)
@pytest.mark.parametrize("weights", [None, {"first": 2.0}], ids=["alike", "weighted"])
def test_classes_and_probabilities_are_those_of_the_model(classes, weights):
    frame = table()
    y = np.array(classes)[(np.arange(300) * 7 + (frame["age"] > 50).to_numpy()) % len(classes)]
    if weights is not None:
        weights = {label: 2.0 if label == classes[0] else 1.0 for label in classes}
    model = DPGradientBoostingClassifier(SCHEMA, classes=classes, class_weight=weights, **BUDGET).fit(frame, y)
    found = answers(model, frame)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), rtol=0, atol=1e-12)
    assert found["label"].tolist() == model.predict(frame).tolist()


def test_numbers_are_those_of_the_model():
    frame = table()
    model = DPGradientBoostingRegressor(SCHEMA, bounds_y=(-3, 100), **BUDGET).fit(frame, frame["age"].fillna(0.0))
    found = answers(model, frame)["variable"]
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-12)


@pytest.mark.parametrize("entry", [{"buckets": 8}, ("2020-01-01", "2024-12-31"), ["a", 1]], ids=str)
def test_other_columns_are_refused(entry):
    if isinstance(entry, tuple):
        entry = tuple(pd.Timestamp(end).date() for end in entry)
    frame = pd.DataFrame({"x": np.arange(20.0)}, dtype=object)
    frame["x"] = pd.date_range("2021-01-01", periods=20) if isinstance(entry, tuple) else frame["x"]
    model = DPGradientBoostingClassifier({"x": entry}, classes=[0, 1], **BUDGET).fit(frame, [0, 1] * 10)
    with pytest.raises(
        ValueError, match=r"Found .* for column 'x'; numbers, listed numbers or listed texts are needed"
    ):
        to_onnx(model)


def test_a_model_with_another_one_inside_is_refused_and_one_without_a_fit_too():
    frame = table()
    model = DPGradientBoostingClassifier(SCHEMA, classes=[0, 1], **BUDGET)
    with pytest.raises(NotFittedError):
        to_onnx(model)
    first = model.fit(frame, [0, 1] * 150)
    second = DPGradientBoostingClassifier(SCHEMA, classes=[0, 1], init=first, **BUDGET).fit(frame, [0, 1] * 150)
    with pytest.raises(ValueError, match="with init"):
        to_onnx(second)
    with pytest.raises(TypeError, match="Found Pipeline; a model of boosting is needed"):
        to_onnx(make_pipeline(first))
