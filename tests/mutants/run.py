"""Break the library in every way of the table, run the tests of each row, and say which one
notices.

    python tests/mutants/run.py --core --jobs 2       those of docs/core.md
    python tests/mutants/run.py                       all of them
    python tests/mutants/run.py --only "K clamped"    one, or several

Each mutant is applied to a copy of the tree. The exit status is 1 if one survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS, core_names

ROOT_FILES = ("README.md", "LICENSE", "CITATION.cff")
COPIED = ("sklearn_dpsearch", "tests", "docs", "examples", "pyproject.toml", *ROOT_FILES)
#: A test run that takes longer has noticed something too: the mutant hangs.
LIMIT = 120


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the test that noticed it, or None."""

    mutant: Mutant
    killer: str | None
    seconds: float


def main() -> int:
    options = parsed()
    begin = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(report, selected(options)))
    survivors = [one.mutant.name for one in verdicts if one.killer is None]
    noticed = len(verdicts) - len(survivors)
    print(f"{noticed} of {len(verdicts)} mutants were noticed in {time.monotonic() - begin:.0f} s.")
    if survivors:
        print(f"Survived: {', '.join(survivors)}. Each needs a test that notices it.")
    return 1 if survivors else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--core", action="store_true", help="those that docs/core.md names")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def selected(options: argparse.Namespace) -> Sequence[Mutant]:
    unknown = set(options.only) - {one.name for one in MUTANTS}
    if unknown:
        raise SystemExit(f"No mutant is called {', '.join(sorted(unknown))}.")
    names = options.only or (core_names() if options.core else [one.name for one in MUTANTS])
    return [one for one in MUTANTS if one.name in names]


def report(mutant: Mutant) -> Verdict:
    begin = time.monotonic()
    found = Verdict(mutant, killer_of(mutant), time.monotonic() - begin)
    print(f"{mutant.name}: {found.killer or 'SURVIVED'} ({found.seconds:.0f} s)", flush=True)
    return found


def killer_of(mutant: Mutant) -> str | None:
    """The test that notices first, or None."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in COPIED:
            copy(ROOT / name, root / name)
        mutant.apply(root)
        return failing(mutant, root)


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def failing(mutant: Mutant, root: Path) -> str | None:
    """The first failing test of a mutant, or None. A mutant that cannot even be imported shows
    nothing."""
    module = "sklearn_dpsearch." + mutant.file.removesuffix(".py").replace("/", ".")
    code = f"import sys, {module}, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    test = f"tests/{mutant.test}"
    command = [sys.executable, "-c", code, "-x", "-q", "-p", "no:cacheprovider", test]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment(root), capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"{test} (hangs)"
    if done.returncode == 0:
        return None
    noticed = re.search(r"^FAILED (\S+?)(?:\[.*)?(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode != 1 or noticed is None:
        output = done.stdout[-3000:] + done.stderr[-1000:]
        raise SystemExit(f"Mutant {mutant.name!r}: {test} could not run:\n{output}")
    return noticed.group(1)


def environment(root: Path) -> dict[str, str]:
    """The copy is what gets imported, in workers too."""
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    return {**os.environ, "PYTHONPATH": str(root), **fixed}


if __name__ == "__main__":
    sys.exit(main())
