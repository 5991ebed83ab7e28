"""Search spaces around a net's parameters: ``param_distributions="auto"``.

Spaces are narrow, so that each candidate alone is a decent model. All constants are here. A derived step size needs no
wide search. No formula gives width and depth; of the variants measured (examples/benchmarks/perceptrons.py) one more
layer gains most and loses least. More passes over the records gain at most half a point, for several times the work.
"""

from __future__ import annotations

from typing import Any

from scipy.stats import loguniform

#: Multiples of the step size's factor: drawn log-uniformly between the ends, or all three in a grid.
FACTORS = (0.8, 1.0, 1.25)

#: One dictionary of a space.
Dictionary = dict[str, Any]


def factors(name: str, own: float, *, grid: bool) -> Dictionary:
    """Factors on the step size around the net's own factor."""
    low, middle, high = (own * factor for factor in FACTORS)
    return {name: [low, middle, high] if grid else loguniform(low, high)}
