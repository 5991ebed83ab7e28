"""Modules of the nets for tables: initial parameters, and widths of hidden layers.

A second layer gains with many records and loses with few (docs/learn/net_defaults.md). A search on
a part of the records cannot find this, because the layer does not gain on the part. So a rule
decides, from the public number of records, at no cost in privacy. Beside a linear part with bins a
layer gains or loses with n·μ, the number of records × the signal of a training beside its noise
(docs/learn/boosting.md).
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

#: Accepted arguments.
HiddenLayerSizes = int | Sequence[int] | Literal["auto"]
#: Maker of the activations of hidden layers.
Activation: TypeAlias = Callable[[], nn.Module]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
}
ONE_LAYER = (64,)
TWO_LAYERS = (64, 64)
#: Number of records from which two layers are used.
MANY_RECORDS = 25_000
#: The same for nets for data frames, beside a linear part that has the bins: for classes, and for
#: numbers.
DEEP_PART, DEEP_PART_FOR_NUMBERS = (32,), (128, 64, 32)
MANY_RECORDS_FOR_NUMBERS = 10_000
#: n·μ from which there are hidden layers beside a linear part: for classes, and for numbers.
LEAST_SIGNAL, LEAST_SIGNAL_FOR_NUMBERS = 10_000, 1_000


def zero_linear(fan_in: int, fan_out: int) -> nn.Linear:
    """Linear layer that starts at zero.

    Where the loss is convex, a random start could only harm.
    """
    layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=torch.float32)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def perceptron(
    widths: Sequence[int], activation: Activation, generator: torch.Generator
) -> nn.Sequential:
    """Linear layers with activations, from public initial weights.

    Weights start uniform (Glorot); biases, and a net without hidden layers, start at zero.

    Parameters
    ----------
    widths : sequence of int
        Inputs, outputs of each hidden layer, outputs.
    activation : callable
        Activation of the hidden layers.
    generator : torch.Generator
    """
    if len(widths) == 2:
        return nn.Sequential(zero_linear(*widths))
    parts: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(widths):
        layer = zero_linear(fan_in, fan_out)
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        parts += [layer, activation()]
    return nn.Sequential(*parts[:-1])


class WideAndDeep(nn.Module):
    """Sum of a linear part and hidden layers (Cheng et al. 2016).

    The linear part sees all inputs, the other one the first of them.

    Parameters
    ----------
    wide : Linear
        Linear part. It starts at zero, and has the constants of the sum.
    deep : Sequential
        Part with hidden layers.
    """

    def __init__(self, wide: nn.Linear, deep: nn.Sequential) -> None:
        super().__init__()
        self.wide, self.deep = wide, deep
        self.first = deep[0].in_features

    def forward(self, inputs: Tensor) -> Tensor:
        """Outputs of both parts, added up, shape (n_samples, n_outputs)."""
        return self.wide(inputs) + self.deep(inputs[:, : self.first])


def squared_gradient_of_perceptron(
    deep: Sequence[int], squared_input: float, *, from_linear: bool
) -> float:
    """Expected squared norm of a record's gradient, for a residual of norm 1, at the start.

    At the initial weights, whose variance is 2 ÷ (inputs + outputs); half of all units are active,
    as with ReLU.

    Parameters
    ----------
    deep : sequence of int
        Inputs, outputs of each hidden layer, outputs.
    squared_input : float
        Square of the norm of the record.
    from_linear : bool
        Whether the last layer starts at zero.
    """
    if len(deep) == 2:
        return 0.0
    variances = [2.0 / (fan_in + fan_out) for fan_in, fan_out in itertools.pairwise(deep)]
    squares = [squared_input]  # of each layer's inputs
    for width, variance in zip(deep[1:-1], variances):
        squares.append(0.5 * width * variance * squares[-1])
    if from_linear:
        variances[-1] = 0.0
    total, behind = 0.0, 1.0  # the square of the gradient in each layer's outputs
    for fan_in, variance, square in reversed(list(zip(deep, variances, squares))):
        total += behind * (square + 1.0)
        behind *= 0.5 * fan_in * variance
    return total


def wide_and_deep(
    wide: Sequence[int],
    deep: Sequence[int],
    activation: Activation,
    generator: torch.Generator,
    *,
    from_linear: bool,
) -> nn.Module:
    """Module of a linear part, and of hidden layers if there are any.

    Parameters
    ----------
    wide : sequence of int
        Inputs and outputs of the linear part.
    deep : sequence of int
        Inputs, outputs of each hidden layer, outputs.
    activation : callable
    generator : torch.Generator
    from_linear : bool
        Whether the net starts as the linear model does, the last layer of the deep part at zero.
        One hidden layer gains from that, several layers lose.
    """
    if len(deep) == 2:
        return nn.Sequential(zero_linear(*wide))
    hidden = perceptron(deep, activation, generator)
    if from_linear:
        nn.init.zeros_(hidden[-1].weight)
    return WideAndDeep(zero_linear(*wide), hidden)


# --- widths ---------------------------------------------------------------------------------------


def checked_hidden_layers(widths: Any) -> tuple[int, ...] | None:
    """Checked widths of hidden layers, or None for "auto".

    Raises
    ------
    ValueError
        For arguments other than "auto", a positive integer or a sequence of positive integers.
    """
    if isinstance(widths, str) and widths == "auto":
        return None
    sizes = tuple(widths) if isinstance(widths, Iterable) else (widths,)
    if not all(isinstance(size, numbers.Integral) and int(size) >= 1 for size in sizes):
        raise ValueError(
            f"Found hidden_layer_sizes={widths!r}; integers >= 1 are needed, e.g. (64,), or 'auto'."
        )
    return tuple(int(size) for size in sizes)


def hidden_layers_by_rule(n: float) -> tuple[int, ...]:
    """Widths of a perceptron's hidden layers, by the public number of records."""
    return TWO_LAYERS if n >= MANY_RECORDS else ONE_LAYER


def hidden_layers_beside_bins(n: float, signal: float, *, of_classes: bool) -> tuple[int, ...]:
    """Widths of the hidden layers beside a linear part with bins.

    Parameters
    ----------
    n : float
        Public number of records.
    signal : float
        n·μ.
    of_classes : bool
    """
    if signal < (LEAST_SIGNAL if of_classes else LEAST_SIGNAL_FOR_NUMBERS):
        return ()
    return DEEP_PART if of_classes or n < MANY_RECORDS_FOR_NUMBERS else DEEP_PART_FOR_NUMBERS


def hidden_layer_space(widths: HiddenLayerSizes) -> dict[str, Any]:
    """Search space of hidden layers: the net's own, and one more.

    That one is as wide as the last. For "auto" there are the rule's choice, and many.

    No formula gives width and depth; of the variants measured (examples/benchmarks/perceptrons.py)
    one more layer gains most and loses least. More passes over the records gain at most half a
    point, for several times the work.
    """
    sizes = checked_hidden_layers(widths)
    if sizes is None:
        return {"hidden_layer_sizes": ["auto", TWO_LAYERS]}
    return {"hidden_layer_sizes": [sizes, (*sizes, sizes[-1] if sizes else ONE_LAYER[-1])]}
