"""Step sizes derived from public facts: how much noise may reach a weight, and how far one step may go.

At the end of T steps of SGD, of sizes η·s₁ … η·s_T, the noise in every weight has standard deviation
η·σ·C·√(Σ s²) ÷ expected batch size, ÷ (1 − momentum) with momentum. This deviation is fixed instead of η. All of its
factors are public: the step size is known before any record is read, and costs no privacy. ``docs/theory/step_size.md``
has the derivation, and the data on which its three constants were found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from scipy.stats import loguniform

from ..optimizers import Table
from .settings import Settings

#: A step size, or "auto" for a derived one.
StepSize: TypeAlias = float | Literal["auto"]
#: Course of the step size.
Decay: TypeAlias = Literal["linear", "constant"]

#: Multiples of the step size's factor in a search: drawn log-uniformly between the ends, or all three in a grid.
FACTORS = (0.8, 1.0, 1.25)


@dataclass(frozen=True, kw_only=True)
class StepRule:
    """Step sizes and clipping norms from public facts, for predicted labels or for predicted numbers.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise in each weight at the end × √ of the bound on the norm of a record.
    reach : float
        Longest step × that bound, for clipping norm 1: with longer steps nets learn no classes, or do not settle on
        numbers.
    longest : float
        Longest step, also for short records.
    longest_grown : float
        Longest step to which a searched step size grows.
    residual : float
        Clipping norm by rule ÷ norm of a long record's gradient for a residual of 1: the largest residual of such a
        record that is not clipped.
    shortest_norm, shortest_path : float
        Where noise leaves short steps, the clipping norm by rule is as small as lets gradients of norm 1 move the
        weights so far in total; but not smaller than this norm, below which probabilities shift to frequent classes.
    dense : float
        Bound √(number of features) of an array ÷ norm of its records: most features are far from their bounds. Records
        of a schema are as long as their bound, which stands for this many times as much.
    """

    noise: float
    reach: float
    longest: float
    longest_grown: float
    residual: float
    shortest_norm: float
    shortest_path: float
    dense: float

    def noise_allowed(self, bound: float) -> float:
        """Standard deviation of the noise in each weight at the end."""
        return self.noise / math.sqrt(bound)

    def unclipped(self, settings: Settings, expected_batch_size: float, decay: Sequence[float], bound: float) -> float:
        """Initial step size of SGD for clipping norm 1, without momentum.

        Parameters
        ----------
        settings : Settings
        expected_batch_size : float
        decay : sequence of float
            Factor on the step size at each step.
        bound : float
            Bound on the norm of a record.
        """
        per_step = settings.noise * math.hypot(*decay) / expected_batch_size  # noise in a weight for a step size of 1
        return min(self.noise_allowed(bound) / per_step, self.reach / bound, self.longest)

    def for_sgd(
        self, settings: Settings, expected_batch_size: float, decay: Sequence[float], bound: float, momentum: float
    ) -> float:
        """Initial step size of SGD, as ``unclipped`` for the clipping norm of the settings, which is known.

        Momentum: in total, each gradient moves the weights by 1 ÷ (1 − momentum) steps.
        """
        assert settings.max_grad_norm is not None
        whole = self.unclipped(settings, expected_batch_size, decay, bound)
        return whole * (1.0 - momentum) / settings.max_grad_norm

    def for_adam(self, decay: Sequence[float], bound: float) -> float:
        """Step size of Adam: where gradients are mostly noise, each step moves a weight by about the step size."""
        return self.noise_allowed(bound) / math.hypot(*decay)

    def clipping_norm(self, gradient: float, path: float) -> float:
        """Clipping norm by rule.

        Parameters
        ----------
        gradient : float
            Norm of a long record's gradient for a residual of norm 1.
        path : float
            Distance by which steps of clipping norm 1 move the weights in total, along a gradient of norm 1.
        """
        return min(self.residual * gradient, max(self.shortest_norm, path / self.shortest_path))

    def grown(self, rate: float, n_tune: float, n_final: float, *, max_grad_norm: float) -> float:
        """Scale a step size found on few records to many: in proportion, at most to a long step, never downwards."""
        return min(rate * (n_final / n_tune), max(rate, self.longest_grown / max_grad_norm))


#: Residuals are √2 · (1 − probability of the record's own class) for two classes: gradients are clipped below a
#: probability of 0.15. A searched step size grows to that of records of norm 10.
OF_CLASSES = StepRule(
    noise=0.8, reach=100.0, longest=math.inf, longest_grown=10.0, residual=1.2, shortest_norm=3.0, shortest_path=25.0,
    dense=4.0,
)  # fmt: skip
#: Numbers are of size 1, and their residuals smaller. They suffer from noise that leaves a predicted class unchanged.
OF_NUMBERS = StepRule(
    noise=0.3, reach=10.0, longest=1.0, longest_grown=1.0, residual=0.5, shortest_norm=1.0, shortest_path=50.0,
    dense=1.5,
)  # fmt: skip


def shares(decay: Decay, steps: int) -> list[float]:
    """Factor on the step size at each step."""
    return [1.0] * steps if decay == "constant" else [1.0 - t / steps for t in range(steps)]


def scheduled(start: float, decay: Sequence[float]) -> Table:
    """Table of step sizes, empty for constant ones."""
    return {} if min(decay) >= 1 else {"lr": [start * share for share in decay]}


def bound_on_norm(n_features: int) -> float:
    """Largest norm of a record of ``n_features`` features, each between -1 and 1."""
    return math.sqrt(max(n_features, 1))


def likely_norm(n_features: int) -> float:
    """Norm of a record for the clipping norm, where only the number of features is known.

    Between 1, one feature alone, and the bound, all features at their ends, by the geometric mean.
    """
    return math.sqrt(bound_on_norm(n_features))


# --- search space -----------------------------------------------------------------------------------------------------


def space(name: str, own: float, *, grid: bool) -> dict[str, Any]:
    """Factors on the step size around the net's own factor, for a search with ``param_distributions="auto"``.

    A derived step size needs no wide search: each candidate alone is a decent model.
    """
    low, middle, high = (own * factor for factor in FACTORS)
    return {name: [low, middle, high] if grid else loguniform(low, high)}
