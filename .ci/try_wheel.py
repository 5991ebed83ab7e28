"""An installed wheel is whole: its version, its files, and how long the import takes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

#: Processor seconds of an interpreter that imports the package, the best of three.
LONGEST = 1.5
HEAVY = {
    "torch",
    "skorch",
    "opacus",
    "diffprivlib",
    "interpret",
    "matplotlib",
    "pandas",
    "polars",
    "distributed",
}
IMPORT = "import sys, time, sklearn_dpsearch; print(time.process_time(), *sys.modules)"


def shown() -> tuple[float, set[str]]:
    """Time of a fresh import, and the modules that it loads."""
    run = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    seconds, *modules = run.stdout.split()
    return float(seconds), {name.partition(".")[0] for name in modules}


def main() -> None:
    import sklearn_dpsearch

    found = distribution("sklearn-dpsearch")
    assert Path(sklearn_dpsearch.__file__).is_relative_to(Path(sys.prefix)), "not the installed one"
    assert found.version == sklearn_dpsearch.__version__
    names = {file.name: file for file in found.files or []}
    assert {"py.typed", "LICENSE", "sklearn-dpsearch.cdx.json"} <= set(names)
    bill = json.loads(names["sklearn-dpsearch.cdx.json"].read_text())
    assert bill["metadata"]["component"]["version"] == found.version
    assert len(bill["components"]) == len(
        [text for text in found.requires or [] if "extra ==" not in text]
    )
    tries = [shown() for _ in range(3)]
    seconds = min(time for time, _ in tries)
    assert not tries[0][1] & HEAVY, tries[0][1] & HEAVY
    print(f"{found.version}: import takes {seconds:.2f} s of a processor")
    assert seconds < LONGEST


if __name__ == "__main__":
    main()
