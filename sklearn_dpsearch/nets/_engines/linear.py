"""Engine for nets of linear layers: clipped sums without per-record gradients."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from .._engines import losses, operations
from .._named_tensors import Inputs, map_tensors
from .base import Engine, clip_factors, finite_mask
from .refused_modules import is_altered
from .rounding import norms_from_squares, row_norms

aten = torch.ops.aten

#: Element-wise layers, by exact type (a subclass may compute something else) ↦ (layer, gradient in
#: the outputs, inputs, outputs) ↦ gradient in the inputs.
ELEMENTWISE_LAYERS: dict[type[nn.Module], Callable[[Any, Tensor, Tensor, Tensor], Tensor]] = {
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
#: Number of a layer, its inputs, shape (M, B, in), and the loss's gradient in its outputs, shape
#: (M, B, out).
LayerPass: TypeAlias = tuple[int, Tensor, Tensor]


class LinearEngine(Engine):
    """Engine for nets whose parameters all lie in ``nn.Linear`` layers.

    Each layer is used once, on one vector per record.

    The gradient of a linear layer is an outer product δ⊗a, with norm |δ|·√(|a|² + 1) and clipped
    sum Σ c·δ⊗a: no per-record gradient is ever formed (Goodfellow 2015; Li, Tramèr, Liang &
    Hashimoto 2022, "ghost clipping").

    Back-propagation through a sequence is spelled out. The layers of a graph are watched while it
    runs: every operation acts on each record alone, so the records of several nets go through as
    one batch; only the linear layers tell them apart.

    Parameters
    ----------
    template : Module, optional
        Graph of a module that is no sequence of layers, to run instead.
    """

    def __init__(
        self,
        module: nn.Module,
        criterion: nn.Module,
        device: torch.device,
        template: nn.Module | None = None,
    ) -> None:
        super().__init__(module, criterion, device, template)
        modules = self.template.named_modules()
        self.layers = [(name, layer) for name, layer in modules if type(layer) is nn.Linear]
        numbers = {id(layer): i for i, (_, layer) in enumerate(self.layers)}
        #: Number of each linear layer of a sequence, and any other layer itself; None of a graph.
        self.sequence: list[int | nn.Module] | None = None
        if template is None:
            layers = flattened_layers(self.template)
            self.sequence = [numbers.get(id(layer), layer) for layer in layers]
        for layer in self.template.modules():
            if type(layer) is nn.Linear:
                layer.forward = partial(self._watched, numbers[id(layer)])
            elif getattr(layer, "inplace", False) is True:
                layer.inplace = False
        for parameter in self.template.parameters():
            parameter.requires_grad_(False)
            # not those in training: of no use outside of their layers
            parameter.data.fill_(torch.nan)

    def bind(self, trained: Tensor, frozen: Tensor, sums: Tensor) -> None:
        self._all, piece = sums, torch.zeros_like(trained)  # zero where no layer writes
        self._piece_of_all = piece
        view, trained_names = self.layout.view, self.layout.names(trained=True)
        stored = {name: view(name, trained, frozen) for name in self.layout.entries}
        summed = {name: view(name, piece, piece) for name in trained_names}
        prefixes = [f"{name}." if name else "" for name, _ in self.layers]
        names = [(f"{prefix}weight", f"{prefix}bias") for prefix in prefixes]
        self._weights = [stored[weight] for weight, _ in names]
        self._turned = [weight.mT for weight in self._weights]
        self._biases = [stored[bias].unsqueeze(1) if bias in stored else None for _, bias in names]
        self._pieces = [[summed.get(name) for name in pair] for pair in names]
        # 1 for trained parameters: frozen ones do not count in the clipped norm.
        present = [[view is not None for view in pair] for pair in self._pieces]
        flags = torch.tensor(present, dtype=torch.float64, device=sums.device)
        self._has_weight, self._has_bias = flags.T.unsqueeze(-1).unsqueeze(-1)

    def add_clipped(self, inputs: Inputs, targets: Tensor, bounds: Tensor) -> None:
        if self.sequence is None:
            passes = self._backpropagate_graph(inputs, targets)
        else:
            passes = self._backpropagate_sequence(inputs, targets)
        passes.sort(key=operator.itemgetter(0))
        _, activations, grad_outputs = map(list, zip(*passes))
        along, across = row_norms([*activations, *grad_outputs]).square_().chunk(2)
        # |δ|²·(|a|² + 1), of all layers together: one norm per record over all of its layers.
        squares = torch.addcmul(self._has_bias, along, self._has_weight).mul_(across)
        norms = norms_from_squares(squares)
        finite = finite_mask(norms)
        factors = clip_factors(norms, bounds, finite).unsqueeze(-1)
        if finite is not None:  # a factor of 0 is not enough: 0·∞ is not a number, for all records
            finite = finite.unsqueeze(-1)
            activations = [torch.where(finite, rows, 0.0) for rows in activations]
            grad_outputs = [torch.where(finite, rows, 0.0) for rows in grad_outputs]
        self._add([grad_output * factors for grad_output in grad_outputs], activations)

    def _backpropagate_sequence(self, inputs: Tensor, targets: Tensor) -> list[LayerPass]:
        """Back-propagate through a sequence of layers, without autograd."""
        assert self.sequence is not None
        activations = [inputs]
        for layer in self.sequence:
            forward = partial(self._affine_map, layer) if isinstance(layer, int) else layer.forward
            activations.append(forward(activations[-1]))
        outputs = activations[-1].flatten(0, 1)
        grad_output = losses.loss_gradient(self.criterion, outputs, targets.flatten(0, 1))
        grad_output = grad_output.view_as(activations[-1])
        passes = []
        first = next(k for k, layer in enumerate(self.sequence) if isinstance(layer, int))
        # before the first linear layer nothing is trained
        for k in range(len(self.sequence) - 1, first - 1, -1):
            layer = self.sequence[k]
            if not isinstance(layer, int):
                before, after = activations[k], activations[k + 1]
                grad_output = ELEMENTWISE_LAYERS[type(layer)](layer, grad_output, before, after)
                continue
            passes.append((layer, activations[k], grad_output))
            if k > first:
                grad_output = torch.bmm(grad_output, self._weights[layer])
        return passes

    def _backpropagate_graph(self, inputs: Inputs, targets: Tensor) -> list[LayerPass]:
        """Run a traced graph of linear layers, and back-propagate by autograd."""
        self._nets = len(targets)
        self._passes: list[LayerPass] = []
        outputs = self.template(map_tensors(lambda rows: rows.flatten(0, 1), inputs))
        passes, self._passes = self._passes, []
        grad_output = losses.loss_gradient(self.criterion, outputs.detach(), targets.flatten(0, 1))
        watched = [after for _, _, after in passes]
        grad_outputs = torch.autograd.grad(outputs, watched, grad_output, materialize_grads=True)
        return [(i, a, grad_output) for (i, a, _), grad_output in zip(passes, grad_outputs)]

    def _watched(self, i: int, inputs: Tensor) -> Tensor:
        stacked = inputs.reshape(self._nets, len(inputs) // self._nets, -1)
        outputs = self._affine_map(i, stacked)
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self._passes.append((i, stacked.detach(), outputs))
        return outputs.flatten(0, 1)

    def _add(self, grad_outputs: list[Tensor], activations: list[Tensor]) -> None:
        """Add the sums over records of δ⊗a and of δ.

        Pieces are summed in single precision, and their sums in double.
        """
        records = activations[0].shape[1]
        for start in range(0, records, self.piece):
            part = slice(start, start + self.piece)
            for grad_output, a, (weight, bias) in zip(grad_outputs, activations, self._pieces):
                if records > self.piece:
                    grad_output, a = grad_output[:, part], a[:, part]
                if weight is not None:
                    torch.bmm(grad_output.mT, a, out=weight)
                if bias is not None:
                    torch.sum(grad_output, -2, out=bias)
            self._all.add_(self._piece_of_all)

    def _affine_map(self, i: int, inputs: Tensor) -> Tensor:
        """Apply linear layer ``i`` of every net to inputs of shape (M, B, in)."""
        turned, bias = self._turned[i], self._biases[i]
        return torch.bmm(inputs, turned) if bias is None else torch.baddbmm(bias, inputs, turned)


# --- sequences ------------------------------------------------------------------------------------


def sequence_structure(module: nn.Module) -> Hashable | None:
    """Structure of a sequence of layers without parameters; None for other modules.

    Modules of equal structure differ in their parameters alone.
    """
    kinds = (nn.Sequential, nn.Linear, *ELEMENTWISE_LAYERS)
    if not all(type(layer) in kinds and not is_altered(layer) for layer in module.modules()):
        return None
    layers = flattened_layers(module)
    parameters = [p for layer in layers for p in layer.parameters()]
    distinct = len({id(p) for p in parameters}) == len(parameters) > 0
    if not distinct or any(p.dtype is not torch.float32 for p in parameters):
        return None  # no parameters, used twice, or of another type
    shapes = [[(tuple(p.shape), p.requires_grad) for p in layer.parameters()] for layer in layers]
    signatures = map(operations.layer_signature, layers)
    return tuple((signature, *shape) for signature, shape in zip(signatures, shapes))


def flattened_layers(module: nn.Module) -> list[nn.Module]:
    """Layers of nested ``nn.Sequential`` modules, in order."""
    if type(module) is nn.Sequential:
        return [part for child in module for part in flattened_layers(child)]
    return [module]
