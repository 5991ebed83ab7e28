"""A small table, models of it, and a search of each kind over them."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.preprocessing import Schema

pd = pytest.importorskip("pandas")

SCHEMA = Schema(
    {"age": (20, 80), "job": ["clerk", "nurse"], "pay": ["low", "high"], "price": (0, 100)}
)
rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": rng.uniform(10, 90, 600), "job": rng.choice(["clerk", "nurse", "?"], 600), "note": "x"}
)
TABLE["pay"] = np.where(TABLE["age"] > 50, "high", "low")
TABLE.loc[::17, "age"] = np.nan
TABLE["price"] = np.where(TABLE["pay"] == "high", 80.0, 20.0)
SPACE = {"prior_factor": [0.2, 0.4]}


def classifier(**changed):
    return DPGradientBoostingClassifier(
        SCHEMA.without("price"), **{"target": "pay", "max_iter": 40, **changed}
    )


def regressor(**changed):
    return DPGradientBoostingRegressor(
        SCHEMA.without("pay"), **{"target": "price", "max_iter": 60, **changed}
    )


BUDGET = {"epsilon": 8.0, "delta": 1e-4, "random_state": 0}
SEARCHES = {
    "random": lambda model, space=SPACE: DPRandomSearchCV(model, space, n_iter=3, **BUDGET),
    "grid": lambda model, space=SPACE: DPGridSearchCV(model, space, **BUDGET),
    "threshold": lambda model, space=SPACE: DPThresholdSearchCV(
        model, space, threshold=0.7, **BUDGET
    ),
    "subset": lambda model, space=SPACE: DPSubsetSearchCV(model, space, n_iter=3, **BUDGET),
}
