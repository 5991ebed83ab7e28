"""Made-up records, and a second look at what is trained record by record. It can refuse, and never allows.

What allows a module is its structure (``ways``). This look finds code that means one thing for a batch and another for
a record: `x - x.mean(0)` is zero for a single record, so that another net would be trained than the one written.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn

from ...privacy import LeakingEstimatorError
from ..named_tensors import Inputs, NamedTensors, each, name_of, tensors_of
from ..randomness import global_torch_seed
from .vmap import VmapEngine

#: Made-up records in a batch.
ROWS = 8
#: Most records in a made-up batch that is as large as those of the training.
LOT = 64
#: Relative difference of gradients that rounding explains, also to bfloat16; coupled records differ by 0.1 and more.
TOLERANCE = 1e-2
#: Parameters below this are made larger: behind a layer of zeros nothing shows in gradients.
ASLEEP = 1e-3
#: Sizes of made-up features: all alike, pixels, large ones, and all of them mixed.
SCALES = (0.0, 1.0, 255.0, 1e4)


def made_up(inputs: Inputs, targets: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
    """Public records of the same shape and kind: a few ordinary ones, one large."""
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


def records_for(module: nn.Module, inputs: Inputs, targets: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
    """Made-up records; labels from the first to the last class, if the net has an output for each."""
    rows, labels = made_up(inputs, targets)
    if labels.is_floating_point() or labels.dim() != 1:
        return rows, labels
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(module).eval()(rows.to(next(module.parameters()).device))
        classes = outputs.shape[1] if outputs.dim() == 2 else 0
    except Exception:
        return rows, labels
    return rows, torch.linspace(0, classes - 1, ROWS).round().to(labels.dtype) if classes > 2 else labels


def batches(module: nn.Module, rows: Inputs, lot: int) -> Iterator[Inputs]:
    """Batches of made-up inputs: ordinary ones, with and without a large one, of every scale, as large as in training.

    Parameters
    ----------
    module : Module
        Integers are drawn from the words that its embeddings know.
    rows : Tensor or NamedTensors
        Ordinary inputs, the last one large.
    lot : int
        Expected batch size.
    """
    if not isinstance(rows, NamedTensors):
        yield from _batches_of(module, rows, lot)
        return
    each_part = {name: list(_batches_of(module, part, lot)) for name, part in rows.tensors.items()}
    for number in range(max(map(len, each_part.values()))):
        found = {name: some[number % len(some)] for name, some in each_part.items()}
        most = max(map(len, found.values()))
        yield NamedTensors({name: part[torch.arange(most) % len(part)] for name, part in found.items()})


def _batches_of(module: nn.Module, rows: torch.Tensor, lot: int) -> Iterator[torch.Tensor]:
    """Batches of one input."""
    rng = torch.Generator().manual_seed(1)
    shape = rows.shape[1:]
    if not rows.is_floating_point():
        words = [layer.num_embeddings for layer in module.modules() if isinstance(layer, nn.Embedding)]
        top = min(words, default=2)
        yield torch.randint(0, top, rows.shape, generator=rng)
        yield torch.stack([torch.full(shape, word) for word in (0, min(1, top - 1), top - 1)])
        yield torch.randint(0, top, (min(max(lot, 1), LOT), *shape), generator=rng)
        return
    yield rows
    yield rows[:-1]  # the large one would hide a lot
    for scale in SCALES[1:]:
        yield scale * torch.rand(rows.shape, generator=rng)
    yield torch.stack([torch.full(shape, scale) for scale in SCALES])
    yield torch.randn((min(max(lot, 1), LOT), *shape), generator=rng)


def check_same_on_batches(
    engine: VmapEngine, module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor, lot: int
) -> None:
    """Raise unless the gradient on a batch is the sum, or the mean, of what the engine has for its records.

    Raises
    ------
    LeakingEstimatorError
        For batch statistics, losses that weigh by the batch, and whatever else is one thing for a batch and another for
        a record.
    """
    for net in (module, engine.template):
        _silence(net)
    if _is_random(module, rows):  # it calls dropout functions, which are off in evaluation
        module.eval()
        engine.template.eval()
    for inputs in batches(module, rows, lot):
        answers = targets[torch.arange(len(inputs)) % len(targets)]
        try:
            found, together = _both(engine, module, criterion, inputs.to(engine.device), answers.to(engine.device))
        except Exception:  # made-up records that the module does not take say nothing about it
            continue
        if bool(found.isfinite().all()) and not _explained(together, found):  # this look can refuse, never allow
            raise LeakingEstimatorError(
                f"The gradient of {name_of(module)} with {type(criterion).__name__} on several records is "
                "neither the sum nor the mean of the gradients on each: something couples them (a mean over the "
                "batch, a weighted mean in the loss, batch statistics). Compute each record's output and loss from "
                'that record alone, and sum the losses (reduction="sum").'
            )


def _both(
    engine: VmapEngine, module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of single records, shape (B, size), and of all together."""
    with global_torch_seed(0):
        found = torch.cat(list(engine.gradients(rows, targets).values()), dim=1)
        loss = criterion(module(rows), targets).sum()
    trained = [p for p in module.parameters() if p.requires_grad]
    slopes = torch.autograd.grad(loss, trained, allow_unused=True)
    flat = [torch.zeros_like(p) if slope is None else slope.to_dense() for p, slope in zip(trained, slopes)]
    return found, torch.cat([slope.reshape(-1) for slope in flat])


def _is_random(module: nn.Module, rows: Inputs) -> bool:
    """Whether outputs for the same rows differ from time to time."""
    found = []
    for seed in (0, 1):
        with torch.no_grad(), global_torch_seed(seed):
            try:
                found.append(module(rows.to(next(module.parameters()).device)))
            except Exception:
                return False
    return not torch.equal(*found) if isinstance(found[0], torch.Tensor) else False


def _explained(together: torch.Tensor, single: torch.Tensor) -> bool:
    """Whether the gradient of all together is the sum of the single ones, or their mean."""
    total, most = single.sum(0), TOLERANCE * single.norm(dim=1).sum()
    sums = [(total, most), (total / len(single), most / len(single))]
    return any(bool((together - expected).norm() <= limit) for expected, limit in sums)


def awake(module: nn.Module) -> nn.Module:
    """A copy with public random numbers in place of parameters near zero."""
    copied, rng = copy.deepcopy(module), torch.Generator().manual_seed(0)
    for parameter in copied.parameters():
        small = parameter.detach().abs() < ASLEEP
        drawn = torch.randn(parameter.shape, generator=rng).to(parameter)
        parameter.data = torch.where(small, 0.1 * drawn, parameter.detach())
    return copied


def _silence(module: nn.Module) -> None:
    """Switch dropout off, in subclasses of PyTorch's layers too: two evaluations would have different masks."""
    for layer in module.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0
