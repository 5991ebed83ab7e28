"""Bounds of ``examples/papers`` that ``best_of`` does not report."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _loaded(name: str) -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "papers" / f"{name}.py"
    spec = spec_from_file_location(f"papers{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[f"papers{name}"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bounds, prices = _loaded("_bounds"), _loaded("_prices")
