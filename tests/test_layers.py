"""The house of the design: who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sklearn_dpsearch"
#: Part ↦ parts that it may import, from the table of the design.
ALLOWED = {
    part: set(re.findall(r"`(\w+)`", row.split("|")[2]))
    for row in (PACKAGE.parent / "docs" / "design.md").read_text().splitlines()
    if row.startswith("| `") and len(row.split("|")) == 5
    for part in re.findall(r"`(\w+)`", row.split("|")[1])
    if (PACKAGE / part).is_dir()
}
#: Files at the bottom of the house, which import nothing of it.
BELOW_ALL = {"errors", "_documentation", "_durable", "_namespaces", "_version"}
OUTSIDE_OF_PRIVACY = {"sklearn", "joblib", "torch", "diffprivlib", "matplotlib", "skorch", "opacus"}


def imports(path: Path) -> set[str]:
    """Absolute names of the modules that a file imports, at any depth."""
    package = ["sklearn_dpsearch", *path.relative_to(PACKAGE).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            found.add(".".join([*base, *([node.module] if node.module else [])]))
    return found


def imported(path: Path) -> set[str]:
    """The files that a file imports, whether it names them or takes names from them."""
    package = ["sklearn_dpsearch", *path.relative_to(PACKAGE).parts[:-1]]
    found = imports(path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [
                *package[: len(package) - node.level + 1],
                *([node.module] if node.module else []),
            ]
            found |= {".".join([*base, alias.name]) for alias in node.names}
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)
#: Inside the accountant: which rooms a room may look into. What lies in no room may look into all
#: of them.
ROOMS = {
    "_numerics": set(), "_count_distributions": {"_numerics"}, "_guarantees": {"_numerics"},
    "_mechanisms": {"_numerics"},
    "_selection": {"_guarantees", "_count_distributions", "_mechanisms", "_numerics"},
    "_statement": {"_guarantees", "_numerics"},
}  # fmt: skip
#: Inside of nets: which rooms, and files beside them, each of these may look into. Estimators may
#: look into all.
INSIDE_NETS = {
    **{
        name: set()
        for name in ("_named_tensors", "_opacus_net", "_optimizers", "_randomness", "_sampling")
    },
    "_torch_settings": set(),
    "_records": {"_engines", "_named_tensors", "_randomness", "_sampling"},
    "_engines": {"_named_tensors", "_randomness"},
    "_stacked_training": {
        "_records", "_engines", "_optimizers", "_randomness", "_sampling", "_torch_settings",
    },
    "_training": {
        "_records", "_stacked_training", "_engines", "_optimizers", "_named_tensors", "_randomness",
        "_torch_settings",
    },
    "_fingerprint": {"_named_tensors", "_records", "_stacked_training"},
}  # fmt: skip
#: Inside the searches: which rooms a room may look into, and what lies on the ground of all of
#: them.
INSIDE_SEARCH = {
    "_execution": {"_records", "_checkpoint_folder", "_private_process", "_pickling"},
    "_planning": {"_records"},
    "strategies": {"_records", "_planning", "_execution"},
}
#: Rooms of one search each: no other room looks into them.
SEARCHES = {"_subset_search", "_threshold_search"}
#: Modules with a meaning to Python.
SPECIAL = ("__init__", "__main__")
#: Below every room of the accountant.
GROUND = {"_checks", "_serialization"}


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_a_row_imports_only_rows_below_it(path):
    part = path.relative_to(PACKAGE).parts[0]
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("sklearn_dpsearch.")}
    assert ours - {part} <= ALLOWED[part] | BELOW_ALL


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((PACKAGE / "privacy").rglob("*.py")), ids=relative)
def test_the_accountant_knows_nothing_of_learning(path):
    assert not {name.split(".")[0] for name in imports(path)} & OUTSIDE_OF_PRIVACY


@pytest.mark.parametrize("path", sorted((PACKAGE / "privacy").rglob("*/*.py")), ids=relative)
def test_arrows_inside_the_accountant_go_down(path):
    room = path.relative_to(PACKAGE).parts[1]
    seen = {
        name.split(".")[2] for name in imports(path) if name.startswith("sklearn_dpsearch.privacy.")
    }
    assert seen - {room} <= ROOMS[room] | GROUND


@pytest.mark.parametrize("name", sorted(GROUND))
def test_the_ground_of_the_accountant_looks_into_no_room(name):
    parts = imports(PACKAGE / "privacy" / f"{name}.py")
    assert not [one for one in parts if one.split(".")[2:3] and one.split(".")[2] in ROOMS]


@pytest.mark.parametrize("name", sorted(BELOW_ALL))
def test_the_bottom_of_the_house_imports_nothing_of_it(name):
    assert not [
        one for one in imports(PACKAGE / f"{name}.py") if one.startswith("sklearn_dpsearch")
    ]


@pytest.mark.slow
def test_what_is_not_public_lies_in_a_module_or_folder_with_an_underscore():
    public = {"errors.py", "privacy/interop.py"}
    paths = {relative(path) for path in PACKAGE.rglob("*.py") if path.stem not in SPECIAL}
    assert {path for path in paths if "/_" not in f"/{path}"} == public


def test_every_class_has_a_name_of_its_own():
    """A name with two meanings is read wrongly once."""
    trees = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    places = [
        (node.name.lstrip("_"), relative(path))
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    names = Counter(name for name, _ in places)
    assert [(name, path) for name, path in places if names[name] > 1] == []


@pytest.mark.slow
def test_no_file_imports_itself_by_a_detour():
    """A circle of imports works only in one order, and says that two files are one."""
    names = {
        ".".join(["sklearn_dpsearch", *path.relative_to(PACKAGE).with_suffix("").parts]): path
        for path in FILES
    }
    graph = {name: imported(path) & set(names) for name, path in names.items()}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


@pytest.mark.parametrize("path", sorted((PACKAGE / "nets").rglob("[a-z]*.py")), ids=relative)
def test_arrows_inside_nets_go_from_estimators_to_training_to_engines(path):
    room = path.relative_to(PACKAGE).with_suffix("").parts[1]
    seen = {
        name.split(".")[2] for name in imported(path) if name.startswith("sklearn_dpsearch.nets.")
    }
    assert room == "_estimators" or seen - {room} <= INSIDE_NETS[room]


@pytest.mark.parametrize("path", sorted((PACKAGE / "search").rglob("*/*.py")), ids=relative)
def test_arrows_inside_the_searches_go_down(path):
    """A strategy asks the plan and the execution; neither knows of strategies, nor of the
    searches."""
    room = path.relative_to(PACKAGE).parts[1]
    seen = {
        name.split(".")[2] for name in imports(path) if name.startswith("sklearn_dpsearch.search.")
    }
    assert room in SEARCHES or seen - {room} <= INSIDE_SEARCH[room]
    assert not (seen - {room}) & SEARCHES


def test_no_test_module_imports_another():
    """Common toys are in a file of each folder that has no tests."""
    pattern = re.compile(r"^(?:from|import) \S*\btest_\w+", re.MULTILINE)
    parts = sorted(Path(__file__).parent.rglob("*.py"))
    found = {path.name: pattern.findall(path.read_text()) for path in parts}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_every_part_has_a_row():
    assert {path.relative_to(PACKAGE).parts[0] for path in FILES} == set(ALLOWED)


def loaded(code: str) -> list[str]:
    """Which optional libraries are loaded after some code has run in a fresh interpreter."""
    shown = (
        "print(*[m for m in ('torch', 'skorch', 'opacus', 'diffprivlib', 'matplotlib') if m in "
        "sys.modules])"
    )
    run = [sys.executable, "-W", "ignore", "-c", f"import sys; {code}; {shown}"]
    return subprocess.run(
        run, capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    ).stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sklearn_dpsearch", "sklearn_dpsearch.nets"])
def test_importing_the_package_imports_no_optional_library(name):
    assert loaded(f"import {name}") == []


@pytest.mark.slow
def test_nets_for_tables_need_torch_alone():
    pytest.importorskip("torch")
    make = (
        "from sklearn_dpsearch.nets import DPMLPClassifier as M; M(noise_multiplier=1.0, "
        "max_steps=2)"
    )
    assert loaded(f"{make}.fit([[0.0], [1.0]] * 9, [0, 1] * 9)") == ["torch"]


@pytest.mark.slow
def test_a_missing_library_is_named_with_how_to_install_it():
    code = """
import sys
class Missing:
    def find_spec(name, *_):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
try:
    from sklearn_dpsearch.nets import DPMLPClassifier
except ImportError as error:
    print(error)
"""
    options = {"text": True, "check": True, "cwd": PACKAGE.parent}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, **options)
    assert "needs torch" in shown.stdout
    assert "pip install -e '.[nets]'" in shown.stdout
