"""Made-up records, and a probe of code that is trained record by record. The probe can only refuse.

Modules are allowed by their structure (``ways``). The probe finds code that differs between a batch and a record:
`x - x.mean(0)` is zero for a single record, so that training would use another net than the one written.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import nn

from ...privacy import LeakingEstimatorError
from ..named_tensors import Inputs, NamedTensors, each, name_of, tensors_of
from ..randomness import global_torch_seed
from ..state import contents
from .vmap import VmapEngine

#: Number of repeated checks of generators that moved.
ATTEMPTS = 3
#: Made-up records in a batch.
ROWS = 8
#: Most records in a made-up batch of the size of a training batch.
LOT = 64
#: Largest relative difference of gradients by rounding, also to bfloat16; coupled records differ by 0.1 and more.
TOLERANCE = 1e-2
#: Largest relative difference of losses by a device's order of additions.
AGAIN = 1e-4
#: Parameters below this are made larger: behind a layer of zeros all gradients vanish.
ASLEEP = 1e-3
#: Scales of made-up features: equal, pixels, large, and all mixed.
SCALES = (0.0, 1.0, 255.0, 1e4)


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


def records_for(module: nn.Module, inputs: Inputs, targets: torch.Tensor) -> tuple[Inputs, torch.Tensor]:
    """Make up records, with labels from the first to the last class if the net has an output for each."""
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
    """Make up batches of inputs: with and without a large record, of every scale, and of the training's batch size.

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
    yield rows[:-1]  # the large record would hide differences
    for scale in SCALES[1:]:
        yield scale * torch.rand(rows.shape, generator=rng)
    yield torch.stack([torch.full(shape, scale) for scale in SCALES])
    yield torch.randn((min(max(lot, 1), LOT), *shape), generator=rng)


def check_draws_nowhere_else(run: Callable[[], object]) -> None:
    """Run something, and raise if it draws from the global generators of Python or NumPy.

    Raises
    ------
    LeakingEstimatorError
        If the generators move every time: a single move may come from another thread.
    """
    for _ in range(ATTEMPTS):
        before = _other_generators()
        run()
        if _other_generators() == before:
            return
    raise LeakingEstimatorError(
        "Found random numbers of Python or NumPy in forward or in the criterion: they are drawn once for many records, "
        "and for how many depends on the other ones. Draw with torch.rand, nn.Dropout and the like, for each record."
    )


def _other_generators() -> tuple[object, str]:
    return random.getstate(), contents(np.random.get_state())


def check_same_on_batches(
    engine: VmapEngine, module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor, lot: int
) -> None:
    """Raise unless the gradient on a batch is the sum, or the mean, of the engine's gradients of its records.

    Raises
    ------
    LeakingEstimatorError
        For batch statistics, losses that weigh by the batch, and everything else that differs between a batch and a
        single record.
    """
    _check_same_again(module, criterion, rows, targets)
    for net in (module, engine.template):
        _silence(net)
    if _is_random(module, rows):  # the module calls dropout functions, which are off in evaluation
        module.eval()
        engine.template.eval()
    comparable = not _is_random(module, rows)  # in evaluation too: two runs would differ on equal records
    tried, trained = False, False
    for inputs in batches(module, rows, lot):
        answers = targets[torch.arange(len(inputs)) % len(targets)]
        try:
            found, together = _both(engine, module, criterion, inputs.to(engine.device), answers.to(engine.device))
        except Exception:  # no conclusion from made-up records that the module does not take
            continue
        tried, trained = True, trained or bool(found.isfinite().all(1).any())
        doubted = comparable and bool(found.isfinite().all()) and not _explained(together, found)
        if doubted and not _explained_in_double(module, criterion, inputs, answers):  # the probe can only refuse
            raise LeakingEstimatorError(
                f"The gradient of {name_of(module)} with {type(criterion).__name__} on several records is "
                "neither the sum nor the mean of the gradients on each: something couples them (a mean over the "
                "batch, a weighted mean in the loss, batch statistics). Compute each record's output and loss from "
                'that record alone, and sum the losses (reduction="sum").'
            )
    if tried and not trained:
        raise LeakingEstimatorError(
            f"{name_of(module)} with {type(criterion).__name__} has no finite gradient on any made-up record by "
            "itself: such records contribute nothing, and noise alone would be trained. A standard deviation over a "
            "batch of one record is not a number, for example. Compute outputs from each record alone."
        )


def _check_same_again(module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor) -> None:
    """Raise if equal records and random numbers give another loss the second time."""
    device, found = next(module.parameters()).device, []
    for _ in range(3):
        with torch.no_grad(), global_torch_seed(0):
            try:
                found.append(criterion(module(rows.to(device)), targets.to(device)).double())
            except Exception:
                return
    if not all(torch.allclose(found[0], one, rtol=AGAIN, atol=AGAIN, equal_nan=True) for one in found):
        raise LeakingEstimatorError(
            f"{name_of(module)} with {type(criterion).__name__} has another loss for the same records and random "
            "numbers the next time: something advances from call to call (a counter, a clock, a setting of a library), "
            "and the number of calls depends on how many records there are. Compute outputs from the record alone."
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


def _explained_in_double(module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor) -> bool:
    """Return whether the difference vanishes in double precision, and so was rounding of large numbers.

    For example, a softmax of numbers near 1e8 in single precision differs between processors.
    """
    net, loss = copy.deepcopy(module).double(), copy.deepcopy(criterion).double()
    device = next(net.parameters()).device
    inputs, answers = each(_in_double, rows.to(device)), _in_double(targets.to(device))
    trained = [p for p in net.parameters() if p.requires_grad]

    def gradient(part: slice) -> torch.Tensor:
        slopes = torch.autograd.grad(loss(net(inputs[part]), answers[part]).sum(), trained, materialize_grads=True)
        return torch.cat([slope.to_dense().reshape(-1) for slope in slopes])

    try:
        with global_torch_seed(0):
            single = torch.stack([gradient(slice(i, i + 1)) for i in range(len(answers))])
            return _explained(gradient(slice(None)), single)
    except Exception:  # code that wants single precision
        return False


def _in_double(values: torch.Tensor) -> torch.Tensor:
    return values.double() if values.is_floating_point() else values


def _is_random(module: nn.Module, rows: Inputs) -> bool:
    """Return whether outputs for equal rows differ between calls."""
    found = []
    for seed in (0, 1):
        with torch.no_grad(), global_torch_seed(seed):
            try:
                found.append(module(rows.to(next(module.parameters()).device)))
            except Exception:
                return False
    return not torch.equal(*found) if isinstance(found[0], torch.Tensor) else False


def _explained(together: torch.Tensor, single: torch.Tensor) -> bool:
    """Return whether the gradient of a batch is the sum, or the mean, of the single gradients."""
    total, most = single.sum(0), TOLERANCE * single.norm(dim=1).sum()
    sums = [(total, most), (total / len(single), most / len(single))]
    return any(bool((together - expected).norm() <= limit) for expected, limit in sums)


def awake(module: nn.Module) -> nn.Module:
    """Copy with public random numbers in place of parameters near zero."""
    copied, rng = copy.deepcopy(module), torch.Generator().manual_seed(0)
    for parameter in copied.parameters():
        small = parameter.detach().abs() < ASLEEP
        drawn = torch.randn(parameter.shape, generator=rng).to(parameter)
        parameter.data = torch.where(small, 0.1 * drawn, parameter.detach())
    return copied


def _silence(module: nn.Module) -> None:
    """Switch dropout off, also in subclasses of PyTorch's layers: two evaluations would have different masks."""
    for layer in module.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0
