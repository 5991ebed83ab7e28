"""Proofs for a machine are complete, and every page of the theory names its own or has none for a
reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROOFS, THEORY = ROOT / "proofs", ROOT / "docs" / "theory"
FILES = sorted(PROOFS.glob("*.v"))
#: What a page says of its proofs, up to what a machine did not read; files there, and theorems.
SAID = re.compile(r"\*Machine-checked\*(.*?)\bOn\s+paper:", re.DOTALL)
FILE, NAME = re.compile(r"`proofs/(\w+\.v)`"), re.compile(r"`((?!test_)[A-Za-z]\w+)`")
STATED = re.compile(r"^\s*(?:Theorem|Corollary)\s+(\w+)", re.MULTILINE)
OPEN = re.compile(r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Abort)\b")
SECTION, END = re.compile(r"^\s*Section\s+(\w+)\."), re.compile(r"^\s*End\s+(\w+)\.")
ASSUMED = re.compile(r"^\s*(?:Variables?|Hypothes[ie]s|Context|Let)\b")

pytestmark = pytest.mark.skipif(
    not PROOFS.is_dir(), reason="a source archive does not hold the proofs"
)


def without_comments(text: str) -> str:
    return re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)


def listed_pages() -> list[str]:
    """Pages of the index, but for its chapters on symbols and papers."""
    text = (THEORY / "index.md").read_text().partition("## Symbols")[0]
    return sorted(set(re.findall(r"\]\((\w+\.md)\)", text)))


def reasons() -> dict[str, str]:
    """Page ↦ why no theorem of it is proved for a machine."""
    table = (PROOFS / "README.md").read_text().partition("## Pages without a proof here")[2]
    return dict(re.findall(r"^\| `docs/theory/(\w+\.md)` \| (.+) \|$", table, re.MULTILINE))


def said(page: str) -> str:
    """All that a page says of its proofs."""
    return "\n".join(SAID.findall((THEORY / page).read_text()))


def outside_of_sections(text: str) -> list[str]:
    """Lines that assume something, and would be axioms of all that follows."""
    sections, found = [], []
    for line in without_comments(text).splitlines():
        if opened := SECTION.match(line):
            sections.append(opened[1])
        elif (ended := END.match(line)) and sections:
            assert sections.pop() == ended[1]
        elif ASSUMED.match(line) and not sections:
            found.append(line)
    assert sections == []
    return found


def test_every_page_of_the_theory_has_a_proof_or_a_reason():
    proved = {page for page in listed_pages() if said(page)}
    assert sorted(proved | set(reasons())) == listed_pages()
    assert proved & set(reasons()) == set()
    assert len(proved) > 15


@pytest.mark.parametrize("page", listed_pages() if PROOFS.is_dir() else [])
def test_a_page_names_files_and_theorems_that_exist(page):
    files, names = FILE.findall(said(page)), NAME.findall(said(page))
    assert [name for name in files if not (PROOFS / name).is_file()] == []
    sources = [(PROOFS / name).read_text() for name in files]
    assert bool(names) == bool(files) == bool(said(page))
    assert [name for name in names if not any(is_proved(name, source) for source in sources)] == []


def is_proved(name: str, source: str) -> bool:
    stated = re.search(
        rf"^\s*(?:Theorem|Corollary|Lemma)\s+{name}\b", without_comments(source), re.MULTILINE
    )
    return bool(stated) and f"Print Assumptions {name}." in source


def test_the_table_and_the_project_list_every_file():
    table = (PROOFS / "README.md").read_text()
    assert [path.name for path in FILES if f"`{path.name}`" not in table] == []
    listed = re.findall(r"^(\w+\.v)$", (PROOFS / "_CoqProject").read_text(), re.MULTILINE)
    assert listed == [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_complete(path):
    text = path.read_text()
    assert OPEN.findall(without_comments(text)) == []
    assert outside_of_sections(text) == []
    parts = STATED.findall(without_comments(text))
    assert [name for name in parts if f"Print Assumptions {name}." not in text] == []


def test_holes_are_noticed():
    expected = ["admit", "Admitted", "Axiom"]
    assert OPEN.findall("Proof. admit. Admitted. Axiom a : False.") == expected
    assert OPEN.findall(without_comments("(* no Axiom *) Lemma administer : True.")) == []
    actual = outside_of_sections("Section S.\nVariable x : nat.\nEnd S.\nHypothesis h : 0 = 1.")
    assert actual == ["Hypothesis h : 0 = 1."]


def test_neither_the_wheel_nor_the_source_archive_holds_proofs():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    assert targets["wheel"]["packages"] == ["sklearn_dpsearch"]
    assert [path for path in targets["sdist"]["include"] if path.startswith("proofs")] == []
    assert (ROOT / ".ci" / "prove").stat().st_mode & 0o100
