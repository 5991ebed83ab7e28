"""How Sphinx makes a site of these pages, without a network: ``sphinx-build -W docs docs/_build``.

Pages are plain Markdown; what stands where is in ``_toc.yml``. The scripts of ``examples/guides``
are run and become the gallery, and docstrings become the reference. The extra ``docs`` is enough:
without PyTorch or diffprivlib, guides that need them are shown, not run, and their pages say so.
"""

from __future__ import annotations

import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

import sklearn_dpsearch

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "examples" / "guides").glob("*.py"))
#: Packages of other extras that guides or docstrings' classes import.
EXTRAS = {"nets": ["torch", "skorch", "opacus"], "diffprivlib": ["diffprivlib"]}
#: What such a guide imports, our nets included.
IMPORTED = re.compile(
    r"^\s*(?:from|import) (?:sklearn_dpsearch\.)?(nets|torch|skorch|opacus|diffprivlib)\b", re.M
)


def missing(extra: str) -> list[str]:
    """Packages of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if find_spec(name) is None]


def unmet(guide: Path) -> list[str]:
    """Extras that a guide needs and that are not installed in full."""
    imported = set(IMPORTED.findall(guide.read_text(encoding="utf-8")))
    return [extra for extra in EXTRAS if missing(extra) and imported & {extra, *EXTRAS[extra]}]


#: Page of the gallery ↦ the extras for want of which its guide is not run.
NOT_RUN = {f"gallery/guides/{guide.stem}": unmet(guide) for guide in GUIDES if unmet(guide)}
RUN = "|".join(guide.stem for guide in GUIDES if f"gallery/guides/{guide.stem}" not in NOT_RUN)

project = "sklearn_dpsearch"
author = copyright = "the sklearn_dpsearch developers"
release = version = sklearn_dpsearch.__version__

extensions = [
    "myst_parser",
    "sphinx_external_toc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
exclude_patterns = [
    "_build",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.json",
    "gallery/**/*.zip",
]
html_theme = "pydata_sphinx_theme"
html_title = "sklearn_dpsearch"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_static_path, html_css_files = ["_static"], ["site.css"]
html_copy_source = html_show_sourcelink = False

suppress_warnings = ["etoc.toctree"]  # the gallery and the API have trees of their own
myst_heading_anchors = 4  # as GitHub makes them

autosummary_generate = True
templates_path = ["_templates"]
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's types are written for readers
autodoc_mock_imports = missing("nets")
# what computes with PyTorch while it is imported, and is no page of the reference
if "torch" in autodoc_mock_imports:
    inner = ("sklearn_dpsearch.nets._engines", "sklearn_dpsearch.nets._named_tensors")
    autodoc_mock_imports += inner

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    # the quickstart fetches its data, and is shown only
    "filename_pattern": rf"examples.guides.(?:{RUN})\.py$",
    "subsection_order": ["../examples/quickstart", "../examples/guides"],
    "default_thumb_file": str(ROOT / "docs" / "_static" / "thumbnail.svg"),
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r".*\.yaml",
    "download_all_examples": False,
    "capture_repr": (),
    "show_signature": False,
    "remove_config_comments": True,
}


def of_other_libraries(
    app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn or skorch: they document it themselves."""
    function = getattr(value, "fget", value)
    module = getattr(function, "__module__", None) or ""
    return True if what == "class" and not module.startswith(sklearn_dpsearch.__name__) else None


def own_signature(
    app: Sphinx, what: str, name: str, value: Any, *others: Any
) -> tuple[str, None] | None:
    """The arguments of a class as Python tells them: Sphinx would show those of ``__new__``."""
    if what != "class" or not getattr(value, "__module__", "").startswith(
        sklearn_dpsearch.__name__
    ):
        return None
    try:
        return stringify_signature(inspect.signature(value), show_annotation=False), None
    except (TypeError, ValueError):  # a type alias, an enumeration
        return None


def say_not_run(app: Sphinx, page: str, source: list[str]) -> None:
    """Begin the page of a guide that was not run with a note that says so."""
    if page in NOT_RUN:
        extras = " and ".join(f"``{extra}``" for extra in NOT_RUN[page])
        source[0] = (
            f".. note:: Shown, not run: this site was made without the packages of "
            f"{extras}.\n\n{source[0]}"
        )


def setup(app: Sphinx) -> None:
    app.connect("source-read", say_not_run)
    app.connect("autodoc-skip-member", of_other_libraries)
    app.connect("autodoc-process-signature", own_signature)
