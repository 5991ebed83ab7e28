"""The package and its tests grow no further: a ceiling of code lines each, with room of three in a
hundred.

Code lines hold code: no comments, docstrings or blank lines. A feature that is worth more lines
says what went instead (docs/CONTRIBUTING.md).
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Folder ↦ most code lines.
CEILINGS = {"sklearn_dpsearch": 26_400, "tests": 33_000}
#: Most files of the package.
FILES = 215
EMPTY = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(source: str) -> int:
    """Number of lines that hold code."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in EMPTY:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_code_lines_are_lines_with_code():
    function = 'def f():\n    """Doc."""\n    return x\n'
    assert code_lines('"""Doc."""\n\n# comment\nx = """a\nb"""  # more\n\n\n' + function) == 4


@pytest.mark.parametrize(("folder", "ceiling"), CEILINGS.items())
def test_a_folder_stays_below_its_ceiling(folder, ceiling):
    lines = sum(code_lines(path.read_text()) for path in (ROOT / folder).rglob("*.py"))
    assert 0.97 * ceiling <= lines <= ceiling, "lower the ceiling where lines went"


def test_the_package_has_few_files():
    assert len(list((ROOT / "sklearn_dpsearch").rglob("*.py"))) <= FILES
