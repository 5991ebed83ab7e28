"""Helpers for long work: progress, global generators, rehearsals, and failures of other code."""

from __future__ import annotations

from .containment import (
    at_most_threads,
    become_private,
    contained,
    flagged,
    in_fixed_words,
    is_private,
    public_records,
    rehearsing,
    steps_now,
    threads_now,
    without_warnings,
)
from .progress import Stage, speaking
from .random_generators import all_generators, generators_kept, reduction, refresh, reseed

__all__ = [
    "Stage", "all_generators", "at_most_threads", "become_private", "contained", "flagged",
    "generators_kept", "in_fixed_words", "is_private", "public_records", "reduction", "refresh",
    "rehearsing", "reseed", "speaking", "steps_now", "threads_now", "without_warnings",
]  # fmt: skip
