"""Docstrings of classes whose parameters and attributes are described once: in the class that
declares them."""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

ORDER = ("Parameters", "Attributes", "Notes", "Examples")
SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def documented(kind: Kind) -> Kind:
    """Decorator that adds the parameters and attributes of the classes above to a docstring, each
    name once."""
    ours = [
        one
        for one in kind.__mro__
        if one.__module__.partition(".")[0] == __name__.partition(".")[0]
    ]
    summary, own = _parts(kind)
    above = [_parts(one)[1] for one in ours[1:]]
    notes = {name: text for sections in reversed(above) for name, text in sections.items()}
    signature = inspect.signature(kind).parameters.values()
    required = [one.name for one in signature if one.default is one.empty]
    found = {
        **{name: text for name, text in (notes | own).items() if name in ("Notes", "Examples")},
        **{
            name: _entries(required, *(one.get(name) for one in (own, *above)))
            for name in ("Parameters", "Attributes")
        },
    }
    ordered = [
        f"{name}\n{'-' * len(name)}\n{found[name].strip()}" for name in ORDER if found.get(name)
    ]
    kind.__doc__ = "\n\n".join([summary.strip(), *ordered]) + "\n"
    return kind


def _entries(required: list[str], *texts: str | None) -> str:
    """Entries of sections, each name once, as the first text describes it.

    What a signature requires comes first, and ``**kwargs`` last.
    """
    entries = [entry for text in texts if text for entry in re.split(r"\n(?=\S)", text.strip())]
    once: dict[str, str] = {}
    for entry in entries:
        once.setdefault(entry.partition(" : ")[0], entry)
    first = {name: once.pop(name) for name in required if name in once}
    others = sorted(once.values(), key=lambda entry: entry.startswith("**"))
    return "\n".join([*first.values(), *others])


def _parts(kind: type) -> tuple[str, dict[str, str]]:
    """Summary and sections of the docstring of a class itself."""
    summary, *rest = SECTION.split(inspect.cleandoc(vars(kind).get("__doc__") or ""))
    return summary, dict(zip(rest[::2], rest[1::2]))
