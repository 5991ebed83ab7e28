"""Progress of a running search. Nothing here may depend on K, on candidates, on scores or on records.

So a random number of runs is never counted. Where ends of runs are secret, one stage stands for all of the work.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from ..._process import Stage, speaking


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


def running(name: str, verbose: int) -> contextlib.AbstractContextManager[Callable[[Stage], None]]:
    """Show the progress of a search of the given name."""
    return speaking(name, verbose > 0)


@contextlib.contextmanager
def planning(name: str, verbose: int) -> Iterator[None]:
    """Report the planning of a search and its time, which no record influences."""
    since = time.monotonic()
    with speaking(name, verbose > 0) as say:
        say(Stage("planning"))
        yield
        say(Stage(f"planned in {time.monotonic() - since:.1f} s"))
