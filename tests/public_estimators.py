"""The estimators that the library offers, for tests of them all."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

SCHEMA = {"age": (0, 100), "pay": ["low", "high"], "rent": (0.0, 9.0)}


def kinds(room: str) -> list[type]:
    if room == "sklearn_dpsearch.nets":
        pytest.importorskip("skorch")
    module = import_module(room)
    named = (getattr(module, name) for name in module.__all__)
    return [one for one in named if inspect.isclass(one) and issubclass(one, BaseEstimator)]


def made(kind: type) -> BaseEstimator:
    """An estimator by its required parameters alone, of whatever kind they are."""
    required = [
        name
        for name, one in inspect.signature(kind.__init__).parameters.items()
        if one.default is one.empty and name != "self" and one.kind is not one.VAR_KEYWORD
    ]
    return kind(**{name: SCHEMA if name == "schema" else LogisticRegression() for name in required})
