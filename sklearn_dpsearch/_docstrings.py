"""Docstrings of classes whose parameters and attributes are described once: in the class that
declares them.
"""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

ORDER = ("Parameters", "Attributes", "Notes", "Examples")
SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def documented(kind: Kind) -> Kind:
    """Decorator that adds the parameters and attributes of the classes above to a docstring, each
    name once.
    """
    classes = [
        base
        for base in kind.__mro__
        if base.__module__.partition(".")[0] == __name__.partition(".")[0]
    ]
    summary, sections = _parts(kind)
    above = [_parts(base)[1] for base in classes[1:]]
    notes = {name: text for sections in reversed(above) for name, text in sections.items()}
    merged = {
        **{
            name: text for name, text in (notes | sections).items() if name in ("Notes", "Examples")
        },
        **{
            name: _entries(*(described.get(name) for described in (sections, *above)))
            for name in ("Parameters", "Attributes")
        },
    }
    ordered = [
        f"{name}\n{'-' * len(name)}\n{merged[name].strip()}" for name in ORDER if merged.get(name)
    ]
    kind.__doc__ = "\n\n".join([summary.strip(), *ordered]) + "\n"
    return kind


def _entries(*texts: str | None) -> str:
    """Entries of sections, each name once, as the first text describes it; ``**kwargs`` at the
    end.
    """
    entries = [entry for text in texts if text for entry in re.split(r"\n(?=\S)", text.strip())]
    once: dict[str, str] = {}
    for entry in entries:
        once.setdefault(entry.partition(" : ")[0], entry)
    return "\n".join(sorted(once.values(), key=lambda entry: entry.startswith("**")))


def _parts(kind: type) -> tuple[str, dict[str, str]]:
    """Summary and sections of the docstring of a class itself."""
    summary, *parts = SECTION.split(inspect.cleandoc(vars(kind).get("__doc__") or ""))
    return summary, dict(zip(parts[::2], parts[1::2]))
