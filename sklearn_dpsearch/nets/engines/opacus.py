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
from .base import Engine, clip_factors, which_finite
from .rounding import add_products, norms_of, root_of_sum

#: Bytes of gradients held at once.
MEMORY = {"cpu": 2**26}
MEMORY_ELSEWHERE = 2**30
#: Fewest and most records at once.
LEAST, MOST = 4, 4096


class OpacusEngine(Engine):
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
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE) // (4 * max(1, self.layout.trained))
        self._most = max(LEAST, min(room, MOST))

    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        if len(trained) != 1:
            raise TrainingError(f"Expected one net at a time, got {len(trained)}.")
        for name, parameter in self.template.named_parameters():
            parameter.data = self.layout.view(name, trained[0], frozen[0])  # moves with the training
        self._sums = {name: self.layout.view(name, sums[0], sums[0]).view(1, 1, -1) for name in self._parameters}

    def add_clipped(
        self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor, norms: torch.Tensor | None = None
    ) -> None:
        for start in range(0, inputs.shape[1], self._most):
            part = slice(start, start + self._most)
            gradients = self._gradients(inputs[0, part], targets[0, part])
            norms_found = root_of_sum(norms_of(gradients.values()).square_())
            finite = which_finite(norms_found)
            automatic = None if self.automatic is None else self.automatic[0]
            factors = clip_factors(norms_found, bounds[0, part], finite, automatic)
            for name, gradient in gradients.items():
                if finite is not None:
                    gradient = torch.where(finite.unsqueeze(-1), gradient, 0.0)
                add_products(self._sums[name], factors[None, :, None], gradient[None], self.piece)

    def _gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradient of every record in every trained parameter, shapes (B, size)."""
        with torch.enable_grad():
            self.criterion(self._running(inputs), targets).sum().backward()
        found = {name: p.grad_sample for name, p in self._parameters.items()}
        for parameter in self._parameters.values():
            parameter.grad = parameter.grad_sample = None
        n = len(targets)
        missing = [name for name, one in found.items() if not isinstance(one, torch.Tensor) or len(one) != n]
        if missing:
            raise TrainingError(f"Opacus found no gradient of each record for {missing}; freeze them, or use them.")
        return {name: one.detach().flatten(1) for name, one in found.items()}
