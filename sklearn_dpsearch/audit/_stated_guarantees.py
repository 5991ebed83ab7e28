"""Claims about one fit by the caller, a search's plan, an adapter or the fitted model."""

from __future__ import annotations

from dataclasses import dataclass, replace
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

    def epsilon(self, steps: int) -> float | None:
        """Claimed ε for data sets ``steps`` apart."""
        if self.guarantee is None:
            return None
        return float(_across_steps(self.guarantee, steps).epsilon_at(self.delta))


def claim_about(
    estimator: Any,
    n_samples: int,
    public: bool,
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
    claimed = _plan_or_run(estimator, n_samples, public, delta) if stated is None else stated
    guarantee = None if claimed is None else as_guarantee(claimed, "stated")
    if delta is None:
        delta = claimed.delta if isinstance(claimed, PrivacySpent) else _own_delta(guarantee)
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


def _plan_or_run(
    estimator: Any, n_samples: int, public: bool, delta: float | None
) -> PrivacySpent | Guarantee | None:
    """Guarantee that a search plans, or an adapter knows."""
    if callable(getattr(estimator, "privacy_cost", None)):  # a search
        planned: PrivacySpent = estimator.privacy_cost(n_samples, delta, public=public)
        return planned
    try:
        return training_run(estimator, n_samples).guarantee
    except UnknownGuaranteeError:
        return None


def _own_delta(guarantee: Guarantee | None) -> float:
    """δ of a claimed guarantee, 0 if it is pure."""
    if guarantee is None or guarantee.pure_epsilon is not None:
        return 0.0
    delta = getattr(guarantee, "delta", None)
    if delta is None:
        raise MissingDeltaError(
            f"Found delta=None, but {guarantee!r} is not pure. Give delta, the one at which "
            "epsilon is claimed."
        )
    return float(delta)


def smallest_stated_epsilon(planned: Claim, spent: list[PrivacySpent], steps: int) -> float | None:
    """Smallest ε that plan and fitted models state.

    Each claim has to be true.
    """
    epsilons = [claim.epsilon(steps) for claim in _all_claims(planned, spent)]
    return min((epsilon for epsilon in epsilons if epsilon is not None), default=None)


def stated_curve(planned: Claim, spent: list[PrivacySpent], steps: int) -> ClaimedCurve | None:
    """Pairs (ε, δ) that plan and fitted models state; None if nothing is stated."""
    claims = [claim for claim in _all_claims(planned, spent) if claim.guarantee is not None]
    if not claims:
        return None
    epsilons = np.array([claim.epsilon(steps) for claim in claims])
    different = dict.fromkeys(claim.guarantee for claim in claims if claim.guarantee is not None)
    curves = [_across_steps(guarantee, steps)._trade_off for guarantee in different]
    deltas = [np.full(len(epsilons), planned.delta), *(curve.deltas for curve in curves)]
    all_epsilons = np.concatenate([epsilons, *(curve.epsilons for curve in curves)])
    return ClaimedCurve(all_epsilons, np.concatenate(deltas))


def _across_steps(guarantee: Guarantee, steps: int) -> Guarantee:
    """Guarantee for data sets one or two steps apart.

    Two blanked steps make a changed record.
    """
    return guarantee if steps == 1 else as_replace_one(guarantee)


def _all_claims(planned: Claim, spent: list[PrivacySpent]) -> list[Claim]:
    """Claims of the plan and of all fitted models."""
    stated = [claim for claim in spent if claim.neighboring == planned.neighboring]
    return [planned, *(replace(planned, guarantee=claim.guarantee) for claim in stated)]
