r"""Tuning on a random subset under ``replace_one``: the smaller of a chain of two steps and of known membership.

To replace a record is to remove one and to add another. Where membership in the subset is secret, each of these
steps has the guarantee of Theorem 2 or 4, amplification included. The other bound fixes the coin of the replaced
record, and is the average over it (docs/theory/subset_replaced.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._checks import require
from .._types import Neighboring
from ..guarantees.base import Guarantee
from ..guarantees.changed_record import CARRIED_OVER, ChangedRecord, as_replace_one
from ..guarantees.tightest import SmallestOf
from ..numerics.loss_distribution import DominatingPair
from .best_of import BestOf
from .subset import SubsetThenTrain
from .subset_validated import ValidatedOnTheRest

#: Parts of a guarantee that are guarantees themselves.
PARTS = ("tune", "validate", "train")


@dataclass(frozen=True, kw_only=True)
class ReplacedInSubset(SmallestOf):
    """Tuning on a random subset, then training, for a replaced record.

    Parameters
    ----------
    presence : SubsetThenTrain or ValidatedOnTheRest
        Guarantee for the presence of a record.
    neighboring : {"replace_one"}
    """

    presence: Guarantee
    neighboring: Neighboring = "replace_one"
    pair_of_all = False

    def _check(self) -> None:
        subset = type(self.presence) in (SubsetThenTrain, ValidatedOnTheRest)
        require(subset, "presence to be the guarantee of a search on a subset", presence=self.presence)
        require(self.neighboring == "replace_one", 'neighboring="replace_one"', neighboring=self.neighboring)

    def _bounds(self) -> dict[str, Guarantee]:
        parts = {name: _replaced(getattr(self.presence, name)) for name in PARTS if hasattr(self.presence, name)}
        known = replace(self.presence, **parts, neighboring="replace_one")
        return {"chain": ChangedRecord(presence=self.presence), "known membership": known}

    def _pair(self) -> DominatingPair:
        return self.bounds["chain"].pair


def _replaced(part: Guarantee) -> Guarantee:
    """The guarantee of a part for a replaced record; the best of runs is that of runs for a replaced record."""
    if type(part) is BestOf:
        return replace(part, one_run=as_replace_one(part.one_run), neighboring="replace_one")
    return as_replace_one(part)


CARRIED_OVER.update(dict.fromkeys((SubsetThenTrain, ValidatedOnTheRest), lambda one: ReplacedInSubset(presence=one)))
