"""Diagrams in notebooks link to our pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch._documentation import SITE
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.preprocessing import TableEncoder

from .public_estimators import SCHEMA, kinds, made

ROOT = Path(__file__).parent.parent
ROOMS = [
    "sklearn_dpsearch", "sklearn_dpsearch.boosting", "sklearn_dpsearch.nets",
    "sklearn_dpsearch.preprocessing",
]  # fmt: skip


def pages() -> set[str]:
    """Names of the pages of the reference, as Sphinx makes them."""
    blocks = re.split(
        r"\.\. currentmodule:: (\S+)", (ROOT / "docs" / "reference" / "api.rst").read_text()
    )[1:]
    named = zip(blocks[::2], blocks[1::2])
    return {
        f"{room}.{name}" for room, text in named for name in re.findall(r"^   (\w+)$", text, re.M)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_the_diagram_of_every_estimator_links_to_its_page(room):
    for kind in kinds(room):
        link = made(kind)._get_doc_link()
        assert link.startswith(f"{SITE}/reference/api/")
        assert link.removeprefix(f"{SITE}/reference/api/").removesuffix(".html") in pages()


def test_a_diagram_shows_the_links():
    search = DPRandomSearchCV(
        DPGradientBoostingClassifier(SCHEMA, target="pay"),
        {"learning_rate": [0.1]},
        epsilon=1.0,
        delta=1e-6,
    )
    for name in (
        "sklearn_dpsearch.DPRandomSearchCV",
        "sklearn_dpsearch.boosting.DPGradientBoostingClassifier",
    ):
        assert f"{SITE}/reference/api/{name}.html" in search._repr_html_()


def test_a_class_of_another_package_has_no_link_to_our_site():
    class Own(TableEncoder):
        __module__ = "elsewhere"

    assert Own(SCHEMA)._get_doc_link() == ""


def test_the_site_is_the_one_of_the_project():
    with (ROOT / "pyproject.toml").open("rb") as file:
        stated = tomllib.load(file)["project"]["urls"]["Documentation"]
    assert SITE.startswith(f"{stated}/")
