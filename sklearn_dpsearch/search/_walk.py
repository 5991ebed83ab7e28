"""The doubling walk over utility thresholds, and the interface for candidates that come batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..adapters import adapter_for
from ..privacy import AboveThreshold, Guarantee, PrivacyError, calibrate, compose, doubling_search
from ..privacy.selection.doubling import default_max_rounds
from ..privacy.spent import Component
from ..scoring.validation import Validation
from ._aggregated import (
    InParts,
    checked_points,
    drawn_parts,
    number_of_parts,
    on_part_in_the_open,
    train_winner,
    utilities_of,
    utility_scorer,
)
from ._outcome import Outcome
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, n_records
from ._space import Space
from ._tasks import guarded
from ._utilities import sensitivity

#: Rounds whose worst case is computed in seconds; the time grows with the square.
MOST_ROUNDS = 5000


@dataclass(frozen=True)
class Kept:
    """What a round of the walk released.

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


class Walk:
    """Utilities of all candidates on random parts, and rounds of AboveThreshold with doubling and halving steps.

    Parameters
    ----------
    search : DPThresholdSearchCV
        Whose parameters count.
    """

    def __init__(self, search: Any) -> None:
        self.search = search
        g, lowest = search.granularity, search.lowest_utility
        if not 0 < g < 1:
            raise ValueError(f"Found granularity={g!r}; a number with 0 < granularity < 1 is needed, e.g. 0.02.")
        if not 0 <= lowest < 1:
            raise ValueError(f"Found lowest_utility={lowest!r}; a number with 0 <= lowest_utility < 1 is needed.")
        if search.max_rounds is not None and search.max_rounds < 1:
            raise ValueError(f"Found max_rounds={search.max_rounds!r}; an integer of at least 1 is needed.")
        if self.max_rounds > MOST_ROUNDS:
            raise ValueError(
                f"Found max_rounds={search.max_rounds!r} with granularity={g!r}, so up to {self.max_rounds} rounds; at "
                f"most {MOST_ROUNDS} are accounted for. Give fewer, or leave max_rounds=None."
            )
        if search.refit is not True and search.refit != "winner":
            raise ValueError(
                f"Found refit={search.refit!r} with threshold='auto': models on parts are not private, so one private "
                "training follows the choice. Leave refit='winner'."
            )
        if search.cv is not None or search.score_noise != "match":
            name = "score_noise" if search.cv is None else "cv"
            raise ValueError(
                f"Found {name}={getattr(search, name)!r} with threshold='auto', where candidates are scored on n_parts "
                f"random parts and no score is released. Leave {name} out, and set n_parts."
            )

    @property
    def levels(self) -> int:
        """⌈(1 − u₀)/g⌉."""
        return math.ceil((1 - self.start) / self.unit)

    @property
    def start(self) -> Fraction:
        """u₀."""
        return Fraction(float(self.search.lowest_utility))

    @property
    def unit(self) -> Fraction:
        """g."""
        return Fraction(float(self.search.granularity))

    @property
    def max_rounds(self) -> int:
        """The walk ends after so many rounds; there cannot be more than a halving for each level, and one."""
        given = self.search.max_rounds
        return default_max_rounds(self.levels) if given is None else min(int(given), 2 * self.levels + 1)

    @property
    def round_epsilon(self) -> float:
        """ε of a round: as given, or what the share of the total allows in the worst case."""
        search = self.search
        if search.round_epsilon is not None:
            return float(search.round_epsilon)
        if search.epsilon is None:
            raise PrivacyError(
                "Found neither epsilon nor round_epsilon: what may the rounds cost? Give epsilon, the total for the "
                "walk and the training, or round_epsilon, and the estimator's own noise as configured."
            )
        share = float(search.epsilon) * float(search.selection_share)
        return _largest_round(share, float(search.delta or 0.0), self.levels, self.max_rounds, search.threshold_noise)

    # --- plan -----------------------------------------------------------------------------------------------------

    def scorer(self, public: bool) -> Any:
        return utility_scorer(self.search._public_scorer())

    def validation(self, relation: str, n_samples: int | None, public: bool) -> Validation:
        self._number_of_parts(relation, n_samples)
        return InParts(public)

    def cost_parts(self, promises: Any, scoring: Any, validation: Any) -> tuple[tuple[Component, ...], Guarantee]:
        training = promises.worst
        walk = _walk(
            self.round_epsilon, self.levels, self.max_rounds, self.search.threshold_noise, training.neighboring
        )
        name = f"doubling walk of at most {self.max_rounds} rounds over {self.levels} levels, the worst case"
        components = (
            Component(name=name, guarantee=walk),
            Component(name="training of the winner on all records", guarantee=training),
        )
        return components, compose(walk, training)

    def _number_of_parts(self, relation: str, n_samples: int | None) -> int | None:
        search = self.search
        adapter, space = adapter_for(search.estimator, search.guarantee), Space.of(search.param_distributions)
        return number_of_parts(
            search.n_parts, adapter, search.estimator, relation, n_samples, self.round_epsilon / 2, space
        )

    # --- run ------------------------------------------------------------------------------------------------------

    def candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        return checked_points(plan)

    def parts(self, plan: Plan, n_samples: int, source: Randomness) -> Parts:
        k = self._number_of_parts(plan.spent.neighboring, n_samples)
        assert k is not None
        return drawn_parts(k, n_samples, plan.validation, source)

    def run(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        rounds = Rounds(self, job, source, X, y)
        utilities = rounds.utilities(candidates)
        while not rounds.over:
            rounds.ask(candidates, utilities)
        return rounds.train()

    def dry(self, plan: Plan, job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> float:
        given = self.search.n_parts
        k = given or self._number_of_parts(plan.spent.neighboring, n_records(X)) or 2
        return on_part_in_the_open(job, candidate, self.search.part_noise, k, X, y)


@lru_cache(maxsize=256)
def _walk(round_epsilon: float, levels: int, max_rounds: int, threshold_noise: str, relation: Any) -> Guarantee:
    """What every walk that the rules allow costs at most."""
    return doubling_search(round_epsilon, levels, max_rounds, threshold_noise=threshold_noise, neighboring=relation)


@lru_cache(maxsize=64)
def _largest_round(share: float, delta: float, levels: int, max_rounds: int, threshold_noise: str) -> float:
    """The largest ε of a round with which every walk stays within its share."""

    def guarantee(round_epsilon: float) -> Guarantee:
        return doubling_search(round_epsilon, levels, max_rounds, threshold_noise=threshold_noise)

    return calibrate(guarantee, share, delta, (share / (2 * max_rounds), 2 * share))


class Rounds:
    """The walk, one round of AboveThreshold at a time; everything it tells is covered by the walk's guarantee."""

    def __init__(self, walk: Walk, job: Job, source: Randomness, X: Any, y: Any) -> None:
        self.walk, self.job, self.source, self.X, self.y = walk, job, source, X, y
        search = walk.search
        self._question = AboveThreshold(
            round_epsilon=Fraction(walk.round_epsilon), sensitivity=sensitivity(len(job.parts.folds))
        )
        self._bits = source.bits
        once = search.threshold_noise == "once"
        self._noise = self._question.draw_threshold_noise(self._bits) if once else None
        self._level, self._step, self._done = 0, 1, 0
        self._kept: dict[str, Any] | None = None

    @property
    def over(self) -> bool:
        """Whether the walk has ended."""
        return self._step == 0 or self._level >= self.walk.levels or self._done >= self.walk.max_rounds

    def utilities(self, batch: Sequence[Mapping[str, Any]]) -> list[Fraction]:
        """Exact utilities of a batch: a secret, kept no longer than its rounds last."""
        search, seeds = self.walk.search, self.source.run_seeds(len(self.job.parts.folds))
        return utilities_of(
            self.job, batch, search.part_noise, seeds, self.X, self.y,
            n_jobs=search.n_jobs, pre_dispatch=search.pre_dispatch,
        )  # fmt: skip

    def ask(self, batch: Sequence[Mapping[str, Any]], utilities: Sequence[Fraction]) -> Kept:
        """One round: the first candidate of the batch found above the next threshold is kept."""
        found = self._question.first_above(
            list(utilities), self._threshold(self._level + self._step), self._bits, self._noise
        )
        self._done += 1
        if found is None:
            self._step //= 2
        else:
            self._level, self._step = self._level + self._step, 2 * self._step
            self._kept = dict(batch[found])
        return Kept(self._kept, self._utility, found is not None)

    def train(self) -> Outcome:
        """One private training with the candidate that was kept, if any."""
        if self._kept is None:
            return Outcome(found=False, rows=[], may_stop=True)
        (seed,) = self.source.run_seeds(1)
        told = {"found_": True, "n_rounds_": self._done}
        return train_winner(self.job, self._kept, self._utility, seed, self.X, self.y, **told)

    @property
    def _utility(self) -> float:
        """The threshold last passed; the last step may go beyond 1, where no utility is."""
        return float(min(self._threshold(self._level), Fraction(1)))

    def _threshold(self, level: int) -> Fraction:
        return self.walk.start + level * self.walk.unit


class StepByStep(Iterator[Kept]):
    """What the caller of ``rounds`` steps through.

    Unlike a generator it has no frame that waits with the walk's secrets in its variables; and each step is guarded.

    Parameters
    ----------
    start : callable
        Spends the budget and returns the walk's rounds.
    batches : iterable of lists of dicts
    plan : Plan
    release : callable
        (plan, number of parts, outcome): the search's own.
    """

    def __init__(self, start: Callable[[], Rounds], batches: Iterable[Any], plan: Plan, release: Any) -> None:
        rounds: list[Rounds] = []

        def ask(batch: Sequence[Mapping[str, Any]]) -> tuple[Kept, bool]:
            if not rounds:
                rounds.append(start())
            return rounds[0].ask(batch, rounds[0].utilities(batch)), rounds[0].over

        def train() -> tuple[int, Outcome]:
            last = rounds.pop() if rounds else start()
            return len(last.job.parts.folds), last.train()

        self._ask, self._train = ask, train
        self._batches, self._plan, self._release = iter(batches), plan, release
        self._over = self._ended = False

    def __next__(self) -> Kept:
        if self._ended:
            raise StopIteration
        batch = _END if self._over else next(self._batches, _END)
        self._ended = True  # whatever is raised below
        if batch is _END:
            self._release(self._plan, *guarded(self._train))
            raise StopIteration
        candidates = checked(batch, self._plan)
        kept, self._over = guarded(lambda: self._ask(candidates))
        self._ended = False
        return kept

    def close(self) -> None:
        """End the walk without a model; what was spent is spent."""
        self._ended = True

    def __reduce__(self) -> Any:
        raise TypeError("A walk in progress cannot be copied or pickled: it holds private records and secret noise.")


_END = object()


def checked(batch: Any, plan: Plan) -> list[dict[str, Any]]:
    """The caller's candidates, each of which keeps what was planned for some point of the space."""
    candidates = [] if isinstance(batch, Mapping) else list(batch)
    if isinstance(batch, Mapping) or not all(isinstance(one, Mapping) for one in candidates):
        raise TypeError(f"Found the batch {batch!r}; a list of dicts, one for each candidate, is needed.")
    if not candidates:
        raise ValueError(
            "Found an empty batch; at least one candidate is needed in each. To end the walk, end the batches."
        )
    for one in candidates:
        plan.promises.check_covered(one)
    return [dict(one) for one in candidates]
