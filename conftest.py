"""Tests: warnings are errors; doctests of modules whose optional library is missing are left out.

Any other module that cannot be imported is an error: ``--doctest-ignore-import-errors`` would skip
its tests without a word.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
#: Place ↦ library that the modules there import.
OPTIONAL = {
    "docs/conf.py": "sphinx",
    "sklearn_dpsearch/adapters/_diffprivlib_variants.py": "diffprivlib",
    "sklearn_dpsearch/nets": "torch",
    "tests/adapters/opacus_net_of_a_script.py": "torch",
    "tests/adapters/opacus_nets.py": "torch",
    "tests/boosting/over_partitions.py": "dask",
    "tests/search/on_ray.py": "ray",
}


#: What a warning is in a test; the last filter that fits counts.
WARNINGS = (
    "error",
    # scikit-learn 1.6 on SciPy 1.16 and newer
    "ignore:scipy.optimize. The `disp` and `iprint` options:DeprecationWarning",
    # parametrize_with_checks hands pytest a generator
    "ignore:Passing a non-Collection iterable",
)


def pytest_configure(config: pytest.Config) -> None:
    """Set the filters once all plugins are loaded: one of another library may warn."""
    for warning in WARNINGS:
        config.addinivalue_line("filterwarnings", warning)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore a place whose library is missing."""
    for place, library in OPTIONAL.items():
        if collection_path.is_relative_to(ROOT / place) and find_spec(library) is None:
            return True
    return None
