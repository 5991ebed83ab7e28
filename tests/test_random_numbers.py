"""Generators are made, and noise is drawn, in known files alone.

What is found elsewhere here is new: argue for it in ``docs/core.md`` before it is allowed here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "sklearn_dpsearch"

#: Names whose call makes or feeds a generator of random numbers, and names of draws that could be
#: noise.
GENERATORS = {
    "default_rng", "Generator", "PCG64DXSM", "PCG64", "SFC64", "RandomState", "SeedSequence",
    "SystemRandom", "token_bytes", "randbits", "urandom", "manual_seed",
}  # fmt: skip
DRAWS = {
    "standard_normal", "normal", "normal_", "laplace", "randn", "rounded_normals", "gumbel",
    "exponential",
}  # fmt: skip

#: File ↦ why generators are made there, beside the core.
MAKE_GENERATORS = {
    # secret: batches, noise, K, splits, seeds of candidates
    "nets/_randomness.py": "batches and noise of nets",
    "boosting/_base.py": "noise of boosting; its cells, which are public",
    "search/_execution/randomness.py": "K, candidates, splits and seeds of a search",
    "privacy/_mechanisms/exact_sampling.py": "noise of scores and of the noisy maximum",
    "privacy/_count_distributions/base.py": "K",
    "adapters/_diffprivlib.py": "diffprivlib's own generators",
    "_process/random_generators.py": (
        "generators of the operating system's state in each private process"
    ),
    "boosting/_partitions.py": "a key for names of persons",
    "nets/_records.py": "users' augmentation: each record with seeds of its own",
    # public, or made-up records
    "nets/_estimators/table_base.py": "initial parameters",
    "nets/_engines/engine_choice.py": "made-up records",
    "preprocessing/_table_encoder.py": "made-up records",
    "search/_synthetic_records.py": "made-up records",
    "search/_rehearsal.py": "made-up records",
    "audit/_auditing.py": "coins of the attacker",
    "audit/_one_run.py": "coins of the attacker",
    "audit/_audit_result.py": "coins of the attacker",
    "search/_checkpoint.py": "name of a search",
    "nets/_estimators/cost.py": "numbers of notes",
}
#: File ↦ what is drawn there.
DRAW = {
    "nets/_randomness.py": "noise",
    "boosting/_noise.py": "noise",
    "privacy/_mechanisms/array_sampling.py": "noise",
    "privacy/_mechanisms/exact_sampling.py": "noise",
    "boosting/_random_cells.py": "columns of a round, from what is public",
    "nets/_engines/engine_choice.py": "made-up records",
}


def calls(path: Path) -> set[str]:
    """Last names of all that a file calls."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            found.add(
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
    return found


FILES = {str(path.relative_to(ROOT)): calls(path) for path in sorted(ROOT.rglob("*.py"))}


def test_generators_are_made_in_known_files_alone():
    assert {name for name, called in FILES.items() if called & GENERATORS} <= set(MAKE_GENERATORS)
    assert set(MAKE_GENERATORS) <= set(FILES)


def test_noise_is_drawn_in_known_files_alone():
    assert {name for name, called in FILES.items() if called & DRAWS} <= set(DRAW)


@pytest.mark.parametrize(
    "text", ["np.random.default_rng(0)", "from numpy.random import default_rng\ndefault_rng()"]
)
def test_a_generator_elsewhere_would_be_seen(text, tmp_path):
    (tmp_path / "new.py").write_text(text)
    assert calls(tmp_path / "new.py") & GENERATORS
