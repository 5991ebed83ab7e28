"""All mutants, from the tables beside this file. To add one, put it into that of its part;
``test_table.py`` checks that its text is there."""

import re
import tomllib

from .mutant import ROOT, Mutant

TABLES = ("accountant", "searches", "ledger", "nets", "boosting")
MUTANTS: tuple[Mutant, ...] = tuple(
    Mutant(name=name, **row)
    for table in TABLES
    for name, row in tomllib.loads(
        (ROOT / "tests" / "mutants" / f"{table}.toml").read_text()
    ).items()
)


def core_names() -> list[str]:
    """Names of the mutants on the page of the core: what is in bold there, but for the names of
    parts."""
    bold = re.findall(r"\*\*([^*]+)\*\*", (ROOT / "docs" / "core.md").read_text())
    return [
        " ".join(name.split()) for name in bold if not name[0].isupper() or name.startswith("K ")
    ]
