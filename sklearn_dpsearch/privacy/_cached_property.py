"""Values that are computed once, without a lock.

``functools.cached_property`` of Python 3.11 holds one lock for all objects of a class. A process that was
forked while another thread held it would wait for ever, and threads would wait for each other's objects.
"""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """``functools.cached_property`` without its lock: two threads at once may both compute the value."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept[self.attrname] = self.func(instance)
            return kept[self.attrname]


def fields_alone(value: Any) -> dict[str, Any]:
    """State of a frozen dataclass for a pickle: its fields; cached values are computed again."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def set_fields(value: Any, state: dict[str, Any]) -> None:
    value.__dict__.update(state)
