"""Engine with Opacus's per-sample gradients: its validator, its layer rules, its layers (``DPLSTM``).

That each gradient is of one record alone is Opacus's word; it is not checked here.
"""

from __future__ import annotations

import torch
from opacus import GradSampleModule
from opacus.validators import ModuleValidator
from torch import nn

from ...errors import TrainingError
from ...privacy import LeakingEstimatorError
from ..named_tensors import name_of
from .base import MEMORY_ELSEWHERE, MOST, SingleNetEngine, chunk_size
from .layer_gradients import Dense, Share

#: Bytes of gradients held at once.
MEMORY = {"cpu": 2**26}


class OpacusEngine(SingleNetEngine):
    """Any net that Opacus accepts, one at a time.

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
        super().__init__(module, criterion, device)
        if errors := ModuleValidator.validate(self.template, strict=False):
            raise LeakingEstimatorError(
                f"Found {name_of(module)}, which Opacus refuses: {'; '.join(map(str, errors))}. Use layers that it "
                "knows (opacus.validators.ModuleValidator.fix replaces some), or leave out engine='opacus'."
            )
        self._running = GradSampleModule(self.template, batch_first=True, loss_reduction="sum")
        self._parameters = {name: p for name, p in self.template.named_parameters() if p.requires_grad}
        self.most = chunk_size(MEMORY.get(device.type, MEMORY_ELSEWHERE), self.layout.trained, MOST)

    def shares(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, Share]:
        with torch.enable_grad():
            self.criterion(self._running(inputs), targets).sum().backward()
        found = {name: p.grad_sample for name, p in self._parameters.items()}
        for parameter in self._parameters.values():
            parameter.grad = parameter.grad_sample = None
        n = len(targets)
        missing = [name for name, one in found.items() if not isinstance(one, torch.Tensor) or len(one) != n]
        if missing:
            raise TrainingError(f"Opacus found no gradient of each record for {missing}; freeze them, or use them.")
        return {name: Dense(one.detach()) for name, one in found.items()}
