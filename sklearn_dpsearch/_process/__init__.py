"""State of the whole process that searches and nets silence or reseed: one owner each, which counts its users.

Threads overlap. Whatever is changed for all of them is changed by the first that needs it and put back by the last.
What can be decided for one thread alone (who may write, log and warn) is.
"""

from __future__ import annotations

from .counted import WhileAnyone
from .descriptors import DESCRIPTORS
from .generators import GENERATORS, reseed
from .interrupts import INTERRUPTS, contained
from .silence import muted, without_warnings

__all__ = ["DESCRIPTORS", "GENERATORS", "INTERRUPTS", "WhileAnyone", "contained", "muted", "reseed", "without_warnings"]
