"""Claims about one fit by the caller, a search's plan, an adapter or the fitted model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..adapters import training_run
from ..errors import MissingDeltaError, PrivacyError, UnknownGuaranteeError
from ..privacy import Guarantee, as_replace_one
from ..privacy._checks import Neighboring, check_neighboring
from ..privacy._guarantees.base import as_guarantee
from ..privacy._spent import PrivacySpent
from ._right_guesses import ClaimedCurve


@dataclass(frozen=True)
class Claim:
    """Claimed guarantee, with the δ and relation of its audit."""

    guarantee: Guarantee | None
    delta: float
    neighboring: Neighboring


def claim_about(
    estimator: Any,
    n_samples: int,
    fit_params: Mapping[str, Any],
    stated: object,
    delta: float | None,
    neighboring: Neighboring | None,
) -> Claim:
    """Claim about one fit, by the caller, a plan or an adapter.

    Raises
    ------
    MissingDeltaError
        If the guarantee is not pure and no δ is known.
    PrivacyError
        If no relation is stated or given, or two different ones are.
    """
    claimed: Any = stated
    if stated is None and callable(getattr(estimator, "privacy_cost", None)):  # a search
        public = fit_params.get("X_public") is not None
        claimed = estimator.privacy_cost(n_samples, delta, public=public)
    elif stated is None:
        with contextlib.suppress(UnknownGuaranteeError):
            claimed = training_run(estimator, n_samples).guarantee
    guarantee = None if claimed is None else as_guarantee(claimed, "stated")
    if delta is None and isinstance(claimed, PrivacySpent):
        delta = claimed.delta
    elif delta is None:
        delta = _own_delta(guarantee, getattr(estimator, "target_delta", None))
    return Claim(guarantee, float(delta), _claimed_relation(guarantee, neighboring))


def _claimed_relation(guarantee: Guarantee | None, neighboring: Neighboring | None) -> Neighboring:
    """Neighbouring relation of a claim, or an error."""
    if neighboring is None and guarantee is None:
        raise PrivacyError(
            "Found neither a stated guarantee nor neighboring=: which data sets are neighbours? "
            "Give neighboring='add_remove', 'zero_out' or 'replace_one', or stated=, e.g. "
            "PureDP(epsilon=1.0)."
        )
    if neighboring is not None:
        check_neighboring(neighboring)
    if guarantee is not None and neighboring not in (None, guarantee.neighboring):
        raise PrivacyError(
            f"Found neighboring={neighboring!r}, but the guarantee is stated for "
            f"{guarantee.neighboring!r}: it says nothing about other pairs. Leave neighboring out, "
            "or give stated= for this relation."
        )
    return neighboring or guarantee.neighboring  # type: ignore[union-attr]  # one of them is there


def _own_delta(guarantee: Guarantee | None, target_delta: float | None) -> float:
    """δ of a claimed guarantee, or of its estimator; 0 if it is pure."""
    if guarantee is None or guarantee.pure_epsilon is not None:
        return 0.0
    delta = getattr(guarantee, "delta", target_delta)
    if delta is None:
        remedy = "Give delta, the one at which epsilon is claimed."
        raise MissingDeltaError(f"Found delta=None, but {guarantee!r} is not pure. {remedy}")
    return float(delta)


def smallest_stated_epsilon(planned: Claim, spent: list[PrivacySpent], steps: int) -> float | None:
    """Smallest ε that plan and fitted models state.

    Each claim has to be true.
    """
    claimed = _claimed_guarantees(planned, spent, steps)
    return min((float(run.epsilon_at(planned.delta)) for run in claimed), default=None)


def stated_curve(planned: Claim, spent: list[PrivacySpent], steps: int) -> ClaimedCurve | None:
    """Pairs (ε, δ) that plan and fitted models state; None if nothing is stated."""
    claimed = _claimed_guarantees(planned, spent, steps)
    if not claimed:
        return None
    curves = [guarantee._trade_off for guarantee in claimed]
    at_delta = [float(guarantee.epsilon_at(planned.delta)) for guarantee in claimed]
    epsilons = np.concatenate([at_delta, *(curve.epsilons for curve in curves)])
    deltas = [np.full(len(claimed), planned.delta), *(curve.deltas for curve in curves)]
    return ClaimedCurve(epsilons, np.concatenate(deltas))


def _claimed_guarantees(planned: Claim, spent: list[PrivacySpent], steps: int) -> list[Guarantee]:
    """Different guarantees of the plan and of all fitted models, for data sets ``steps`` apart.

    Two blanked steps make a changed record.
    """
    stated = [claim.guarantee for claim in spent if claim.neighboring == planned.neighboring]
    different = dict.fromkeys([planned.guarantee, *stated])
    guarantees = [guarantee for guarantee in different if guarantee is not None]
    return guarantees if steps == 1 else list(map(as_replace_one, guarantees))
