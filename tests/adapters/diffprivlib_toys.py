"""Models of diffprivlib, with the public constants that their guarantees need."""

from __future__ import annotations

import pytest

pytest.importorskip("diffprivlib")
from diffprivlib.models import (
    DecisionTreeClassifier,
    GaussianNB,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
    StandardScaler,
)


def tree(**kwargs):
    return DecisionTreeClassifier(**{"bounds": (0, 1), "classes": [0, 1], **kwargs})


def forest(**kwargs):
    return RandomForestClassifier(
        **{"n_estimators": 2, "bounds": (0, 1), "classes": [0, 1], **kwargs}
    )


def bayes(**kwargs):
    return GaussianNB(**{"bounds": (-1, 1), **kwargs})


def logistic(**kwargs):
    return LogisticRegression(**{"data_norm": 1.0, "fit_intercept": False, **kwargs})


def linear(**kwargs):
    return LinearRegression(
        **{"bounds_X": (-1, 1), "bounds_y": (-1, 1), "fit_intercept": False, **kwargs}
    )


def scaler(**kwargs):
    return StandardScaler(**{"bounds": (-1, 1), **kwargs})
