"""What an estimator states about one fit, from wherever it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..adapters import training_run
from ..privacy import DPSGD, ZCDP, GaussianDP, Guarantee, MissingDeltaError, PureDP, UnknownGuaranteeError
from ..privacy.spent import PrivacySpent


@dataclass(frozen=True)
class Statement:
    """A stated guarantee and the δ at which it is audited."""

    guarantee: Guarantee | None
    delta: float

    def epsilon(self, steps: int) -> float | None:
        """ε at ``delta`` for data sets so many steps apart."""
        if self.guarantee is None:
            return None
        return epsilon_at(self.guarantee, self.delta) if steps == 1 else two_steps(self.guarantee, self.delta)


def statement(estimator: Any, n_samples: int, public: bool, stated: Any, delta: float | None) -> Statement:
    """The guarantee given by the caller, or planned by a search, or known to an adapter; and a δ for it.

    Raises
    ------
    MissingDeltaError
        If the guarantee is not pure and no δ is known.
    """
    found = _planned(estimator, n_samples, public, delta) if stated is None else stated
    guarantee = found.guarantee if isinstance(found, PrivacySpent) else found
    if guarantee is not None and not isinstance(guarantee, Guarantee):
        raise TypeError(
            f"Found stated={stated!r}; a guarantee such as PureDP(epsilon=1.0) or ApproxDP(epsilon=1.0, delta=1e-5), "
            "or a privacy_spent_, is needed."
        )
    if delta is None:
        delta = found.delta if isinstance(found, PrivacySpent) else _own_delta(guarantee)
    return Statement(guarantee, float(delta))


def _planned(estimator: Any, n_samples: int, public: bool, delta: float | None) -> Any:
    if callable(getattr(estimator, "privacy_cost", None)):
        return estimator.privacy_cost(n_samples, delta, public=public)
    try:
        return training_run(estimator, n_samples).guarantee
    except UnknownGuaranteeError:
        return None


def _own_delta(guarantee: Guarantee | None) -> float:
    if guarantee is None or guarantee.pure_epsilon is not None:
        return 0.0
    own = getattr(guarantee, "delta", None)
    if own is None:
        raise MissingDeltaError(
            f"Found delta=None, but {guarantee!r} is not pure. Give delta, the one at which epsilon is claimed."
        )
    return float(own)


def smallest(first: Statement, spent: list[Any], steps: int) -> float | None:
    """The least of what was planned and what the fitted models state: each statement has to be true."""
    relation = None if first.guarantee is None else first.guarantee.neighboring
    ours = [one for one in spent if isinstance(one, PrivacySpent) and one.neighboring == (relation or one.neighboring)]
    values = [first.epsilon(steps), *(Statement(one.guarantee, first.delta).epsilon(steps) for one in ours)]
    known = [one for one in values if one is not None]
    return min(known) if known else None


def epsilon_at(guarantee: Guarantee, delta: float) -> float:
    return float(guarantee.epsilon_at(delta))


#: Kind of guarantee ↦ the guarantee for data sets two steps apart.
TWICE: dict[type[Guarantee], Callable[[Any], Guarantee]] = {
    PureDP: lambda one: PureDP(epsilon=2 * one.epsilon, neighboring=one.neighboring),
    GaussianDP: lambda one: GaussianDP(mu=2 * one.mu, neighboring=one.neighboring),
    ZCDP: lambda one: ZCDP(rho=4 * one.rho, neighboring=one.neighboring),
    DPSGD: lambda one: replace(one, neighboring="replace_one"),
}


def two_steps(guarantee: Guarantee, delta: float) -> float:
    """ε for data sets two steps apart: ε + ε' with δ(ε) + e^ε·δ(ε') ≤ δ, the least found."""
    if type(guarantee) in TWICE:
        return epsilon_at(TWICE[type(guarantee)](guarantee), delta)
    if guarantee.pure_epsilon is not None and delta == 0:
        return 2.0 * guarantee.pure_epsilon
    shares = np.geomspace(1e-3, 0.9, 12)
    firsts = [epsilon_at(guarantee, delta * share) for share in shares]
    return min(
        first + epsilon_at(guarantee, delta * (1.0 - share) * np.exp(-first)) for first, share in zip(firsts, shares)
    )
