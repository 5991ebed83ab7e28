"""All mutants. To add one, put it into the file of its part; ``test_table.py`` checks that its text
is there."""

import re
from dataclasses import replace

from ..mutants import accountant, boosting, ledger, nets, searches
from .mutant import ROOT, Mutant

MUTANTS: tuple[Mutant, ...] = tuple(
    replace(mutant, name=name)
    for part in (accountant, searches, ledger, nets, boosting)
    for name, mutant in part.MUTANTS.items()
)


def core_names() -> list[str]:
    """Names of the mutants on the page of the core: what is in bold there, but for the names of
    parts."""
    bold = re.findall(r"\*\*([^*]+)\*\*", (ROOT / "docs" / "core.md").read_text())
    return [
        " ".join(name.split()) for name in bold if not name[0].isupper() or name.startswith("K ")
    ]
