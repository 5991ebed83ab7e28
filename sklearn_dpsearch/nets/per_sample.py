"""The engine for any layers: per-record gradients by Opacus."""

from __future__ import annotations

import torch
from torch import nn

from .engines import Engine, clip_factors, finite_ones, named_trained
from .rounding import add_products, norms_of, root_of_sum


class PerSampleEngine(Engine):
    """Any net whose layers Opacus has per-sample gradients for, one at a time.

    Of Opacus this uses the validator and the gradient hooks. Its optimizer is not used: it multiplies a gradient that
    is not finite by zero (which gives NaN), cannot be pickled, and truncates the expected batch size.
    """

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device) -> None:
        from opacus import GradSampleModule
        from opacus.validators import ModuleValidator

        super().__init__(module, criterion, device)
        problems = ModuleValidator.validate(self.template, strict=False)
        if problems:
            raise ValueError(
                f"Found a module without per-record gradients: {'; '.join(str(one) for one in problems)}. Replace the "
                "layer, e.g. batch normalisation by nn.GroupNorm or nn.LayerNorm and nn.LSTM by opacus.layers.DPLSTM."
            )
        self.sampled = GradSampleModule(self.template, batch_first=True, loss_reduction="sum")

    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        if len(trained) != 1:
            raise ValueError(f"Expected one net at a time, got {len(trained)}.")
        self._sums = {
            name: self.layout.view(name, sums[0], sums[0]).view(1, 1, -1) for name in self.layout.names(trained=True)
        }
        for name, parameter in self.template.named_parameters():
            parameter.data = self.layout.view(name, trained[0], frozen[0])

    def add_clipped(self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor) -> None:
        if inputs.shape[1] == 0:
            return
        try:
            self.criterion(self.sampled(inputs[0]), targets[0]).backward()
            gradients = {
                name: p.grad_sample.flatten(1) for name, p in named_trained(self.template) if p.grad_sample is not None
            }
        finally:
            self._forget()
        norms = root_of_sum(norms_of(gradients.values()).square_())
        finite = finite_ones(norms)
        factors = clip_factors(norms, bounds[0], finite)
        for name, gradient in gradients.items():
            if finite is not None:
                gradient = torch.where(finite.unsqueeze(-1), gradient, 0.0)
            add_products(self._sums[name], factors[None, :, None], gradient[None], self.piece)

    def _forget(self) -> None:
        """Opacus leaves records' gradients on the parameters, and activations on the layers."""
        for parameter in self.template.parameters():
            parameter.grad = parameter.grad_sample = None
        for layer in self.template.modules():
            layer.__dict__.pop("activations", None)
            if hasattr(layer, "activations"):
                layer.activations = []
