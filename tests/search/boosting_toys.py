"""A small table, models of it, and a search of each kind over them."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.preprocessing import Schema

pd = pytest.importorskip("pandas")

SCHEMA = Schema({"age": (20, 80), "job": ["clerk", "nurse"], "pay": ["low", "high"], "price": (0, 100)})
rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": rng.uniform(10, 90, 600), "job": rng.choice(["clerk", "nurse", "?"], 600), "note": "x"})
TABLE["pay"] = np.where(TABLE["age"] > 50, "high", "low")
TABLE["price"] = np.where(TABLE["pay"] == "high", 80.0, 20.0)
SPACE = {"prior_factor": [0.2, 0.4]}


def classifier(**changed):
    return DPGradientBoostingClassifier(SCHEMA.without("price"), **{"target": "pay", "max_iter": 40, **changed})


def regressor(**changed):
    return DPGradientBoostingRegressor(SCHEMA.without("pay"), **{"target": "price", "max_iter": 60, **changed})


SEARCHES = {
    "random": lambda model: DPRandomSearchCV(model, SPACE, n_iter=3, epsilon=8.0, delta=1e-4, random_state=0),
    "grid": lambda model: DPGridSearchCV(model, SPACE, epsilon=8.0, delta=1e-4, random_state=0),
    "threshold": lambda model: DPThresholdSearchCV(
        model, SPACE, threshold=0.7, epsilon=8.0, delta=1e-4, random_state=0
    ),
    "subset": lambda model: DPSubsetSearchCV(model, SPACE, n_iter=3, epsilon=8.0, delta=1e-4, random_state=0),
}
