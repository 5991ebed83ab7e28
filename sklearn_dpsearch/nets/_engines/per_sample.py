"""Engines that form the gradient of each record: of any code by ``torch.func.vmap``, or Opacus's.

Code inside of ``vmap`` sees a batch of one record, and cannot see the others; code that branches on
the value of a record raises.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ...errors import TrainingError
from ...privacy import LeakingEstimatorError
from .._named_tensors import Inputs, map_tensors, net_name
from .base import MEMORY_ELSEWHERE, MOST_RECORDS, SingleNetEngine, records_per_chunk
from .layer_gradients import DenseGradients, LayerGradients

#: Bytes of gradients held at once, under ``vmap`` and by Opacus: under ``vmap`` more would not fit
#: into the caches of a CPU, and be slower.
MEMORY, MEMORY_OF_OPACUS = {"cpu": 2**23}, {"cpu": 2**26}
#: Records at once: with more, activations need much memory.
DEVICE_RECORDS = {"cpu": 256}


class VmapEngine(SingleNetEngine):
    """Engine for any net: gradients of single records under ``torch.func.vmap``.

    Parameters
    ----------
    template : Module, optional
        Graph of the module, to run instead.
    own_code : bool
        Whether module or criterion run unknown code. Each call then gets fresh copies: what a
        module keeps of some records is gone before the next ones.
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
                # copied with its layer
                layer.forward = functools.partial(_recurrent_forward_with_states, layer)
        # gradients come from torch.func alone, and none is left on a module
        self.template.requires_grad_(False)
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE)
        limit = DEVICE_RECORDS.get(device.type, MOST_RECORDS)
        self.chunk_size = records_per_chunk(room, self.layout.trained, limit)

    def per_sample_gradients(self, inputs: Inputs, targets: Tensor) -> LayerGradients:
        module, criterion = self._fresh()

        def loss(trained: Mapping[str, Tensor], record: Inputs, target: Tensor) -> Tensor:
            alone = map_tensors(lambda part: part.unsqueeze(0), record)  # a batch of one
            return criterion(functional_call(module, trained, (alone,)), target.unsqueeze(0)).sum()

        trained = {name: p for name, p in self.template.named_parameters() if name in self._sums}
        # "different": each record has its own dropout mask, as in a batch.
        of_records = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")
        gradients = of_records(trained, inputs, targets)
        return {name: DenseGradients(gradient.detach()) for name, gradient in gradients.items()}

    def _fresh(self) -> tuple[nn.Module, nn.Module]:
        """Module and criterion in their initial state: copies, or themselves without own code.

        A copy of the module shares its parameters.
        """
        if not self.own_code:
            return self.template, self.criterion
        memo: dict[int, Any] = {id(p): p for p in self.template.parameters()}
        return copy.deepcopy(self.template, memo), copy.deepcopy(self.criterion)


def _recurrent_forward_with_states(
    layer: nn.RNNBase, inputs: Tensor, state: Tensor | None = None
) -> Any:
    """Run a recurrent layer with initial states of its own per record.

    ``vmap`` cannot write into a shared one.
    """
    if state is None:
        records = (inputs.shape[0 if layer.batch_first else 1],) if inputs.dim() == 3 else ()
        layers = layer.num_layers * (1 + layer.bidirectional)
        state = inputs.new_zeros((layers, *records, layer.hidden_size))
    return type(layer).forward(layer, inputs, state)


# --- Opacus ---------------------------------------------------------------------------------------


class OpacusEngine(SingleNetEngine):
    """Engine for nets that Opacus accepts, with Opacus's per-sample gradients.

    One net at a time: its validator, its layer rules, its layers (``DPLSTM``).

    That each gradient is of one record alone is Opacus's word; it is not checked here.

    Parameters
    ----------
    module, criterion : Module
        Not changed: a copy runs.
    device : torch.device

    Raises
    ------
    LeakingEstimatorError
        For a module that Opacus's validator refuses, with its reasons.
    """

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device) -> None:
        from opacus import GradSampleModule
        from opacus.validators import ModuleValidator

        super().__init__(module, criterion, device)
        modes = {getattr(layer, "padding_mode", "zeros") for layer in self.template.modules()}
        if modes := modes - {"zeros"}:
            raise LeakingEstimatorError(
                f"Found padding_mode={modes.pop()!r} in {net_name(module)}, for which Opacus's "
                "gradients are those of zeros: clipped gradients would be of another function. Pad "
                "before the convolution (a layer such as torch.nn.CircularPad2d), or leave out "
                "engine='opacus'."
            )
        if errors := ModuleValidator.validate(self.template, strict=False):
            raise LeakingEstimatorError(
                f"Found {net_name(module)}, which Opacus refuses: {'; '.join(map(str, errors))}. "
                "Use layers that it knows (opacus.validators.ModuleValidator.fix replaces some), "
                "or leave out engine='opacus'."
            )
        self._running = GradSampleModule(self.template, batch_first=True, loss_reduction="sum")
        parameters = self.template.named_parameters()
        self._parameters = {name: p for name, p in parameters if p.requires_grad}
        room = MEMORY_OF_OPACUS.get(device.type, MEMORY_ELSEWHERE)
        self.chunk_size = records_per_chunk(room, self.layout.trained, MOST_RECORDS)

    def per_sample_gradients(self, inputs: Inputs, targets: Tensor) -> LayerGradients:
        with torch.enable_grad():
            self.criterion(self._running(inputs), targets).sum().backward()
        for layer in self.template.modules():
            padded = type(layer) is nn.Embedding and layer.padding_idx is not None
            if padded and torch.is_tensor(getattr(layer.weight, "grad_sample", None)):
                # PyTorch's embeddings have no gradient there
                layer.weight.grad_sample[:, layer.padding_idx] = 0.0
        gradients = {name: p.grad_sample for name, p in self._parameters.items()}
        self._forget_gradients()
        n = len(targets)
        missing = [name for name, g in gradients.items() if not torch.is_tensor(g) or len(g) != n]
        if missing:
            raise TrainingError(
                f"Opacus found no gradient of each record for {missing}; freeze them, or use them."
            )
        return {name: DenseGradients(gradient.detach()) for name, gradient in gradients.items()}

    def recover(self) -> None:
        for layer in self.template.modules():
            vars(layer).pop("activations", None)
        self._forget_gradients()
        for parameter in self._parameters.values():
            parameter._forward_counter = 0

    def _forget_gradients(self) -> None:
        for parameter in self._parameters.values():
            parameter.grad = parameter.grad_sample = None
