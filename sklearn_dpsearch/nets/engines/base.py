"""What an engine does: sums of clipped per-record gradients, for one net or a stack of nets."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod

import torch
from torch import nn

from ..layout import Layout


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


def which_finite(norms: torch.Tensor) -> torch.Tensor | None:
    """Which norms are finite; None if all are. On an accelerator asking would cost more than the answer is worth."""
    if norms.device.type == "cpu" and math.isfinite(norms.sum().item()):
        return None
    return torch.isfinite(norms)


def clip_factors(norms: torch.Tensor, bounds: torch.Tensor, finite: torch.Tensor | None) -> torch.Tensor:
    """What to multiply gradients of these norms by; 0 for one that is not finite (it is not clipped but dropped)."""
    # Each record by its own norm, and never up: a short gradient stays as short as it is.
    factors = (bounds / norms).clamp_(max=1.0)
    return factors if finite is None else torch.where(finite, factors, 0.0)
