"""The published bounds of ``examples/papers/_bounds.py``."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location(
    "published_bounds", Path(__file__).parents[2] / "examples/papers/_bounds.py"
)
assert _spec is not None
assert _spec.loader is not None
bounds = sys.modules["published_bounds"] = module_from_spec(_spec)
_spec.loader.exec_module(bounds)
