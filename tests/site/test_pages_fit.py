"""Every page of the built site fits a telephone and a screen: nothing but boxes scrolls sideways.

Build the site first (docs/CONTRIBUTING.md). Without a site or Chromium the tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .browser import CHROMIUM, ask

SITE = Path(os.environ.get("SKLEARN_DPSEARCH_SITE", Path(__file__).parents[2] / "docs" / "_build"))
PAGES = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)
#: Pages that people open first, on telephones too.
FIRST = [
    "index", "learn/tables", "learn/budget", "reference/index",
    "reference/api/sklearn_dpsearch.boosting.DPGradientBoostingClassifier",
]  # fmt: skip

pytestmark = [
    pytest.mark.skipif(not PAGES, reason=f"no site in {SITE}: run sphinx-build first"),
    pytest.mark.skipif(not CHROMIUM, reason="no chromium"),
]

#: Faults of a page, each in words. Boxes that scroll by themselves are fine.
LOOK = (Path(__file__).parent / "look.js").read_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways_and_tables_code_and_titles_fit(width, tmp_path):
    found = ask(PAGES, width, LOOK, tmp_path)
    actual = {str(page.relative_to(SITE)): faults for page, faults in zip(PAGES, found) if faults}
    assert actual == {}


def test_pages_that_people_open_first_are_among_them():
    assert {SITE / f"{name}.html" for name in FIRST} <= set(PAGES)


def test_a_page_that_is_too_wide_is_noticed(tmp_path):
    page = tmp_path / "wide.html"
    page.write_text(
        "<!doctype html><body><article><h1>One</h1><pre style='width:800px'>code</pre></article>"
    )
    (found,) = ask([page], 390, LOOK, tmp_path)
    assert len(found) == 2
    assert "page is" in found[0]
    assert "pre ends at" in found[1]


def test_text_that_a_box_around_the_article_cuts_is_noticed(tmp_path):
    page = tmp_path / "cut.html"
    article = "<article><h1>One</h1><dl><dd style='width: 800px'>text</dd></dl></article>"
    page.write_text(f"<!doctype html><body><div style='overflow-x: auto'>{article}</div>")
    (found,) = ask([page], 390, LOOK, tmp_path)
    assert "page is" in found[0]
    assert "dd ends at" in found[1]


def test_a_heading_larger_than_the_title_is_noticed(tmp_path):
    page = tmp_path / "large.html"
    page.write_text(
        "<!doctype html><body><article><h1 style='font-size: 1rem'>One</h1><h2>Two</h2></article>"
    )
    assert ask([page], 390, LOOK, tmp_path) == [["larger than the title: Two"]]


def test_a_table_with_columns_out_of_sight_is_noticed_on_a_screen(tmp_path):
    page = tmp_path / "table.html"
    page.write_text(
        "<!doctype html><article><div style='overflow-x: auto; width: "
        "800px'><table><tr><td>name</td>"
        "<td style='min-width: 900px'>text</td></tr></table></div></article>"
    )
    assert ask([page], 1280, LOOK, tmp_path) == [["columns are out of sight in the table nametext"]]


def test_every_figure_of_the_gallery_is_a_picture_that_was_drawn():
    index = (SITE / "gallery" / "index.html").read_text(encoding="utf-8")
    shown = [part.split('"')[0] for part in index.split('src="')[1:] if "_images/sphx_glr" in part]
    assert shown
    assert [one for one in shown if not (SITE / "gallery" / one).resolve().is_file()] == []
