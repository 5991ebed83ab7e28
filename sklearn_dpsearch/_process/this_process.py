"""The name of this process. A forked child gets one of its own."""

from __future__ import annotations

import os
import uuid

_NAMES = [uuid.uuid4().hex]


def this_process() -> str:
    """Name of this process, which no other has, now or later; numbers of processes are given again."""
    return _NAMES[-1]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _NAMES.append(uuid.uuid4().hex))
