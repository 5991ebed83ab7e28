"""The page about the core names files, tests and mutants that exist, and has a side for every file
of the package."""

from __future__ import annotations

import re
from pathlib import Path

from .mutants.table import MUTANTS, core_names

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sklearn_dpsearch"
PAGE = (ROOT / "docs" / "core.md").read_text()
#: Files and folders, also by the last part of their names, in backticks.
NAMED = {
    name.removesuffix(".py").removesuffix("…")
    for name in re.findall(r"`([\w/]+…?(?:\.py)?)`", PAGE)
}
SECRET = re.compile(r"\b(secrets\.\w|SystemRandom\(|os\.urandom\()")


def is_named(path: Path) -> bool:
    """Return whether the page has a file, its folder or its name without folders."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    folders = {"/".join(parts[:end]) + "/" for end in range(1, len(parts))}
    names = {"/".join(parts[start:]) for start in range(len(parts))}
    return bool((folders | names) & NAMED)


def test_every_file_of_the_package_has_a_side():
    parts = PACKAGE.rglob("*.py")
    files = [path for path in parts if path.stem not in ("__init__", "errors", "_version")]
    assert [str(path.relative_to(PACKAGE)) for path in files if not is_named(path)] == []


def test_every_path_of_the_page_exists():
    paths = [name for name in NAMED if "/" in name]
    places = [PACKAGE, ROOT]
    gone = [
        name
        for name in paths
        if not any((place / f"{name}.py").is_file() or (place / name).is_dir() for place in places)
        and not list(PACKAGE.glob(f"**/{name}*.py"))
    ]
    assert gone == []


def test_every_mutant_of_the_page_is_one():
    names = {one.name for one in MUTANTS}
    told = core_names()
    assert len(told) > 60
    assert [name for name in told if name not in names] == []


def test_secret_generators_are_made_where_the_page_says():
    text = PAGE.partition("Secret generators are made")[2].partition("##")[0]
    told = {name for name in re.findall(r"`([\w/]+\.py)`", text) if not name.startswith("tests/")}
    parts = PACKAGE.rglob("*.py")
    made = {str(path.relative_to(PACKAGE)) for path in parts if SECRET.search(code_of(path))}
    assert made == told


def code_of(path: Path) -> str:
    """Source without docstrings and comments."""
    return re.sub(r'""".*?"""|#[^\n]*|``[^`]*``', "", path.read_text(), flags=re.DOTALL)
