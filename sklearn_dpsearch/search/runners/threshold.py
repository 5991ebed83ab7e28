"""Stop at the first candidate whose private score reaches a known threshold."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...privacy import Guarantee, until_above
from ...privacy._types import Neighboring
from ...privacy.mechanisms.exact_sampling import bernoulli
from ...scoring.validation import Validation, all_numbers, validation_of
from .._records import n_records
from .._types import Candidate, Distributions, Parameters, Seed
from ..execution.job import Job
from ..execution.models import fresh, train_last
from ..execution.outcome import Outcome
from ..execution.randomness import Randomness
from ..execution.runs import Run, run_until
from ..planning.plan import CostModel, Plan
from .base import Runner, drawn_candidates
from .best_of import CostOfRuns, shown_of


class StoppingParameters(Parameters, Protocol):
    """Parameters for stopping at a threshold."""

    param_distributions: Distributions
    n_iter: float
    score_noise: Guarantee | str
    cv: Any
    refit: bool | str


class ThresholdRunner(Runner):
    """Run candidates one after the other; before each run a coin may end the search without a result.

    Parameters
    ----------
    search : StoppingParameters
    threshold : float
    """

    search: StoppingParameters
    shows = ("best_score_std_", "found_")
    why_nothing = (
        "the search stopped before a candidate reached the threshold (found_ is False). Give a lower threshold or "
        "a larger n_iter; fitting again spends privacy_spent_ again."
    )

    def __init__(self, search: StoppingParameters, threshold: float) -> None:
        super().__init__(search, search.param_distributions)
        self.threshold = threshold
        if not np.isfinite(threshold):
            raise ValueError(f"Found threshold={threshold!r}; a finite number or Doubling(...) is needed.")

    @property
    def stop_probability(self) -> Fraction:
        """Probability of stopping before each run, exactly as accounted."""
        return Fraction(1 / float(self.search.n_iter))

    # --- plan -----------------------------------------------------------------------------------------------------

    @property
    def score_noise(self) -> Guarantee | str:
        return self.search.score_noise

    def validation(self, relation: Neighboring, n_samples: int | None, public: bool) -> Validation:
        if self.search.cv is None and not public:
            return self.default_hold_out(relation, n_samples)
        return validation_of(self.search.cv, relation, n_samples, public)

    def cost(self, validation: Validation) -> CostModel:
        stop = float(self.stop_probability)
        return CostOfRuns(
            name=f"first run with a score of at least {self.threshold:g}, or none (stop probability {stop:.4g})",
            search=partial(until_above, stop_probability=stop),
            exposures=validation.exposures(),
            refit=self.search.refit is True,
        )

    def notes(self, relation: Neighboring) -> tuple[str, ...]:
        return (f"The threshold {self.threshold:g} was not chosen by looking at the data.",)

    # --- run ------------------------------------------------------------------------------------------------------

    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """Draw candidates until a coin says stop; there may be none, and most of them need not run."""
        bits, number = source.bits, 0  # exact coins: a float probability would be rounded
        while not bernoulli(self.stop_probability, bits):
            number += 1
        return drawn_candidates(plan, number, source)

    def run(self, job: Job, candidates: Sequence[Candidate], source: Randomness, X: Any, y: Any) -> Outcome:
        """Find the first success in the order of drawing, if any."""
        *seeds, last = source.run_seeds(len(candidates) + 1)
        expected = float(self.search.n_iter)
        self.progress.secret_runs()
        first = run_until(job, candidates, seeds, X, y, self.workers, threshold=self.threshold, expected=expected)
        if self.search.refit is True:
            self.progress.last_training()  # also without a success: its reason must stay secret
        if first is None:
            return Outcome(found=False, rows=[], may_stop=True)
        place, run = first
        return self._released(job, candidates[place], run, last, X, y)

    def _released(self, job: Job, candidate: Candidate, run: Run, seed: Seed, X: Any, y: Any) -> Outcome:
        model, refit = run.model, self.search.refit
        if refit is True:
            model = train_last(job, lambda: fresh(job, candidate, seed), all_numbers(n_records(X)), seed, X, y)
        shown = {} if refit is False else {"best_estimator_": model}
        attributes = {**shown, **shown_of(run), "found_": True}
        return Outcome(found=model is not None, rows=[(candidate, run.score)], attributes=attributes)
