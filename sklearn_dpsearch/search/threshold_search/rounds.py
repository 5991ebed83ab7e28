"""Candidates that come batch by batch: one round of the doubling walk for each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sklearn.base import clone

from ..._process import ALL_SEEDED_OR_NONE, this_process
from ...privacy import PrivacyError
from ...privacy.mechanisms.doubling_walk import DoublingRounds
from .._types import Candidate
from ..execution.job import Job
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.tasks import guarded
from ..planning.plan import Plan
from ..strategies.sample_and_aggregate import SampleAndAggregate, train_winner

Batch: TypeAlias = Sequence[Candidate]

_END = object()


@dataclass(frozen=True)
class RoundRelease:
    """Release of one round.

    Parameters
    ----------
    params : dict or None
        The candidate kept, None before the first.
    utility : float
        The threshold that it was found above, at most 1.
    accepted : bool
        Whether this round found a candidate.
    """

    params: dict[str, Any] | None
    utility: float
    accepted: bool


class Rounds:
    """One walk over the utilities of candidates; the walk's guarantee covers every released decision.

    Parameters
    ----------
    strategy : SampleAndAggregate
        Whose utilities count.
    walk : DoublingRounds
        The mechanism, which holds the secret noise.
    job, source, X, y
        As for ``Strategy.run``.
    """

    def __init__(
        self, strategy: SampleAndAggregate, walk: DoublingRounds, job: Job, source: Randomness, X: Any, y: Any
    ) -> None:
        self.job = job
        self._strategy, self._walk, self._source, self._X, self._y = strategy, walk, source, X, y
        self._kept: dict[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Return whether the walk has ended."""
        return self._walk.over

    def utilities(self, batch: Batch) -> list[Fraction]:
        """Compute exact utilities of a batch: a secret, discarded after its rounds."""
        seeds = self._source.run_seeds(len(self.job.split.folds))
        return self._strategy.utilities(self.job, batch, seeds, self._X, self._y)

    def ask(self, batch: Batch, utilities: Sequence[Fraction]) -> RoundRelease:
        """Run one round: keep the first candidate of the batch found above the next threshold."""
        found = self._walk.ask(utilities)
        if found is not None:
            self._kept = dict(batch[found])
        shown = None if self._kept is None else own_copy(self._kept)  # the caller may change the copy, not the original
        return RoundRelease(shown, self._utility, found is not None)

    def train(self) -> Outcome:
        """Train once, privately, with the kept candidate, if any."""
        if self._kept is None:
            return Outcome(found=False, rows=[], may_stop=True)
        (seed,) = self._source.run_seeds(1)
        told = {"found_": True, "n_rounds_": self._walk.steps.rounds}
        return train_winner(self.job, self._kept, self._utility, seed, self._X, self._y, **told)

    @property
    def _utility(self) -> float:
        """Threshold passed last, at most 1: the last step may go beyond all utilities."""
        return float(min(self._walk.threshold, Fraction(1)))


class StepByStep(Iterator[RoundRelease]):
    """Iterator over the rounds, for the caller of ``rounds``.

    Unlike a generator, no waiting frame holds the walk's secrets in its variables, and each step is guarded.

    Parameters
    ----------
    start : callable
        Spends the budget and returns the walk's rounds.
    batches : iterable of lists of dicts
    plan : Plan
    conclude : callable
        The search's own method: does the final training, given as a callable, and releases its outcome.
    seeded : bool
        Whether the search has a seed: it does not overlap with searches of the other kind.
    """

    def __init__(
        self,
        start: Callable[[], Rounds],
        batches: Iterable[Batch],
        plan: Plan,
        conclude: Callable[[Plan, Callable[[], tuple[int, Outcome]]], None],
        *,
        seeded: bool,
    ) -> None:
        begun: list[Rounds] = []  # in a closure: attributes of the object would be visible between rounds

        def ask(batch: Batch) -> tuple[RoundRelease, bool]:
            if not begun:
                begun.append(start())
            rounds = begun[0]
            return rounds.ask(batch, rounds.utilities(batch)), rounds.over

        def train() -> tuple[int, Outcome]:
            last = begun.pop() if begun else start()
            return len(last.job.split.folds), last.train()

        self._ask, self._train = ask, train
        self._batches, self._plan, self._conclude = iter(batches), plan, conclude
        self._over, self._ended, self._seeded = False, False, seeded
        self._running, self._process = threading.Lock(), this_process()

    def __next__(self) -> RoundRelease:
        with self._alone():
            if self._ended:
                raise StopIteration
            self._ended = True  # also if an error is raised below
            batch: Any = _END if self._over else next(self._batches, _END)
            with ALL_SEEDED_OR_NONE(self._seeded):
                if batch is _END:
                    self._conclude(self._plan, self._train)
                    raise StopIteration
                candidates = checked(batch, self._plan)
                kept, self._over = guarded(lambda: self._ask(candidates))
            self._ended = False
            return kept

    def close(self) -> None:
        """End the walk without a model; what was spent is spent."""
        with self._alone():
            self._ended = True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Do one step at a time, in the process that asked for the rounds: each round is paid for once."""
        if self._process != this_process():
            raise PrivacyError(
                "Found a walk in a forked copy of its process; one process is needed, because each round is paid for "
                "once. Go on in the process that asked for the rounds, or ask for others here, which are paid for."
            )
        if not self._running.acquire(blocking=False):
            raise PrivacyError(
                "Found a step of a walk while another of its steps is under way; one at a time is needed, because each "
                "round is paid for once. Wait for the other one."
            )
        try:
            yield
        finally:
            self._running.release()

    def __reduce__(self) -> Any:
        raise TypeError("A walk in progress cannot be copied or pickled: it holds private records and secret noise.")


def checked(batch: Batch, plan: Plan) -> list[Candidate]:
    """Check that each of the caller's candidates keeps the guarantee of some planned point of the space."""
    candidates: list[Any] = [] if isinstance(batch, Mapping) else list(batch)
    if isinstance(batch, Mapping) or not all(isinstance(candidate, Mapping) for candidate in candidates):
        raise TypeError(f"Found the batch {batch!r}; a list of dicts, one for each candidate, is needed.")
    if not candidates:
        raise ValueError(
            "Found an empty batch; at least one candidate is needed in each. To end the walk, end the batches."
        )
    candidates = [own_copy(candidate) for candidate in candidates]
    for candidate in candidates:
        plan.promises.check_covered(candidate)
    return candidates


def own_copy(candidate: Candidate) -> dict[str, Any]:
    """Copy a candidate, so that the caller shares none of its values."""
    return {name: clone(value, safe=False) for name, value in candidate.items()}
