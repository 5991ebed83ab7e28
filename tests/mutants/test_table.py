"""The table of mutants does not rot: every text that it changes is still there, once."""

from __future__ import annotations

import re

import pytest

from .mutant import ROOT, Mutant
from .run import BEGIN, END
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
    text = (ROOT / "docs" / "trust.md").read_text()
    table = text[text.index(BEGIN) : text.index(END)]
    assert re.findall(r"^\| \*\*(.+?)\.\*\* ", table, re.MULTILINE) == [one.name for one in MUTANTS]
    for file, test in re.findall(r"`(\S+)`: `(\S+?)` \|$", table, re.MULTILINE):
        path = ROOT / "tests" / file if (ROOT / "tests" / file).is_file() else ROOT / file
        assert re.search(rf"^ *def {test.rpartition('::')[2]}\(", path.read_text(), re.MULTILINE), test


def test_a_text_that_is_not_there_is_said():
    gone = Mutant(
        name="gone", mistake="None.", file="__init__.py", old="no such text", new="", tests=("test_layers.py",)
    )
    with pytest.raises(ValueError, match="found 0 times in __init__.py"):
        gone.check("something else")
