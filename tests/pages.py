"""Pages of the docs whose code runs."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

LEARN = Path(__file__).parents[1] / "docs" / "learn"


def blocks_of(page):
    """The blocks of Python on a page; no other block is on it."""
    text = (LEARN / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert text.count("```") == 2 * len(blocks)
    return blocks


def run(page, blocks, names=None):
    """What the names of a page stand for after some of its blocks, begun or gone on with."""
    names = {"__name__": "page", **(names or {})}
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # Opacus's own
        for number, block in enumerate(blocks):
            exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
    return names
