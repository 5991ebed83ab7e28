"""Made-up records, on which modules are tried before training."""

from __future__ import annotations

import copy

import torch
from torch import nn

from ...privacy import LeakingEstimatorError
from ..named_tensors import Inputs, each, name_of, tensors_of
from ..randomness import global_torch_seed
from .refusals import in_training

#: Made-up records in a batch.
ROWS = 8
#: Largest relative difference of losses by rounding.
TOLERANCE = 1e-4


def made_up(inputs: Inputs, targets: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
    """Make public records of the same shape and kind: a few ordinary ones, one large."""
    rng = torch.Generator().manual_seed(0)  # public, and the same every time
    rows, labels = each(lambda values: _drawn_like(values, rng), inputs), _drawn_like(targets, rng)
    for row in tensors_of(rows):
        if row.is_floating_point():
            row[-1] *= 50
    return rows, labels


def _drawn_like(values: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    shape = (ROWS, *values.shape[1:])
    if values.is_floating_point():
        return torch.randn(shape, generator=rng).to(values.dtype)
    # tokens, and classes, that nearly every net has
    return torch.randint(0, 2, shape, generator=rng).to(values.dtype)


def labels_for(outputs: torch.Tensor | None, labels: torch.Tensor) -> torch.Tensor:
    """Made-up labels, from the first to the last class if the net has an output for each."""
    if outputs is None or outputs.dim() != 2 or outputs.shape[1] <= 2 or labels.is_floating_point() or labels.dim() > 1:
        return labels
    return torch.linspace(0, outputs.shape[1] - 1, ROWS, device=labels.device).round().to(labels.dtype)


def check_same_on_batches(module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor) -> None:
    """Raise if code means something else on a batch than on each of its records.

    Training runs it on one record at a time, where ``x - x.mean(0)`` is zero: private, but another net than the one
    written. Modules that draw random numbers, or count their calls, are not compared.

    Parameters
    ----------
    module, criterion : Module
    rows, targets : tensors, or NamedTensors
        Made-up records.

    Raises
    ------
    LeakingEstimatorError
    """
    probed, loss = in_training(copy.deepcopy(module)), copy.deepcopy(criterion)
    for layer in probed.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0

    def losses(part: slice, seed: int) -> torch.Tensor:
        with torch.no_grad(), global_torch_seed(seed):
            found: torch.Tensor = loss(probed(rows[part]), targets[part]).double()
            return found.sum()

    every, ordinary = slice(None), slice(0, -1)
    try:
        if len({losses(every, seed).item() for seed in (0, 1, 1)}) > 1:
            return
        with torch.no_grad(), global_torch_seed(0):
            equal = probed(rows[torch.zeros(ROWS, dtype=torch.long)])
        if not torch.allclose(
            equal, equal[:1].expand_as(equal), rtol=TOLERANCE, atol=1e-6, equal_nan=True
        ):  # numbers drawn by place, from another generator
            return
        # Without the large record too, which would hide differences.
        single = [losses(slice(i, i + 1), 0) for i in range(ROWS)]
        compared = [(losses(part, 0), single[part]) for part in (every, ordinary)]
    except Exception:  # no conclusion from made-up records that the code does not take
        return
    if not any(bool(one.isfinite()) for one in single):
        raise LeakingEstimatorError(
            f"{name_of(module)} with {type(criterion).__name__} has no finite loss on any made-up record by itself: "
            "such records contribute nothing, and noise alone would be trained. A standard deviation over a batch of "
            "one record is not a number, for example. Compute outputs from each record alone."
        )
    for together, alone in compared:
        total, most = torch.stack(alone).sum(), TOLERANCE * torch.stack(alone).abs().sum()
        sums = ((total, most), (total / len(alone), most / len(alone)))
        comparable = bool(total.isfinite()) and bool(together.isfinite())
        if comparable and not any(bool((together - one).abs() <= limit) for one, limit in sums):
            raise LeakingEstimatorError(
                f"The loss of {name_of(module)} with {type(criterion).__name__} on several records is neither the sum "
                "nor the mean of the losses on each: something couples them (a mean over the batch, a weighted mean in "
                "the loss, batch statistics). Compute each record's output and loss from that record alone, and sum "
                'the losses (reduction="sum").'
            )
