"""Models of the small table, and public ones of it."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor

from .tables import SCHEMA, table

TABLE = table()
MODELS = {
    "two classes": lambda **changed: DPGradientBoostingClassifier(
        SCHEMA.without("grade", "price"),
        **{"target": "pay", "target_mu": 10.0, "max_iter": 150, **changed},
    ),
    "three classes": lambda **changed: DPGradientBoostingClassifier(
        SCHEMA.without("pay", "price"),
        **{"target": "grade", "target_mu": 10.0, "max_iter": 150, **changed},
    ),
    "numbers": lambda **changed: DPGradientBoostingRegressor(
        SCHEMA.without("pay", "grade"),
        **{"target": "price", "target_mu": 10.0, "max_iter": 300, **changed},
    ),
}


class ByAge(ClassifierMixin, BaseEstimator):
    """Chances that follow from the age of a record alone; it fails on a record of 1000 years."""

    def __init__(self, classes=("low", "high")):
        self.classes = classes

    def fit(self, X=None, y=None):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        age = X["age"].fillna(50.0).to_numpy()
        if (age == 1000).any():
            warnings.warn(f"Found {age.max()}", stacklevel=1)
            raise ValueError(f"A record is {age.max()} years old.")
        likely = np.where(np.abs(age - 52) < 12, 0.9, 0.05)
        others = (1 - likely) / (len(self.classes_) - 1)
        return np.column_stack([*[others] * (len(self.classes_) - 1), likely])


class PriceByAge(RegressorMixin, BaseEstimator):
    def fit(self, X=None, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.where(np.abs(X["age"].fillna(50.0) - 52) < 12, 75.0, 25.0)


STARTS = {
    "two classes": ByAge().fit(),
    "three classes": ByAge(("c", "b", "a")).fit(),
    "numbers": PriceByAge().fit(),
}
