"""Process-wide state that searches and nets silence or reseed: each kind has one owner, which counts its users.

Threads overlap. The first thread that needs a process-wide change makes it, and the last undoes it. Settings that can
differ between threads (whether a thread may write, log and warn) are made for each thread alone.
"""

from __future__ import annotations

from .descriptors import DESCRIPTORS
from .interrupts import INTERRUPTS, contained
from .progress import Stage, speaking
from .random_generators import ALL_SEEDED_OR_NONE, GENERATORS, reseed
from .reference_counting import WhileAnyone
from .shortened_training import rehearsing, steps_now
from .silence import born_silent, discard, muted, muted_for_good, without_warnings
from .this_process import this_process

__all__ = [
    "ALL_SEEDED_OR_NONE",
    "DESCRIPTORS",
    "GENERATORS",
    "INTERRUPTS",
    "Stage",
    "WhileAnyone",
    "born_silent",
    "contained",
    "discard",
    "muted",
    "muted_for_good",
    "rehearsing",
    "reseed",
    "speaking",
    "steps_now",
    "this_process",
    "without_warnings",
]
