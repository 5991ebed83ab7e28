"""Plain nets: linear and element-wise layers in sequence, and a sum of losses, recognised by type without a probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ...errors import TrainingError
from .refusals import touched

aten = torch.ops.aten

Backward = Callable[[nn.Module, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

#: Element-wise layers: the attributes that define them, and (layer, slope, inputs, outputs) ↦ slope in the inputs.
ELEMENTWISE: dict[type[nn.Module], tuple[tuple[str, ...], Backward]] = {
    nn.ELU: (("alpha",), lambda m, g, x, y: aten.elu_backward(g, m.alpha, 1.0, 1.0, False, x)),
    nn.GELU: (("approximate",), lambda m, g, x, y: aten.gelu_backward(g, x, approximate=m.approximate)),
    nn.Identity: ((), lambda m, g, x, y: g),
    nn.LeakyReLU: (("negative_slope",), lambda m, g, x, y: aten.leaky_relu_backward(g, x, m.negative_slope, False)),
    nn.ReLU: ((), lambda m, g, x, y: aten.threshold_backward(g, y, 0)),
    nn.SiLU: ((), lambda m, g, x, y: aten.silu_backward(g, x)),
    nn.Sigmoid: ((), lambda m, g, x, y: aten.sigmoid_backward(g, y)),
    nn.Softplus: (("beta", "threshold"), lambda m, g, x, y: aten.softplus_backward(g, x, m.beta, m.threshold)),
    nn.Tanh: ((), lambda m, g, x, y: aten.tanh_backward(g, y)),
}
#: Sums of one loss per record, and the attributes that define them.
LOSSES: dict[type[nn.Module], tuple[str, ...]] = {
    nn.BCEWithLogitsLoss: (),
    nn.CrossEntropyLoss: ("label_smoothing", "ignore_index"),
    nn.HuberLoss: ("delta",),
    nn.L1Loss: (),
    nn.MSELoss: (),
    nn.SmoothL1Loss: ("beta",),
}


#: Classes up to which ``_softmax`` runs over the other axis.
SHORT = 32


def structure(module: nn.Module, criterion: nn.Module) -> tuple[Any, ...] | None:
    """Structure of a plain net, all but its parameters; None if the net is not plain.

    Nets of equal structure differ in their parameters alone.
    """
    loss = type(criterion)
    # By exact type, here and below: a subclass may compute something else.
    if loss not in LOSSES or criterion.reduction != "sum" or touched(criterion) or not _weighs_classes(criterion):
        return None
    if not _in_sequence(module):
        return None
    parameters = [p for p in module.parameters() if p.dtype is torch.float32]
    linear = [p for part in layers_of(module) if type(part) is nn.Linear for p in part.parameters()]
    if not linear or len(parameters) != len(linear):  # none at all, another type, used twice
        return None
    found = [_structure_of(part) for part in layers_of(module)]
    weights = (weight.detach().cpu().numpy().tobytes() for weight in criterion.buffers())
    return (*found, loss, *(getattr(criterion, name) for name in LOSSES[loss]), *weights)


def _weighs_classes(criterion: nn.Module) -> bool:
    """Return whether all that a criterion holds, if anything, is one weight per class."""
    held = [*criterion.buffers(), *criterion.parameters()]
    return not held or (type(criterion) is nn.CrossEntropyLoss and len(held) == 1 and criterion.weight is held[0])


def layers_of(module: nn.Module) -> list[nn.Module]:
    """Layers in order, with nested sequences flattened."""
    if type(module) is nn.Sequential:
        return [part for child in module for part in layers_of(child)]
    return [module]


def forward(layer: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Apply an element-wise layer, never in place."""
    if type(layer) is nn.ReLU:
        return torch.relu(inputs)
    if getattr(layer, "inplace", False):
        inputs = inputs.clone()
    outputs: torch.Tensor = layer(inputs)
    return outputs


def backward(layer: nn.Module, slope: torch.Tensor, inputs: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
    """Slope of the loss in the inputs of an element-wise layer."""
    return ELEMENTWISE[type(layer)][1](layer, slope, inputs, outputs)


def loss_slope(criterion: nn.Module, predicted: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Slope of the sum of all records' losses in the predictions, shape (M, B, outputs)."""
    classes = type(criterion) is nn.CrossEntropyLoss
    if classes != (targets.dim() == predicted.dim() - 1) or (not classes and targets.shape != predicted.shape):
        needed = predicted.shape[2:-1] if classes else predicted.shape[2:]  # of a record: batch sizes are secret
        raise TrainingError(
            f"Expected targets of shape {tuple(needed)} per record for {type(criterion).__name__}, got "
            f"{tuple(targets.shape[2:])}: give the net as many outputs as y has columns."
        )
    if getattr(criterion, "weight", None) is not None and criterion.weight.shape != predicted.shape[-1:]:
        raise TrainingError(
            f"Found {len(criterion.weight)} weights of classes and {predicted.shape[-1]} outputs; one for each is "
            "needed."
        )
    # The two most frequent losses have formulas: autograd would take longer than the rest of the step.
    if classes and criterion.label_smoothing == 0 and criterion.ignore_index == -100:
        slope = _softmax(predicted)
        places = targets.unsqueeze(-1)
        slope = slope.scatter_add_(-1, places, slope.new_full((1, 1, 1), -1.0).expand(places.shape))
        return slope if criterion.weight is None else slope * criterion.weight[places]
    if type(criterion) is nn.MSELoss:
        return (predicted - targets) * 2.0
    leaf = predicted.requires_grad_()
    loss = criterion(leaf.flatten(0, 1), targets.flatten(0, 1))
    return torch.autograd.grad(loss, leaf)[0]


def _softmax(logits: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis. If that axis is short, PyTorch is ten times faster over another one."""
    if logits.shape[-1] > SHORT:
        return torch.softmax(logits, dim=-1)
    return torch.softmax(logits.mT.contiguous(), dim=-2).mT


def _in_sequence(module: nn.Module) -> bool:
    known = (nn.Sequential, nn.Linear, *ELEMENTWISE)
    return all(type(layer) in known and not touched(layer) for layer in module.modules())


def _structure_of(part: nn.Module) -> tuple[Any, ...]:
    if type(part) is nn.Linear:
        flags = tuple(None if p is None else p.requires_grad for p in (part.weight, part.bias))
        return (nn.Linear, part.in_features, part.out_features, *flags)
    return (type(part), *(getattr(part, name) for name in ELEMENTWISE[type(part)][0]))
