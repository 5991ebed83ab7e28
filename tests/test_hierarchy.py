"""Classes: few levels, nothing left abstract, no finished method replaced, one spelling of what a
search asks for."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

import pytest

import sklearn_dpsearch
from sklearn_dpsearch import boosting, nets
from sklearn_dpsearch.adapters._adapter import Adapter

pytest.importorskip("torch")
pytest.importorskip("diffprivlib")
pytest.importorskip("skorch")

#: Classes of this package above a class, one above the other.
LEVELS = 3
#: Methods that have a default which subclasses may replace, by the class with the default.
DEFAULTS = {
    # from the pair, by inversion; a class that knows a formula has it
    "Guarantee": {"_profile", "_far_profile", "_epsilon", "_roughly", "has_renyi"},
    # of all bounds; a search has some that are known at few places only
    "SmallestOf": {"_bounds_cross", "_bounds_of_pair", "_pair", "renyi"},
    # of a largest loss alone
    "_LargestLoss": {"_pair"},
    # parameters of several guarantees at once, checked by each part
    "_SeveralMechanisms": {"_check"}, "_TuneThenTrain": {"_check"},
    # what most searches do
    "Strategy": {"dry", "scorer", "split"},
    # the first double that is not 0, but under a cap
    "Finite": {"lowest"},
    # what most scorers and columns do
    "PrivateScorer": {"plain"}, "HistogramScorer": {"plain"}, "Range": {"auto_edges", "edge_label"},
    "TrainingData": {"opened"}, "DenseGradients": {"add"},
    # targets of some nets have a shape of their own, which is noted
    "SkorchNet": {"_targets"},
    # after a record that failed; an engine with hooks takes them away
    "SingleNetEngine": {"recover"},
    # what most estimators that speak for themselves do; a net of Opacus adds what its noise leaves
    # out
    "ProtocolAdapter": {"recognises", "training_run"},
    # further checks and sentences, after those of all
    "GradientBoosting": {"_check_arguments", "_assumptions"}, "Number": {"is_satisfied_by"},
}  # fmt: skip


def ours(kind: type) -> bool:
    return kind.__module__.startswith("sklearn_dpsearch") and not getattr(
        kind, "_is_protocol", False
    )


def classes() -> list[type]:
    parts = pkgutil.walk_packages(sklearn_dpsearch.__path__, "sklearn_dpsearch.")
    modules = [import_module(one.name) for one in parts]
    found = {
        one
        for module in modules
        for one in vars(module).values()
        if inspect.isclass(one) and ours(one)
    }
    return sorted(found, key=lambda one: (one.__module__, one.__qualname__))


def is_mixin_of_hooks(kind: type) -> bool:
    """Whether a class has methods that Python and scikit-learn call alone, as __getstate__."""
    if "__init__" in vars(kind) or not all(name.startswith("__") for name in vars(kind)):
        return False
    return any(name == "__new__" or hasattr(vars(kind)[name], "__code__") for name in vars(kind))


def levels(kind: type) -> int:
    """Classes of this package above a class, without mixins of hooks."""
    above = (base for base in kind.__bases__ if ours(base) and not is_mixin_of_hooks(base))
    return max((1 + levels(base) for base in above), default=0)


def function_of(member: Any) -> FunctionType | None:
    """The code of a method, a property or a cached value; None for anything else."""
    for name in ("fget", "func", "__func__"):
        member = getattr(member, name, member)
    return member if isinstance(member, FunctionType) else None


def is_finished(member: Any) -> bool:
    """Return whether a method computes something: not abstract, empty, an error, or a constant."""
    if getattr(member, "__isabstractmethod__", False):
        return False
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function_of(member)))).body  # type: ignore[arg-type]
    body = [
        one for one in definition.body if not isinstance(getattr(one, "value", None), ast.Constant)
    ]  # type: ignore[attr-defined]
    constants = (ast.Name, ast.Attribute, ast.Dict, ast.List, ast.Tuple)
    return not all(
        isinstance(one, (ast.Pass, ast.Raise))
        or (isinstance(one, ast.Return) and isinstance(one.value, constants))
        for one in body
    )


def replaced(kind: type) -> Iterator[tuple[str, str]]:
    """Class and name of the finished methods that a class replaces."""
    for name, member in vars(kind).items():
        if name.startswith("__") or function_of(member) is None:
            continue
        above = (
            base
            for base in kind.__mro__[1:]
            if ours(base) and function_of(vars(base).get(name)) is not None
        )
        base = next(above, None)
        if base is not None and is_finished(vars(base)[name]):
            yield base.__name__, name


def test_no_class_has_many_levels_above_it() -> None:
    assert {one.__name__: levels(one) for one in classes() if levels(one) > LEVELS} == {}


def test_no_finished_method_is_replaced() -> None:
    found = {pair for one in classes() for pair in replaced(one)}
    assert found == {(base, name) for base, names in DEFAULTS.items() for name in names}


def test_classes_without_subclasses_have_nothing_abstract() -> None:
    """Estimators are no ABCs: an abstract method of a later base would hide a finished one in
    silence."""
    above = {base for one in classes() for base in one.__mro__[1:]}
    # of a class, not for use alone
    parts = {one for one in classes() if one.__bases__ == (object,)}
    for one in classes():
        if one not in above and one not in parts:
            left = [name for name in dir(one) if _is_abstract(inspect.getattr_static(one, name))]
            assert left == [], one.__name__


def _is_abstract(member: object) -> bool:
    return bool(getattr(member, "__isabstractmethod__", False))


def estimators() -> list[type]:
    found = [getattr(module, name) for module in (boosting, nets) for name in module.__all__]
    return [one for one in found if hasattr(one, "privacy_guarantee") and hasattr(one, "fit")]


def asked(method: Any) -> list[str]:
    return [
        name for name in inspect.signature(method).parameters if name not in ("self", "estimator")
    ]


@pytest.mark.parametrize("kind", estimators(), ids=lambda one: one.__name__)
def test_estimators_answer_a_search_as_adapters_do(kind: type) -> None:
    """One spelling: a method of an estimator has the parameters of the adapter's, without
    ``estimator``."""
    entries = vars(Adapter).items()
    facts = {name: method for name, method in entries if callable(getattr(kind, name, None))}
    shared = {name: asked(method) for name, method in facts.items() if not name.startswith("_")}
    assert {"scaled_privacy", "search_space"} <= set(shared)
    assert {name: asked(getattr(kind, name)) for name in shared} == shared
