"""Public docstrings follow numpydoc: all parameters are described, in order, and so is what a
function returns."""

from __future__ import annotations

import inspect
import re
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

from sklearn_dpsearch.privacy import Guarantee

validate = pytest.importorskip("numpydoc.validate").validate
pytest.importorskip("skorch")

PLACES = ("", ".privacy", ".scoring", ".adapters", ".boosting", ".nets", ".audit")
#: What is checked on every public name. GL: the sections, SS: the summary, PR: parameters, RT: what
#: is returned.
CHECKED = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "SS01", "SS03", "SS04"),
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR09", "PR10", "RT01", "YD01"),
}
#: Of a method: what it says must be true. Most methods need one sentence only.
OF_METHODS = CHECKED - {"GL08", "PR01", "RT01"}
SKORCHS = ("Classifier", "BinaryClassifier", "MultiLabelClassifier", "Regressor")
#: skorch's nets, and the parent of all guarantees, take parameters in **kwargs, where numpydoc sees
#: none.
EXEMPT = {**{f"DPNeuralNet{kind}": {"PR03"} for kind in SKORCHS}, "Guarantee": {"PR01", "PR02"}}


def public() -> dict[str, object]:
    """The classes and functions that the package offers, by their full names."""
    found = {}
    for place in PLACES:
        module = import_module(f"sklearn_dpsearch{place}")
        for value in (getattr(module, name) for name in module.__all__):
            protocol = getattr(value, "_is_protocol", False)  # a type, which nobody calls
            if (inspect.isclass(value) and not protocol) or inspect.isfunction(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


NAMES = public()
METHODS = {
    f"{name}.{own}": value
    for name, kind in NAMES.items()
    if inspect.isclass(kind)
    for own, value in vars(kind).items()
    if not own.startswith("_")
    and (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
}


def complaints(name: str, checks: set[str]) -> list[str]:
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.rpartition(".")[2])
def test_a_public_name_is_documented(name):
    exempt = EXEMPT.get(name.rpartition(".")[2], set())
    if inspect.isclass(NAMES[name]) and (
        issubclass(NAMES[name], Guarantee) or is_dataclass(NAMES[name])
    ):
        exempt = exempt | {"PR03"}  # built by keyword: their order means nothing
    assert complaints(name, CHECKED - exempt) == []


def test_what_a_method_says_of_its_parameters_is_true():
    found = {
        name: complaints(name, OF_METHODS) for name in METHODS if inspect.getdoc(METHODS[name])
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_every_public_method_is_documented_by_itself_or_by_its_parent():
    silent = [
        f"{name}.{own}"
        for name, kind in NAMES.items()
        if inspect.isclass(kind)
        for own in vars(kind)
        if not own.startswith("_")
        and not is_field(kind, own)
        and not inspect.getdoc(getattr(kind, own))
    ]
    assert silent == []


def is_field(kind: type, name: str) -> bool:
    """Values of a dataclass and constants are documented with the class."""
    return not callable(getattr(kind, name)) and not isinstance(vars(kind)[name], property)


def test_a_missing_parameter_is_noticed():
    name = "sklearn_dpsearch.privacy._guarantees.base.as_guarantee"
    assert [text[:4] for text in complaints(name, {"PR01", "RT01"})] != []


# --- plain words ----------------------------------------------------------------------------------

VAGUE = re.compile(r"\b(somebody|nobody|anybody|whoever|so many)\b", re.IGNORECASE)


PAGES = sorted(
    path
    for place in ("README.md", "docs/**/*.md", "examples/**/*.py")
    for path in Path(__file__).parents[1].glob(place)
    if "_build" not in path.parts
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: "/".join(path.parts[-2:]))
def test_pages_and_examples_name_who_is_meant(path):
    assert VAGUE.findall(path.read_text()) == []
