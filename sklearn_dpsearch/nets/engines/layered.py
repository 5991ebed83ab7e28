"""The engine for graphs whose parameters lie in layers with rules: two passes for all records, then shares by layer."""

from __future__ import annotations

import functools

import torch
from torch import nn

from .base import MEMORY_ELSEWHERE, MOST, SingleNetEngine, chunk_size
from .graph import Traced
from .layer_gradients import RULES, Share

#: Bytes in use at once: on a CPU more would not fit into its caches, and be slower.
MEMORY = {"cpu": 2**24}


class LayeredEngine(SingleNetEngine):
    """Nets of one graph, one at a time, whose parameters lie in layers with a rule in ``shares``, each used once.

    Layers are watched while the graph runs, slopes in their outputs come from autograd, and the only gradients in
    parameters are those of single records.

    Parameters
    ----------
    traced : Traced
        The graph of the module, layered.
    """

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device, traced: Traced) -> None:
        super().__init__(module, criterion, device, traced.runnable)
        self.layers = [
            (name, layer)
            for name, layer in self.template.named_modules()
            if type(layer) in RULES and any(parameter.requires_grad for parameter in layer.parameters())
        ]
        for i, (_, layer) in enumerate(self.layers):
            layer.forward = functools.partial(self._watched, i, layer.forward)
        for parameter in self.template.parameters():
            parameter.requires_grad_(False)
        self.most = chunk_size(MEMORY.get(device.type, MEMORY_ELSEWHERE), traced.numbers, MOST)

    def shares(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, Share]:
        """Contributions of each record to each trained parameter."""
        self._seen: list[tuple[int, torch.Tensor, torch.Tensor]] = []
        loss = self.criterion(self.template(inputs), targets)
        seen, self._seen = self._seen, []
        slopes = torch.autograd.grad(loss, [outputs for _, _, outputs in seen], materialize_grads=True)
        found: dict[str, Share] = {}
        for (i, inside, _), slope in zip(seen, slopes):
            name, layer = self.layers[i]
            shares = RULES[type(layer)](layer, inside, slope)
            found |= {f"{name}.{end}" if name else end: share for end, share in shares.items()}
        return {name: share for name, share in found.items() if name in self._sums}

    def _watched(self, i: int, forward: functools.partial[torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
        outputs = forward(inputs)
        if type(self.layers[i][1]) is nn.Conv2d and outputs.device.type == "cpu":
            # Pooling, and windows of the next convolution, are nine times faster on channels that lie together.
            outputs = outputs.contiguous(memory_format=torch.channels_last)
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self._seen.append((i, inputs.detach(), outputs))
        return outputs
