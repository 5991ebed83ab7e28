"""Guarantees as plain values for JSON: the parameters of each, without loss. ``privacy.from_dict`` reads them."""

from __future__ import annotations

import math
from dataclasses import Field, fields, is_dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from ...errors import PrivacyError

#: Version of the layout below. A reader refuses any other version.
VERSION = 1


@singledispatch
def written(value: object) -> Any:
    """A value as dicts, lists, numbers and strings; a frozen value of this library as its fields and its kind."""
    if not is_dataclass(value) or type(value).__module__.partition(".")[0] != __name__.partition(".")[0]:
        raise PrivacyError(
            f"Found {type(value).__name__} in a guarantee; only the guarantees of sklearn_dpsearch and what they are "
            "made of can be written down. Use one of them, or keep the ε and δ that it states as ApproxDP."
        )
    return {
        "kind": type(value).__name__,
        **{field.name: written(_annotated(field, getattr(value, field.name))) for field in fields(value) if field.init},
    }


def _annotated(field: Field[Any], value: object) -> object:
    """Write whole numbers as floats where any number is allowed, so that equal values are written alike."""
    whole = field.type == "float" and type(value) is int and float(value) == value
    return float(value) if whole else value  # type: ignore[arg-type]


@written.register(type(None))
@written.register(bool)
@written.register(int)
@written.register(str)
def _as_it_is(value: object) -> object:
    return value


@written.register
def _float(value: float) -> Any:
    """Write a float: as text if it is infinite, which JSON lacks; else with all digits that reading back needs."""
    return value if math.isfinite(value) else {"float": repr(value)}


@written.register
def _fraction(value: Fraction) -> Any:
    return {"fraction": str(value)}


@written.register
def _tuple(value: tuple) -> Any:  # type: ignore[type-arg]  # its entries do not matter for the dispatch
    return [written(one) for one in value]


@written.register
def _array(value: np.ndarray) -> Any:
    return {"array": [written(one) for one in value.tolist()]}
