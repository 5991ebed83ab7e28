"""Tune on a random subset, then train once on more records."""

from __future__ import annotations

import numbers
import os
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..adapters import Declared
from ..ledger import PrivacyLedger
from ..privacy import CountDistribution, Guarantee
from ._base import BasePrivateSearch
from ._resuming import Checkpoint
from ._types import Distributions, Extrapolate, Scorer
from .runners.subset import SubsetRunner


class DPSubsetSearchCV(BasePrivateSearch):
    """Search on a random subset that is differentially private as a whole: tune there, then train once on more records.

    The subset is a Poisson sample: every record joins with probability ``subset_fraction``, independently and in
    secret. On the subset the best of a random number of candidates is found, as by ``DPRandomSearchCV``. The winner's
    parameters are extrapolated to the larger number of records, and one final model is trained on the rest or on all
    records. Most candidates never see a given record, so cost and work are little above those of one training run.

    Parameters
    ----------
    estimator : estimator
        A private estimator, as for ``DPRandomSearchCV``.
    param_distributions : dict, list of dicts or "auto"
        Parameter name to a list of values (drawn uniformly) or a distribution with a method ``rvs``. From a list of
        dicts, one dict is drawn uniformly first. Values may be estimators for a step of a pipeline: families compete.
        "auto": the estimator's own space, around its current parameters (``search_space``).
    n_iter : float or CountDistribution, default=10
        Distribution of the number of candidates K, conditional on K >= 1, or its mean: a number stands for
        ``Geometric(mean)``.
    subset_fraction : float, default=0.1
        Probability q with which a record joins the subset, 0 < q < 1.
    train_on : {"rest", "all"}, default="rest"
        Whether the final model is trained on the records outside the subset or on all.
    validate_on : {"rest", "subset"}, default="rest"
        Private records on which candidates are scored: the records outside the subset, which are many and pay for the
        scores and for the final training, or a part of the subset.
    tuning_share : float or None, default=None
        Privacy loss of a candidate's training, as a multiple of the final training's loss: below 1 candidates are
        noisier than the final model, above 1 less noisy. None: 1.
    extrapolate : "auto", dict or callable, default="auto"
        Change of the winner's parameters with the number of records. "auto": the rules of the estimator's adapter
        (docs/learn/subset_search.md); parameters without a rule are kept. A dict overrides rules: name of a searched
        parameter to "linear" (in proportion to the number of records), "keep", or a callable (value, n_tune, n_final).
        One callable is used for all parameters that are numbers. Sizes are expected numbers, q·n and (1−q)·n (or n).
        Where the number of records n is private and the estimator states no ``public_n``, sizes are the shares q and
        1−q (or 1).
    warm_start : bool, default=False
        Start the final training from the winner's fitted model; the estimator, or the last step of a pipeline, needs a
        parameter ``warm_start``. At no extra cost.
    epsilon, delta : float, optional
        The total for everything that ``fit`` releases. With ``epsilon`` the estimator's noise is scaled until the
        total is ``epsilon``; the noise of candidates and the noise of the final model keep their ratio.
    scoring : str, callable, PrivateScorer or None, default=None
        As for ``DPRandomSearchCV``.
    score_noise : "match" or Guarantee, default="match"
        Noise of one private score. "match": on the rest, 24 times the noise that matches the final training (3 times
        without amplification); in the subset, as private as a candidate's training.
    cv : None, float or int, default=None
        On the rest: the probability with which a record of the rest validates; None is 1. In the subset: a float is the
        probability with which a record of the subset validates; None is 0.2; with an int each record draws a fold.
        Splits by index are not possible.
    guarantee : Guarantee or callable, optional
        Guarantee of one fit, on the caller's word: a guarantee, or a callable (estimator, n_samples) to guarantee.
    n_jobs, pre_dispatch : int, int or str
        As in scikit-learn.
    error_score : float, default=nan
        Score of a candidate that fails; nan is the worst.
    verbose : int, default=0
        Above 0 prints the plan and its cost, which are known without the data, and shows progress; where the number of
        runs is secret, progress shows only that the search runs. 2 also shows when runs end and the final training
        begins, which tells observers more about the number of runs (docs/learn/planning.md).
    random_state : None, int or RandomState, default=None
        None draws on the operating system's entropy. A seed is for tests: it voids the guarantee.
    ledger : PrivacyLedger or None, default=None
        Ledger in which every fit is entered before it uses a record; a fit beyond the ledger's budget is refused
        (docs/learn/ledger.md). None: the ledger of the block ``with ledger:`` around the fit, if any.
    checkpoint : str, path, Checkpoint or None, default=None
        As for ``DPRandomSearchCV``.
    rehearse : bool, default=True
        As for ``DPRandomSearchCV``.

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float, int
        The winner on the subset, with the score of its model there, which was trained on a part of the records.
    best_score_std_ : float
        Standard error of ``best_score_`` from its noise and from the random number of validation records.
    final_params_ : dict
        The winner's extrapolated parameters, with which the final model was trained.
    best_estimator_ : estimator
        The final model.
    privacy_spent_ : PrivacySpent
        Cost of the whole fit; unpacks as (epsilon, delta).
    cv_results_ : dict
        The released row.
    scorer_, n_splits_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Accounted by ``sklearn_dpsearch.privacy.subset_then_train`` (docs/theory/subset.md, Theorem 2;
    docs/theory/subset_rest.md, Theorem 4; Koskela & Kulkarni 2023). Under replace-one neighbours there is no
    amplification, and the total is larger; so it is under zero-out neighbours if the estimator counts its records. If
    no candidate can be trained and scored, or the final model cannot be trained, ``NoModelError`` is raised with one
    fixed message.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> search = DPSubsetSearchCV(
    ...     LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=15, guarantee=GaussianDP(mu=0.4), delta=1e-5
    ... )
    >>> one_run, whole = GaussianDP(mu=0.4).epsilon_at(1e-5), search.privacy_cost().epsilon
    >>> round(one_run, 2), round(whole, 2)
    (1.55, 1.58)
    """

    _parameter_constraints: dict[str, Any] = {
        **BasePrivateSearch._parameter_constraints,
        "param_distributions": [dict, list, StrOptions({"auto"})],
        "n_iter": [Interval(numbers.Real, 1, None, closed="left"), CountDistribution],
        "subset_fraction": [Interval(numbers.Real, 0, 1, closed="neither")],
        "train_on": [str],
        "validate_on": [str],
        "tuning_share": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "extrapolate": [str, dict, callable],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Distributions,
        *,
        n_iter: float | CountDistribution = 10,
        subset_fraction: float = 0.1,
        train_on: Literal["rest", "all"] = "rest",
        validate_on: Literal["rest", "subset"] = "rest",
        tuning_share: float | None = None,
        extrapolate: Extrapolate = "auto",
        warm_start: bool = False,
        epsilon: float | None = None,
        delta: float | None = None,
        scoring: str | Scorer | None = None,
        score_noise: Guarantee | str = "match",
        cv: Any = None,
        guarantee: Declared | None = None,
        n_jobs: int | None = None,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        rehearse: bool = True,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.subset_fraction = subset_fraction
        self.train_on = train_on
        self.validate_on = validate_on
        self.tuning_share = tuning_share
        self.extrapolate = extrapolate
        self.warm_start = warm_start
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.score_noise = score_noise
        self.cv = cv
        self.guarantee = guarantee
        self.n_jobs = n_jobs
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.verbose = verbose
        self.random_state = random_state
        self.ledger = ledger
        self.checkpoint = checkpoint
        self.rehearse = rehearse

    def _runner(self) -> SubsetRunner:
        return SubsetRunner(self)
