"""All mutants. To add one, put it into the file of its part; ``test_table.py`` checks that its text is there."""

from dataclasses import replace

from ..mutants import accountant, boosting, ledger, nets, searches
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = tuple(
    replace(mutant, name=name)
    for part in (accountant, searches, ledger, nets, boosting)
    for name, mutant in part.MUTANTS.items()
)
