"""Spaces around what a net is set to: ``param_distributions="auto"``.

What a draw may change is narrow, and half of the draws keep what is set: one candidate alone is a decent model. All
constants are here. A step size that is derived needs no wide search; what no formula knows is width and depth, and how
many passes are made over the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import loguniform

#: Multiples of the factor on the step size: drawn log-uniformly between the ends, or all three in a grid.
FACTORS = (0.5, 1.0, 2.0)
#: Hidden layers beside those that are set.
HIDDEN_LAYERS: tuple[tuple[int, ...], ...] = ((), (64,), (256,))
#: Multiples of ``max_epochs`` and of ``sample_rate`` (or ``batch_size``) beside what is set: as many steps, on larger
#: batches. A grid leaves them out.
PASSES: tuple[tuple[float, float], ...] = ((2.0, 2.0),)

#: One dictionary of a space.
Dictionary = dict[str, Any]


def factors(name: str, own: float, *, grid: bool) -> Dictionary:
    """Factors on the step size around the own one."""
    low, middle, high = (own * factor for factor in FACTORS)
    return {name: [low, middle, high] if grid else loguniform(low, high)}


def layers(own: Sequence[int], *, grid: bool) -> Dictionary:
    """Widths and depths; without a grid half of the draws keep the own ones."""
    set_to = tuple(own)
    others = [sizes for sizes in HIDDEN_LAYERS if sizes != set_to]
    return {"hidden_layer_sizes": [set_to] * (1 if grid else len(others)) + others}


def passes(net: Any, *, grid: bool) -> list[Dictionary]:
    """Dictionaries with passes over the records; without a grid half of the draws keep the own ones.

    Where the number of steps is set, or the noise, passes would change something else than they say.
    """
    rate = "sample_rate" if net.sample_rate is not None else "batch_size"
    own = getattr(net, rate)
    if grid or net.max_steps is not None or net.noise_multiplier is not None or own is None:
        return [{}]
    most = 1.0 if rate == "sample_rate" else float(net.public_n or own)
    others = [
        {"max_epochs": [net.max_epochs * more], rate: [own * larger]} for more, larger in PASSES if own * larger <= most
    ]
    return [{} for _ in others] + others if others else [{}]


def joined(first: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[Dictionary]:
    """What every dictionary has, and what differs between them."""
    return [{**first, **other} for other in others]
