"""Tools that explain models work on released ones, with public records."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence, permutation_importance

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier

DRAW = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": DRAW.integers(17, 90, 3000).astype(float), "job": DRAW.choice(["clerk", "nurse"], 3000)}
)
TARGET = np.where(TABLE["age"] + 10 * (TABLE["job"] == "nurse") > 55, "high", "low")
SCHEMA = {"age": (17, 90), "job": ["clerk", "nurse"]}
MODEL = DPGradientBoostingClassifier(SCHEMA, classes=["low", "high"], noise_seed=0)
X, Y = TABLE[:200], TARGET[:200]  # public ones


@pytest.fixture(scope="module", params=["model", "search"])
def released(request):
    if request.param == "model":
        return MODEL.set_params(target_epsilon=2.0, target_delta=1e-5).fit(TABLE, TARGET)
    space = {"prior_factor": [1.0, 1.5]}
    return DPRandomSearchCV(MODEL, space, n_iter=3, epsilon=2.0, delta=1e-5, random_state=0).fit(
        TABLE, TARGET
    )


def test_permutation_importance_finds_the_column_that_matters(released):
    age, job = permutation_importance(released, X, Y, n_repeats=3, random_state=0).importances_mean
    assert age > job


def test_partial_dependence_of_numbers_and_of_texts(released):
    curve = partial_dependence(released, X, ["age"], grid_resolution=5)["average"][0]
    assert abs(curve[0] - curve[-1]) > 0.5
    bars = partial_dependence(released, X, ["job"], categorical_features=["job"])
    assert list(bars["grid_values"][0]) == ["clerk", "nurse"]
    assert np.ptp(bars["average"]) > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_shapley_values_with_public_background_records(released):
    shap = pytest.importorskip("shap")

    def predict(codes):
        jobs = [SCHEMA["job"][int(code)] for code in codes[:, 1]]
        return released.predict_proba(pd.DataFrame({"age": codes[:, 0], "job": jobs}))[:, 0]

    codes = np.column_stack([X["age"], X["job"] == "nurse"]).astype(float)
    values = shap.Explainer(predict, codes[:50], seed=0)(codes[:5])
    np.testing.assert_allclose(
        values.values.sum(1) + values.base_values, predict(codes[:5]), atol=1e-6
    )
    assert np.abs(values.values[:, 0]).mean() > np.abs(values.values[:, 1]).mean()
