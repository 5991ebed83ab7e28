"""Step sizes derived from public facts: how much noise may reach a weight, and how far one step may go.

At the end of T steps of SGD, of sizes η·s₁ … η·s_T, the noise in every weight has standard deviation
η·σ·C·√(Σ s²) ÷ expected batch size, ÷ (1 − momentum) with momentum. This deviation is fixed instead of η. All of its
factors are public: the step size is known before any record is read, and costs no privacy. ``docs/theory/step_size.md``
has the derivation, and the data on which its three constants were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch
from scipy.stats import loguniform

from ..optimizers import PerGroup, Table
from .settings import Settings

#: A step size, or "auto" for a derived one.
StepSize: TypeAlias = float | Literal["auto"]
#: Course of the step size.
Decay: TypeAlias = Literal["linear", "constant"]

#: Standard deviation of the noise in each weight at the end × √ of the bound on the norm of a record. Predicted numbers
#: suffer from noise that leaves a predicted class unchanged.
NOISE_FOR_CLASSES, NOISE_FOR_NUMBERS = 0.8, 0.3
#: Longest step × that bound, for clipping norm 1: with longer steps nets learn no classes, or do not settle on numbers.
REACH_OF_CLASSES, REACH_OF_NUMBERS = 100.0, 10.0
#: Longest step towards numbers, which are of size 1, also for short records.
LONGEST_TO_NUMBERS = 1.0
#: Longest step to which a searched step size grows where labels are predicted: that of records of norm 10.
LONGEST_GROWN_TO_CLASSES = 10.0


#: Clipping norm by rule ÷ norm of a long record's gradient for a residual of 1: the largest residual of such a record
#: that is not clipped. Residuals of classes are √2 · (1 − probability of the record's own class) for two classes:
#: gradients are clipped below a probability of 0.15. Numbers are of size 1, and their residuals smaller.
RESIDUAL_OF_CLASSES, RESIDUAL_OF_NUMBERS = 1.2, 0.5
#: Shortest way that gradients of norm 1 must move the weights in total: where noise leaves less, the norm is smaller.
SHORTEST_PATH = 50.0
#: Bound √(number of features) of an array ÷ norm of its records: most features are far from their bounds. Records of a
#: schema are as long as their bound, which stands for this many times as much.
DENSE = {True: 4.0, False: 1.5}
#: Multiples of the step size's factor in a search: drawn log-uniformly between the ends, or all three in a grid.
FACTORS = (0.8, 1.0, 1.25)


def shares(decay: Decay, steps: int) -> list[float]:
    """Factor on the step size at each step."""
    return [1.0] * steps if decay == "constant" else [1.0 - t / steps for t in range(steps)]


def scheduled(start: float, decay: Sequence[float]) -> Callable[[torch.optim.Optimizer | None], Table]:
    """Table of step sizes, empty for constant ones. Groups of parameters keep their own sizes, in proportion."""

    def table(optimizer: torch.optim.Optimizer | None) -> Table:
        if min(decay) >= 1:
            return {}
        groups = [] if optimizer is None else optimizer.param_groups
        if len(groups) < 2:
            return {"lr": [start * share for share in decay]}
        return {"lr": [PerGroup(group["lr"] * share for group in groups) for share in decay]}

    return table


def bound_on_norm(n_features: int) -> float:
    """Largest norm of a record of ``n_features`` features, each between -1 and 1."""
    return math.sqrt(max(n_features, 1))


def clipping_norm(gradient: float, path: float, *, of_classes: bool) -> float:
    """Clipping norm by rule.

    Parameters
    ----------
    gradient : float
        Norm of a long record's gradient for a residual of norm 1.
    path : float
        Distance by which steps of clipping norm 1 move the weights in total, along a gradient of norm 1.
    of_classes : bool
        Whether labels are predicted, or numbers.
    """
    whole = (RESIDUAL_OF_CLASSES if of_classes else RESIDUAL_OF_NUMBERS) * gradient
    return min(whole, max(1.0, path / SHORTEST_PATH))


def likely_norm(n_features: int) -> float:
    """Norm of a record for the clipping norm, where only the number of features is known.

    Between 1, one feature alone, and the bound, all features at their ends, by the geometric mean.
    """
    return math.sqrt(bound_on_norm(n_features))


def noise_in_weight(
    in_gradient: float, step: float, decay: Sequence[float], *, average: float = 0.0, momentum: float = 0.0
) -> float:
    """Standard deviation of the noise that a training with SGD adds to each weight, if no curvature takes it back.

    Parameters
    ----------
    in_gradient : float
        Standard deviation of the noise in each entry of a mean gradient.
    step : float
        Initial step size.
    decay : sequence of float
        Factor on the step size at each step.
    average : float
        Share of the last steps over which the released weights are averaged. The mean holds the noise of a step by the
        share of these weights that come after it.
    momentum : float
    """
    steps, last = len(decay), max(1, int(average * len(decay)))
    kept = (share * min(1.0, (steps - t) / last) for t, share in enumerate(decay))
    return step * in_gradient * math.hypot(*kept) / (1.0 - momentum)


def longest_step(bound: float, of_classes: bool) -> float:
    """Longest step for clipping norm 1, towards classes or towards numbers."""
    return REACH_OF_CLASSES / bound if of_classes else min(REACH_OF_NUMBERS / bound, LONGEST_TO_NUMBERS)


def grown(rate: float, n_tune: float, n_final: float, *, max_grad_norm: float, of_classes: bool) -> float:
    """Scale a step size found on few records to many: in proportion, at most to a long step, and never downwards."""
    longest = LONGEST_GROWN_TO_CLASSES if of_classes else LONGEST_TO_NUMBERS
    return min(rate * (n_final / n_tune), max(rate, longest / max_grad_norm))


def noise_allowed(bound: float, of_classes: bool) -> float:
    """Standard deviation of the noise in each weight at the end."""
    return (NOISE_FOR_CLASSES if of_classes else NOISE_FOR_NUMBERS) / math.sqrt(bound)


def unclipped(
    settings: Settings, expected_batch_size: float, decay: Sequence[float], bound: float, *, of_classes: bool
) -> float:
    """Initial step size of SGD for clipping norm 1, without momentum.

    Parameters
    ----------
    settings : Settings
    expected_batch_size : float
    decay : sequence of float
        Factor on the step size at each step.
    bound : float
        Bound on the norm of a record.
    of_classes : bool
        Whether labels are predicted, or numbers.
    """
    per_step = settings.noise * math.hypot(*decay) / expected_batch_size  # noise in a weight for a step size of 1
    return min(noise_allowed(bound, of_classes) / per_step, longest_step(bound, of_classes))


def for_sgd(
    settings: Settings,
    expected_batch_size: float,
    decay: Sequence[float],
    bound: float,
    *,
    of_classes: bool,
    momentum: float = 0.0,
) -> float:
    """Initial step size of SGD, as ``unclipped`` for the clipping norm of the settings, which is known.

    Momentum: in total, each gradient moves the weights by 1 ÷ (1 − momentum) steps.
    """
    assert settings.max_grad_norm is not None
    whole = unclipped(settings, expected_batch_size, decay, bound, of_classes=of_classes)
    return whole * (1.0 - momentum) / settings.max_grad_norm


def for_adam(decay: Sequence[float], bound: float, *, of_classes: bool) -> float:
    """Step size of Adam: where gradients are mostly noise, each step moves a weight by about the step size."""
    return noise_allowed(bound, of_classes) / math.hypot(*decay)


# --- search space -----------------------------------------------------------------------------------------------------


def space(name: str, own: float, *, grid: bool) -> dict[str, Any]:
    """Factors on the step size around the net's own factor, for a search with ``param_distributions="auto"``.

    A derived step size needs no wide search: each candidate alone is a decent model.
    """
    low, middle, high = (own * factor for factor in FACTORS)
    return {name: [low, middle, high] if grid else loguniform(low, high)}
