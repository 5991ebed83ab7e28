"""Sequences of linear and element-wise layers, recognised by type: their gradients are spelled out."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import nn

from . import operations
from .refusals import altered

aten = torch.ops.aten

#: Element-wise layers, by exact type (a subclass may compute something else) ↦ (layer, slope, inputs, outputs) ↦ slope
#: in the inputs.
ELEMENTWISE: dict[type[nn.Module], Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.ELU: lambda m, g, x, y: aten.elu_backward(g, m.alpha, 1.0, 1.0, False, x),
    nn.GELU: lambda m, g, x, y: aten.gelu_backward(g, x, approximate=m.approximate),
    nn.Identity: lambda m, g, x, y: g,
    nn.LeakyReLU: lambda m, g, x, y: aten.leaky_relu_backward(g, x, m.negative_slope, False),
    nn.ReLU: lambda m, g, x, y: aten.threshold_backward(g, y, 0),
    nn.SiLU: lambda m, g, x, y: aten.silu_backward(g, x),
    nn.Sigmoid: lambda m, g, x, y: aten.sigmoid_backward(g, y),
    nn.Softplus: lambda m, g, x, y: aten.softplus_backward(g, x, m.beta, m.threshold),
    nn.Tanh: lambda m, g, x, y: aten.tanh_backward(g, y),
}


def structure(module: nn.Module) -> Hashable | None:
    """Structure of a sequence, all but its parameters; None for another module.

    Modules of equal structure differ in their parameters alone.
    """
    known = (nn.Sequential, nn.Linear, *ELEMENTWISE)
    if not all(type(layer) in known and not altered(layer) for layer in module.modules()):
        return None
    layers = layers_of(module)
    own = [p for layer in layers for p in layer.parameters()]
    if not own or len({id(p) for p in own}) < len(own) or any(p.dtype is not torch.float32 for p in own):
        return None  # no parameters, used twice, or of another type
    return tuple(
        (
            type(layer).__name__,
            repr(sorted(operations.attributes(layer).items())),
            *((tuple(p.shape), p.requires_grad) for p in layer.parameters()),
        )
        for layer in layers
    )


def layers_of(module: nn.Module) -> list[nn.Module]:
    """Layers in order, with nested sequences flattened."""
    if type(module) is nn.Sequential:
        return [part for child in module for part in layers_of(child)]
    return [module]
