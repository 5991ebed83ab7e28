"""Break the library in every way of the table, run its tests, and say which one notices.

    python tests/mutants/run.py                       all of them
    python tests/mutants/run.py --only "K clamped"    one, or several
    python tests/mutants/run.py --sample 4            a few, drawn by --seed: for continuous integration

Each mutant is applied to a copy of the tree. Its likely tests run first, and only if they notice nothing the other fast
tests. The exit status is 1 if a mutant survives.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS

ROOT_FILES = ("README.md", "LICENSE", "CITATION.cff")
COPIED = ("sklearn_dpsearch", "tests", "docs", "examples", "pyproject.toml", *ROOT_FILES)
#: A test run that takes longer has noticed something too: the mutant hangs.
LIMIT = 900


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the test that noticed it, or None."""

    mutant: Mutant
    killer: str | None
    seconds: float


def main() -> int:
    options = parsed()
    chosen = selected(options)
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(partial(report, likely_only=options.likely), chosen))
    survivors = [one.mutant.name for one in verdicts if one.killer is None]
    print(f"{len(verdicts) - len(survivors)} of {len(verdicts)} mutants were noticed.")
    if survivors:
        print(f"Survived: {', '.join(survivors)}. Each needs a fast test that notices it.")
    return 1 if survivors else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--sample", type=int, default=0, help="number of mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--likely", action="store_true", help="the likely tests only")
    return parser.parse_args()


def selected(options: argparse.Namespace) -> Sequence[Mutant]:
    unknown = set(options.only) - {one.name for one in MUTANTS}
    if unknown:
        raise SystemExit(f"No mutant is called {', '.join(sorted(unknown))}.")
    if options.only:
        return [one for one in MUTANTS if one.name in options.only]
    if options.sample:
        return random.Random(options.seed).sample(MUTANTS, options.sample)
    return MUTANTS


def report(mutant: Mutant, likely_only: bool) -> Verdict:
    begin = time.monotonic()
    found = Verdict(mutant, killer_of(mutant, likely_only), time.monotonic() - begin)
    print(f"{mutant.name}: {found.killer or 'SURVIVED'} ({found.seconds:.0f} s)", flush=True)
    return found


def killer_of(mutant: Mutant, likely_only: bool) -> str | None:
    """The first test that notices, among the likely ones, then among all fast ones."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in COPIED:
            copy(ROOT / name, root / name)
        mutant.apply(root)
        check_imports(mutant, root)
        likely = [f"tests/{one}" for one in mutant.tests]
        return failing(root, likely) or (None if likely_only else failing(root, []))


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def check_imports(mutant: Mutant, root: Path) -> None:
    """A mutant that cannot even be imported shows nothing."""
    module = "sklearn_dpsearch." + mutant.file.removesuffix(".py").replace("/", ".")
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"], cwd=root, env=environment(root), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"Mutant {mutant.name!r} does not import:\n{done.stderr}")


def failing(root: Path, files: Sequence[str]) -> str | None:
    """The first failing test of some files (none: of all), or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    if not files:
        command += ["-m", "not slow", "--ignore=tests/mutants"]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment(root), capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(files)} (hangs)"
    if done.returncode == 0:
        return None
    noticed = re.search(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode != 1 or noticed is None:
        raise SystemExit(f"The tests could not be run:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return noticed.group(1)


def environment(root: Path) -> dict[str, str]:
    """The copy is what gets imported, in workers too."""
    return {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


if __name__ == "__main__":
    sys.exit(main())
