"""Step sizes derived from public facts: the noise that may reach a weight, and the longest step.

At the end of T steps of SGD, of sizes η·s₁ … η·s_T, the noise in every weight has standard
deviation η·σ·C·√(Σ s²) ÷ expected batch size, ÷ (1 − momentum) with momentum. This deviation is
fixed instead of η. All of its factors are public: the step size is known before any record is read,
and costs no privacy. ``docs/theory/step_size.md`` has the derivation, and the data on which its
three constants were found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from scipy.stats import loguniform

from .._optimizers import Table
from .settings import LEAST_NORM

#: A step size, or "auto" for a derived one.
StepSize: TypeAlias = float | Literal["auto"]
#: Course of the step size.
Decay: TypeAlias = Literal["linear", "constant"]

#: Multiples of the step size's factor in a search: drawn log-uniformly between the ends, or all
#: three in a grid.
FACTORS = (0.8, 1.0, 1.25)


class StepFacts(NamedTuple):
    """Public facts from which the step sizes of a training follow.

    Parameters
    ----------
    initial : float or "auto"
        Initial step size; "auto": derived.
    factor : float
        Factor on it.
    momentum : float
    decay : list of float
        Factor on the step size at each step.
    bound : float
        Bound on the norm of a record.
    gradient : float
        Norm of a long record's gradient for a residual of norm 1, for a clipping norm by rule.
    """

    initial: StepSize
    factor: float
    momentum: float
    decay: list[float]
    bound: float
    gradient: float = math.nan


@dataclass(frozen=True, kw_only=True)
class StepRule:
    """Rule for step sizes and clipping norms from public facts.

    There is one for predicted labels, and one for predicted numbers.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise in each weight at the end × √ of the bound on the norm of a
        record.
    reach : float
        Longest step × that bound, for clipping norm 1: with longer steps nets learn no classes, or
        do not settle on numbers.
    longest : float
        Longest step, also for short records.
    longest_grown : float
        Longest step to which a searched step size grows.
    residual : float
        Clipping norm by rule ÷ norm of a long record's gradient for a residual of 1: the largest
        residual of such a record that is not clipped.
    shortest_norm, shortest_path : float
        Where noise leaves short steps, the clipping norm by rule is as small as lets gradients of
        norm 1 move the weights so far in total; but not smaller than this norm, below which
        probabilities shift to frequent classes.
    dense : float
        Bound √(number of features) of an array ÷ norm of its records: most features are far from
        their bounds. Records of a schema are as long as their bound, which stands for this many
        times as much.
    """

    noise: float
    reach: float
    longest: float
    longest_grown: float
    residual: float
    shortest_norm: float
    shortest_path: float
    dense: float

    def unclipped_step(
        self, noise_in_sum: float, expected_batch_size: float, facts: StepFacts
    ) -> float:
        """Initial step size of SGD for clipping norm 1, without momentum.

        Parameters
        ----------
        noise_in_sum : float
            Noise multiplier.
        expected_batch_size : float
        facts : StepFacts
        """
        # in a weight, for a step size of 1
        per_step = noise_in_sum * math.hypot(*facts.decay) / expected_batch_size
        allowed = self.noise / math.sqrt(facts.bound)  # in each weight at the end
        return min(allowed / per_step, self.reach / facts.bound, self.longest)

    def clipping_norm(self, unclipped_step: float, facts: StepFacts) -> float:
        """Clipping norm by rule, from a step for norm 1.

        Steps of norm 1 along one gradient move the weights by their sum.
        """
        path = unclipped_step * sum(facts.decay)
        norm = max(self.shortest_norm, path / self.shortest_path)
        return max(min(self.residual * facts.gradient, norm), LEAST_NORM)

    def grown(self, rate: float, n_tune: float, n_final: float, *, max_grad_norm: float) -> float:
        """Scale a step size found on few records to many.

        It grows in proportion, at most to a long step, and never falls.
        """
        return min(rate * (n_final / n_tune), max(rate, self.longest_grown / max_grad_norm))


#: Residuals are √2 · (1 − probability of the record's own class) for two classes: gradients are
#: clipped below a probability of 0.15. A searched step size grows to that of records of norm 10.
CLASS_RULE = StepRule(
    noise=0.8, reach=100.0, longest=math.inf, longest_grown=10.0, residual=1.2,
    shortest_norm=3.0, shortest_path=25.0, dense=4.0,
)  # fmt: skip
#: Numbers are of size 1, and their residuals smaller. They suffer from noise that leaves a
#: predicted class unchanged.
NUMBER_RULE = StepRule(
    noise=0.3, reach=10.0, longest=1.0, longest_grown=1.0, residual=0.5,
    shortest_norm=1.0, shortest_path=50.0, dense=1.5,
)  # fmt: skip


def step_decay(decay: Decay, steps: int) -> list[float]:
    """Factor on the step size at each step of a training."""
    return [1.0] * steps if decay == "constant" else [1.0 - t / steps for t in range(steps)]


def step_size_table(start: float, decay: Sequence[float]) -> Table:
    """Table of step sizes for the optimizer, empty for constant ones."""
    return {} if min(decay) >= 1 else {"lr": [start * share for share in decay]}


def largest_record_norm(n_features: int) -> float:
    """Largest norm of a record whose features lie between -1 and 1."""
    return math.sqrt(max(n_features, 1))


# --- search space ---------------------------------------------------------------------------------


def step_factor_space(name: str, center: float, *, grid: bool) -> dict[str, Any]:
    """Search space of factors on the step size, around the net's own.

    A derived step size needs no wide search: each candidate alone is a decent model.
    """
    low, middle, high = (center * factor for factor in FACTORS)
    return {name: [low, middle, high] if grid else loguniform(low, high)}
