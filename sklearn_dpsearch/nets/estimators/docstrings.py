"""Docstrings of classes whose parameters and attributes are described once: in the class that declares them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

ORDER = ("Parameters", "Attributes", "Notes", "Examples")
SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)

#: Public bounds of the features of an array.
BOUNDS_X = """
bounds_X : (lower, upper), optional
    Public bounds of the features, numbers or arrays of shape (n_features,): X is clipped to the bounds and mapped
    to [-1, 1]. Two numbers >= 0, such as (0, 255) for pixels, are mapped to [-0.5, 1.5], so that small amounts are
    near 0. Without bounds X is not scaled, and should be of size 1."""


def documented(further: str = "") -> Callable[[Kind], Kind]:
    """Decorator that adds the parameters and attributes of the classes above to a docstring, each name once.

    Parameters
    ----------
    further : str
        Parameters that several classes without a common one above them describe alike.
    """

    def filled(kind: Kind) -> Kind:
        ours = [one for one in kind.__mro__ if one.__module__.partition(".")[0] == __name__.partition(".")[0]]
        summary, own = _parts(kind)
        above = [_parts(one)[1] for one in ours[1:]]
        notes = {name: text for sections in reversed(above) for name, text in sections.items()}
        found = {
            **{name: text for name, text in (notes | own).items() if name in ("Notes", "Examples")},
            "Parameters": _entries(own.get("Parameters"), further, *(one.get("Parameters") for one in above)),
            "Attributes": _entries(own.get("Attributes"), *(one.get("Attributes") for one in above)),
        }
        ordered = [f"{name}\n{'-' * len(name)}\n{found[name].strip()}" for name in ORDER if found.get(name)]
        kind.__doc__ = "\n\n".join([summary.strip(), *ordered]) + "\n"
        return kind

    return filled


def _entries(*texts: str | None) -> str:
    """Entries of sections, each name once, as the first text describes it; ``**kwargs`` at the end."""
    entries = [entry for text in texts if text for entry in re.split(r"\n(?=\S)", text.strip())]
    once: dict[str, str] = {}
    for entry in entries:
        once.setdefault(entry.partition(" : ")[0], entry)
    return "\n".join(sorted(once.values(), key=lambda entry: entry.startswith("**")))


def _parts(kind: type) -> tuple[str, dict[str, str]]:
    """Summary and sections of the docstring of a class itself."""
    summary, *rest = SECTION.split(inspect.cleandoc(vars(kind).get("__doc__") or ""))
    return summary, dict(zip(rest[::2], rest[1::2]))
