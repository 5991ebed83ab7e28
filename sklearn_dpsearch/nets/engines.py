"""What an engine does: sums of clipped per-record gradients, for one net or a stack of nets."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import nn

#: Noise is larger by this factor, which covers rounding of one record's contribution in single precision.
ROUNDING = 1.0 + 2.0**-16
#: And by so much for every record expected in a batch: one more of them changes the order in which the others are
#: added, each time with an error of up to 2⁻²⁴ of the clipping norm (3e-5 of it was seen for 1000 records).
#: That is not the worst case: with 1000 records ordered for it, all in every batch, errors add up to 6e-3 of the norm.
ROUNDING_PER_RECORD = 2.0**-24
#: More than the norm of a vector of up to 1e5 numbers whose squares vanish in single precision.
TINY = 1e-20
#: Most squares that are added at once.
LONG = 4096


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
    """Sums of clipped per-record gradients of one or several nets of one architecture."""

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device) -> None:
        self.layout = Layout(module)
        self.template = copy.deepcopy(module).to(device).train()  # the released module is never hooked or run
        self.criterion = copy.deepcopy(criterion).to(device)

    @abstractmethod
    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        """Use these parameters and room for sums, shapes (M, size), from now on; they may change in place."""

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


def clip_factors(norms: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
    """What to multiply gradients of these norms by; 0 for one that is not finite (it is not clipped but dropped)."""
    factors = (bounds / norms).clamp_(max=1.0)
    return factors if all_finite(norms) else torch.where(torch.isfinite(norms), factors, 0.0)


def all_finite(values: torch.Tensor) -> bool:
    """Known for certain; on an accelerator asking would cost more than the answer is worth."""
    return values.device.type == "cpu" and bool(torch.isfinite(values.sum()))


def norms_of(vectors: torch.Tensor) -> torch.Tensor:
    """Norms over the last axis, and a little more: squares below 1e-45 vanish in single precision.

    Long vectors in parts: the sum of 1e6 squares would be off by 1e-3.
    """
    if vectors.shape[-1] > LONG:
        parts = [torch.linalg.vector_norm(part, dim=-1) for part in vectors.split(LONG, dim=-1)]
        return norms_of(torch.stack(parts, dim=-1))
    return torch.linalg.vector_norm(vectors, dim=-1).add_(TINY)
