"""Interface of engines: sums of clipped per-record gradients, for one net or a stack of nets."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod

import torch
from torch import nn

from ..layout import Layout
from .refusals import in_training

#: Added to norms in automatic clipping (Bu et al. 2023, AUTO-S), so that a gradient near 0 stays short.
STABILITY = 0.01


class Engine(ABC):
    """Sums of clipped per-record gradients of one or several nets of one architecture.

    Parameters
    ----------
    module, criterion : Module
        Not changed: a released module is never run on records.
    device : torch.device
    template : Module, optional
        Module to run instead, with parameters of the same names.
    """

    def __init__(
        self, module: nn.Module, criterion: nn.Module, device: torch.device, template: nn.Module | None = None
    ) -> None:
        self.layout, self.device = Layout(module), device
        self.template = copy.deepcopy(module if template is None else template)
        self.template = in_training(self.template.to(device))
        self.criterion = copy.deepcopy(criterion).to(device)
        self.piece = 0  # records in a sum in single precision, see ``rounding``; 0: double precision throughout
        self.wants_norms = False  # of the records
        #: Which nets clip automatically, shape (M, 1); None: none of them.
        self.automatic: torch.Tensor | None = None

    @abstractmethod
    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        """Use these parameters and buffers for sums, shapes (M, size), from now on; both may change in place.

        The sums are in double precision.
        """

    @abstractmethod
    def add_clipped(
        self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor, norms: torch.Tensor | None = None
    ) -> None:
        """Add each net's sum of clipped gradients to the sums.

        Parameters
        ----------
        inputs, targets : tensors of shape (M, B, ...)
            M batches of B records.
        bounds : tensor of shape (M, B)
            Clipping norm of each record; 0 for a place without a record.
        norms : tensor of shape (M, B), optional
            Norms of the inputs by ``rounding.norms_of``, if known: records do not change.
        """


def which_finite(norms: torch.Tensor) -> torch.Tensor | None:
    """Mask of finite norms; None if all are known to be finite. On an accelerator the mask is cheaper than asking."""
    if norms.device.type == "cpu" and math.isfinite(norms.sum().item()):
        return None
    return torch.isfinite(norms)


def clip_factors(
    norms: torch.Tensor, bounds: torch.Tensor, finite: torch.Tensor | None, automatic: torch.Tensor | None = None
) -> torch.Tensor:
    """Factors that clip gradients of these norms; 0 for an infinite or undefined norm (its gradient is dropped).

    Parameters
    ----------
    norms, bounds : tensors of one shape, (M, B) or (B,)
    finite : tensor of the same shape, optional
        Which norms are finite; without it all are.
    automatic : tensor that broadcasts to that shape, optional
        Where gradients are brought to their bound, short ones too: automatic clipping.
    """
    # Each record by its own norm. Clipping never lengthens a gradient.
    factors = (bounds / norms).clamp_(max=1.0)
    if automatic is not None:
        factors = torch.where(automatic, bounds / (norms + STABILITY), factors)
    return factors if finite is None else torch.where(finite, factors, 0.0)
