"""The house of the design: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sklearn_dpsearch"
ALLOWED = {
    "_process": set(),
    "privacy": set(),
    "adapters": {"_process", "privacy"},
    "scoring": {"_process", "privacy"},
    "nets": {"_process", "privacy"},
    "search": {"_process", "privacy", "adapters", "scoring"},
    "audit": {"_process", "privacy", "adapters", "scoring", "nets", "search"},
}
#: Inside of nets: what a folder, or a file beside the folders, may import of the others.
INSIDE_NETS = {
    "checkpoints": set(),
    "layout": set(),
    "randomness": set(),
    "sampling": set(),
    "state": set(),
    "switches": set(),
    "optimizers": {"layout"},
    "schedules": {"optimizers"},
    "task": {"optimizers", "randomness"},
    "engines": {"layout", "randomness", "state"},
    "stack": {"task", "engines", "optimizers", "randomness", "sampling", "switches"},
    "training": {"task", "stack", "engines", "optimizers", "randomness", "switches"},
}
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
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {".".join([*base, name]) for name in names}
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_row_imports_only_rows_below_it(path):
    part = path.relative_to(PACKAGE).parts[0]
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("sklearn_dpsearch.")}
    assert ours - {part} <= ALLOWED[part]


@pytest.mark.parametrize("path", sorted((PACKAGE / "privacy").glob("*.py")), ids=lambda path: path.name)
def test_the_accountant_knows_nothing_of_learning(path):
    assert not {name.split(".")[0] for name in imports(path)} & OUTSIDE_OF_PRIVACY


NETS = [path for path in FILES if path.relative_to(PACKAGE).parts[0] == "nets" and path.parent.name != "estimators"]


@pytest.mark.parametrize("path", NETS[1:], ids=lambda path: str(path.relative_to(PACKAGE)))
def test_inside_of_nets_arrows_go_from_estimators_to_training_to_engines(path):
    part = path.relative_to(PACKAGE).with_suffix("").parts[1]
    found = {name.split(".")[2] for name in imports(path) if name.startswith("sklearn_dpsearch.nets.")}
    assert found - {part} <= INSIDE_NETS[part]


def test_every_part_has_a_row():
    assert {path.relative_to(PACKAGE).parts[0] for path in FILES} == set(ALLOWED)


def loaded(code: str) -> list[str]:
    """Which optional libraries are loaded after some code has run in a fresh interpreter."""
    shown = "print(*[m for m in ('torch', 'skorch', 'opacus', 'diffprivlib', 'matplotlib') if m in sys.modules])"
    run = [sys.executable, "-W", "ignore", "-c", f"import sys; {code}; {shown}"]
    return subprocess.run(run, capture_output=True, text=True, check=True, cwd=PACKAGE.parent).stdout.split()


@pytest.mark.parametrize("name", ["sklearn_dpsearch", "sklearn_dpsearch.nets"])
def test_importing_the_package_imports_no_optional_library(name):
    assert loaded(f"import {name}") == []


def test_nets_for_tables_need_torch_alone():
    pytest.importorskip("torch")
    make = "from sklearn_dpsearch.nets import DPMLPClassifier as M; M(noise_multiplier=1.0, max_steps=2)"
    assert loaded(f"{make}.fit([[0.0], [1.0]] * 9, [0, 1] * 9)") == ["torch"]


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
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert "needs torch" in shown.stdout
    assert "sklearn-dpsearch[nets]" in shown.stdout
