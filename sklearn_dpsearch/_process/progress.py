"""Progress of long work, written from a thread apart, whose clock goes on while the work does.

Nothing that a search shows may depend on K, on candidates, on scores or on records. So a random number of runs is
never counted. Where ends of runs are secret, one stage stands for all of the work.
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


# --- of a search ------------------------------------------------------------------------------------------------------


class Progress:
    """Stage of a search; ``moments`` says whether ends of runs may be seen, which depend on their secret number."""

    def __init__(self, say: Callable[[Stage], None] = lambda stage: None, moments: bool = False) -> None:
        self._show, self._moments, self._stage = say, moments, Stage("")

    def secret_runs(self) -> None:
        """Report that a secret number of candidates runs."""
        self._say(Stage("tuning" if self._moments else "searching"))

    def public_runs(self, text: str, total: int) -> None:
        """Report that a public number of trainings begins; from here on every moment is public."""
        self._moments = True
        self._say(Stage(text, 0, total))

    def done(self, tasks: int, of: int) -> None:
        """Report the share of finished tasks, of a public number of trainings; reports may be late or repeated."""
        stage = self._stage
        if stage.total is not None and (done := stage.total * tasks // of) > stage.done:
            self._say(stage._replace(done=done))

    def last_training(self) -> None:
        """Report that the training after the runs begins, or its stand-in where no run succeeded."""
        if self._moments:
            self._say(Stage("training the final model"))

    def _say(self, stage: Stage) -> None:
        self._stage = stage
        self._show(stage)


SILENT = Progress()


@contextlib.contextmanager
def planning(name: str, verbose: int) -> Iterator[None]:
    """Report the planning of a search and its time, which no record influences."""
    since = time.monotonic()
    with speaking(name, verbose > 0) as say:
        say(Stage("planning"))
        yield
        say(Stage(f"planned in {time.monotonic() - since:.1f} s"))
