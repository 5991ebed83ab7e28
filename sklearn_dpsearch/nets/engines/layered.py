"""The engine for graphs whose parameters lie in layers with rules: two passes for all records, then shares by layer."""

from __future__ import annotations

import functools

import torch
from torch import nn

from ...errors import TrainingError
from .base import Engine, clip_factors, which_finite
from .graph import Traced
from .layer_gradients import RULES, Share
from .rounding import root_of_sum

#: Bytes in use at once: on a CPU more would not fit into its caches, and be slower.
MEMORY = {"cpu": 2**24}
MEMORY_ELSEWHERE = 2**30
#: Fewest and most records at once.
LEAST, MOST = 4, 4096


class LayeredEngine(Engine):
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
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE) // (4 * max(1, traced.numbers))
        self.most = max(LEAST, min(room, MOST))

    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        if len(trained) != 1:
            raise TrainingError(f"Expected one net at a time, got {len(trained)}.")
        for name, parameter in self.template.named_parameters():
            parameter.data = self.layout.view(name, trained[0], frozen[0])
        moving = self.layout.names(trained=True)
        self._sums = {name: self.layout.view(name, sums[0], sums[0]) for name in moving}

    def add_clipped(
        self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor, norms: torch.Tensor | None = None
    ) -> None:
        for start in range(0, inputs.shape[1], self.most):
            part = slice(start, start + self.most)
            self._add(self._shares(inputs[0, part], targets[0, part]), bounds[0, part])

    def _shares(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, Share]:
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

    def _add(self, shares: dict[str, Share], bounds: torch.Tensor) -> None:
        norms = root_of_sum(torch.stack([share.squares() for share in shares.values()]))
        finite = which_finite(norms)
        factors = clip_factors(norms, bounds, finite, None if self.automatic is None else self.automatic[0])
        for name, share in shares.items():
            share.add(self._sums[name], factors, finite, self.piece)
