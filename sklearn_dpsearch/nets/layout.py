"""Where the parameters of a module lie in flat storage, so that many nets of one architecture move as one tensor."""

from __future__ import annotations

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


def named_trained(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that are trained, with their names."""
    return [(name, p) for name, p in module.named_parameters() if p.requires_grad]
