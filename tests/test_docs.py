"""The docs hold together: links lead somewhere, code can be compiled, and the README's code
runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sklearn_dpsearch
from sklearn_dpsearch.preprocessing import Schema

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = [
    path
    for part in ("sklearn_dpsearch", "tests", "examples")
    for path in sorted((ROOT / part).rglob("*.py"))
]
#: Where code and messages send the reader; and the files and tests that pages name.
MENTIONED = re.compile(r"docs/[\w/]+\.md|(?:examples|tests|sklearn_dpsearch)/[\w/]+\.py")
FILE = re.compile(r"`([\w/]+/\w+\.py)`")
TEST = re.compile(r"`(test_\w+)(\.py)?`")
#: The largest number of words of a page, by ``wc -w``: a page is read in one sitting.
WORDS = 1500
#: The largest number of words of all pages and the README, by ``wc -w``.
ALL_WORDS = 57_000
#: Pages that are looked up: tables of figures.
LONG = {
    "docs/learn/benchmarks.md",
    "docs/learn/benchmarks_searches.md",
    "docs/learn/benchmarks_tables.md",
}
GENERATED = ("docs/_build/", "docs/gallery/", "docs/reference/api/")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text()))


def anchor(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {anchor(heading) for heading in headings} | set(
        re.findall(r'<a id="([^"]+)"', page.read_text())
    )


def links(page: Path) -> list[str]:
    parts = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [link for link in parts if not re.match(r"[a-z]+:", link)]


def broken(page: Path) -> list[str]:
    """Links of a page that lead to no file, or to no heading of it."""
    found = []
    for link in links(page):
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_page_and_a_heading(page):
    assert broken(page) == []


def test_a_page_is_short_enough_to_be_read_in_one_sitting():
    words = {name_of(page): len(page.read_text().split()) for page in ROOT.glob("docs/**/*.md")}
    assert set(words) >= LONG
    read = {
        name: number
        for name, number in words.items()
        if name not in LONG and not name.startswith(GENERATED)
    }
    assert {name: number for name, number in read.items() if number > WORDS} == {}


def test_all_pages_together_stay_below_their_ceiling():
    pages = [page for page in ROOT.glob("docs/**/*.md") if not name_of(page).startswith(GENERATED)]
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", *pages])
    assert len(text.split()) <= ALL_WORDS


def test_a_link_to_nowhere_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[good](#one-two) [bad](#three) [gone](no.md) [web](https://example.org) "
        "`[code](x.md)`\n"
    )
    assert broken(page) == ["#three", "no.md"]


def test_every_page_is_reached_from_the_index():
    reached, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.is_file():
            reached.add(page)
            waiting += [
                (page.parent / link.partition("#")[0]).resolve()
                for link in links(page)
                if link[0] != "#"
            ]
    assert [name_of(page) for page in ROOT.glob("docs/**/*.md") if page not in reached] == []


def test_the_site_shows_every_page():
    shown = re.findall(r"(?:root|file|glob): (\S+)", (ROOT / "docs" / "_toc.yml").read_text())
    pages = [
        str(page.relative_to(ROOT / "docs").with_suffix("")) for page in ROOT.glob("docs/**/*.md")
    ]
    left_out = [page for page in pages if not any(fnmatch(page, pattern) for pattern in shown)]
    assert [page for page in left_out if not page.startswith(("_build/", "gallery/"))] == []


def test_the_reference_lists_every_public_name():
    blocks = re.split(
        r"\.\. currentmodule:: (\S+)", (ROOT / "docs" / "reference" / "api.rst").read_text()
    )[1:]
    listed = {
        f"{room}.{name}"
        for room, text in zip(blocks[::2], blocks[1::2])
        for name in re.findall(r"^   (\w+)$", text, re.M)
    }
    rooms = [import_module(room) for room in blocks[::2]]
    public = {
        f"{room.__name__}.{name}"
        for room in rooms
        for name in room.__all__
        if name != "__version__"
    }
    assert public - listed <= {
        f"sklearn_dpsearch.{name}" for name in ("BudgetExceededError", "PrivacyError")
    }  # listed under privacy
    assert listed - public == set()


def test_the_files_that_code_and_docs_speak_of_exist():
    gone = {
        (name_of(file), mention)
        for file in [*PAGES, *CODE]
        for mention in MENTIONED.findall(file.read_text())
        if not (ROOT / mention).is_file()
    }
    assert gone == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_files_and_tests_that_a_page_names_exist(page):
    places = [ROOT, ROOT / "sklearn_dpsearch", ROOT / "tests"]
    text = FENCED.sub("", page.read_text())
    assert [
        file for file in FILE.findall(text) if not any((place / file).is_file() for place in places)
    ] == []
    files = {path.stem for path in CODE}
    assert [name for name, _ in TEST.findall(text) if name not in files | names_of_tests()] == []


@cache
def names_of_tests() -> set[str]:
    text = "\n".join(path.read_text() for path in CODE if path.name.startswith("test_"))
    return set(re.findall(r"^ *def (test_\w+)\(", text, re.MULTILINE))


def test_the_design_shows_every_room_of_the_house_on_one_screen():
    parts = FENCED.findall((ROOT / "docs" / "design.md").read_text())
    tree = next(code for language, code in parts if language == "text")
    assert [line for line in tree.splitlines() if len(line) > 120] == []
    shown = re.findall(r"^ +(\w+)/  ", tree.partition("\ntests/")[0], re.MULTILINE)
    rooms = [path.parent.name for path in (ROOT / "sklearn_dpsearch").rglob("*/__init__.py")]
    assert sorted(shown) == sorted(rooms)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_code_of_a_page_can_be_compiled(page):
    for language, code in FENCED.findall(page.read_text()):
        if language == "python" and ">>>" not in code:
            ast.parse(textwrap.dedent(code))


def first_code_of(page: Path) -> str:
    return next(code for language, code in FENCED.findall(page.read_text()) if language == "python")


def test_the_first_model_is_the_same_everywhere_and_needs_nine_lines():
    first, *others = (
        first_code_of(ROOT / page) for page in ("README.md", "docs/index.md", "docs/learn/start.md")
    )
    assert others == [first, first]
    assert len([line for line in first.splitlines() if line.strip()]) == 9
    assert "Search" not in first
    assert "fetch" not in first


def test_the_first_model_runs(capsys):
    exec(first_code_of(ROOT / "README.md"), {})
    printed = capsys.readouterr().out
    assert float(re.findall(r"accuracy on other records: ([\d.]+)", printed)[0]) > 0.85
    sentence = "epsilon = 1.000 at delta = 1e-05 (zero_out neighbours; unit: record; composition)"
    assert sentence in printed
    assert "DPGradientBoostingClassifier: the schema was not taken from the records" in printed


def like_adult(number: int) -> pd.DataFrame:
    """Records with the names and values of the census, drawn at random."""
    rng = np.random.default_rng(0)
    schema = Schema.from_yaml(ROOT / "examples" / "quickstart" / "adult.yaml")
    drawn = {
        name: rng.integers(*values, number)
        if isinstance(values, tuple)
        else rng.choice(values, number)
        for name, values in schema.items()
    }
    return pd.DataFrame({**drawn, "income": np.where(drawn["education-num"] > 8, ">50K", "<=50K")})


@pytest.mark.slow
def test_the_other_code_of_the_readme_can_be_pasted_and_runs(tmp_path):
    pytest.importorskip("torch")
    like_adult(4000).rename(columns={"income": "class"}).to_csv(tmp_path / "adult.csv", index=False)
    without_network = (
        "import types, pandas, sklearn.datasets; "
        "sklearn.datasets.fetch_openml = lambda *_, **__: "
        "types.SimpleNamespace(frame=pandas.read_csv('adult.csv'))"
    )
    parts = FENCED.findall((ROOT / "README.md").read_text())
    codes = [code for language, code in parts if language == "python"]
    run = [sys.executable, "-i", "-q", "-c", without_network]
    options = {"text": True, "check": True, "cwd": tmp_path}
    done = subprocess.run(run, input="\n".join(codes), capture_output=True, **options)
    assert "Error" not in done.stderr
    assert len(re.findall(r"accuracy on other records: ([\d.]+)", done.stdout)) == 2
    assert "relationship: missing" in done.stdout
    assert "epsilon = 3.000 at delta = 1e-05" in done.stdout


@pytest.mark.slow
def test_the_quickstart_on_adult_runs(tmp_path):
    pytest.importorskip("torch")
    names = list(Schema.from_yaml(ROOT / "examples" / "quickstart" / "adult.yaml"))
    columns = [*names[:2], "fnlwgt", "education", *names[2:]]  # as UCI orders them
    for part in ("train", "test"):
        records = like_adult(3000).assign(fnlwgt=1, education="?")[columns]
        records.to_csv(tmp_path / f"adult-{part}.csv.gz", index=False, header=False)
    script = ROOT / "examples" / "quickstart" / "adult.py"
    options = {"capture_output": True, "text": True, "check": True}
    done = subprocess.run([sys.executable, script, "--data", tmp_path], **options)
    assert "epsilon = 1.000 at delta = 1e-06" in done.stdout


def test_the_readme_says_how_to_run_the_quickstart_and_the_tests_in_one_line_each():
    lines = (ROOT / "README.md").read_text().splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv ")]
    expected = ["examples/quickstart/breast_cancer.py", '-m pytest -m "not slow" -n 2']
    assert [line.rpartition(".venv/bin/python ")[2] for line in commands] == expected


def test_version_changelog_and_citation_agree():
    version = sklearn_dpsearch.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(
        rf"^## \[?{re.escape(version)}\b",
        (ROOT / "docs" / "changelog.md").read_text(),
        re.MULTILINE,
    )
