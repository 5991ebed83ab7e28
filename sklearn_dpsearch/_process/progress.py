"""Progress of long work, written from a thread apart, whose clock goes on while the work does.

A terminal or a notebook gets tqdm's bar, which is erased at the end. Elsewhere, and without tqdm, each new text is a
lasting line without times: times in a file would tell for good how long private work took.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

#: Seconds between two updates of a bar's clock, independent of the work.
TICK = 1.0
#: tqdm's bar behind its text, by whether there is a count.
BARS = {True: "{desc} {n_fmt} of {total_fmt} |{bar}| [{elapsed}, {remaining} left]", False: "{desc} [{elapsed}]"}


class Stage(NamedTuple):
    """Stage of the work: its name and, if there is a public number of steps, how many are done."""

    text: str
    done: int = 0
    total: int | None = None


class Stderr(io.TextIOBase):
    """Current standard error at each write."""

    def write(self, text: str, /) -> int:
        stream = sys.stderr or io.StringIO()
        stream.write(text)
        stream.flush()
        return len(text)

    def isatty(self) -> bool:
        """Return whether text can be erased again: on a terminal or in a notebook."""
        return "ipykernel.zmqshell" in sys.modules or (sys.stderr or io.StringIO()).isatty()


@contextlib.contextmanager
def speaking(work: str, wanted: bool) -> Iterator[Callable[[Stage], None]]:
    """Show the stages of long work while the block lasts, if wanted."""
    if not wanted:
        yield lambda stage: None
        return
    stages: queue.SimpleQueue[Stage | None] = queue.SimpleQueue()
    thread = threading.Thread(target=_show, args=(work, stages), name="progress", daemon=True)
    thread.start()
    try:
        yield stages.put
    finally:
        stages.put(None)
        thread.join()


def _show(work: str, stages: queue.SimpleQueue[Stage | None]) -> None:
    with contextlib.suppress(OSError, ValueError):  # a stream may be gone
        file = Stderr()
        make = tqdm_bar() if file.isatty() else None
        _write(work, stages, file) if make is None else _draw(work, stages, file, make)


def _write(work: str, stages: queue.SimpleQueue[Stage | None], file: Stderr) -> None:
    """Write a line for each new text, and for each tenth of its count."""
    last = ("", 0)
    for stage in iter(stages.get, None):
        before, last = last, (stage.text, stage.done * 10 // (stage.total or 1))
        if last != before:
            count = "" if stage.total is None else f": {stage.done:,} of {stage.total:,}"
            file.write(f"[{work}] {stage.text}{count}\n")


def _draw(work: str, stages: queue.SimpleQueue[Stage | None], file: Stderr, make: Any) -> None:
    """Draw a bar for each new text, again at each tick."""
    bar, text, stage = make(disable=True), "", stages.get()
    try:
        while stage is not None:
            if stage.text != text:
                bar.close()
                text, form = stage.text, BARS[stage.total is not None]
                bar = make(desc=f"{work}: {text}", total=stage.total, file=file, leave=False, bar_format=form)
            bar.n = stage.done
            bar.refresh()
            with contextlib.suppress(queue.Empty):
                stage = stages.get(timeout=TICK)
    finally:
        bar.close()


@functools.cache
def tqdm_bar() -> Any:
    """Make a subclass of tqdm's class with its own lock, which a forked child can free; None without tqdm."""
    with contextlib.suppress(ImportError):
        from tqdm.auto import tqdm

        own: Any = type("OwnBar", (tqdm,), {"monitor_interval": 0, "_instances": weakref.WeakSet()})
        own.set_lock(threading.RLock())
        return own
    return None


if hasattr(os, "register_at_fork"):  # a drawing thread holds the lock, and would never release it in a child
    os.register_at_fork(after_in_child=tqdm_bar.cache_clear)
