"""Public docstrings follow numpydoc: every parameter is described, in order, and every function says what it returns."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

validate = pytest.importorskip("numpydoc.validate").validate

PLACES = ("", ".privacy", ".scoring", ".adapters", ".nets", ".audit")
#: What is checked on every public name. GL: the sections, SS: the summary, PR: parameters, RT: what is returned.
CHECKED = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "SS01", "SS03", "SS04"),
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR09", "PR10", "RT01", "RT03", "YD01"),
}
#: Of a method: what it says must be true. Most methods need one sentence only.
OF_METHODS = CHECKED - {"PR01", "RT01"}
SKORCH = "parameters of skorch's own nets, which are documented there"


def public() -> dict[str, object]:
    """The classes and functions that the package offers, by their full names."""
    found = {}
    for place in PLACES:
        module = import_module(f"sklearn_dpsearch{place}")
        for one in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(one) or inspect.isfunction(one):
                found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


NAMES = public()
METHODS = {
    f"{name}.{own}": value
    for name, one in NAMES.items()
    if inspect.isclass(one)
    for own, value in vars(one).items()
    if not own.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
}
