"""What an engine does: sums of clipped per-record gradients, for one net or a stack of nets."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import nn


class Layout:
    """Where each parameter of a module lies in flat storage: trained and frozen ones apart."""

    def __init__(self, module: nn.Module) -> None:
        self.entries: dict[str, tuple[bool, int, torch.Size]] = {}
        sizes = {True: 0, False: 0}
        for name, parameter in module.named_parameters():
            self.entries[name] = (parameter.requires_grad, sizes[parameter.requires_grad], parameter.shape)
            sizes[parameter.requires_grad] += parameter.numel()
        self.trained, self.frozen = sizes[True], sizes[False]

    def read(self, modules: Sequence[nn.Module], device: torch.device, trained: bool) -> torch.Tensor:
        """Parameters of several modules of this layout, shape (len(modules), size), copied."""
        rows = [
            torch.cat(
                [p.detach().reshape(-1).to(device, torch.float32) for p in self._of(module, trained)] or [_none()]
            )
            for module in modules
        ]
        return torch.stack(rows).to(device)

    def write(self, row: torch.Tensor, module: nn.Module) -> None:
        """Copy one row of trained parameters into a module."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if self.entries[name][0]:
                    parameter.copy_(self.view(name, row, row))

    def view(self, name: str, trained: torch.Tensor, frozen: torch.Tensor) -> torch.Tensor:
        """One parameter inside flat storage of shape (..., size)."""
        is_trained, start, shape = self.entries[name]
        flat = trained if is_trained else frozen
        return flat[..., start : start + shape.numel()].reshape(*flat.shape[:-1], *shape)

    def names(self, trained: bool) -> list[str]:
        """Parameters of one kind, in order."""
        return [name for name, (is_trained, _, _) in self.entries.items() if is_trained is trained]

    def _of(self, module: nn.Module, trained: bool) -> list[nn.Parameter]:
        return [p for name, p in module.named_parameters() if self.entries[name][0] is trained]


def _none() -> torch.Tensor:
    return torch.empty(0)


class Engine(ABC):
    """Sums of clipped per-record gradients of one or several nets of one architecture.

    Parameters
    ----------
    module, criterion : Module
        Left as found: what is released is never run on records.
    device : torch.device
    template : Module, optional
        What is run in the place of the module, with parameters of the same names.
    """

    def __init__(
        self, module: nn.Module, criterion: nn.Module, device: torch.device, template: nn.Module | None = None
    ) -> None:
        self.layout, self.device = Layout(module), device
        self.template = copy.deepcopy(module if template is None else template).to(device).train()
        self.criterion = copy.deepcopy(criterion).to(device)
        self.piece = 0  # records in a sum in single precision, see ``rounding``

    @abstractmethod
    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        """Use these parameters and room for sums, shapes (M, size), from now on; they may change in place.

        The sums are in double precision.
        """

    @abstractmethod
    def add_clipped(self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor) -> None:
        """Add each net's sum of clipped gradients to the sums.

        Parameters
        ----------
        inputs, targets : tensors of shape (M, B, ...)
            M batches of B records.
        bounds : tensor of shape (M, B)
            Clipping norm of each record; 0 for a place without a record.
        """


def named_trained(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that are trained, with their names."""
    return [(name, p) for name, p in module.named_parameters() if p.requires_grad]


def finite_ones(norms: torch.Tensor) -> torch.Tensor | None:
    """Which norms are finite; None if all are. On an accelerator asking would cost more than the answer is worth."""
    if norms.device.type == "cpu" and math.isfinite(norms.sum().item()):
        return None
    return torch.isfinite(norms)


def clip_factors(norms: torch.Tensor, bounds: torch.Tensor, finite: torch.Tensor | None) -> torch.Tensor:
    """What to multiply gradients of these norms by; 0 for one that is not finite (it is not clipped but dropped)."""
    factors = (bounds / norms).clamp_(max=1.0)
    return factors if finite is None else torch.where(finite, factors, 0.0)
