"""The engine for graphs whose parameters lie in layers with rules: two passes for all records, then shares by layer."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import nn

from .base import MEMORY_ELSEWHERE, MOST, SingleNetEngine, chunk_size
from .graph import Traced
from .layer_gradients import RULES, Share
from .recurrent import Watch, unrolled

#: Bytes in use at once: on a CPU more would not fit into its caches, and be slower.
MEMORY = {"cpu": 2**24}
#: Bytes with recurrent layers: each step fits into the caches, and its operations are faster on many records.
MEMORY_OF_STEPS = 2**28


class LayeredEngine(SingleNetEngine):
    """Nets of one graph, one at a time, whose parameters lie in layers with a rule in ``shares``, each used once.

    Layers are watched while the graph runs, slopes in their outputs come from autograd, and the only gradients in
    parameters are those of single records. Of recurrent layers, which run step by step, all affine maps are watched.

    Parameters
    ----------
    traced : Traced
        The graph of the module, layered.
    """

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device, traced: Traced) -> None:
        super().__init__(module, criterion, device, traced.runnable)
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE)
        for name, layer in self.template.named_modules():
            if type(layer) not in RULES or not any(parameter.requires_grad for parameter in layer.parameters()):
                continue
            watch = functools.partial(self._watch, name, layer)
            if isinstance(layer, nn.RNNBase):
                layer.forward, room = functools.partial(unrolled, layer, watch), max(room, MEMORY_OF_STEPS)
            else:
                layer.forward = functools.partial(_watched, layer, layer.forward, watch)
        for parameter in self.template.parameters():
            parameter.requires_grad_(False)
        self.most = chunk_size(room, traced.numbers, MOST)

    def shares(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, Share]:
        """Contributions of each record to each trained parameter."""
        self._seen: list[tuple[str, nn.Module, str, torch.Tensor, torch.Tensor]] = []
        loss = self.criterion(self.template(inputs), targets)
        seen, self._seen = self._seen, []
        slopes = torch.autograd.grad(loss, [outputs for *_, outputs in seen], materialize_grads=True)
        found: dict[str, Share] = {}
        for (name, layer, end, inside, _), slope in zip(seen, slopes):
            shares = RULES[type(layer)](layer, inside, slope)
            found |= {f"{name}.{kind}{end}": share for kind, share in shares.items()}
        return {name: share for name, share in found.items() if name in self._sums}

    def _watch(self, name: str, layer: nn.Module, end: str, inputs: torch.Tensor, outputs: torch.Tensor) -> None:
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self._seen.append((name, layer, end, inputs.detach(), outputs))


def _watched(
    layer: nn.Module, forward: Callable[[torch.Tensor], torch.Tensor], watch: Watch, inputs: torch.Tensor
) -> torch.Tensor:
    """Run a layer, and show its inputs and outputs."""
    outputs = forward(inputs)
    if type(layer) is nn.Conv2d and outputs.device.type == "cpu":
        # Pooling, and windows of the next convolution, are nine times faster on channels that lie together.
        outputs = outputs.contiguous(memory_format=torch.channels_last)
    watch("", inputs, outputs)
    return outputs
