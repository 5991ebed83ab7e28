"""Progress of long work, written from a thread apart: the thread that does the work may be silent.

A terminal or a notebook gets one line with a clock, which is erased at the end. Elsewhere each new text is a lasting
line without times: times in a file would tell for good how long private work took.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from .descriptors import DESCRIPTORS
from .silence import Routed, silent_here

#: Seconds between two updates of the clock, independent of the work.
TICK = 1.0
#: Lasting lines of a counted stage: one for each of this many equal shares.
TENTHS = 10
#: End of tqdm's bar, behind its text; True: without a count.
ENDS = {False: "{n_fmt} of {total_fmt} |{bar}| [{elapsed}, {remaining} left]", True: "[{elapsed}]"}


class Stage(NamedTuple):
    """Stage of the work: its name and, if there is a public number of steps, how many are done."""

    text: str
    done: int = 0
    total: int | None = None


class ProgressDisplay(Protocol):
    """Display of the stages of long work."""

    def show(self, stage: Stage) -> None:
        """Show a new stage."""

    def tick(self) -> None:
        """Show that a second has passed."""

    def close(self) -> None:
        """Leave nothing behind that shows a time."""


class Stderr(io.TextIOBase):
    """Current standard error at each write, also while its descriptor is muted."""

    def write(self, text: str, /) -> int:
        stream = sys.stderr
        if stream is not None:
            with DESCRIPTORS.muted.lock:  # no fork in the middle of a line: the child would inherit its lock
                Routed(stream).write(text)
                Routed(stream).flush()
        return len(text)


class ProgressLines:
    """Lasting lines: the beginning of a stage, and each tenth of its count."""

    def __init__(self, name: str, file: io.TextIOBase) -> None:
        self._name, self._file = name, file
        self._last: tuple[str, int] | None = None

    def show(self, stage: Stage) -> None:
        """Write a line if the stage has a new text or another tenth is done."""
        tenths = 0 if not stage.total else stage.done * TENTHS // stage.total
        if (stage.text, tenths) != self._last:
            self._last = stage.text, tenths
            self._file.write(f"[{self._name}] {said(stage)}\n")

    def tick(self) -> None:
        """Do nothing: lasting lines have no times."""

    def close(self) -> None:
        """Do nothing: the lines stay."""


class Terminal:
    """One line of a terminal, overwritten by each update."""

    def __init__(self, name: str, file: io.TextIOBase) -> None:
        self._name, self._file = name, file
        self._stage: Stage | None = None
        self._since, self._width = 0.0, 0

    def show(self, stage: Stage) -> None:
        """Show the stage, with a clock that restarts at each new text."""
        if self._stage is None or stage.text != self._stage.text:
            self._since = time.monotonic()
        self._stage = stage
        self.tick()

    def tick(self) -> None:
        """Write the line again."""
        if self._stage is None:
            return
        line = f"{self._name}: {said(self._stage)} [{clocks(self._stage, time.monotonic() - self._since)}]"
        self._file.write("\r" + line.ljust(self._width))
        self._width = len(line)

    def close(self) -> None:
        """Wipe the line."""
        self._file.write("\r" + " " * self._width + "\r")


class Bar:
    """tqdm's bar, of a public number of steps, or a clock alone."""

    def __init__(self, name: str, file: io.TextIOBase, make: Any) -> None:
        self._name, self._file, self._make = name, file, make
        self._text, self._bar = "", None

    def show(self, stage: Stage) -> None:
        """Update the bar; a new text gets a new bar."""
        if stage.text != self._text:
            self.close()
            told = {"desc": f"{self._name}: {stage.text}", "bar_format": "{desc} " + ENDS[stage.total is None]}
            self._bar = self._make(total=stage.total, file=self._file, leave=False, **told)
            self._text = stage.text
        assert self._bar is not None
        self._bar.n = stage.done
        self._bar.refresh()

    def tick(self) -> None:
        """Draw the bar again."""
        if self._bar is not None:
            self._bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


class Voice:
    """Announces the stages of long work from its own thread.

    Parameters
    ----------
    name : str
        Name shown before each stage.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stages: queue.SimpleQueue[Stage | None] = queue.SimpleQueue()

    def say(self, stage: Stage) -> None:
        """Hand a stage to the thread that shows it."""
        self._stages.put(stage)

    @contextlib.contextmanager
    def speaking(self) -> Iterator[None]:
        """Show stages until the block ends, normally or by an error."""
        thread = threading.Thread(target=self._speak, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stages.put(None)
            thread.join()

    def _speak(self) -> None:
        with contextlib.suppress(OSError, ValueError), display(self._name) as shown:  # a stream may be gone
            self._follow(shown)

    def _follow(self, shown: ProgressDisplay) -> None:
        while True:
            try:
                stage = self._stages.get(timeout=TICK)
            except queue.Empty:
                shown.tick()
                continue
            if stage is None:
                return
            shown.show(stage)


@contextlib.contextmanager
def speaking(name: str, wanted: bool) -> Iterator[Voice | None]:
    """Voice for long work; None if none is wanted, or if this thread must be silent."""
    if not wanted or silent_here():
        yield None
        return
    voice = Voice(name)
    with voice.speaking():
        yield voice


# --- texts and displays -----------------------------------------------------------------------------------------------


def said(stage: Stage) -> str:
    """Text of a stage, without times."""
    return stage.text if stage.total is None else f"{stage.text}: {stage.done:,} of {stage.total:,}"


def clocks(stage: Stage, elapsed: float) -> str:
    """Elapsed time of a stage and, with a public count, the time left."""
    if not stage.total or not stage.done:
        return clock(elapsed)
    return f"{clock(elapsed)}, {clock(elapsed / stage.done * (stage.total - stage.done))} left"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as clocks show them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


#: Held by the display that overwrites the terminal's last line without tqdm: there is only one last line.
_LAST_LINE = threading.Lock()


@contextlib.contextmanager
def display(name: str) -> Iterator[ProgressDisplay]:
    """Choose a display: tqdm's bar on a terminal or in a notebook; without tqdm one line; elsewhere lasting lines."""
    file, live = Stderr(), _is_live()
    bar = tqdm_bar() if live else None
    mine = live and bar is None and not _in_notebook() and _LAST_LINE.acquire(blocking=False)
    plain = Terminal if mine else ProgressLines
    shown: ProgressDisplay = Bar(name, file, bar) if bar else plain(name, file)
    try:
        yield shown
    finally:
        shown.close()
        if mine:
            _LAST_LINE.release()


def _is_live() -> bool:
    """Return whether text on standard error can be erased again."""
    stream = sys.stderr
    if stream is None:
        return False
    with DESCRIPTORS.around(stream) as way:
        return _in_notebook() or bool(way.isatty())


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


@functools.cache
def tqdm_bar() -> Any:
    """Make a subclass of tqdm's class for this place, with its own lock and list of bars; None without tqdm.

    A child process that was forked during a draw may wait for the lock of tqdm's own class, but never for ours.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    own: Any = type("OwnBar", (tqdm,), {"monitor_interval": 0, "_instances": weakref.WeakSet()})
    own.set_lock(threading.RLock())
    return own


if hasattr(os, "register_at_fork"):  # a drawing thread holds the lock, and would never release it in a child
    os.register_at_fork(after_in_child=tqdm_bar.cache_clear)
