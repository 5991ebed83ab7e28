"""The engine for graphs whose parameters lie in layers with rules: two passes for all records, then
gradients by layer.

Recurrent layers go step by step: affine maps of inputs and of hidden states, whose gradients in the
outputs autograd gives. A step is a few operations on all records at once, each record alone: as
fast as PyTorch's own loop, which keeps none of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import nn
from torch.nn import functional as F

from ..named_tensors import Inputs
from .base import MEMORY_ELSEWHERE, MOST, SingleNetEngine, records_per_chunk
from .graph import Traced
from .layer_gradients import RULES, PerSampleGradients

States: TypeAlias = tuple[torch.Tensor, ...]
#: (end of the names of a weight and a bias, inputs of their affine map, its outputs), the steps in
#: the first dimension.
Watch: TypeAlias = Callable[[str, torch.Tensor, torch.Tensor], None]
#: Bytes in use at once: on a CPU more would not fit into its caches, and be slower.
MEMORY = {"cpu": 2**24}
#: Bytes with recurrent layers: each step fits into the caches, and its operations are faster on
#: many records.
MEMORY_OF_STEPS = 2**28


class LayeredEngine(SingleNetEngine):
    """Engine for a traced graph whose layers have rules for per-record gradients.

    One net at a time; each layer is used once.

    Layers are watched while the graph runs, grad_outputs in their outputs come from autograd, and
    the only gradients in parameters are those of single records. Of recurrent layers, which run
    step by step, all affine maps are watched.

    Parameters
    ----------
    traced : Traced
        The graph of the module, layered.
    """

    def __init__(
        self, module: nn.Module, criterion: nn.Module, device: torch.device, traced: Traced
    ) -> None:
        super().__init__(module, criterion, device, traced.runnable)
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE)
        for name, layer in self.template.named_modules():
            if type(layer) not in RULES or not any(
                parameter.requires_grad for parameter in layer.parameters()
            ):
                continue
            watch = functools.partial(self._watch, name, layer)
            if isinstance(layer, nn.RNNBase):
                layer.forward, room = (
                    functools.partial(unrolled_forward, layer, watch),
                    max(room, MEMORY_OF_STEPS),
                )
            else:
                layer.forward = functools.partial(_watched_forward, layer, layer.forward, watch)
        for parameter in self.template.parameters():
            parameter.requires_grad_(False)
        self.most = records_per_chunk(room, traced.numbers, MOST)

    def per_sample_gradients(
        self, inputs: Inputs, targets: torch.Tensor
    ) -> dict[str, PerSampleGradients]:
        """Contributions of each record to each trained parameter."""
        self._seen: list[tuple[str, nn.Module, str, torch.Tensor, torch.Tensor]] = []
        loss = self.criterion(self.template(inputs), targets)
        seen, self._seen = self._seen, []
        grad_outputs = torch.autograd.grad(
            loss, [outputs for *_, outputs in seen], materialize_grads=True
        )
        found: dict[str, PerSampleGradients] = {}
        for (name, layer, end, inside, _), grad_output in zip(seen, grad_outputs):
            gradients = RULES[type(layer)](layer, inside, grad_output)
            found |= {f"{name}.{kind}{end}": one for kind, one in gradients.items()}
        return {name: share for name, share in found.items() if name in self._sums}

    def _watch(
        self, name: str, layer: nn.Module, end: str, inputs: torch.Tensor, outputs: torch.Tensor
    ) -> None:
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self._seen.append((name, layer, end, inputs.detach(), outputs))


def _watched_forward(
    layer: nn.Module,
    forward: Callable[[torch.Tensor], torch.Tensor],
    watch: Watch,
    inputs: torch.Tensor,
) -> torch.Tensor:
    """Run a layer, and show its inputs and outputs."""
    outputs = forward(inputs)
    if type(layer) is nn.Conv2d and outputs.device.type == "cpu":
        # Pooling, and windows of the next convolution, are nine times faster on channels that lie
        # together.
        outputs = outputs.contiguous(memory_format=torch.channels_last)
    watch("", inputs, outputs)
    return outputs


# --- recurrent layers -----------------------------------------------------------------------------


def _lstm_step(given: torch.Tensor, recalled: torch.Tensor, states: States) -> States:
    enter, forget, new, leave = recalled.chunk(4, 1)
    cell = torch.sigmoid(forget) * states[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(cell), cell


def _gru_step(given: torch.Tensor, recalled: torch.Tensor, states: States) -> States:
    (reset, update, new), (own_reset, own_update, own_new) = given.chunk(3, 1), recalled.chunk(3, 1)
    new = torch.tanh(new + torch.sigmoid(reset + own_reset) * own_new)
    return (torch.lerp(new, states[0], torch.sigmoid(update + own_update)),)


#: Kind of a layer, as PyTorch names it ↦ one step: (affine map of the inputs, that of the hidden
#: state, states) ↦ states. The second map has the first added to it, except in a GRU.
STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor, States], States]] = {
    "GRU": _gru_step,
    "LSTM": _lstm_step,
    "RNN_RELU": lambda given, recalled, states: (torch.relu(recalled),),
    "RNN_TANH": lambda given, recalled, states: (torch.tanh(recalled),),
}


def unrolled_forward(
    layer: nn.RNNBase,
    watch: Watch,
    inputs: torch.Tensor,
    start: torch.Tensor | States | None = None,
) -> tuple[torch.Tensor, torch.Tensor | States]:
    """Run a recurrent layer step by step: outputs and last states."""
    if start is None:
        records = inputs.shape[0 if layer.batch_first else 1]
        nothing = inputs.new_zeros(
            layer.num_layers * (1 + layer.bidirectional), records, layer.hidden_size
        )
        start = (nothing, nothing) if layer.mode == "LSTM" else nothing
    first = list(zip(*start)) if isinstance(start, tuple) else [(state,) for state in start]
    steps = inputs.transpose(0, 1) if layer.batch_first else inputs
    last: list[States] = []
    for i in range(layer.num_layers):
        if i and layer.dropout:
            steps = F.dropout(steps, layer.dropout)
        found = []
        for end in ("", "_reverse")[: 1 + layer.bidirectional]:
            turned = steps.flip(0) if end else steps
            hidden, states = _run_one_direction(
                layer, f"l{i}{end}", watch, turned, first[len(last)]
            )
            found.append(hidden.flip(0) if end else hidden)
            last.append(states)
        steps = torch.cat(found, -1)
    together = tuple(torch.stack(states) for states in zip(*last))
    return steps.transpose(0, 1) if layer.batch_first else steps, together if len(
        together
    ) > 1 else together[0]


def _run_one_direction(
    layer: nn.RNNBase, name: str, watch: Watch, inputs: torch.Tensor, states: States
) -> tuple[torch.Tensor, States]:
    """Run one direction of a recurrent layer: hidden states, and the last states."""
    into, own = (getattr(layer, f"weight_{end}_{name}") for end in ("ih", "hh"))
    nothing = into.new_zeros(len(into))
    given = F.linear(inputs, into, getattr(layer, f"bias_ih_{name}", nothing))
    recalled = getattr(layer, f"bias_hh_{name}", nothing).expand(given.shape)
    if layer.mode == "GRU":
        recalled = recalled.clone().requires_grad_()
    else:  # their sum has the gradients of both
        recalled = given = given + recalled
    if not given.requires_grad:
        given.requires_grad_()
    hidden = [states[0]]
    for one, other in zip(given, recalled):
        states = STEPS[layer.mode](one, torch.addmm(other, states[0], own.t()), states)
        hidden.append(states[0])
    outputs = torch.stack(hidden)
    watch(f"_ih_{name}", inputs, given)
    watch(f"_hh_{name}", outputs[:-1], recalled)
    return outputs[1:], states
