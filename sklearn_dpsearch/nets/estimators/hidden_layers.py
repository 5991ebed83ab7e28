"""Hidden layers: widths as given, or chosen from the public number of records and the noise.

A second layer gains with many records and loses with few (docs/learn/net_defaults.md). A search on a part of the
records cannot find this, because the layer does not gain on the part. So a rule decides, at no cost in privacy. Beside
a linear part with bins a layer gains or loses with n·μ, the number of records × the signal of a training beside its
noise (docs/learn/boosting.md).
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from torch import nn

#: Accepted arguments.
HiddenLayerSizes = int | Sequence[int] | Literal["auto"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
}
FEW = (64,)
MANY = (64, 64)
#: Number of records from which two layers are used.
FROM = 25_000
#: The same for nets for data frames, beside a linear part that has the bins: for classes, and for numbers.
BESIDE_BINS, BESIDE_BINS_FOR_NUMBERS = (32,), (128, 64, 32)
FROM_FOR_NUMBERS = 10_000
#: n·μ from which there are hidden layers beside a linear part: for classes, and for numbers.
SUPPORTED, SUPPORTED_FOR_NUMBERS = 10_000, 1_000


def checked(given: Any) -> tuple[int, ...] | None:
    """Checked widths, or None for "auto".

    Raises
    ------
    ValueError
        For arguments other than "auto", a positive integer or a sequence of positive integers.
    """
    if isinstance(given, str) and given == "auto":
        return None
    sizes = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(size, numbers.Integral) and int(size) >= 1 for size in sizes):
        raise ValueError(f"Found hidden_layer_sizes={given!r}; integers >= 1 are needed, e.g. (64,), or 'auto'.")
    return tuple(int(size) for size in sizes)


def by_rule(n: float) -> tuple[int, ...]:
    """Widths of a perceptron's hidden layers for ``n`` records, a public number."""
    return MANY if n >= FROM else FEW


def beside_bins(n: float, signal: float, *, of_classes: bool) -> tuple[int, ...]:
    """Widths of the hidden layers beside a linear part with bins.

    Parameters
    ----------
    n : float
        Public number of records.
    signal : float
        n·μ.
    of_classes : bool
    """
    if signal < (SUPPORTED if of_classes else SUPPORTED_FOR_NUMBERS):
        return ()
    return BESIDE_BINS if of_classes or n < FROM_FOR_NUMBERS else BESIDE_BINS_FOR_NUMBERS


def space(given: HiddenLayerSizes) -> dict[str, Any]:
    """Search space: the net's own hidden layers, and one more as wide as the last. "auto": the rule's choice, or many.

    No formula gives width and depth; of the variants measured (examples/benchmarks/perceptrons.py) one more layer gains
    most and loses least. More passes over the records gain at most half a point, for several times the work.
    """
    own = checked(given)
    if own is None:
        return {"hidden_layer_sizes": ["auto", MANY]}
    return {"hidden_layer_sizes": [own, (*own, own[-1] if own else FEW[-1])]}
