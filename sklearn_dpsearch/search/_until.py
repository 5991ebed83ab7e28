"""Stop at the first candidate whose private score reaches a known threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from inspect import signature
from typing import Any

import numpy as np

from ..privacy import Guarantee, compose, until_above
from ..privacy.mechanisms.exact_sampling import bernoulli
from ..privacy.spent import Component
from ..scoring import get_private_scorer, search_guarantee
from ..scoring.validation import Validation, validation_of
from ._dry_run import in_the_open
from ._outcome import Outcome
from ._plan import Plan
from ._randomness import Randomness
from ._runs import Job, Parts, fresh, n_records, run_until, train_last

#: Parameters of the search that only the walk over a whole grid has.
ONLY_AUTO = (
    "n_parts",
    "part_noise",
    "granularity",
    "lowest_utility",
    "max_rounds",
    "selection_share",
    "round_epsilon",
    "threshold_noise",
)


class Until:
    """Runs one after the other; before each a coin may end the search with nothing.

    Parameters
    ----------
    search : DPThresholdSearchCV
        Whose parameters count.
    """

    def __init__(self, search: Any) -> None:
        self.search = search
        if not np.isfinite(search.threshold):
            raise ValueError(f"Found threshold={search.threshold!r}; a finite number or 'auto' is needed.")
        for name in ONLY_AUTO:
            value, default = getattr(search, name), signature(type(search)).parameters[name].default
            if value != default:
                raise ValueError(
                    f"Found {name}={value!r} with threshold={search.threshold!r}, where it has no meaning: candidates "
                    f"run one after the other. Leave {name} out, or give threshold='auto'."
                )

    @property
    def stop_probability(self) -> Fraction:
        """Probability of stopping before each run, exactly what is accounted."""
        return Fraction(1 / float(self.search.n_iter))

    # --- plan -----------------------------------------------------------------------------------------------------

    def scorer(self, public: bool) -> Any:
        search = self.search
        return search._public_scorer() if public else get_private_scorer(search.scoring, search.estimator)

    def validation(self, relation: str, n_samples: int | None, public: bool) -> Validation:
        return validation_of(self.search.cv, relation, n_samples, public)

    def cost_parts(self, promises: Any, scoring: Any, validation: Any) -> tuple[tuple[Component, ...], Guarantee]:
        stop = float(self.stop_probability)

        def until(one_run: Guarantee) -> Guarantee:
            return until_above(one_run, stop)

        guarantee = search_guarantee(promises.trained, scoring, validation.exposures(), until)
        name = f"first run with a score of at least {self.search.threshold:g}, or none (stop probability {stop:.4g})"
        first = Component(name=name, guarantee=guarantee)
        if self.search.refit is not True:
            return (first,), guarantee
        again = Component(name="refit of the winner on all records", guarantee=promises.worst)
        return (first, again), compose(guarantee, again.guarantee)

    # --- run ------------------------------------------------------------------------------------------------------

    def candidates(self, plan: Plan, source: Randomness) -> list[dict[str, Any]]:
        """As many as the coins allow, which may be none; most of them need not run."""
        bits, number = source.bits, 0
        while not bernoulli(self.stop_probability, bits):
            number += 1
        return self.search._drawn(plan, number, source)

    def parts(self, plan: Plan, n_samples: int, source: Randomness) -> Parts:
        return self.search._validated(plan, n_samples, source)

    def run(self, job: Job, candidates: Sequence[Mapping[str, Any]], source: Randomness, X: Any, y: Any) -> Outcome:
        """The first success in the order of drawing, or nothing."""
        search = self.search
        *seeds, last = source.run_seeds(len(candidates) + 1)
        parallel = {"n_jobs": search.n_jobs, "pre_dispatch": search.pre_dispatch}
        expected = float(search.n_iter)
        found = run_until(job, candidates, seeds, search.threshold, X, y, expected=expected, **parallel)
        if found is None:
            return Outcome(found=False, rows=[], may_stop=True)
        return self._released(job, candidates[found[0]], found[1], last, X, y)

    def dry(self, plan: Plan, job: Job, candidate: Mapping[str, Any], X: Any, y: Any) -> float:
        return in_the_open(job, candidate, X, y)[1]

    def _released(self, job: Job, candidate: Mapping[str, Any], run: Any, seed: Any, X: Any, y: Any) -> Outcome:
        model = run.model
        if self.search.refit is True:
            model = train_last(job, lambda: fresh(job, candidate, seed), np.arange(n_records(X)), seed, X, y)
        shown = {} if self.search.refit is False else {"best_estimator_": model}
        return Outcome(found=model is not None, rows=[(candidate, run.score)], attributes={**shown, "found_": True})
