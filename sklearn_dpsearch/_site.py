"""Address of the documentation, and links to it in notebooks."""

from __future__ import annotations

from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

PACKAGE = "sklearn_dpsearch"
#: The latest release's pages; ``pyproject.toml`` states the same site.
SITE = "https://sklearn-dpsearch.readthedocs.io/en/stable"
#: Part of the package ↦ module under which its public names are documented, where they differ.
SHOWN_IN = {"search": PACKAGE}


def linked(kind: Kind) -> Kind:
    """Let scikit-learn's diagrams of a class, and of its subclasses in this package, link to their
    page.

    Without this they have no link: scikit-learn knows its own site alone. Classes of other packages
    get none.
    """
    kind._doc_link_module = PACKAGE  # type: ignore[attr-defined]
    kind._doc_link_template = f"{SITE}/reference/api/{{page}}.html"  # type: ignore[attr-defined]
    kind._doc_link_url_param_generator = _page  # type: ignore[attr-defined]
    return kind


def _page(estimator: Any, *again: Any) -> dict[str, str]:
    """Name of an estimator's page. Old releases of scikit-learn hand over the estimator twice."""
    kind = type(estimator)
    part = kind.__module__.split(".")[1]
    return {"page": f"{SHOWN_IN.get(part, f'{PACKAGE}.{part}')}.{kind.__name__}"}
