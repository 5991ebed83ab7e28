"""How far a long piece of work is, written from a thread apart: the thread that does the work may be silent.

A terminal or a notebook gets one line with a clock, which is taken away at the end. Anywhere else each new text is a
line that lasts, and has no times: in a file they would tell for good how long private work took.
"""

from __future__ import annotations

import contextlib
import functools
import io
import queue
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from .descriptors import DESCRIPTORS
from .silence import Routed, silent_here

#: Seconds between two looks at the clock, whatever the work does.
TICK = 1.0
#: A line that lasts is written when so many tenths more of a public number are done.
TENTHS = 10
#: What stands behind the text of tqdm's bar, by whether there is nothing to count.
ENDS = {False: "{n_fmt} of {total_fmt} |{bar}| [{elapsed}, {remaining} left]", True: "[{elapsed}]"}


class Stage(NamedTuple):
    """Where the work is: what is being done, and how many of a public number are done, if there is one."""

    text: str
    done: int = 0
    total: int | None = None


class Display(Protocol):
    """What shows stages."""

    def show(self, stage: Stage) -> None:
        """The work got there."""

    def tick(self) -> None:
        """A second has gone by."""

    def close(self) -> None:
        """Leave nothing behind that shows a time."""


class Stderr(io.TextIOBase):
    """Standard error as it is when something is written, also while its descriptor is muted."""

    def write(self, text: str, /) -> int:
        stream = sys.stderr
        if stream is not None:
            with DESCRIPTORS.muted.lock:  # nobody forks in the middle of a line: the child would inherit its lock
                Routed(stream).write(text)
                Routed(stream).flush()
        return len(text)


class Lines:
    """Lines that last: a stage as it begins, and each tenth of what is counted."""

    def __init__(self, name: str, file: io.TextIOBase) -> None:
        self._name, self._file = name, file
        self._last: tuple[str, int] | None = None

    def show(self, stage: Stage) -> None:
        """A line, if there is something new to say."""
        tenths = 0 if not stage.total else stage.done * TENTHS // stage.total
        if (stage.text, tenths) != self._last:
            self._last = stage.text, tenths
            self._file.write(f"[{self._name}] {said(stage)}\n")

    def tick(self) -> None:
        """Nothing: times do not last."""

    def close(self) -> None:
        """Nothing to take away."""


class Terminal:
    """One line, written over and over."""

    def __init__(self, name: str, file: io.TextIOBase) -> None:
        self._name, self._file = name, file
        self._stage: Stage | None = None
        self._since, self._width = 0.0, 0

    def show(self, stage: Stage) -> None:
        """The stage, and a clock that begins with each text."""
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
    """tqdm's bar: of a public number, or a clock alone."""

    def __init__(self, name: str, file: io.TextIOBase, make: Any) -> None:
        self._name, self._file, self._make = name, file, make
        self._text, self._bar = "", None

    def show(self, stage: Stage) -> None:
        """Another bar for another text."""
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
    """Says where a piece of work is, from a thread of its own.

    Parameters
    ----------
    name : str
        Whose work it is.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stages: queue.SimpleQueue[Stage | None] = queue.SimpleQueue()

    def say(self, stage: Stage) -> None:
        """Hand on a stage; what shows it is another thread."""
        self._stages.put(stage)

    @contextlib.contextmanager
    def speaking(self) -> Iterator[None]:
        """Show stages until the end, whatever it is."""
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

    def _follow(self, shown: Display) -> None:
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
    """A voice while something long runs; None where nobody wants one, or this thread must be silent."""
    if not wanted or silent_here():
        yield None
        return
    voice = Voice(name)
    with voice.speaking():
        yield voice


# --- what is shown, and where -----------------------------------------------------------------------------------------


def said(stage: Stage) -> str:
    """The stage, without times."""
    return stage.text if stage.total is None else f"{stage.text}: {stage.done:,} of {stage.total:,}"


def clocks(stage: Stage, elapsed: float) -> str:
    """Time since the stage began; and left, where something public is counted."""
    if not stage.total or not stage.done:
        return clock(elapsed)
    return f"{clock(elapsed)}, {clock(elapsed / stage.done * (stage.total - stage.done))} left"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as clocks show them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


#: Held by whoever writes over the terminal's last line without tqdm: there is one such line.
_LAST_LINE = threading.Lock()


@contextlib.contextmanager
def display(name: str) -> Iterator[Display]:
    """tqdm's bar on a terminal or in a notebook; without tqdm one line of the terminal; otherwise lines that last."""
    file, live = Stderr(), _is_live()
    bar = tqdm_bar() if live else None
    mine = live and bar is None and not _in_notebook() and _LAST_LINE.acquire(blocking=False)
    shown: Display = Bar(name, file, bar) if bar else Terminal(name, file) if mine else Lines(name, file)
    try:
        yield shown
    finally:
        shown.close()
        if mine:
            _LAST_LINE.release()


def _is_live() -> bool:
    """Whether standard error is somewhere where what was written can be taken away."""
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
    """tqdm's class for this place, with a lock and a list of bars of our own; None where tqdm is not installed.

    A child process that was forked while we draw may wait for the lock of tqdm's own class, but never for ours.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    own: Any = type("OwnBar", (tqdm,), {"monitor_interval": 0, "_instances": weakref.WeakSet()})
    own.set_lock(threading.RLock())
    return own
