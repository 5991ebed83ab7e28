"""Modules of the nets for tables, with their initial parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from ..randomness import Seed, sequence


def generator_of(random_state: Seed) -> torch.Generator:
    """Generator of initial parameters, which are public."""
    return torch.Generator().manual_seed(int(sequence(random_state).generate_state(1, np.uint64)[0] >> 1))


def zero(fan_in: int, fan_out: int) -> nn.Linear:
    """Linear layer that starts at zero: where the loss is convex, a random start could only harm."""
    layer = nn.utils.skip_init(nn.Linear, fan_in, fan_out, dtype=torch.float32)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def sequential(widths: Sequence[int], activation: Callable[[], nn.Module], generator: torch.Generator) -> nn.Sequential:
    """Linear layers in sequence.

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
        return nn.Sequential(zero(*widths))
    parts: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(widths):
        layer = zero(fan_in, fan_out)
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        parts += [layer, activation()]
    return nn.Sequential(*parts[:-1])


class WideAndDeep(nn.Module):
    """Sum of a linear part on all inputs and a part with hidden layers on the first ones (Cheng et al. 2016).

    Parameters
    ----------
    wide : Linear
        Linear part. It starts at zero, and has the constants of the sum.
    deep : Sequential
        Part with hidden layers.
    """

    def __init__(self, wide: nn.Linear, deep: nn.Sequential) -> None:
        super().__init__()
        self.wide = wide
        self.deep = deep
        first = deep[0]
        assert isinstance(first, nn.Linear)
        self.first = first.in_features

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs of shape (n_samples, n_outputs)."""
        outputs: torch.Tensor = self.wide(inputs) + self.deep(inputs[:, : self.first])
        return outputs


def squared_gradient_at_start(deep: Sequence[int], squared_input: float, *, from_linear: bool) -> float:
    """Expected square of the norm of a record's gradient in a part with hidden layers, for a residual of norm 1.

    At the initial weights, whose variance is 2 ÷ (inputs + outputs); half of all units are active, as with ReLU.

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
    found, behind = 0.0, 1.0  # the square of the gradient in each layer's outputs
    for fan_in, variance, square in reversed(list(zip(deep, variances, squares))):
        found += behind * (square + 1.0)
        behind *= 0.5 * fan_in * variance
    return found


def linear_part(module: nn.Module) -> nn.Linear:
    """Linear part of a module of ``wide_and_deep``."""
    part = module.wide if isinstance(module, WideAndDeep) else next(module.children())
    assert isinstance(part, nn.Linear)
    return part


def wide_and_deep(
    wide: Sequence[int],
    deep: Sequence[int],
    activation: Callable[[], nn.Module],
    generator: torch.Generator,
    *,
    from_linear: bool,
) -> nn.Module:
    """Linear part plus a part with hidden layers; the linear part alone if there are none.

    Parameters
    ----------
    wide : sequence of int
        Inputs and outputs of the linear part.
    deep : sequence of int
        Inputs, outputs of each hidden layer, outputs.
    activation : callable
    generator : torch.Generator
    from_linear : bool
        Whether the net starts as the linear model does, the last layer of the deep part at zero. One hidden layer gains
        from that, several layers lose.
    """
    if len(deep) == 2:
        return nn.Sequential(zero(*wide))
    hidden = sequential(deep, activation, generator)
    if from_linear:
        nn.init.zeros_(hidden[-1].weight)
    return WideAndDeep(zero(*wide), hidden)
