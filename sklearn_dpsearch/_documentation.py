"""Docstrings that describe each parameter once, and links of notebooks to the site."""

from __future__ import annotations

import inspect
import re
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

PACKAGE = "sklearn_dpsearch"
#: The latest release's pages; ``pyproject.toml`` states the same site.
SITE = "https://sklearn-dpsearch.readthedocs.io/en/stable"
#: Part of the package ↦ module under which its public names are documented, where they differ.
PUBLIC_MODULES = {"search": PACKAGE}

ORDER = ("Parameters", "Attributes", "Notes", "Examples")
SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)


def documented(kind: Kind) -> Kind:
    """Decorator that completes a docstring by the parameters and attributes of the classes above.

    Each name stands in it once.
    """
    classes = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == PACKAGE]
    summary, sections = _parts(kind)
    above = [_parts(base)[1] for base in classes[1:]]
    notes = {name: text for sections in reversed(above) for name, text in sections.items()}
    parameters = inspect.signature(kind).parameters.values()
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    merged = notes | sections
    for name in ("Parameters", "Attributes"):
        texts = (described.get(name) for described in (sections, *above))
        merged[name] = _entries(required, *texts)
    ordered = [
        f"{name}\n{'-' * len(name)}\n{merged[name].strip()}" for name in ORDER if merged.get(name)
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
    summary, *parts = SECTION.split(inspect.cleandoc(vars(kind).get("__doc__") or ""))
    return summary, dict(zip(parts[::2], parts[1::2]))


# --- links ----------------------------------------------------------------------------------------


def linked(kind: Kind) -> Kind:
    """Let scikit-learn's diagrams of a class link to the page of the class.

    Those of its subclasses in this package link to theirs. Without this they have no link:
    scikit-learn knows its own site alone. Classes of other packages get none.
    """
    kind._doc_link_module = PACKAGE  # type: ignore[attr-defined]
    kind._doc_link_template = f"{SITE}/reference/api/{{page}}.html"  # type: ignore[attr-defined]
    kind._doc_link_url_param_generator = _page  # type: ignore[attr-defined]
    return kind


def _page(estimator: Any, *again: Any) -> dict[str, str]:
    """Name of an estimator's page. Old releases of scikit-learn hand over the estimator twice."""
    kind = type(estimator)
    part = kind.__module__.split(".")[1]
    return {"page": f"{PUBLIC_MODULES.get(part, f'{PACKAGE}.{part}')}.{kind.__name__}"}
