"""Progress of a running search: public numbers where there are some, otherwise only that it runs.

Nothing here may depend on K, on candidates, on scores or on records. So a random number of runs is never counted. Where
the moment at which runs end is secret, one stage stands for all of the work; ``verbose=2`` shows that moment.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from ..._process import Stage, Voice, speaking

PLANNING, SEARCHING, TUNING, LAST = "planning", "searching", "tuning", "training the final model"


class Progress:
    """Stage of a search, reported by a voice.

    Parameters
    ----------
    voice : Voice or None
        Reports the stages; None: no report.
    moments : bool
        Whether the moment at which runs end may be seen although it depends on their secret number.
    """

    def __init__(self, voice: Voice | None = None, moments: bool = False) -> None:
        self._voice, self._moments, self._stage = voice, moments, Stage("")

    def secret_runs(self) -> None:
        """Report that a secret number of candidates runs."""
        self._say(Stage(TUNING if self._moments else SEARCHING))

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
            self._say(Stage(LAST))

    def _say(self, stage: Stage) -> None:
        self._stage = stage
        if self._voice is not None:
            self._voice.say(stage)


SILENT = Progress()


@contextlib.contextmanager
def running(name: str, verbose: int) -> Iterator[Progress]:
    """Show the progress of a search of the given name."""
    with speaking(name, verbose > 0) as voice:
        yield Progress(voice, verbose > 1)


@contextlib.contextmanager
def planning(name: str, verbose: int) -> Iterator[None]:
    """Report the planning of a search and its time, which no record influences."""
    since = time.monotonic()
    with speaking(name, verbose > 0) as voice:
        if voice is not None:
            voice.say(Stage(PLANNING))
        yield
        if voice is not None:
            voice.say(Stage(f"planned in {time.monotonic() - since:.1f} s"))
