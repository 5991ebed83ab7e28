"""Layout of a module's parameters in flat storage, so that many nets of one architecture move as one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn


class ParameterEntry(NamedTuple):
    """Position of one parameter among the trained or the frozen ones."""

    is_trained: bool
    start: int
    shape: torch.Size


class Layout:
    """Position of each parameter of a module in flat storage: trained and frozen ones apart."""

    def __init__(self, module: nn.Module) -> None:
        self.entries: dict[str, ParameterEntry] = {}
        sizes = {True: 0, False: 0}
        for name, parameter in module.named_parameters():
            trained = parameter.requires_grad
            self.entries[name] = ParameterEntry(trained, sizes[trained], parameter.shape)
            sizes[trained] += parameter.numel()
        self.trained, self.frozen = sizes[True], sizes[False]

    def read(self, modules: Sequence[nn.Module], device: torch.device, trained: bool) -> torch.Tensor:
        """Parameters of several modules of this layout, shape (len(modules), size), copied."""
        # Always in single precision: the bound on rounding is for single precision.
        nothing, names = torch.empty(0, dtype=torch.float32, device=device), set(self.names(trained))
        rows = [
            [p.detach().reshape(-1).to(device, torch.float32) for name, p in module.named_parameters() if name in names]
            for module in modules
        ]
        return torch.stack([torch.cat([nothing, *flat]) for flat in rows])

    def write(self, row: torch.Tensor, module: nn.Module) -> None:
        """Copy one row of trained parameters into a module."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if self.entries[name].is_trained:
                    parameter.copy_(self.view(name, row, row))

    def view(self, name: str, trained: torch.Tensor, frozen: torch.Tensor) -> torch.Tensor:
        """One parameter inside flat storage of shape (..., size)."""
        is_trained, start, shape = self.entries[name]
        flat = trained if is_trained else frozen
        return flat[..., start : start + shape.numel()].reshape(*flat.shape[:-1], *shape)

    def names(self, trained: bool) -> list[str]:
        """Parameters of one kind, in order."""
        return [name for name, entry in self.entries.items() if entry.is_trained is trained]


def named_trained(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that are trained, with their names."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
