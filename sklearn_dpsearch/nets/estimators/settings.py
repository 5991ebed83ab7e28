"""From constructor arguments to a training plan: everything here is known before any data is."""

from __future__ import annotations

import functools
import math
import numbers
from dataclasses import dataclass
from typing import Any

from ...privacy import DPSGD, BudgetUnreachableError, Guarantee, PrivacyError, calibrate
from ...privacy.guarantees.covering import gaussian_target, noise_multiplier_under
from ..sampling import LEAST_RATE

#: Constructor arguments on which the guarantee depends.
NOISE = ("noise_multiplier", "target_epsilon", "target_delta", "target_mu")
RATES = ("sample_rate", "batch_size", "public_n", "max_epochs", "max_steps")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one training runs, checked.

    Parameters
    ----------
    sample_rate : float
    steps : int
    max_grad_norm : float
    neighboring : {"add_remove", "zero_out"}
        Without a stated ``public_n`` the number of records is used to scale the gradients, and so is public: records
        are zeroed out, not removed.
    noise_multiplier, target_epsilon, target_delta, target_mu : float or None
    """

    sample_rate: float
    steps: int
    max_grad_norm: float
    neighboring: str
    noise_multiplier: float | None = None
    target_epsilon: float | None = None
    target_delta: float | None = None
    target_mu: float | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What one training promises."""
        if self.target_mu is not None:
            return gaussian_target(self.target_mu, neighboring=self.neighboring)
        return DPSGD(
            noise_multiplier=self.noise, sample_rate=self.sample_rate, steps=self.steps, neighboring=self.neighboring
        )

    @property
    def noise(self) -> float:
        """The noise multiplier, as given or as calibrated."""
        if self.noise_multiplier is not None:
            return float(self.noise_multiplier)
        if self.target_mu is not None:
            return noise_multiplier_under(float(self.target_mu), self.sample_rate, self.steps)
        assert self.target_epsilon is not None
        assert self.target_delta is not None
        return noise_multiplier_for(float(self.target_epsilon), float(self.target_delta), self.sample_rate, self.steps)


@functools.lru_cache(maxsize=1024)
def noise_multiplier_for(epsilon: float, delta: float, sample_rate: float, steps: int) -> float:
    """The least noise multiplier found with which DP-SGD is (ε, δ)-private."""

    def run(noise: float) -> DPSGD:
        return DPSGD(noise_multiplier=noise, sample_rate=sample_rate, steps=steps)

    low = high = 1.0
    while float(run(high).epsilon_at(delta)) > epsilon:
        if high > 1e6:
            raise BudgetUnreachableError(
                f"target_epsilon={epsilon:g} at target_delta={delta:g} is out of reach with sample_rate="
                f"{sample_rate:g} and {steps} steps: the smallest epsilon possible here is "
                f"{float(run(high).epsilon_at(delta)):.4g}. Give a larger target, a smaller rate or fewer steps."
            )
        low, high = high, 2 * high
    while low == high and low > 0.02 and float(run(low / 2).epsilon_at(delta)) <= epsilon:
        low = high = low / 2
    return high if low == high and low <= 0.02 else calibrate(run, epsilon, delta, (min(low, high / 2), high))


def settings_of(net: Any) -> Settings:
    """Read and check the arguments of a net.

    Raises
    ------
    ValueError, PrivacyError
        What was found, what is needed, and the remedy.
    """
    for name in (*NOISE, *RATES, "max_grad_norm"):
        _check_number(name, getattr(net, name))
    rate = _rate(net)
    steps = int(net.max_steps) if net.max_steps is not None else max(1, round(net.max_epochs / rate))
    return Settings(
        sample_rate=rate,
        steps=steps,
        max_grad_norm=float(net.max_grad_norm),
        neighboring=_neighboring(net),
        **_noise(net),
    )


def expecting(net: Any, n: float) -> dict[str, Any]:
    """Arguments with which the net is told that ``n`` records are expected: rate, steps, noise and relation stay."""
    told = {"public_n": max(1, round(n)), "neighboring": _neighboring(net)}
    return told if net.batch_size is None else {**told, "sample_rate": _rate(net), "batch_size": None}


def _rate(net: Any) -> float:
    given = (net.sample_rate is not None) + (net.batch_size is not None)
    if given != 1:
        raise ValueError(
            f"Found sample_rate={net.sample_rate} and batch_size={net.batch_size}; exactly one is needed. Give "
            "sample_rate (the probability of each record to be in a batch), or batch_size together with public_n."
        )
    if net.sample_rate is not None:
        return float(net.sample_rate)
    if net.public_n is None:
        raise ValueError(
            f"Found batch_size={net.batch_size} without public_n: the rate batch_size / n would depend on the data. "
            "State the public number of records, public_n=..., or give sample_rate."
        )
    if net.batch_size > net.public_n:
        raise ValueError(
            f"Found batch_size={net.batch_size} above public_n={net.public_n}: the rate would be above 1. Give a "
            "smaller batch_size."
        )
    if net.batch_size < LEAST_RATE * net.public_n:
        raise ValueError(
            f"Found batch_size={net.batch_size} of public_n={net.public_n}: a rate below {LEAST_RATE:g} is not drawn "
            "exactly. Give a larger batch_size."
        )
    return float(net.batch_size) / float(net.public_n)


def _neighboring(net: Any) -> str:
    """Records added or removed if their number is stated, zeroed out if it is taken from the data."""
    given = net.neighboring
    if given not in (None, "add_remove", "zero_out"):
        raise ValueError(f"Found neighboring={given!r}; 'add_remove', 'zero_out' or None is needed.")
    if given == "add_remove" and net.public_n is None:
        raise PrivacyError(
            "Found neighboring='add_remove' without public_n: the scale of the gradients would tell how many records "
            "there are. State a number of records known without the data, public_n=..., or use 'zero_out'."
        )
    return given or ("zero_out" if net.public_n is None else "add_remove")


def _noise(net: Any) -> dict[str, float]:
    given = {name: float(getattr(net, name)) for name in NOISE if getattr(net, name) is not None}
    ways = [
        set(given) == {"noise_multiplier"},
        set(given) == {"target_epsilon", "target_delta"},
        set(given) == {"target_mu"},
    ]
    if not any(ways):
        raise PrivacyError(
            f"Found {given or 'none of noise_multiplier, target_epsilon, target_delta, target_mu'}; one way to state "
            "the noise is needed: noise_multiplier=..., or target_epsilon=... with target_delta=..., or target_mu=... "
            "(none of them in a search with epsilon=, which sets the noise)"
        )
    return given


#: Argument ↦ (what is expected, test).
EXPECTED: dict[str, tuple[str, Any]] = {
    "noise_multiplier": ("a finite number > 0", lambda v: v > 0),
    "target_epsilon": ("a finite number > 0", lambda v: v > 0),
    "target_delta": ("a number with 0 < target_delta < 1", lambda v: 0 < v < 1),
    "target_mu": ("a finite number > 0", lambda v: v > 0),
    "sample_rate": (f"a number with {LEAST_RATE:g} <= sample_rate <= 1", lambda v: LEAST_RATE <= v <= 1),
    "batch_size": ("a number >= 1 of records expected in a batch", lambda v: v >= 1),
    "public_n": ("a number of records >= 1", lambda v: v >= 1),
    "max_epochs": ("a number > 0", lambda v: v > 0),
    "max_steps": ("an integer >= 1", lambda v: v >= 1 and float(v).is_integer()),
    "max_grad_norm": ("a finite number > 0", lambda v: v > 0),
}


def _check_number(name: str, value: Any) -> None:
    expected, test = EXPECTED[name]
    optional = name not in ("max_grad_norm", "max_epochs")
    if value is None and optional:
        return
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not test(value):
        raise ValueError(f"Found {name}={value!r}; {expected} is needed.")
