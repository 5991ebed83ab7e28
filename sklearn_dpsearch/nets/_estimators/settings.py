"""Settings of one training, from constructor arguments alone, before any data."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sklearn.utils._param_validation import Interval, StrOptions

from ...privacy import DPSGD, BudgetUnreachableError, Guarantee, PrivacyError, calibrate
from ...privacy._calibration import gaussian_target, noise_multiplier_under
from ...privacy._checks import NEIGHBORING, Neighboring, cached_property
from ...privacy._numerics.bisection import bracket, geometric
from .._sampling import LEAST_RATE

#: A clipping norm, or the word for a norm by rule.
MaxGradNorm: TypeAlias = float | Literal["rule"]
#: Constructor arguments on which the guarantee depends.
NOISE = ("noise_multiplier", "target_epsilon", "target_delta", "target_mu")
RATES = ("sample_rate", "batch_size", "max_epochs", "max_steps")
#: Arguments of each way to state the noise.
NOISE_FORMS = ({"noise_multiplier"}, {"target_epsilon", "target_delta"}, {"target_mu"})
#: Range of calibrated noise multipliers. Below it, ε is in the hundreds, and takes long to compute.
LEAST_NOISE, MOST_NOISE = 2.0**-6, 2.0**20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked settings of one training.

    Parameters
    ----------
    sample_rate : float
    steps : int
    max_grad_norm : float or None
        Largest norm of a record's gradient in the sums; None: by rule, once the number of inputs is
        known.
    neighboring : {"zero_out", "replace_one"}
    batch_size : float or None
        Expected batch size as a constant; None: it follows from the number of records, which is
        public.
    target : mapping of str to float
        One way to state the noise, by the names of arguments.
    """

    sample_rate: float
    steps: int
    max_grad_norm: float | None
    neighboring: Neighboring
    batch_size: float | None
    target: Mapping[str, float]

    def expected_batch_size(self, n: int) -> float:
        """Expected batch size of a training on ``n`` records."""
        return self.sample_rate * n if self.batch_size is None else self.batch_size

    def expected_number(self, n: int) -> float:
        """Number of records that a training expects: ``n``, or as told."""
        return n if self.batch_size is None else self.batch_size / self.sample_rate

    @cached_property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one training with these settings."""
        if "target_mu" in self.target:
            # The target itself, not the guarantee of the noise: all candidates of a search then
            # have equal guarantees.
            return gaussian_target(self.target["target_mu"], neighboring=self.neighboring)
        return DPSGD(
            noise_multiplier=self.noise,
            sample_rate=self.sample_rate,
            steps=self.steps,
            neighboring=self.neighboring,
        )

    @cached_property
    def noise(self) -> float:
        """Noise multiplier of one training, as given or as calibrated."""
        run, target = (self.sample_rate, self.steps), self.target
        if "target_mu" in target:
            return noise_multiplier_under(target["target_mu"], *run, neighboring=self.neighboring)
        if "target_epsilon" in target:
            stated = (target["target_epsilon"], target["target_delta"])
            return noise_multiplier_for(*stated, *run, self.neighboring)
        return target["noise_multiplier"]


@functools.lru_cache(maxsize=1024)  # the guarantee is computed before, in and after each fit
def noise_multiplier_for(
    epsilon: float, delta: float, sample_rate: float, steps: int, neighboring: Neighboring
) -> float:
    """Smallest noise multiplier found with which DP-SGD is (ε, δ)-private."""

    def run(noise: float) -> DPSGD:
        return DPSGD(
            noise_multiplier=noise, sample_rate=sample_rate, steps=steps, neighboring=neighboring
        )

    def enough(noise: float) -> bool:
        return float(run(noise).epsilon_at(delta)) <= epsilon

    # First in factors of two, finer steps than calibrate's: ε for little noise takes seconds to
    # compute.
    turn = bracket(enough, 1.0, geometric(1.0, 0.5, LEAST_NOISE), geometric(1.0, 2.0, MOST_NOISE))
    if turn.holds is None:
        raise BudgetUnreachableError(
            f"target_epsilon={epsilon:g} at target_delta={delta:g} is out of reach with "
            f"sample_rate={sample_rate:g} and {steps} steps: the smallest epsilon possible here is "
            f"{float(run(MOST_NOISE).epsilon_at(delta)):.4g}. Give a larger target, a smaller rate "
            f"or fewer steps."
        )
    if turn.fails is None:
        return turn.holds
    return calibrate(run, epsilon, delta, (turn.fails, turn.holds))


# --- checking -------------------------------------------------------------------------------------


class Number(Interval):
    """Finite numbers without True and False, which are numbers to Python and mistakes here."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


class _WholeNumber(Number):
    """Whole numbers, also as floats like those of np.geomspace(...).round()."""

    def is_satisfied_by(self, val: Any) -> bool:
        return super().is_satisfied_by(val) and float(val).is_integer()

    def __str__(self) -> str:
        return f"a whole number >= {self.left}"


POSITIVE_NUMBER = Number(numbers.Real, 0, None, closed="neither")
#: Least clipping norm. Norms of gradients above 2e19 count as infinite, so that factors stay above
#: 5e-32: below 1e-38 single precision has few digits, and a clipped gradient could be five times
#: longer than its norm.
LEAST_NORM = 1e-12
#: Largest clipping norm: longer gradients count as infinite.
LARGEST_NORM = 1e19
#: scikit-learn's constraints on the arguments that decide about privacy.
CONSTRAINTS: dict[str, list[Any]] = {
    "noise_multiplier": [POSITIVE_NUMBER, None],
    "target_epsilon": [POSITIVE_NUMBER, None],
    "target_delta": [Number(numbers.Real, 0, 1, closed="neither"), None],
    "target_mu": [POSITIVE_NUMBER, None],
    "max_grad_norm": [Number(numbers.Real, 0, LARGEST_NORM, closed="right"), StrOptions({"rule"})],
    "sample_rate": [Number(numbers.Real, LEAST_RATE, 1, closed="both"), None],
    "batch_size": [POSITIVE_NUMBER, None],
    "neighboring": [StrOptions(set(NEIGHBORING))],
    "max_epochs": [POSITIVE_NUMBER],
    "max_steps": [_WholeNumber(numbers.Real, 1, None, closed="left"), None],
}


def follows_number(net: Any) -> bool:
    """Return whether the rate follows from the number of records: ``batch_size`` alone is given."""
    return bool(net.batch_size is not None and net.sample_rate is None)


def settings_of(net: Any, n: float | None = None) -> Settings:
    """Read and check the arguments of a net as settings of training.

    ``CONSTRAINTS`` are checked elsewhere.

    Parameters
    ----------
    net : DPSGDEstimator
    n : float, optional
        Number of records, needed where only ``batch_size`` is given.

    Raises
    ------
    ValueError, PrivacyError
        For wrong arguments: with the finding, the need and the remedy.
    """
    if net.neighboring == "add_remove":
        raise PrivacyError(
            "Found neighboring='add_remove' for a net: the number of records is public, as the "
            "sampling rate batch_size / n of every training tells it. Give neighboring='zero_out', "
            "at the same epsilon."
        )
    if net.max_grad_norm != "rule" and net.max_grad_norm < LEAST_NORM:
        raise PrivacyError(
            f"Found max_grad_norm={net.max_grad_norm!r}; at least {LEAST_NORM:g} is needed. Single "
            "precision has few digits for smaller norms, and would let more than this norm "
            "through. Give a larger one, or rescale the loss."
        )
    rate = rate_of(net, n)
    by_epochs = net.max_steps is None
    steps = max(1, round(net.max_epochs / rate)) if by_epochs else int(net.max_steps)
    target = {name: float(getattr(net, name)) for name in NOISE if getattr(net, name) is not None}
    if set(target) not in NOISE_FORMS:
        stated = target or f"none of {', '.join(NOISE)}"
        raise PrivacyError(
            f"Found {stated}; one way to state the noise is needed: noise_multiplier=..., or "
            "target_epsilon=... with target_delta=..., or target_mu=... (none of them in a search "
            "with epsilon=, which sets the noise)"
        )
    return Settings(
        sample_rate=rate,
        steps=steps,
        max_grad_norm=None if net.max_grad_norm == "rule" else float(net.max_grad_norm),
        batch_size=None if net.batch_size is None or follows_number(net) else float(net.batch_size),
        neighboring=net.neighboring,
        target=target,
    )


def rate_of(net: Any, n: float | None = None) -> float:
    """Sampling rate of a net for ``n`` records."""
    if not follows_number(net):
        rate = net.default_rate if net.sample_rate is None else net.sample_rate
        if rate is None:
            raise ValueError(
                "Found neither sample_rate nor batch_size. Give batch_size (the expected size of a "
                "batch), or sample_rate (the probability of each record to be in a batch)."
            )
        return float(rate)
    if n is None:
        raise PrivacyError(
            f"Found batch_size={net.batch_size} and no number of records: the sampling rate is "
            "batch_size / n. Give n_samples, or sample_rate in place of batch_size."
        )
    if not LEAST_RATE * n <= net.batch_size <= n:
        needed = f"the rate batch_size / n has to be between {LEAST_RATE:g} and 1."
        raise ValueError(f"Found batch_size={net.batch_size} for {n:g} records; {needed}")
    return float(net.batch_size) / float(n)
