"""Engine for graphs of layers with rules: two passes for all records, then gradients by layer.

Recurrent layers go step by step: affine maps of inputs and of hidden states, whose gradients in the
outputs autograd gives. A step is a few operations on all records at once, each record alone: as
fast as PyTorch's own loop, which keeps none of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._named_tensors import Inputs
from .base import MEMORY_ELSEWHERE, MOST_RECORDS, SingleNetEngine, records_per_chunk
from .graph import Traced
from .layer_gradients import RULES, LayerGradients

States: TypeAlias = tuple[Tensor, ...]
#: (end of the names of a weight and a bias, inputs of their affine map, its outputs), the steps in
#: the first dimension.
Watch: TypeAlias = Callable[[str, Tensor, Tensor], None]
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
            trained = any(parameter.requires_grad for parameter in layer.parameters())
            if type(layer) not in RULES or not trained:
                continue
            watch = functools.partial(self._watch, name, layer)
            if isinstance(layer, nn.RNNBase):
                layer.forward = functools.partial(unrolled_forward, layer, watch)
                room = max(room, MEMORY_OF_STEPS)
            else:
                layer.forward = functools.partial(_watched_forward, layer, layer.forward, watch)
        self.template.requires_grad_(False)
        self.chunk_size = records_per_chunk(room, traced.numbers, MOST_RECORDS)

    def per_sample_gradients(self, inputs: Inputs, targets: Tensor) -> LayerGradients:
        """Contributions of each record to each trained parameter."""
        self._calls: list[tuple[str, nn.Module, str, Tensor, Tensor]] = []
        loss = self.criterion(self.template(inputs), targets)
        calls, self._calls = self._calls, []
        outputs = [output for *_, output in calls]
        grad_outputs = torch.autograd.grad(loss, outputs, materialize_grads=True)
        gradients: LayerGradients = {}
        for (name, layer, end, inside, _), grad_output in zip(calls, grad_outputs):
            of_layer = RULES[type(layer)](layer, inside, grad_output)
            gradients |= {f"{name}.{kind}{end}": gradient for kind, gradient in of_layer.items()}
        return {name: gradient for name, gradient in gradients.items() if name in self._sums}

    def _watch(
        self, name: str, layer: nn.Module, end: str, inputs: Tensor, outputs: Tensor
    ) -> None:
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self._calls.append((name, layer, end, inputs.detach(), outputs))


def _watched_forward(
    layer: nn.Module, forward: Callable[[Tensor], Tensor], watch: Watch, inputs: Tensor
) -> Tensor:
    """Run a layer, and show its inputs and outputs."""
    outputs = forward(inputs)
    if type(layer) is nn.Conv2d and outputs.device.type == "cpu":
        # Pooling, and windows of the next convolution, are nine times faster on channels that lie
        # together.
        outputs = outputs.contiguous(memory_format=torch.channels_last)
    watch("", inputs, outputs)
    return outputs


# --- recurrent layers -----------------------------------------------------------------------------


def _lstm_step(input_gates: Tensor, hidden_gates: Tensor, states: States) -> States:
    in_gate, forget_gate, cell_gate, out_gate = hidden_gates.chunk(4, 1)
    cell = torch.sigmoid(forget_gate) * states[1] + torch.sigmoid(in_gate) * torch.tanh(cell_gate)
    return torch.sigmoid(out_gate) * torch.tanh(cell), cell


def _gru_step(input_gates: Tensor, hidden_gates: Tensor, states: States) -> States:
    reset_i, update_i, new_i = input_gates.chunk(3, 1)
    reset_h, update_h, new_h = hidden_gates.chunk(3, 1)
    new = torch.tanh(new_i + torch.sigmoid(reset_i + reset_h) * new_h)
    return (torch.lerp(new, states[0], torch.sigmoid(update_i + update_h)),)


#: Kind of a layer, as PyTorch names it ↦ one step: (affine map of the inputs, that of the hidden
#: state, states) ↦ states. The second map has the first added to it, except in a GRU.
STEPS: dict[str, Callable[[Tensor, Tensor, States], States]] = {
    "GRU": _gru_step,
    "LSTM": _lstm_step,
    "RNN_RELU": lambda input_gates, hidden_gates, states: (torch.relu(hidden_gates),),
    "RNN_TANH": lambda input_gates, hidden_gates, states: (torch.tanh(hidden_gates),),
}


def unrolled_forward(
    layer: nn.RNNBase, watch: Watch, input: Tensor, hx: Tensor | States | None = None
) -> tuple[Tensor, Tensor | States]:
    """Run a recurrent layer step by step: outputs and last states."""
    if hx is None:
        records = input.shape[0 if layer.batch_first else 1]
        n_states = layer.num_layers * (1 + layer.bidirectional)
        zeros = input.new_zeros(n_states, records, layer.hidden_size)
        hx = (zeros, zeros) if layer.mode == "LSTM" else zeros
    first = list(zip(*hx)) if isinstance(hx, tuple) else [(state,) for state in hx]
    steps = input.transpose(0, 1) if layer.batch_first else input
    last: list[States] = []
    for i in range(layer.num_layers):
        if i and layer.dropout:
            steps = F.dropout(steps, layer.dropout)
        outputs = []
        for end in ("", "_reverse")[: 1 + layer.bidirectional]:
            sequence = steps.flip(0) if end else steps
            name, hidden_0 = f"l{i}{end}", first[len(last)]
            hidden, states = _run_one_direction(layer, name, watch, sequence, hidden_0)
            outputs.append(hidden.flip(0) if end else hidden)
            last.append(states)
        steps = torch.cat(outputs, -1)
    h_n = tuple(torch.stack(states) for states in zip(*last))
    output = steps.transpose(0, 1) if layer.batch_first else steps
    return output, h_n if len(h_n) > 1 else h_n[0]


def _run_one_direction(
    layer: nn.RNNBase, name: str, watch: Watch, input: Tensor, states: States
) -> tuple[Tensor, States]:
    """Run one direction of a recurrent layer: hidden states, and the last states."""
    weight_ih, weight_hh = (getattr(layer, f"weight_{end}_{name}") for end in ("ih", "hh"))
    no_bias = weight_ih.new_zeros(len(weight_ih))
    input_gates = F.linear(input, weight_ih, getattr(layer, f"bias_ih_{name}", no_bias))
    hidden_gates = getattr(layer, f"bias_hh_{name}", no_bias).expand(input_gates.shape)
    if layer.mode == "GRU":
        hidden_gates = hidden_gates.clone().requires_grad_()
    else:  # their sum has the gradients of both
        hidden_gates = input_gates = input_gates + hidden_gates
    if not input_gates.requires_grad:
        input_gates.requires_grad_()
    hidden = [states[0]]
    step = STEPS[layer.mode]
    for input_gate, hidden_gate in zip(input_gates, hidden_gates):
        states = step(input_gate, torch.addmm(hidden_gate, states[0], weight_hh.t()), states)
        hidden.append(states[0])
    outputs = torch.stack(hidden)
    watch(f"_ih_{name}", input, input_gates)
    watch(f"_hh_{name}", outputs[:-1], hidden_gates)
    return outputs[1:], states
