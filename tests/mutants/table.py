"""All mutants. To add one, put it into the file of its part; ``test_table.py`` checks that its text is there."""

from . import accountant, boosting, ledger, nets, searches
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *accountant.MUTANTS,
    *searches.MUTANTS,
    *ledger.MUTANTS,
    *nets.MUTANTS,
    *boosting.MUTANTS,
)
