"""Claims about one fit: by the caller, by a search's plan, by an adapter, or by the fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import numpy as np

from ..adapters import training_run
from ..privacy import (
    DPSGD,
    ZCDP,
    GaussianDP,
    Guarantee,
    MissingDeltaError,
    PrivacyError,
    PureDP,
    UnknownGuaranteeError,
)
from ..privacy._checks import check_neighboring
from ..privacy._types import Neighboring
from ..privacy.guarantees.base import as_guarantee
from ..privacy.spent import PrivacySpent
from .right_guesses import ClaimedCurve

#: Points of a statement's curve whose pairs make its curve for two steps.
POINTS = 100


@dataclass(frozen=True)
class Claim:
    """A claimed guarantee, and the δ and the neighbouring relation at which it is audited."""

    guarantee: Guarantee | None
    delta: float
    neighboring: Neighboring

    def epsilon(self, steps: int) -> float | None:
        """ε at ``delta`` for data sets ``steps`` apart."""
        if self.guarantee is None:
            return None
        return float(self.guarantee.epsilon_at(self.delta)) if steps == 1 else two_steps(self.guarantee, self.delta)


class Search(Protocol):
    """Interface of a search before its fit."""

    def privacy_cost(self, n_samples: int | None, delta: float | None, *, public: bool) -> PrivacySpent: ...


def claim_about(
    estimator: Any,
    n_samples: int,
    public: bool,
    stated: object,
    delta: float | None,
    neighboring: Neighboring | None,
) -> Claim:
    """Claim by the caller, by a search's plan or by an adapter, with its δ and its relation.

    Raises
    ------
    MissingDeltaError
        If the guarantee is not pure and no δ is known.
    PrivacyError
        If no relation is stated or given, or two different ones are.
    """
    found = _planned(estimator, n_samples, public, delta) if stated is None else stated
    guarantee = None if found is None else as_guarantee(found, "stated")
    if delta is None:
        delta = found.delta if isinstance(found, PrivacySpent) else _own_delta(guarantee)
    return Claim(guarantee, float(delta), _relation(guarantee, neighboring))


def _relation(guarantee: Guarantee | None, given: Neighboring | None) -> Neighboring:
    if given is None and guarantee is None:
        raise PrivacyError(
            "Found neither a stated guarantee nor neighboring=: which data sets are neighbours? Give "
            "neighboring='add_remove', 'zero_out' or 'replace_one', or stated=, e.g. PureDP(epsilon=1.0)."
        )
    if given is not None:
        check_neighboring(given)
    if guarantee is None:
        assert given is not None
        return given
    if given not in (None, guarantee.neighboring):
        raise PrivacyError(
            f"Found neighboring={given!r}, but the guarantee is stated for {guarantee.neighboring!r}: it says "
            "nothing about other pairs. Leave neighboring out, or give stated= for this relation."
        )
    return guarantee.neighboring


def _planned(estimator: Any, n_samples: int, public: bool, delta: float | None) -> PrivacySpent | Guarantee | None:
    if _is_search(estimator):
        return estimator.privacy_cost(n_samples, delta, public=public)
    try:
        return training_run(estimator, n_samples).guarantee
    except UnknownGuaranteeError:
        return None


def _is_search(estimator: object) -> TypeGuard[Search]:
    return callable(getattr(estimator, "privacy_cost", None))


def _own_delta(guarantee: Guarantee | None) -> float:
    if guarantee is None or guarantee.pure_epsilon is not None:
        return 0.0
    own = getattr(guarantee, "delta", None)
    if own is None:
        raise MissingDeltaError(
            f"Found delta=None, but {guarantee!r} is not pure. Give delta, the one at which epsilon is claimed."
        )
    return float(own)


def smallest(planned: Claim, spent: list[PrivacySpent], steps: int) -> float | None:
    """The smallest ε of the plan and of all fitted models' statements, as each claim has to be true."""
    values = [epsilon for claim in _all(planned, spent) if (epsilon := claim.epsilon(steps)) is not None]
    return min(values) if values else None


def stated_curve(planned: Claim, spent: list[PrivacySpent], steps: int) -> ClaimedCurve | None:
    """Pairs (ε, δ) of the plan and of all fitted models' statements; None if nothing is stated."""
    claims = [claim for claim in _all(planned, spent) if claim.guarantee is not None]
    if not claims:
        return None
    own = np.array([claim.epsilon(steps) for claim in claims])
    curves = [_curve(guarantee, steps) for guarantee in dict.fromkeys(claim.guarantee for claim in claims)]
    curves.append(ClaimedCurve(own, np.full(len(own), planned.delta)))
    return ClaimedCurve(np.concatenate([c.epsilons for c in curves]), np.concatenate([c.deltas for c in curves]))


def _all(planned: Claim, spent: list[PrivacySpent]) -> list[Claim]:
    stated = [one.guarantee for one in spent if one.neighboring == planned.neighboring]
    return [planned, *(replace(planned, guarantee=guarantee) for guarantee in stated)]


#: Kind of guarantee ↦ implied guarantee for data sets two steps apart.
TWICE: dict[type[Guarantee], Callable[[Any], Guarantee]] = {
    PureDP: lambda given: PureDP(epsilon=2 * given.epsilon, neighboring=given.neighboring),
    GaussianDP: lambda given: GaussianDP(mu=2 * given.mu, neighboring=given.neighboring),
    ZCDP: lambda given: ZCDP(rho=4 * given.rho, neighboring=given.neighboring),
    DPSGD: lambda given: replace(given, neighboring="replace_one"),
}


def two_steps(guarantee: Guarantee, delta: float) -> float:
    """ε for data sets two steps apart: the smallest ε₁ + ε₂ that was found with δ(ε₁) + e^{ε₁}·δ(ε₂) ≤ δ."""
    if type(guarantee) in TWICE:
        return float(TWICE[type(guarantee)](guarantee).epsilon_at(delta))
    if guarantee.pure_epsilon is not None and delta == 0:
        return 2.0 * guarantee.pure_epsilon
    shares = np.geomspace(1e-3, 0.9, 12)
    firsts = guarantee.epsilon_at(delta * shares)
    seconds = guarantee.epsilon_at(delta * (1.0 - shares) * np.exp(-firsts))
    return float(np.min(firsts + seconds))


def _curve(guarantee: Any, steps: int) -> ClaimedCurve:
    """Pairs (ε, δ) for data sets ``steps`` apart; two pairs for one step make one for two steps."""
    if steps == 2 and type(guarantee) in TWICE:
        return _curve(TWICE[type(guarantee)](guarantee), 1)
    points = guarantee._trade_off
    if steps == 1:
        return ClaimedCurve(points.epsilons, points.deltas)
    some = np.unique(np.linspace(0, len(points.epsilons) - 1, POINTS).astype(int))
    epsilons, deltas = points.epsilons[some], points.deltas[some]
    both = epsilons[:, None] + epsilons, deltas[:, None] + np.exp(epsilons)[:, None] * deltas
    return ClaimedCurve(both[0][both[1] < 1.0], both[1][both[1] < 1.0])
