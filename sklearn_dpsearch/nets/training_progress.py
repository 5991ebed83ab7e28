"""Watchers of a training: blocks of steps between two looks, and the line that shows progress."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

#: Seconds between two looks at a training, or the time of one step if longer.
LOOK = 0.5


class Watchers:
    """All watchers of one training; without members the training runs undisturbed.

    Parameters
    ----------
    members : sequence
        Each has ``begin(stack)``, before the first step of this process, ``look(stack)``, between two blocks of steps
        and after the last, and ``close()``, after success and after an error alike.
    """

    def __init__(self, members: Sequence[Any] = ()) -> None:
        self.members = list(members)
        #: Most steps until the next look.
        self.patience: float = 1 if members else math.inf

    def begin(self, training: Any) -> None:
        """Prepare, before the first step."""
        if not self.members:
            return
        for member in self.members:
            member.begin(training)
        self._steps, self._since = training.done, time.monotonic()

    def look(self, training: Any) -> None:
        """Look after a block of steps, and set the length of the next block by its time."""
        if not self.members:
            return
        steps, seconds = training.done - self._steps, time.monotonic() - self._since
        for member in self.members:
            member.look(training)
        self.patience = max(1, int(steps * min(LOOK / max(seconds, 1e-9), 10.0)))
        self._steps, self._since = training.done, time.monotonic()

    def close(self) -> None:
        """Finish, after success and after an error alike."""
        for member in self.members:
            member.close()


NO_WATCHERS = Watchers()


class TrainingProgress:
    """One line on standard error: the steps done, of a public number, and the time left. Nothing of the records.

    Parameters
    ----------
    name : str
        Name of the trained model.
    steps : int
    """

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps = name, steps
        self._open = False

    def begin(self, training: Any) -> None:
        """Note when and where this process began."""
        self._first, self._since = training.done, time.monotonic()
        self._show(training.done, "")

    def look(self, training: Any) -> None:
        """Show how far the training is."""
        done = training.done
        left = (time.monotonic() - self._since) / max(1, done - self._first) * (self.steps - done)
        self._show(done, f", {clock(left)} left" if done < self.steps else f", {clock(0)} left")

    def close(self) -> None:
        """End the line."""
        if self._open:
            _write("\n")

    def _show(self, done: int, left: str) -> None:
        _write(f"\r{self.name}: {done:,} of {self.steps:,} steps{left}   ")
        self._open = True


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as clocks show them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _write(text: str) -> None:
    """Write to the current standard error: in a search that stream leads nowhere."""
    stream = sys.stderr
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):  # training goes on if a line cannot be written
        stream.write(text)
        stream.flush()
