"""Spaces around what a net is set to: ``param_distributions="auto"``.

What a draw may change is narrow: one candidate alone is a decent model. All constants are here. A step size that is
derived needs no wide search. What no formula knows is width and depth; of those measured
(examples/benchmarks/tuning_pays.py) one more layer is what gains most and loses least. More passes over the records
gain half a point at most, for several times the work.
"""

from __future__ import annotations

from typing import Any

from scipy.stats import loguniform

from .hidden_layers import FEW, MANY

#: Multiples of the factor on the step size: drawn log-uniformly between the ends, or all three in a grid.
FACTORS = (0.8, 1.0, 1.25)

#: One dictionary of a space.
Dictionary = dict[str, Any]


def factors(name: str, own: float, *, grid: bool) -> Dictionary:
    """Factors on the step size around the own one."""
    low, middle, high = (own * factor for factor in FACTORS)
    return {name: [low, middle, high] if grid else loguniform(low, high)}


def layers(own: tuple[int, ...] | None) -> Dictionary:
    """The own hidden layers, and one more as wide as the last. "auto": as few as the records want, or many."""
    if own is None:
        return {"hidden_layer_sizes": ["auto", MANY]}
    return {"hidden_layer_sizes": [own, (*own, own[-1] if own else FEW[-1])]}
