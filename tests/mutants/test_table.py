"""The table of mutants does not rot: every text that it changes is still there, once."""

from __future__ import annotations

import ast
import builtins

import pytest

from .mutant import ROOT, Mutant
from .run import killer_of
from .table import MUTANTS


def unbound_names(source):
    """Names that a module reads and nowhere binds."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {(node.asname or node.name).split(".")[0] for node in nodes if type(node) is ast.alias}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return {node.id for node in names} - bound - set(dir(builtins))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_fits_the_library_as_it_is(mutant):
    text = (ROOT / "sklearn_dpsearch" / mutant.file).read_text()
    mutant.check(text)
    # a name that is gone would be noticed, and not the mistake
    assert unbound_names(text.replace(mutant.old, mutant.new)) <= unbound_names(text)
    file, _, function = mutant.test.partition("::")
    assert f"def {function.partition('[')[0]}" in (ROOT / "tests" / file).read_text()
    assert mutant.mistake.endswith(".")


def test_there_are_at_least_forty_and_no_two_of_one_name():
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.slow
def test_a_mistake_is_noticed_and_a_change_that_matters_to_nobody_is_not():
    text = "    level = 1.0 - math.sqrt(confidence)\n"
    bounds = {"mistake": "None.", "file": "audit/_bounds.py", "old": text}
    same = Mutant(**bounds, new=text + "\n", test="audit/test_bounds.py")
    wrong = Mutant(**bounds, new="    level = 0.5\n", test="audit/test_bounds.py")
    assert killer_of(same) is None
    assert str(killer_of(wrong)).startswith("tests/audit/test_bounds.py::test_")


def test_a_text_that_is_not_there_is_said():
    gone = Mutant(mistake="None.", file="__init__.py", old="gone", new="", test="test_layers.py")
    with pytest.raises(ValueError, match="found 0 times in __init__.py"):
        gone.check("something else")
