"""Base class of the strategies, one for each kind of search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from sklearn.metrics import check_scoring

from ...adapters import Adapter, adapter_for
from ...adapters.refusals import refuse_steps
from ...privacy import CountDistribution, Guarantee
from ...privacy._cached_property import cached_property
from ...privacy._types import Neighboring
from ...scoring import Noise, PrivateScorer, Sensitivity, get_private_scorer
from ...scoring.noise_matching import matched_noise
from ...scoring.validation import Validation
from .._types import Candidate, Distributions, Parameters, Scorer, Workers
from ..execution.job import Job, Split
from ..execution.outcome import Outcome
from ..execution.progress import Progress
from ..execution.randomness import Randomness
from ..execution.runs import in_the_open
from ..planning.default_spaces import AUTO, own_space
from ..planning.families import Families, families_of
from ..planning.plan import CostModel, Plan, said_of
from ..planning.release_facts import ALWAYS
from ..planning.space import Space


class Strategy(ABC):
    """One kind of search: its cost, its candidates and its runs.

    Built once for each ``fit``, from parameters alone. A strategy holds no data and no random draws.

    Parameters
    ----------
    search : Parameters
        A search, whose parameters count.
    distributions : dict, list of dicts or "auto"
        The space of candidates, as the user gave it.
    parameter : str
        The name of that parameter.
    """

    #: Number of records for which the search is planned, where it is known.
    n_samples: int | None = None
    #: Distribution of the number of runs, where the number is random and secret.
    distribution: CountDistribution | None = None
    #: Whether each point of a finite space runs once, so that nothing is drawn.
    each: bool = False
    #: Whether every point of the space is tried.
    whole_grid = False
    #: Names of released attributes beyond those of every search.
    shows: tuple[str, ...] = ()

    def __init__(
        self, search: Parameters, distributions: Distributions, parameter: str = "param_distributions"
    ) -> None:
        self.search = search
        #: Receiver of progress; ``fit`` replaces it.
        self.progress = Progress()
        if isinstance(distributions, str) and distributions == AUTO:
            distributions = own_space(search.estimator, self.adapter, grid=self.whole_grid)
        self.space = Space.of(distributions, parameter)
        self.space.check_names(search.estimator)
        self.space.check_values(search.estimator)

    @cached_property
    def adapter(self) -> Adapter:
        """Adapter of the estimator."""
        return adapter_for(self.search.estimator, self.search.guarantee)

    def plan_for(self, n_samples: int | None) -> None:
        """Set the number of records, from which what is computed later follows."""
        self.n_samples = n_samples
        self.__dict__.pop("candidates_by_family", None)

    @cached_property
    def candidates_by_family(self) -> Families:
        """Families of candidates."""
        return self.families(self.n_samples)

    @property
    def kinds(self) -> Sequence[Any]:
        """One candidate of each family."""
        return self.candidates_by_family.kinds

    def check_kinds(self) -> None:
        """Raise for families with steps that are not private, before anything else is asked of them."""
        for kind in self.kinds if self.search.guarantee is None else ():
            refuse_steps(self.adapter, kind)

    # --- plan -----------------------------------------------------------------------------------------------------

    def families(self, n_samples: int | None) -> Families:
        """Families of candidates, by the estimators that they put in."""
        search = self.search
        calibrated = search.epsilon is not None
        return families_of(search.estimator, self.adapter, self.space, n_samples, calibrated=calibrated)

    def scorer(self, public: bool) -> Scorer:
        """Scorer of the candidates."""
        return self.public_scorer() if public else get_private_scorer(self.search.scoring, self.search.estimator)

    def public_scorer(self) -> Scorer:
        """Scorer for public data: any scorer of scikit-learn, or the plain metric of a private scorer."""
        scoring, estimator = self.search.scoring, self.search.estimator
        found: Scorer = scoring if isinstance(scoring, PrivateScorer) else check_scoring(estimator, scoring)
        return found

    @property
    def score_noise(self) -> Guarantee | str:
        """Guarantee of one private score, or "match"."""
        return "match"

    def matched(self, validation: Validation, tuned: Guarantee, final: Guarantee, sensitivity: Sensitivity) -> Noise:
        """Noise of a private score for "match", if training a candidate has the guarantee ``tuned``."""
        return matched_noise(tuned, sensitivity)

    @property
    def tuning_share(self) -> float:
        """Privacy loss of a candidate's training, as a share of the loss of a training after the choice."""
        return 1.0

    @abstractmethod
    def validation(self, relation: Neighboring, n_samples: int | None, public: bool) -> Validation:
        """Choose how records train and validate; raise for parameters that make this impossible."""

    @abstractmethod
    def cost(self, validation: Validation) -> CostModel:
        """Cost model of the search's releases."""

    def notes(self, relation: Neighboring) -> tuple[str, ...]:
        """Assumptions of the total beyond those of every search, as plain sentences."""
        return ()

    def work(self, plan: Plan, n_samples: int) -> str:
        """Public amount of work: the beginning of the line that ``verbose`` prints."""
        return "" if plan.request.distribution is None else f"number of runs: {said_of(plan.request.distribution)}; "

    @property
    def released(self) -> tuple[str, ...]:
        """Names of all attributes that may be released."""
        model = () if getattr(self.search, "refit", None) is False else ("best_estimator_",)
        return (*ALWAYS, *self.shows, *model)

    # --- run ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def candidates(self, plan: Plan, source: Randomness) -> list[Candidate]:
        """Draw the candidates, each with its planned guarantee."""

    def split(self, plan: Plan, candidates: Sequence[Candidate], n_samples: int, source: Randomness) -> Split:
        """Draw the roles of the records; the last step before data is read."""
        return drawn_split(plan, n_samples, source)

    @abstractmethod
    def run(self, plan: Plan, job: Job, candidates: Sequence[Candidate], source: Randomness, X: Any, y: Any) -> Outcome:
        """Run the candidates and build the outcome."""

    def dry(self, plan: Plan, job: Job, candidate: Candidate, X: Any, y: Any) -> float:
        """Train, score and prepare for release one candidate on public records; return its score."""
        return in_the_open(job, candidate, X, y)[1]

    @property
    def workers(self) -> Workers:
        """The user's settings of workers."""
        return {"n_jobs": self.search.n_jobs, "pre_dispatch": self.search.pre_dispatch}


def drawn_candidates(plan: Plan, number: int, source: Randomness) -> list[Candidate]:
    """Draw independent candidates with replacement, none of them outside the plan."""
    drawing = source.drawing()
    return checked_candidates(plan, [plan.space.draw(drawing) for _ in range(number)])


def checked_candidates(plan: Plan, found: Sequence[tuple[int, Candidate]]) -> list[Candidate]:
    """Raise for a candidate outside the plan; each comes with the number of its dictionary in the space."""
    for which, candidate in found:
        plan.promises.check(which, candidate)
        if plan.final is not plan.promises:
            plan.final.check(which, plan.in_full(candidate))
    return [candidate for _, candidate in found]


def drawn_split(plan: Plan, n_samples: int, source: Randomness) -> Split:
    """Draw folds by the plan's validation."""
    plan.request.validation.check(n_samples)
    folds = plan.request.validation.folds(n_samples, source.random_bytes)
    return Split(folds=folds, n_scored=[len(test) for _, test in folds])
