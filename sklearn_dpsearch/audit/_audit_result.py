"""Result of an audit, and its statistics without any fitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy._checks import Neighboring, require, require_in, require_whole
from ._bounds import certified_epsilon, largest_provable_epsilon, n_counted_runs
from ._distinguishing_events import NO_DIFFERENCE, Counts, Table, choose, counts, tabulate

#: The fewest runs on each data set from which a bound is computed.
FEWEST_RUNS = 10


@dataclass(frozen=True, kw_only=True)
class LowerBound(ABC):
    """Lower bound on ε by an audit, beside the stated ε.

    Parameters
    ----------
    epsilon_lower : float
        With probability ``confidence`` the true ε at ``delta`` is at least this.
    delta, confidence : float
        δ at which ε is bounded, and the probability with which the bound holds.
    stated_epsilon : float or None
        ε that the estimator states at ``delta`` for these data sets; None if nothing is stated.
    neighboring : str or None
        Neighbouring relation of the statement.
    steps : int
        Steps of that relation between the two data sets; ``stated_epsilon`` counts them.
    notes : tuple of str
        Changed parameters of the estimator.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    stated_epsilon: float | None = None
    neighboring: Neighboring | None = None
    steps: int = 1
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def consistent(self) -> bool | None:
        """False if the statement is refuted; None if nothing is stated."""

    def __str__(self) -> str:
        epsilon, verdict = self.stated_epsilon, "nothing is stated"
        if self.consistent is not None:
            verdict = "consistent" if self.consistent else "REFUTED: the statement is false"
        stated = "" if epsilon is None else f"; stated epsilon = {epsilon:.4g}"
        two = "" if self.steps == 1 else f" ({self.steps} steps of {self.neighboring})"
        at = f"at delta = {self.delta:g} with {self.confidence:.4g} confidence"
        notes = "".join(f"\n  note: {note}" for note in self.notes)
        bound = f"epsilon >= {self.epsilon_lower:.4g} {at}{stated}{two}: {verdict}"
        return f"{bound}\n{self._evidence()}{notes}"

    @abstractmethod
    def _evidence(self) -> str:
        """Text of what was counted, as indented lines."""


@dataclass(frozen=True, kw_only=True)
class AuditResult(LowerBound):
    """Lower bound on ε, with its evidence.

    Parameters
    ----------
    epsilon_lower : float
        With probability ``confidence`` the true ε at ``delta`` is at least this.
    delta, confidence : float
        δ at which ε is bounded, and the probability with which the bound holds.
    n_runs : int
        Runs on each data set. Half of them chose the event, the others were counted.
    event : str
        The counted event.
    counts : tuple of int
        Hits and runs on the data set where the event is more probable, then on the other.
    stated_epsilon : float or None
        ε that the estimator states at ``delta`` for these data sets; None if nothing is stated.
    neighboring : str or None
        Neighbouring relation of the statement.
    steps : int
        Steps of that relation between the two data sets; ``stated_epsilon`` counts them.
    notes : tuple of str
        Changed parameters of the estimator.
    """

    n_runs: int
    event: str
    counts: Counts

    @property
    def consistent(self) -> bool | None:
        """True if the stated ε is at least the lower bound; None if no ε is stated."""
        return None if self.stated_epsilon is None else self.stated_epsilon >= self.epsilon_lower

    @property
    def largest_provable(self) -> float:
        """Largest ε that this number of runs can prove."""
        return largest_provable_epsilon(self.n_runs, self.delta, self.confidence)

    def _evidence(self) -> str:
        hits, runs, other_hits, other_runs = self.counts
        return (
            f"  event: {self.event}\n"
            f"  happened in {hits} of {runs} runs and in {other_hits} of {other_runs} on the "
            f"neighbour; {self.n_runs} runs a side prove at most {self.largest_provable:.4g}"
        )


def lower_bound(
    outcomes: Sequence[Any], others: Sequence[Any], *, delta: float = 0.0, confidence: float = 0.95
) -> AuditResult:
    """A lower bound on ε from what a mechanism returned on two neighbouring data sets.

    Parameters
    ----------
    outcomes, others : sequence of length n
        One entry per independent run on each of the two data sets: a number, an array of numbers, a
        label (str, bool, tuple, None), or a dict of these.
    delta : float, default=0.0
        δ at which ε is bounded.
    confidence : float, default=0.95
        Probability with which the bound holds.

    Returns
    -------
    AuditResult
        Half of the runs choose the event (a set of outcomes and its more probable data set); the
        other half is counted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = lower_bound(rng.normal(1.0, size=4000), rng.normal(0.0, size=4000), delta=1e-5)
    >>> 1.5 < found.epsilon_lower < 4.38  # N(1, 1) and N(0, 1): exactly 4.38
    True
    """
    n_runs = min(len(outcomes), len(others))
    check_runs(n_runs)
    check_levels(delta, confidence)
    rng = np.random.default_rng(0)  # any order that does not depend on the outcomes
    first, second = tabulate(outcomes, others)
    choosing, counted = _split_runs(first, rng)
    other_choosing, other_counted = _split_runs(second, rng)
    event = choose(choosing, other_choosing, delta)
    hits_and_runs = (0, n_counted_runs(len(outcomes)), 0, n_counted_runs(len(others)))
    if event is not None:
        hits_and_runs = counts(event, counted, other_counted)
    return AuditResult(
        epsilon_lower=float(certified_epsilon(*hits_and_runs, delta, confidence)),
        delta=float(delta),
        confidence=float(confidence),
        n_runs=n_runs,
        event=NO_DIFFERENCE if event is None else str(event),
        counts=hits_and_runs,
    )


def _split_runs(table: Table, rng: np.random.Generator) -> tuple[Table, Table]:
    """Draw which runs choose the event, and which are counted.

    Outcomes may come sorted.
    """
    order, half = rng.permutation(table.n_rows), table.n_rows // 2
    return table.select_rows(order[:half]), table.select_rows(order[half:])


def check_runs(n_runs: int) -> None:
    """Raise for too few runs to prove any ε."""
    require_whole(0, n_runs=n_runs)
    if n_runs < FEWEST_RUNS:
        raise ValueError(
            f"Found {n_runs} runs on a data set; at least {FEWEST_RUNS} are needed. To prove an "
            "epsilon takes runs_needed(epsilon): 23 for 1, 151 for 3, 1095 for 5."
        )


def check_levels(delta: float, confidence: float, random_state: int | None = None) -> None:
    """Raise for an impossible δ, confidence or seed."""
    if random_state is not None:
        require_whole(0, random_state=random_state)
    require_in("[0, 1)", delta=delta)
    require(0.5 <= confidence < 1, "0.5 <= confidence < 1 (0.95 is usual)", confidence=confidence)
