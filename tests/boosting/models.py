"""Models of the small table."""

from __future__ import annotations

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor

from .tables import SCHEMA, table

TABLE = table()
MODELS = {
    "two classes": lambda **changed: DPGradientBoostingClassifier(
        SCHEMA.without("grade", "price"), **{"target": "pay", "target_mu": 10.0, "max_iter": 150, **changed}
    ),
    "three classes": lambda **changed: DPGradientBoostingClassifier(
        SCHEMA.without("pay", "price"), **{"target": "grade", "target_mu": 10.0, "max_iter": 150, **changed}
    ),
    "numbers": lambda **changed: DPGradientBoostingRegressor(
        SCHEMA.without("pay", "grade"), **{"target": "price", "target_mu": 10.0, "max_iter": 300, **changed}
    ),
}
