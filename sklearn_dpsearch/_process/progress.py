"""Progress of long work, as lines on standard error.

Nothing that a search shows may depend on K, on candidates, on scores or on records. So a random
number of runs is never counted. Where ends of runs are secret, one stage stands for all of the
work.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Stage(NamedTuple):
    """Stage of the work: its name and, if there is a public number of steps, how many are done."""

    text: str
    done: int = 0
    total: int | None = None


def speaking(work: str, wanted: bool) -> Callable[[Stage], None]:
    """Make a function that writes the stages of long work to standard error, if wanted.

    It writes a line for each new text, and for each tenth of its count.
    """
    last = ("", 0)

    def say(stage: Stage) -> None:
        nonlocal last
        before, last = last, (stage.text, stage.done * 10 // (stage.total or 1))
        if wanted and last != before:
            count = "" if stage.total is None else f": {stage.done:,} of {stage.total:,}"
            with contextlib.suppress(Exception):  # a stream may be gone, or a logger in its place
                print(f"[{work}] {stage.text}{count}", file=sys.stderr or io.StringIO(), flush=True)

    return say


# --- of a search ----------------------------------------------------------------------------------


class Progress:
    """Stage of a search, as far as it may be shown.

    ``moments`` says whether ends of runs may be seen, which depend on their secret number.
    """

    def __init__(
        self, say: Callable[[Stage], None] = lambda stage: None, moments: bool = False
    ) -> None:
        self._show, self._moments, self._stage = say, moments, Stage("")

    def secret_runs(self) -> None:
        """Report that a secret number of candidates runs."""
        self._say(Stage("tuning" if self._moments else "searching"))

    def public_runs(self, text: str, total: int) -> None:
        """Report that a public number of trainings begins; from here on every moment is public."""
        self._moments = True
        self._say(Stage(text, 0, total))

    def done(self, tasks: int, of: int) -> None:
        """Report the share of finished tasks, of a public number of trainings.

        Reports may be late or repeated.
        """
        stage = self._stage
        if stage.total is not None and (done := stage.total * tasks // of) > stage.done:
            self._say(stage._replace(done=done))

    def last_training(self) -> None:
        """Report that the training after the runs begins, or its stand-in if no run succeeded."""
        if self._moments:
            self._say(Stage("training the final model"))

    def _say(self, stage: Stage) -> None:
        self._stage = stage
        self._show(stage)


NO_DISPLAY = Progress()


@contextlib.contextmanager
def planning(name: str, verbose: int) -> Iterator[None]:
    """Report the planning of a search and its time, which no record influences."""
    since = time.monotonic()
    say = speaking(name, verbose > 0)
    say(Stage("planning"))
    yield
    say(Stage(f"planned in {time.monotonic() - since:.1f} s"))
