"""Candidates that come batch by batch: one round of the doubling walk for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from sklearn.base import clone

from ...privacy import PrivacyError
from ...privacy.mechanisms.doubling_walk import DoublingRounds
from .. import private_process
from .._private_fit import PrivateFit, release_of
from .._types import Candidate
from ..execution.job import Job, Outcome
from ..execution.progress import Progress
from ..execution.randomness import Randomness
from ..execution.workers import Workers
from ..planning.plan import Plan
from ..strategies.sample_and_aggregate import SampleAndAggregate, train_winner

Batch: TypeAlias = Sequence[Candidate]


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
    job, source, progress
        As for ``Strategy.run``.
    """

    def __init__(
        self, strategy: SampleAndAggregate, walk: DoublingRounds, job: Job, source: Randomness, progress: Progress
    ) -> None:
        self.job = job
        self._strategy, self._walk, self._source, self._progress = strategy, walk, source, progress
        self._kept: dict[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Return whether the walk has ended."""
        return self._walk.over

    def utilities(self, batch: Batch) -> list[Fraction]:
        """Compute exact utilities of a batch: a secret, discarded after its rounds."""
        seeds = self._source.run_seeds(len(self.job.split.folds))
        return self._strategy.utilities(self.job, batch, seeds, self._progress)

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
        return train_winner(self.job, self._kept, self._utility, seed, **told)

    @property
    def _utility(self) -> float:
        """Threshold passed last, at most 1: the last step may go beyond all utilities."""
        return float(min(self._walk.threshold, Fraction(1)))


@dataclass
class PrivateWalk:
    """Rounds in a process of their own: a call with a batch is a round, a call without one ends the walk.

    Parameters
    ----------
    fit : PrivateFit
        Planned and paid for.
    """

    fit: PrivateFit
    _rounds: Rounds | None = None
    _ended: bool = False

    def __call__(self, batch: Batch | None) -> Any:
        """Return a round's release and whether the walk is over; at the end, the fields of the release."""
        with self.fit.workplace.entered() as workers:
            if self._rounds is None:
                self._rounds = self._begin(workers)
            rounds = self._rounds
            rounds.job = replace(rounds.job, workers=workers)
            if self._ended:
                raise PrivacyError("Found a walk that has ended; each is trained once. Ask for other rounds.")
            if batch is None:
                self._ended = True
                return release_of(len(rounds.job.split.folds), rounds.train())
            return rounds.ask(batch, rounds.utilities(batch)), rounds.over

    def _begin(self, workers: Workers) -> Rounds:
        source, strategy = self.fit.source(), self.fit.strategy
        rounds: Rounds = strategy.rounds(self.fit.plan, self.fit.job((), source, workers), source, self.fit.progress())  # type: ignore[attr-defined]
        return rounds


def steps_of_walk(
    fit: PrivateFit,
    spend: Callable[[], None],
    batches: Iterable[Batch],
    release: Callable[[Plan, dict[str, Any]], None],
) -> Iterator[RoundRelease]:
    """Yield the rounds to the caller of ``rounds``; at the end the search is fitted.

    Secrets of the walk stay in one process, which gives each round once, to the first thread that asks.

    Parameters
    ----------
    fit : PrivateFit
    spend : callable
        Spends the budget; called before the first round.
    batches : iterable of lists of dicts
    release : callable
        Sets the fields of the release on the search.
    """
    over, begun = False, False
    with private_process.PrivateProcess(PrivateWalk(fit), fit.shared, fit.writes) as process:
        for batch in batches:
            candidates = checked(batch, fit.plan)
            if not begun:
                begun = True
                spend()
            kept, over = process(candidates)
            yield kept
            if over:
                break
        if not begun:
            spend()
        release(fit.plan, process(None))


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
