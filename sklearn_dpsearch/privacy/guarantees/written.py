"""Guarantees as plain values for JSON: how each was made, so that nothing is lost. ``privacy.from_dict`` reads them."""

from __future__ import annotations

import math
from dataclasses import Field, fields, is_dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from ..errors import PrivacyError

#: Of the layout below. A reader refuses any other one.
VERSION = 1


@singledispatch
def written(value: object) -> Any:
    """A value as dicts, lists, numbers and strings: of a frozen value of this library its fields, and what it is."""
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
    """A whole number where any number may stand as a float: values that are equal are written alike."""
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
    """JSON has finite numbers only; Python writes as many digits of them as are needed to read the same one back."""
    return value if math.isfinite(value) else {"float": repr(value)}


@written.register
def _fraction(value: Fraction) -> Any:
    return {"fraction": str(value)}


@written.register
def _tuple(value: tuple) -> Any:  # type: ignore[type-arg]  # what it holds is no concern of the dispatch
    return [written(one) for one in value]


@written.register
def _array(value: np.ndarray) -> Any:
    return {"array": [written(one) for one in value.tolist()]}
