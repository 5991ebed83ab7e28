"""What differs between the searches: one runner for each kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from sklearn.metrics import check_scoring

from ...adapters import Adapter, adapter_for
from ...privacy import CountLaw, Guarantee
from ...privacy._once import cached_property
from ...privacy._types import Neighboring
from ...scoring import Noise, PrivateScorer, Sensitivity, get_private_scorer, matched_noise
from ...scoring.held_out import default_hold_out
from ...scoring.validation import Validation
from .._types import Candidate, Distributions, Parameters, Scorer, Workers
from ..execution.job import Job, Split
from ..execution.outcome import Outcome
from ..execution.progress import Progress
from ..execution.randomness import Randomness
from ..execution.runs import in_the_open
from ..planning.families import Families, families_of
from ..planning.plan import CostModel, Plan, said_of
from ..planning.space import Space
from ..planning.suggested import AUTO, own_space
from ..planning.told import ALWAYS


class Runner(ABC):
    """One kind of search: what it costs, what it tries, how it runs.

    Built once for each ``fit``, from parameters alone. It holds no data, and nothing that was drawn.

    Parameters
    ----------
    search : Parameters
        A search, whose parameters count.
    distributions : dict, list of dicts or "auto"
        The space of candidates, as the user gave it.
    parameter : str
        The name of that parameter.
    """

    #: Law of the number of runs, where that is random and secret.
    law: CountLaw | None = None
    #: Whether every point of the space is tried.
    whole_grid = False
    #: Names of what is released beside what every search releases.
    shows: tuple[str, ...] = ()

    def __init__(
        self, search: Parameters, distributions: Distributions, parameter: str = "param_distributions"
    ) -> None:
        self.search = search
        #: Where it says how far it is; ``fit`` puts another there.
        self.progress = Progress()
        if isinstance(distributions, str) and distributions == AUTO:
            distributions = own_space(search.estimator, self.adapter, grid=self.whole_grid)
        self.space = Space.of(distributions, parameter)

    @cached_property
    def adapter(self) -> Adapter:
        """What is known about the estimator."""
        return adapter_for(self.search.estimator, self.search.guarantee)

    @cached_property
    def candidates_by_family(self) -> Families:
        """What there is to choose from, for any number of records."""
        return self.families(None)

    # --- plan -----------------------------------------------------------------------------------------------------

    def families(self, n_samples: int | None) -> Families:
        """The candidates, by what they put into the estimator."""
        search = self.search
        calibrated = search.epsilon is not None
        return families_of(search.estimator, self.adapter, self.space, n_samples, calibrated=calibrated)

    def scorer(self, public: bool) -> Scorer:
        """What scores candidates."""
        return self.public_scorer() if public else get_private_scorer(self.search.scoring, self.search.estimator)

    def public_scorer(self) -> Scorer:
        """A scorer for public data: any of scikit-learn's, or a private one used plainly."""
        scoring, estimator = self.search.scoring, self.search.estimator
        found: Scorer = scoring if isinstance(scoring, PrivateScorer) else check_scoring(estimator, scoring)
        return found

    @property
    def score_noise(self) -> Guarantee | str:
        """What one private score may cost."""
        return "match"

    def matched(self, validation: Validation, tuned: Guarantee, final: Guarantee, sensitivity: Sensitivity) -> Noise:
        """Noise of a private score that "match" stands for, if candidates are trained as ``tuned`` promises."""
        return matched_noise(tuned, sensitivity)

    @property
    def tuning_share(self) -> float:
        """How much a candidate's training loses, as a share of what a training after the choice loses."""
        return 1.0

    @abstractmethod
    def validation(self, relation: Neighboring, n_samples: int | None, public: bool) -> Validation:
        """How records are chosen to train and to validate; raises for parameters that this needs and cannot use."""

    def default_hold_out(self, relation: Neighboring, n_samples: int | None) -> Validation:
        """One hold-out, of a share that follows from public numbers."""
        stated = self.adapter.public_size(self.search.estimator)
        return default_hold_out(relation, n_samples, stated, self.search.epsilon)

    @abstractmethod
    def cost(self, validation: Validation) -> CostModel:
        """What is released, and what that costs."""

    def notes(self, relation: Neighboring) -> tuple[str, ...]:
        """What the total rests on beyond what every search's does, as plain sentences."""
        return ()

    def work(self, plan: Plan, n_samples: int) -> str:
        """How much will run, as far as that is public: the beginning of what ``verbose`` prints."""
        return "" if plan.law is None else f"number of runs: {said_of(plan.law)}; "

    @property
    def released(self) -> tuple[str, ...]:
        """Names of what is released, at most."""
        model = () if getattr(self.search, "refit", None) is False else ("best_estimator_",)
        return (*ALWAYS, *self.shows, *model)

    # --- run ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """The candidates, each of which keeps what was planned for it."""

    def split(self, plan: Plan, candidates: Sequence[Candidate], n_samples: int, source: Randomness) -> Split:
        """Which records do what; the last step before data is read."""
        return drawn_split(plan, n_samples, source)

    @abstractmethod
    def run(self, job: Job, candidates: Sequence[Candidate], source: Randomness, X: Any, y: Any) -> Outcome:
        """Run what has to be run, and say what is released."""

    def dry(self, plan: Plan, job: Job, candidate: Candidate, X: Any, y: Any) -> float:
        """Take one candidate the whole way on public records; its score."""
        return in_the_open(job, candidate, X, y)[1]

    @property
    def workers(self) -> Workers:
        """What the user said about workers."""
        return {"n_jobs": self.search.n_jobs, "pre_dispatch": self.search.pre_dispatch}


def drawn_candidates(plan: Plan, number: int, source: Randomness) -> list[Candidate]:
    """So many independent candidates, drawn with replacement, none of them outside the plan."""
    drawing = source.drawing()
    drawn = [plan.space.draw(drawing) for _ in range(number)]
    for which, candidate in drawn:
        plan.promises.check(which, candidate)
        if plan.final is not plan.promises:
            plan.final.check(which, plan.in_full(candidate))
    return [candidate for _, candidate in drawn]


def drawn_split(plan: Plan, n_samples: int, source: Randomness) -> Split:
    """Folds as the plan's validation draws them; how many records there are is told only where that is public."""
    private = plan.spent.neighboring == "add_remove"
    if not private:
        plan.validation.check(n_samples)
    folds = plan.validation.folds(n_samples, source.random_bytes)
    return Split(folds=folds, n_scored=[None if private else len(test) for _, test in folds])
