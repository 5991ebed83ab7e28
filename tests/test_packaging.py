"""Metadata, constraints, recipe and workflows say the same, and what is built can be trusted."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import sklearn_dpsearch
from sklearn_dpsearch._documentation import SITE

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: Name, and the version after ``==`` or ``>=``.
REQUIREMENT = re.compile(r"^([\w-]+)(?:\[[\w-]+\])? ?[=>]=([\d.]+)")


def versions(lines: list[str]) -> dict[str, str]:
    """Name ↦ version, of the lines that state one."""
    return dict(found.groups() for line in lines if (found := REQUIREMENT.match(line.strip())))


def constraints(name: str) -> list[str]:
    return (ROOT / ".ci" / "constraints" / f"{name}.txt").read_text().splitlines()


def test_the_oldest_libraries_that_ci_runs_are_the_lower_ends_of_the_ranges():
    needed = versions(PROJECT["dependencies"]) | versions(
        PROJECT["optional-dependencies"]["tables"]
    )
    assert versions(constraints("oldest")) == needed


def test_the_newest_libraries_that_ci_runs_are_in_the_ranges():
    newest, oldest = versions(constraints("newest")), versions(constraints("oldest"))
    as_numbers = {name: tuple(map(int, version.split("."))) for name, version in newest.items()}
    assert {"numpy", "scipy", "scikit-learn", "pandas"} <= set(newest)
    assert [
        name for name in newest if as_numbers[name] < tuple(map(int, oldest[name].split(".")))
    ] == []


def test_no_library_of_every_installation_has_a_cap_above():
    assert [
        text for text in PROJECT["dependencies"] if "<" in text or "~=" in text or "==" in text
    ] == []


def test_the_conda_recipe_needs_what_the_wheel_needs():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    run = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1]
    needed = versions([line.strip().removeprefix("- ") for line in run.splitlines()])
    assert needed.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert needed == versions(PROJECT["dependencies"])
    assert f'version: "{sklearn_dpsearch.__version__}"' in recipe


def test_addresses_are_the_same_everywhere():
    urls = PROJECT["urls"]
    assert urls["Documentation"] == SITE.removesuffix("/en/stable")
    assert urls["Changelog"] == f"{SITE}/changelog.html"
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    assert f"homepage: {urls['Documentation']}\n" in recipe
    assert f"repository: {urls['Source']}\n" in recipe


def test_every_supported_python_has_a_classifier():
    first = int(PROJECT["requires-python"].removeprefix(">=3."))
    parts = PROJECT["classifiers"]
    named = [int(found[1]) for text in parts if (found := re.search(r":: 3\.(\d+)$", text))]
    assert named == list(range(first, 15))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_commit_and_says_its_version(path):
    used = re.findall(r"^ *-? ?uses: (.*)$", path.read_text(), re.MULTILINE)
    assert used
    assert [
        line
        for line in used
        if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ] == []


def test_only_the_publishing_job_may_prove_who_it_is():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    before, _, publish = text.partition("\n  publish:\n")
    assert "id-token: write" in publish
    assert "id-token" not in before
    assert "password" not in publish
