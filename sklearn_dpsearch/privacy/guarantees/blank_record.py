"""Guarantees about adding or removing a record, for neighbours that blank it in its place."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from .base import Guarantee, Statement, as_guarantee
from .values import ProfileDP


def as_zero_out(guarantee: Guarantee | Statement) -> Guarantee:
    """Guarantee for a blank record that follows from one for the presence of a record.

    It holds with the number of records as a public constant, of a mechanism that ignores a blank record as it ignores
    one that is not there (docs/theory/composition.md, "From one relation to another"). The numbers are the same.

    Parameters
    ----------
    guarantee : Guarantee or PrivacySpent
        Under ``add_remove``; others are returned unchanged.

    Returns
    -------
    Guarantee
        Under ``zero_out``.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> as_zero_out(PureDP(epsilon=1.0))
    PureDP(neighboring='zero_out', epsilon=1.0)
    """
    found: Guarantee = _blanked(as_guarantee(guarantee))
    return found


def _blanked(value: Any) -> Any:
    """Replace the relation in guarantees at any depth of a value."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(_blanked, value))
    if not isinstance(value, Guarantee) or value.neighboring != "add_remove":
        return value
    if not is_dataclass(value):
        return ProfileDP.from_pair(value.pair, "zero_out")
    parts = {field.name: _blanked(getattr(value, field.name)) for field in fields(value) if field.init}
    return replace(value, **{**parts, "neighboring": "zero_out"})
