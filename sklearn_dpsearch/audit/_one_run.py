"""Audit of one fit by many canaries, which join by coins that the attack guesses.

If the fit is ε-DP for one coin, the number of right guesses is hardly larger than a binomial number
with chance e^ε/(1 + e^ε) (Steinke, Nasr & Jagielski 2023). So one fit bounds ε from below;
``right_guesses`` has the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from ..data._columns import NUMBERS, frame_of, is_frame, library_of, names_of, refused
from ..data._labels import positions
from ..data._records import check_same_number, number_of_records
from ..data._rows import stacked
from ..ledger._ledger_context import refuse_in_block
from ..privacy import Guarantee
from ..privacy._checks import Array, Neighboring, require_whole
from ..privacy._spent import PrivacySpent
from ..search._rehearsal import run_publicly
from ._audit_result import LowerBound, check_levels
from ._auditing import statement_of, unfitted_copy, without_seeds
from ._right_guesses import Guesses
from ._stated_guarantees import claim_about, smallest_stated_epsilon, stated_curve

#: Fitted model, canaries, their targets ↦ one number for each canary; the larger, the likelier it
#: was a record.
CanaryScore = Callable[[Any, Any, Array | None], Any]
#: Shares of the canaries that are guessed. Each is a test of its own, and all of them hold
#: together: a share more costs all others. So the first ``FEWEST_SHARES`` are used, and a smaller
#: one where it still has ``FEWEST_GUESSES``.
SHARES = (0.5, 0.2, 0.08, 0.03, 0.01)
FEWEST_SHARES, FEWEST_GUESSES = 2, 100
FEWEST_CANARIES = 20


@dataclass(frozen=True, kw_only=True)
class OneRunResult(LowerBound):
    """Lower bound on ε from guesses about many canaries.

    Parameters
    ----------
    epsilon_lower : float
        With probability ``confidence`` the true ε at ``delta`` is at least this.
    delta, confidence : float
        δ at which ε is bounded, and the probability with which the bound holds.
    n_canaries, n_guesses, n_right : int
        Canaries of all fits, guesses about them, and right guesses, of the test with the largest
        ratio (or, if nothing is stated, the largest ε). ``epsilon_lower`` may come from another.
    stated_epsilon : float or None
        ε that the estimator states at ``delta`` for one canary; None if nothing is stated.
    ratio_lower : float or None
        With probability ``confidence`` the true ε is at least this multiple of the stated ε, at
        some δ; 1 or more refutes the statement. All pairs (ε, δ) of the statement are tested
        together, which proves more than the one at ``delta``. None if nothing is stated.
    neighboring : str
        Neighbouring relation of the statement.
    steps : int
        Steps of that relation between a canary and its absence; ``stated_epsilon`` counts them.
    notes : tuple of str
        Changed parameters of the estimator.
    """

    n_canaries: int
    n_guesses: int
    n_right: int
    ratio_lower: float | None

    @property
    def consistent(self) -> bool | None:
        """False if the guesses refute the statement, or one of its ε; None if nothing is stated."""
        return None if self.ratio_lower is None else self.ratio_lower < 1.0

    def _evidence(self) -> str:
        ratio = ""
        if self.ratio_lower is not None:
            ratio = f"  true / stated epsilon >= {self.ratio_lower:.3g} at some delta\n"
        guesses = f"{self.n_right} of {self.n_guesses} guesses about {self.n_canaries} canaries"
        return f"{ratio}  {guesses} were right"


def audit_one_run(
    estimator: Any,
    X: Any,
    y: Any,
    canaries: Any,
    targets: Any = None,
    *,
    other_targets: Any = None,
    neighboring: Neighboring | None = None,
    absent: bool = False,
    n_fits: int = 1,
    delta: float | None = None,
    confidence: float = 0.95,
    stated: Guarantee | PrivacySpent | None = None,
    score: CanaryScore | None = None,
    fit_params: Mapping[str, Any] | None = None,
    random_state: int | None = None,
) -> OneRunResult:
    """Bound ε of an estimator or a search from below, by one fit with canaries.

    A fair coin decides for each canary whether it is among the records. Where an absent record
    cannot be left out (replace-one, zero-out), a record of zeros with the canary's target stands in
    its place, or, with ``other_targets``, the same record with another target. In a data frame only
    columns of numbers have zeros, and others are missing. After the fit the canaries with the
    largest scores are guessed to be records, those with the smallest not to be, and the rest are
    left out. An audit refutes a false statement; it never proves a true one. Its result is not
    private: use public or made-up data.

    Parameters
    ----------
    estimator : estimator
        Anything with ``fit``. Fixed seeds in it are set to None, and the result says so.
    X : array-like or data frame of shape (n_samples, n_features)
        Records beside the canaries. Frames reach ``fit`` and ``score`` as frames of pandas.
    y : array-like of shape (n_samples,) or None
        Their targets.
    canaries : array-like or data frame of shape (m, n_features)
        Records with a trace of their own, such as a feature that no other record has. A frame has
        the columns of X, in any order.
    targets : array-like of shape (m,), optional
        Targets of the canaries.
    other_targets : array-like of shape (m,), optional
        Under replace-one, targets of the canaries that do not join: a stronger attack than records
        of zeros.
    neighboring : {"add_remove", "zero_out", "replace_one"}, optional
        The relation; by default the one that the estimator states.
    absent : bool, default=False
        Under zero-out, your assurance that a record of zeros contributes nothing to the fit.
        Otherwise a canary and its absence are two steps apart, and the bound is compared with the ε
        that the statement implies for two steps.
    n_fits : int, default=1
        Independent fits, each with coins of its own; their guesses add up.
    delta : float, optional
        δ at which ε is bounded; by default the stated δ, or the estimator's ``target_delta``.
    confidence : float, default=0.95
        Probability with which the bound holds.
    stated : Guarantee or PrivacySpent, optional
        The claim. By default the smallest that the estimator states, as for ``audit``.
    score : callable, optional
        (fitted model, canaries, targets) ↦ an array of shape (m,): the larger, the likelier a
        canary was a record. By default the logarithm of the probability of its target (0 for a
        class that the model has not learnt), or minus the absolute error.
    fit_params : dict, optional
        Further arguments of ``fit``, such as ``X_public`` and ``y_public``.
    random_state : int, optional
        For tests: the same result every time. None draws on the operating system.

    Returns
    -------
    OneRunResult
        With ``epsilon_lower``, ``stated_epsilon``, ``ratio_lower`` and ``consistent``.

    Raises
    ------
    PrivacyError
        If no relation is stated or given, or ``neighboring`` is not the stated one.
    ValueError
        With too few canaries or targets, or other columns than those of X; without a score for this
        kind of model, and for scores of another shape or that are not finite.
    TypeError
        For sparse records, and a frame beside an array.

    Notes
    -----
    Steinke, Nasr & Jagielski 2023; the bound is that of Mahloujifar, Melis & Chaudhuri 2024. The
    share of canaries that are guessed is chosen among two to five, from one half to a hundredth,
    with equal parts of the error probability: the smaller ones where they still have 100 guesses.

    Examples
    --------
    A histogram that states ε = 1 and adds noise for ε = 4; each canary has a bin of its own:

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from sklearn_dpsearch.audit import audit_one_run
    >>> from sklearn_dpsearch.privacy import PureDP
    >>> class Histogram(BaseEstimator):
    ...     def privacy_guarantee(self, n_samples=None):
    ...         return PureDP(epsilon=1.0)
    ...     def fit(self, X, y=None):
    ...         noise = np.random.default_rng().laplace(scale=1 / 4, size=X.shape[1])
    ...         self.counts_ = X.sum(axis=0) + noise
    ...         return self
    >>> def count(model, canaries, targets):
    ...     return model.counts_
    >>> bound = audit_one_run(Histogram(), np.zeros((5, 500)), None, np.eye(500), score=count)
    >>> bound.consistent, bound.epsilon_lower > 2
    (False, True)
    """
    refuse_in_block("audit_one_run")
    check_levels(0.0 if delta is None else delta, confidence, random_state)
    require_whole(1, n_fits=n_fits)
    records, n_records = _records_and_canaries(X, canaries), number_of_records(X)
    canaries = _safe_indexing(records, slice(n_records, None))
    targets = None if targets is None else np.asarray(targets)
    for name, labels in (("targets", targets), ("other_targets", other_targets)):
        if labels is not None and len(labels) != len(canaries):
            sizes = f"{len(labels)} {name} for {len(canaries)} canaries"
            raise ValueError(f"Found {sizes}; one for each canary is needed.")
    if y is not None:
        check_same_number(n_records, len(y))
        if targets is None:
            raise ValueError("Found y, but no targets of the canaries. Give one for each canary.")
    estimator, notes = without_seeds(estimator)
    params = dict(fit_params or {})
    claim = claim_about(estimator, len(records), params, stated, delta, neighboring)
    relation = claim.neighboring
    if other_targets is not None and (relation != "replace_one" or targets is None):
        raise ValueError(
            f"Found other_targets with neighboring={relation!r}; they change a record, so "
            "'replace_one' and targets are needed. Leave other_targets out."
        )
    coins, scores, spent = [], [], []
    for seed in np.random.SeedSequence(random_state).spawn(int(n_fits)):
        joins = np.random.default_rng(seed.spawn(1)[0]).random(len(canaries)) < 0.5
        data = _data_of_coins(records, y, targets, other_targets, joins, relation)
        fit_seed = None if random_state is None else seed
        work = partial(_fit_with_seed, estimator, *data, params, fit_seed)
        model = run_publicly(work, [part for part in data if part is not None])
        coins.append(joins)
        scores.append(_canary_scores(model, canaries, targets, score))
        spent += statement_of(model)
    steps = 2 if relation == "zero_out" and not absent else 1
    tests = _guess_coins(np.array(coins), np.array(scores))
    level = (1.0 - confidence) / len(tests)
    epsilons = [guesses.epsilon(claim.delta, level) for guesses in tests]
    curve = stated_curve(claim, spent, steps)
    ratios = None if curve is None else [guesses.ratio(curve, level) for guesses in tests]
    best = tests[int(np.argmax(epsilons if ratios is None else ratios))]
    return OneRunResult(
        epsilon_lower=max(epsilons),
        delta=claim.delta,
        confidence=float(confidence),
        **asdict(best),
        stated_epsilon=smallest_stated_epsilon(claim, spent, steps),
        ratio_lower=None if ratios is None else max(ratios),
        neighboring=relation,
        steps=steps,
        notes=notes,
    )


def _guess_coins(coins: Array, scores: Array) -> list[Guesses]:
    """Guess the coins of canaries by their scores, for some shares.

    Those with the largest scores are guessed to have joined, and those with the smallest not.
    """
    fits, m = coins.shape
    order, guesses = np.argsort(scores, axis=1, kind="stable"), []
    ranked = np.take_along_axis(coins, order, axis=1)
    for place, share in enumerate(SHARES):
        if place >= FEWEST_SHARES and share * m * fits < FEWEST_GUESSES:
            break
        half = max(1, int(share * m / 2))
        right = int(ranked[:, m - half :].sum()) + half * fits - int(ranked[:, :half].sum())
        guesses.append(Guesses(m * fits, 2 * half * fits, right))
    return guesses


def _records_and_canaries(X: Any, canaries: Any) -> Any:
    """Records and below them the canaries, in the columns of X: an array, or a frame of pandas."""
    for name, part in (("X", X), ("canaries", canaries)):
        if library_of(part) is None:
            raise refused(part, name)
    if len(canaries) < FEWEST_CANARIES:
        needed = f"at least {FEWEST_CANARIES} are needed, best hundreds."
        raise ValueError(f"Found {len(canaries)} canaries; {needed}")
    columns, of_canaries = (names_of(part) or list(np.shape(part)[1:]) for part in (X, canaries))
    if sorted(columns) != sorted(of_canaries):
        raise ValueError(
            f"Found X with the columns {columns} and canaries with {of_canaries}; data frames with "
            "the same columns, or arrays of one shape, are needed."
        )
    if not is_frame(X):
        return np.concatenate([np.asarray(X), np.asarray(canaries)])
    frames = [part if library_of(part) == "pandas" else frame_of(part) for part in (X, canaries)]
    names = list(frames[0].columns)
    return stacked([frame[names] for frame in frames]).reset_index(drop=True)


def _data_of_coins(
    records: Any, y: Any, targets: Any, other_targets: Any, joins: Any, relation: str
) -> tuple[Any, Array | None]:
    """Records with those canaries, the last records, that join by their coins.

    Those that do not join are left out under add-remove, else replaced.
    """
    present = np.append(np.full(len(records) - len(joins), True), joins)
    if y is not None and other_targets is not None:
        targets = np.where(joins, targets, other_targets)
    labels = None if y is None else np.concatenate([np.asarray(y), targets])
    if relation == "add_remove":
        return _safe_indexing(records, present), None if labels is None else labels[present]
    return records if other_targets is not None else _blanked(records, present), labels


def _blanked(records: Any, present: Any) -> Any:
    """Records of which absent ones are zeros, or missing in a column that holds no numbers."""
    if not is_frame(records):
        return np.where(present.reshape(-1, *[1] * (records.ndim - 1)), records, 0)
    blanked = records.copy()
    for place, dtype in enumerate(records.dtypes):
        zero = dtype.type(0) if dtype.kind in NUMBERS else None
        blanked.isetitem(place, records.iloc[:, place].where(present, zero))
    return blanked


def _fit_with_seed(
    estimator: Any, X: Array, y: Array | None, params: Mapping[str, Any], seed: Any
) -> Any:
    """Model fitted on records with canaries."""
    return unfitted_copy(estimator, seed).fit(X, *([] if y is None else [y]), **params)


def _canary_scores(
    model: Any, canaries: Array, targets: Array | None, score: CanaryScore | None
) -> Array:
    """Scores of the canaries by a fitted model, checked."""
    scores = np.asarray((score or target_score)(model, canaries, targets), float)
    n_finite = int(np.isfinite(scores).sum())
    if scores.shape != (len(canaries),) or n_finite < len(scores):
        needed = f"one finite number for each of {len(canaries)} canaries is needed."
        raise ValueError(f"Found {n_finite} finite scores of shape {scores.shape}; {needed}")
    return scores


def target_score(model: Any, canaries: Array, targets: Array | None) -> Array:
    """Score of canaries: log-probability of their targets, or minus the absolute error.

    Raises
    ------
    ValueError
        Without targets, or the model's predictions of them.
    """
    if targets is None:
        raise ValueError("Found no targets of the canaries, so that score= is needed.")
    method = "predict_proba" if is_classifier(model) else "predict"
    if not hasattr(model, method):
        raise ValueError(f"Found {type(model).__name__} without {method}; score= is needed.")
    predictions = np.asarray(getattr(model, method)(canaries), float)
    if method == "predict":
        return -np.abs(predictions - targets)
    columns = positions(targets, model.classes_)
    if np.all(columns < 0):
        raise ValueError(
            f"Found no target of a canary among the classes {list(model.classes_)} that the model "
            "has learnt; targets among them are needed. Give them, or score=."
        )
    of_targets = np.where(columns < 0, 0.0, predictions[np.arange(len(canaries)), columns])
    return np.asarray(np.log(np.maximum(of_targets, 1e-300)))
