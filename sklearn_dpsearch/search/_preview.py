"""Plans of searches, made before any data, for comparing searches."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..ledger.ledger_context import counted
from ..privacy import CountDistribution, Guarantee
from ..scoring.validation import Validation
from ._base import BasePrivateSearch
from ._records import n_records, take, with_parameters
from ._synthetic_records import made_up
from .planning.plan import Plan
from .random_subset import CostOfSubset
from .sample_and_aggregate import HELD_OUT, SampleAndAggregate


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Public facts of a ``fit``, known without data.

    Parameters
    ----------
    distribution : CountDistribution or None
        Distribution of the number of candidates; None where all points of a grid are tried.
    candidates : int or None
        Number of points of a grid.
    one_run, final : Guarantee
        Guarantee of training one candidate, and of training the released model.
    settings : dict
        Parameters that set the noise of the released model.
    work : float
        Expected number of records processed, in units of one training on all records.
    factor : float or None
        Factor on the loss of the configured estimator.
    epsilon : float
        The total: as requested, or up to 3 % less.
    """

    distribution: CountDistribution | None
    candidates: int | None
    one_run: Guarantee
    final: Guarantee
    settings: dict[str, Any]
    work: float
    factor: float | None
    epsilon: float


def planned(search: BasePrivateSearch, n_samples: int, near: float | None = None) -> Planned:
    """Plan a search; with a guess of the factor roughly, at a total up to 3 % below that of ``fit``.

    Raises
    ------
    PrivacyError, ValueError, TypeError
        Errors that ``fit`` would raise before it uses a record.
    """
    search._validate_params()
    strategy = search._strategy()
    plan = search._plan(strategy, n_samples, False, search.delta, near=near)
    whole_grid = isinstance(strategy, SampleAndAggregate)
    return Planned(
        distribution=plan.distribution,
        candidates=strategy.space.size() if whole_grid else None,
        one_run=plan.promises.one_run,
        final=plan.final.worst,
        settings={name: value for name, value in plan.final_recipe.settings.items() if value is not None},
        work=_work(strategy, plan),
        factor=plan.factor,
        epsilon=plan.spent.epsilon,
    )


def _work(strategy: Any, plan: Plan) -> float:
    """Expected number of records processed, in units of one training on all records."""
    if isinstance(strategy, SampleAndAggregate):
        candidates = strategy.space.size()
        return 1.0 + (candidates > 1) * candidates * (1.0 - 1.0 / HELD_OUT)
    assert plan.distribution is not None
    runs = float(plan.distribution.mean) * _share_trained(plan.validation)
    if isinstance(plan.cost, CostOfSubset):
        return runs + plan.cost.sizes(None).final
    return runs + (getattr(strategy.search, "refit", None) is True)


def _share_trained(validation: Validation) -> float:
    """Expected number of models that a record trains in one run; the largest number where folds are public."""
    uses = validation.exposures()
    if any(use.probability is None for use in uses):
        return float(max(use.trainings for use in uses))
    return validation.taking_part * sum(float(use.probability or 0.0) * use.trainings for use in uses)


def seconds_of_training(
    estimator: Any, settings: dict[str, Any], n_samples: int, X: Any = None, y: Any = None
) -> float:
    """Measure one training on public examples or made-up records; nan where records cannot be made up.

    The records decide about this time alone: the plan does not depend on them.
    """
    no_scorer: Any = None
    try:
        X, y = made_up(estimator, no_scorer) if X is None else (X, y)
        chosen = np.resize(np.arange(n_records(X)), n_samples)
        X, y = take(X, chosen), take(y, chosen)
        model = with_parameters(clone(estimator), settings)
        since = time.perf_counter()
        with counted():  # these records are public or made up: no ledger counts the fit
            model.fit(X, y)
    except (ValueError, TypeError, ImportError):
        return math.nan
    return time.perf_counter() - since
