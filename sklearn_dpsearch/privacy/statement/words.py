"""Words of a statement: its sentences, and mechanisms for people who do not read code."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from typing import Any

from ..guarantees.base import Guarantee
from .content import short_down, short_up, template

#: Section ↦ name ↦ sentences, some with words to fill in.
SENTENCES: dict[str, Any] = tomllib.loads(template("sentences.toml"))
#: Most different parts that are named.
MOST = 4


def _percent(share: float) -> str:
    """Text of a public share in per cent."""
    return f"{100 * share:.4g} %"


#: Fields of guarantees whose text is no number that is rounded up ↦ their text.
FIELDS: dict[str, Callable[[Any], object]] = {
    "count": repr,
    "fraction": _percent,
    "noise_multiplier": short_down,
    "orders": len,
    "share": _percent,
    "stop_probability": "{:.4g}".format,
    "train_on": {"all": "all records", "rest": "the rest"}.get,
}


def in_words(guarantee: Guarantee) -> str:
    """Mechanism of a guarantee in words.

    Losses are rounded up, and noise is rounded down.
    """
    kind = type(guarantee).__name__
    scored = getattr(guarantee, "validate", None) is not None
    words = SENTENCES["mechanism"].get(f"{kind} with scores" if scored else kind)
    if words is None:
        return f"a mechanism with a {kind} guarantee"
    named = [field for field in fields(guarantee) if f"{{{field.name}}}" in words]
    return str(words.format(**{field.name: _field_in_words(guarantee, field) for field in named}))


def _field_in_words(guarantee: Guarantee, field: Field[Any]) -> object:
    """Field of a guarantee in words."""
    value = getattr(guarantee, field.name)
    if field.name in FIELDS:
        return FIELDS[field.name](value)
    if isinstance(value, Guarantee):
        return in_words(value)
    if isinstance(value, tuple):
        return _parts_in_words(value)
    return short_up(value) if field.type == "float" else value


def _parts_in_words(parts: Sequence[Guarantee]) -> str:
    """At most ``MOST`` different mechanisms of parts in words, equal ones together."""
    counted = Counter(map(in_words, parts))
    named = [text if number == 1 else f"{number} × ({text})" for text, number in counted.items()]
    more = f"; and {len(named) - MOST} more" if len(named) > MOST else ""
    return "; ".join(named[:MOST]) + more
