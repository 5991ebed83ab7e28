"""Guarantees of ``dp_accounting`` events (see ``ProfileDP.from_pld`` and ``RenyiDP``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from ..errors import UnknownGuaranteeError
from ._checks import Neighboring, require, require_in, require_whole
from ._count_distributions.distributions import Poisson
from ._count_distributions.negative_binomial import Geometric, Logarithmic, NegativeBinomial
from ._guarantees.base import Guarantee
from ._guarantees.composition import compose
from ._guarantees.pure import LaplaceDP, PureDP
from ._guarantees.single_mechanisms import DPSGD, ZCDP, GaussianDP, NonPrivate
from ._numerics.arithmetic import float_above
from ._selection.best_of import best_of
from ._selection.subset import subset_then_train


def from_event(event: Any, neighboring: Neighboring = "add_remove") -> Guarantee:
    """Guarantee of a ``dp_accounting`` event.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Gaussian, Laplace, zero-concentrated, composed, self-composed, Poisson-sampled,
        repeat-and-select, no-op and non-private events,
        nested in any way.
    neighboring : {"add_remove", "zero_out"}
        An event's noise is relative to the change by the presence of a record. For changed records:
        ``as_replace_one(from_event(event))``.

    Returns
    -------
    Guarantee
        Of the same structure: Poisson-sampled Gaussian steps become a ``DPSGD``, a
        repeat-and-select event a ``best_of``.

    Raises
    ------
    UnknownGuaranteeError
        For an event of any other kind.

    Examples
    --------
    >>> import dp_accounting as dp
    >>> step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.1))
    >>> from_event(dp.SelfComposedDpEvent(step, 1000))
    DPSGD(neighboring='add_remove', noise_multiplier=1.1, sample_rate=0.01, steps=1000)
    """
    needed = '"add_remove" or "zero_out" (for changed records: as_replace_one of the result)'
    presence = neighboring in ("add_remove", "zero_out")
    require(presence, f"neighboring={needed}", neighboring=neighboring)
    kind = type(event)
    if kind.__module__.partition(".")[0] != "dp_accounting" or kind.__name__ not in EVENTS:
        raise UnknownGuaranteeError(
            f"Found an event of kind {kind.__name__}; one of {', '.join(EVENTS)} is needed. "
            "Compute its privacy loss distribution with dp_accounting and give ProfileDP.from_pld, "
            "or state its guarantee yourself."
        )
    return EVENTS[kind.__name__](event, neighboring)


def _noise_event(kind: type[Guarantee], parameter: str) -> Callable[[Any, Neighboring], Guarantee]:
    """Reader of a noise event: the inverse scale is the parameter, rounded up."""

    def guarantee_of(event: Any, neighboring: Neighboring) -> Guarantee:
        noise = event.noise_multiplier
        require_in("[0, inf)", noise_multiplier=noise)
        if noise == 0:
            return NonPrivate(neighboring=neighboring)
        return kind(neighboring=neighboring, **{parameter: float_above(1 / Fraction(noise))})

    return guarantee_of


def _concentrated_event(event: Any, neighboring: Neighboring) -> Guarantee:
    """Guarantee of an event of zero-concentrated privacy, without an additive constant."""
    require(event.xi == 0, "xi=0 (state the Rényi guarantee yourself: RenyiDP)", xi=event.xi)
    return ZCDP(rho=float_above(Fraction(event.rho)), neighboring=neighboring)


def _no_op_event(event: Any, neighboring: Neighboring) -> Guarantee:
    """Guarantee of an event that reads nothing."""
    return PureDP(epsilon=0.0, neighboring=neighboring)


def _composed_event(event: Any, neighboring: Neighboring) -> Guarantee:
    """Guarantee of a composed event."""
    parts = [from_event(part, neighboring) for part in event.events]
    return compose(*parts) if parts else _no_op_event(event, neighboring)


def _self_composed_event(event: Any, neighboring: Neighboring) -> Guarantee:
    """Guarantee of an event repeated a fixed number of times."""
    repeated, count = from_event(event.event, neighboring), event.count
    require_whole(0, count=count)
    if count == 0:
        return _no_op_event(event, neighboring)
    if type(repeated) is DPSGD:
        return replace(repeated, steps=repeated.steps * int(count))
    return compose(*[repeated] * int(count))


def _poisson_sampled_event(event: Any, neighboring: Neighboring) -> Guarantee:
    """Guarantee of a Poisson-sampled event.

    A Gaussian sum over a Poisson batch is a step of DP-SGD; anything else is a subset search with
    no training.
    """
    rate, inside = event.sampling_probability, type(event.event).__name__
    require_in("[0, 1]", sampling_probability=rate)
    sampled = from_event(event.event, neighboring)
    if inside == "GaussianDpEvent" and rate > 0 and isinstance(sampled, GaussianDP):
        noise = float(event.event.noise_multiplier)
        return DPSGD(noise_multiplier=noise, sample_rate=rate, steps=1, neighboring=neighboring)
    return subset_then_train(sampled, _no_op_event(event, neighboring), rate)


def _repeat_and_select_event(event: Any, neighboring: Neighboring) -> Guarantee:
    """Guarantee of the best of K runs, K named by its shape.

    The shape is infinite for Poisson, 1 for geometric and 0 for logarithmic K.
    """
    mean, shape = float(event.mean), float(event.shape)
    kinds: dict[float, Any] = {math.inf: Poisson, 1.0: Geometric, 0.0: Logarithmic}
    kind = kinds.get(shape, partial(NegativeBinomial, shape))
    return best_of(from_event(event.event, neighboring), kind(mean=mean))


#: Guarantee of each known event, by its exact kind.
EVENTS: dict[str, Callable[[Any, Neighboring], Guarantee]] = {
    "NoOpDpEvent": _no_op_event,
    "NonPrivateDpEvent": lambda event, neighboring: NonPrivate(neighboring=neighboring),
    "GaussianDpEvent": _noise_event(GaussianDP, "mu"),
    "LaplaceDpEvent": _noise_event(LaplaceDP, "epsilon"),
    "ZCDpEvent": _concentrated_event,
    "ComposedDpEvent": _composed_event,
    "SelfComposedDpEvent": _self_composed_event,
    "PoissonSampledDpEvent": _poisson_sampled_event,
    "RepeatAndSelectDpEvent": _repeat_and_select_event,
}
