"""The table of mutants does not rot: every text that it changes is still there, once."""

from __future__ import annotations

import re

import pytest

from .mutant import ROOT, Mutant
from .run import BEGIN, END, killer_of
from .table import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_fits_the_library_as_it_is(mutant):
    mutant.check((ROOT / "sklearn_dpsearch" / mutant.file).read_text())
    assert [one for one in mutant.tests if not (ROOT / "tests" / one.partition("::")[0]).is_file()] == []
    assert mutant.tests
    assert mutant.mistake.endswith(".")


def test_there_are_at_least_forty_and_no_two_of_one_name():
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) >= 40


def test_the_published_table_has_every_mutant_and_the_tests_that_notice_them_exist():
    text = (ROOT / "docs" / "mutants.md").read_text()
    table = text[text.index(BEGIN) : text.index(END)]
    assert re.findall(r"^\| \*\*(.+?)\.\*\* ", table, re.MULTILINE) == [one.name for one in MUTANTS]
    for file, test in re.findall(r"`(\S+)`: `(\S+?)` \|$", table, re.MULTILINE):
        path = ROOT / "tests" / file if (ROOT / "tests" / file).is_file() else ROOT / file
        assert re.search(rf"^ *def {test.rpartition('::')[2]}\(", path.read_text(), re.MULTILINE), test


@pytest.mark.slow
def test_a_mistake_is_noticed_and_a_change_that_matters_to_nobody_is_not():
    tests, text = ("audit/test_bounds.py",), "    level = 1.0 - math.sqrt(confidence)\n"
    same = Mutant(name="same", mistake="None.", file="audit/bounds.py", old=text, new=text + "\n", tests=tests)
    wrong = Mutant(
        name="wrong", mistake="None.", file="audit/bounds.py", old=text, new="    level = 0.5\n", tests=tests
    )
    assert killer_of(same, likely_only=True) is None
    assert str(killer_of(wrong, likely_only=True)).startswith("tests/audit/test_bounds.py::test_")


def test_a_text_that_is_not_there_is_said():
    gone = Mutant(
        name="gone", mistake="None.", file="__init__.py", old="no such text", new="", tests=("test_layers.py",)
    )
    with pytest.raises(ValueError, match="found 0 times in __init__.py"):
        gone.check("something else")
