"""What searches and nets silence or reseed in the whole process: each thing has one owner, which counts its users.

Threads overlap. What has to change for all of them is changed by the first that needs it and put back by the last.
What can be decided for each thread (whether it may write, log and warn) is decided for that thread alone.
"""

from __future__ import annotations

from .counted import WhileAnyone
from .descriptors import DESCRIPTORS
from .generators import GENERATORS, reseed
from .interrupts import INTERRUPTS, contained
from .silence import born_silent, muted, without_warnings
from .voice import Stage, Voice, speaking

__all__ = [
    "DESCRIPTORS",
    "GENERATORS",
    "INTERRUPTS",
    "Stage",
    "Voice",
    "WhileAnyone",
    "born_silent",
    "contained",
    "muted",
    "reseed",
    "speaking",
    "without_warnings",
]
