"""The site needs no more than the extra ``docs``: with PyTorch and diffprivlib hidden, all that it
imports is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the extra docs is not installed")

ROOT = Path(__file__).parents[2]
#: A process without packages of other extras, which reads the settings of the site.
HIDDEN = """
import ast, re, runpy, sys
from importlib.machinery import PathFinder

class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in ["torch", "skorch", "opacus", "diffprivlib"]
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Others
conf = runpy.run_path("docs/conf.py")
"""
#: Guides that would be run import what is there; it prints their number, and the pages of those
#: that are shown only.
GUIDES = """
pattern = conf["sphinx_gallery_conf"]["filename_pattern"]
run = [guide for guide in conf["GUIDES"] if re.search(pattern, str(guide))]
for guide in run:
    nodes = ast.walk(ast.parse(guide.read_text()))
    lines = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    needed = [node for node in lines if getattr(node, "module", "") != "__future__"]
    exec(compile(ast.Module(needed, []), str(guide), "exec"), {})
print(len(run), len(conf["GUIDES"]), *sorted(conf["NOT_RUN"]))
"""
#: Every net has a page with its arguments.
REFERENCE = """
import inspect
from sphinx.ext.autodoc.mock import mock
import sklearn_dpsearch.nets as nets
with mock(conf["autodoc_mock_imports"]):
    for name in nets.__all__:
        print(name, *inspect.signature(getattr(nets, name)).parameters)
"""


def printed(script: str) -> list[list[str]]:
    """Words of each line that a script prints after the extras were hidden."""
    options = {"cwd": ROOT, "capture_output": True, "text": True}
    ended = subprocess.run([sys.executable, "-c", HIDDEN + script], **options)
    assert ended.returncode == 0, ended.stderr
    return [line.split() for line in ended.stdout.splitlines()]


def test_guides_that_are_run_import_nothing_of_other_extras():
    ((run, guides, *shown),) = printed(GUIDES)
    assert int(run) + len(shown) == int(guides)
    assert {"gallery/guides/your_own_module", "gallery/guides/ledger"} <= set(shown)
    assert not {"gallery/guides/your_own_estimator", "gallery/guides/risk_in_words"} & set(shown)


def test_every_net_is_documented_with_its_arguments():
    arguments = {name: found for name, *found in printed(REFERENCE)}
    assert len(arguments) == 11
    assert [
        name
        for name, found in arguments.items()
        if not {"target_epsilon", "target_delta"} <= set(found)
    ] == []
