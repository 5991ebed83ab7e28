"""Engine for any code: the gradient of one record, for many at once by ``torch.func.vmap``.

Code inside of ``vmap`` sees a batch of one record, and cannot see the others; code that branches on the value of a
record raises.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from ...errors import TrainingError
from .base import Engine, clip_factors, which_finite
from .rounding import add_products, norms_of, root_of_sum

#: Bytes of gradients held at once: on a CPU more would not fit into its caches, and be slower.
MEMORY = {"cpu": 2**23}
MEMORY_ELSEWHERE = 2**30
#: Records at once: with fewer, even large products wait for each other; with more, activations need much memory.
LEAST = 4
MOST = {"cpu": 256}
MOST_ELSEWHERE = 4096


class VmapEngine(Engine):
    """Any net, one at a time: gradients of single records, clipped and summed.

    Parameters
    ----------
    template : Module, optional
        Graph of the module, to run instead.
    own_code : bool
        Whether module or criterion run unknown code. Each call then gets fresh copies: what a module keeps of some
        records is gone before the next ones.
    """

    def __init__(
        self,
        module: nn.Module,
        criterion: nn.Module,
        device: torch.device,
        template: nn.Module | None = None,
        own_code: bool = True,
    ) -> None:
        super().__init__(module, criterion, device, template)
        self.own_code = own_code
        for layer in self.template.modules():
            if type(layer) is nn.GRU or type(layer) is nn.RNN:
                vars(layer)["forward"] = _Started(type(layer), layer)
        for parameter in self.template.parameters():
            parameter.requires_grad_(False)  # gradients come from torch.func alone, and none is left on a module
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE) // (4 * max(1, self.layout.trained))
        self.most = max(LEAST, min(room, MOST.get(device.type, MOST_ELSEWHERE)))

    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        if len(trained) != 1:
            raise TrainingError(f"Expected one net at a time, got {len(trained)}.")
        there = dict(self.template.named_parameters())
        views = {name: self.layout.view(name, trained[0], frozen[0]) for name in self.layout.entries if name in there}
        moving = [name for name in self.layout.names(trained=True) if name in there]
        self._trained = {name: views[name] for name in moving}
        self._frozen = {name: view for name, view in views.items() if name not in self._trained}
        self._sums = {name: self.layout.view(name, sums[0], sums[0]).view(1, 1, -1) for name in moving}

    def add_clipped(
        self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor, norms: torch.Tensor | None = None
    ) -> None:
        for start in range(0, inputs.shape[1], self.most):
            part = slice(start, start + self.most)
            self._add(self.gradients(inputs[0, part], targets[0, part]), bounds[0, part])

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradient of every record in every trained parameter, shapes (B, size)."""
        module, criterion = self._fresh()
        frozen = self._frozen

        def loss(trained: Mapping[str, torch.Tensor], record: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            outputs = functional_call(module, {**trained, **frozen}, (record.unsqueeze(0),))  # a batch of one
            found: torch.Tensor = criterion(outputs, target.unsqueeze(0)).sum()
            return found

        # "different": each record has its own dropout mask, as in a batch.
        found = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")(self._trained, inputs, targets)
        return {name: gradient.detach().flatten(1) for name, gradient in found.items()}

    def _fresh(self) -> tuple[nn.Module, nn.Module]:
        """Copy module and criterion in their initial state, with the given parameters."""
        if not self.own_code:
            return self.template, self.criterion
        memo: dict[int, Any] = {id(p): p for p in self.template.parameters()}
        return copy.deepcopy(self.template, memo), copy.deepcopy(self.criterion)

    def _add(self, gradients: dict[str, torch.Tensor], bounds: torch.Tensor) -> None:
        norms = root_of_sum(norms_of(gradients.values()).square_())
        finite = which_finite(norms)
        factors = clip_factors(norms, bounds, finite, None if self.automatic is None else self.automatic[0])
        for name, gradient in gradients.items():
            if finite is not None:
                gradient = torch.where(finite.unsqueeze(-1), gradient, 0.0)
            add_products(self._sums[name], factors[None, :, None], gradient[None], self.piece)


class _Started:
    """``forward`` of a recurrent layer with an initial state per record (``vmap`` cannot write into a shared one).

    Parameters
    ----------
    kind : type
    layer : Module
    """

    def __init__(self, kind: type[nn.Module], layer: nn.RNNBase) -> None:
        self.kind, self.layer = kind, layer

    def __call__(self, inputs: torch.Tensor, state: torch.Tensor | None = None) -> Any:
        layer = self.layer
        if state is None:
            records = (inputs.shape[0 if layer.batch_first else 1],) if inputs.dim() == 3 else ()
            layers = layer.num_layers * (1 + layer.bidirectional)
            state = inputs.new_zeros((layers, *records, layer.hidden_size))
        return self.kind.forward(layer, inputs, state)
