"""Three ways to train a module with a criterion, and no other: privacy is read from structure.

1. Linear layers, in sequence or in a graph of operations that act on each record alone, with a
   known loss (``linear``).
2. A graph with other layers whose gradients are known (``layered``).
3. The gradient of one record under ``vmap``, where other records cannot be seen: of a graph, or of
   any other code.
"""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from ...privacy import LeakingEstimatorError, PrivacyError
from .._engines import linear, losses, operations
from .._named_tensors import Inputs, list_tensors, map_tensors, net_name
from .._randomness import CPU, global_torch_seed
from .base import Engine
from .graph import Traced, trace_module
from .layered import LayeredEngine
from .linear import LinearEngine
from .operation_rules import NO_TOKENS, NotPerRecord
from .per_sample import VmapEngine
from .refused_modules import in_training, refuse_module

#: Assumption where a module, or a criterion, runs unknown code.
TRUST = (
    "{module} and {criterion} run code of their own on one record at a time, inside of "
    "torch.func.vmap; they are trusted not to leave it, and to keep nothing of a record."
)


@dataclass(frozen=True)
class EngineChoice:
    """Engine for a module and a criterion, and what is taken on trust.

    Parameters
    ----------
    engine : callable
        (module, criterion, device) ↦ engine, for nets of this structure.
    stack_key : hashable or None
        Key that is equal for nets that can be trained as one; None for a net that is trained alone.
    assumptions : tuple of str
        Assumptions of a training in this way, as plain sentences.
    """

    engine: Callable[[nn.Module, nn.Module, torch.device], Engine]
    stack_key: Hashable | None = None
    assumptions: tuple[str, ...] = ()


def choose_engine(
    module: nn.Module, criterion: nn.Module, inputs: Inputs, targets: Tensor
) -> EngineChoice:
    """Choose the fastest engine that sums clipped gradients of single records.

    Parameters
    ----------
    module, criterion : Module
        Left as found.
    inputs, targets : tensors; or inputs by name
        Records, or one like them: only their shapes and kinds are used.

    Raises
    ------
    LeakingEstimatorError, PrivacyError
        For what is refused by type, and if none of the three ways applies: with the reason and the
        remedy.
    ValueError
        For outputs that do not fit the criterion.
    """
    refuse_module(module)
    refuse_module(criterion)
    device = next(module.parameters()).device
    rows, labels = made_up_batch(inputs, targets)
    is_table = isinstance(rows, Tensor) and rows.dim() == 2
    sequence = linear.sequence_structure(module) if is_table else None
    rows = map_tensors(lambda values: values.to(device), rows)
    probed = module if sequence is not None else copy.deepcopy(module)
    outputs = outputs_on_made_up(in_training(probed), rows)
    targets = labels.to(device)
    are_codes = targets.dim() == 1 and not targets.is_floating_point()
    if are_codes and outputs is not None and outputs.dim() == 2 and outputs.shape[1] > 2:
        codes = torch.linspace(0, outputs.shape[1] - 1, ROWS, device=device)
        targets = codes.round().to(targets.dtype)  # from the first class to the last
    if outputs is not None:
        losses.check_criterion_outputs(criterion, outputs)
    is_sum = outputs is not None and losses.sums_one_loss_per_record(criterion, outputs, targets)
    if is_sum and sequence is not None:
        return EngineChoice(LinearEngine, (sequence, *_criterion_signature(criterion)))
    traced, reason = _checked_graph(module, rows, outputs)
    if not is_sum or traced is None:
        _check_vmap_on_made_up(reason, module, criterion, rows, targets)
    check_predictions_are_of_records(module, rows)
    if not is_sum or traced is None:
        trust = TRUST.format(module=net_name(module), criterion=type(criterion).__name__)
        return EngineChoice(VmapEngine, None, (trust,))
    if traced.linear:
        key = None if traced.random else (traced.signature, *_criterion_signature(criterion))
        return EngineChoice(partial(LinearEngine, template=traced.runnable), key)
    if traced.layered:
        return EngineChoice(partial(LayeredEngine, traced=traced))
    return EngineChoice(partial(VmapEngine, template=traced.runnable, own_code=False))


def _checked_graph(
    module: nn.Module, rows: Inputs, outputs: Tensor | None
) -> tuple[Traced | None, str]:
    """Graph of a module that computes what it does, or why there is none."""
    try:
        with seeded_for(module):
            traced = trace_module(module, rows)
    except NotPerRecord as error:
        return None, str(error)
    # Code may differ from its graph, for example by its own gradient; then the graph is not used.
    if outputs is None or not _graph_agrees_with_module(traced, module, rows):
        return None, "forward computes something else than its graph"
    return traced, "the loss is not one that is known"


def seeded_for(module: nn.Module, seed: int = 0) -> contextlib.AbstractContextManager[None]:
    """Context with a public seed for all that a module draws, on its device."""
    device = next((parameter.device for parameter in module.parameters()), CPU)
    return global_torch_seed(seed, device)


def outputs_on_made_up(module: nn.Module, rows: Inputs) -> Tensor | None:
    """Outputs of a module on made-up records; None if it refuses them."""
    try:
        with torch.no_grad(), seeded_for(module):
            outputs = module(rows)
    except Exception:  # where an output is needed, the third way raises the explaining error
        return None
    return outputs if isinstance(outputs, Tensor) else None


def _criterion_signature(criterion: nn.Module) -> tuple[Hashable, ...]:
    """Type, attributes and weights of a criterion, to compare nets of a stack."""
    kinds = map(operations.layer_signature, criterion.modules())
    return (*kinds, *(weights.detach().cpu().numpy().tobytes() for weights in criterion.buffers()))


def copy_with_same_parameters(module: nn.Module) -> nn.Module:
    """Copy of a module that shares its parameters, and nothing else.

    What ``forward`` keeps or changes is lost with the copy.
    """
    memo: dict[int, object] = {id(p): p for p in module.parameters()}
    return copy.deepcopy(module, memo)


def _graph_agrees_with_module(traced: Traced, module: nn.Module, rows: Inputs) -> bool:
    """Return whether a traced graph has the outputs and gradients of its module.

    A function may have a gradient of its own.
    """
    original = in_training(copy_with_same_parameters(module))
    expected, of_graph = (_outputs_and_gradients(net, rows) for net in (original, traced.runnable))
    if of_graph.keys() != expected.keys():
        return False
    close = partial(torch.allclose, rtol=1e-3, atol=1e-5, equal_nan=True)
    pairs = ((of_graph[name], values) for name, values in expected.items())
    return all(first.shape == second.shape and close(first, second) for first, second in pairs)


def _outputs_and_gradients(module: nn.Module, rows: Inputs) -> dict[str, Tensor]:
    """Outputs of a module, and gradients of their weighted sum by parameter."""
    with seeded_for(module):
        outputs = module(rows)
    tensors = {"": outputs.detach()}
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if trained and outputs.requires_grad:
        weights = torch.linspace(0.5, 1.5, outputs.numel(), device=outputs.device).view_as(outputs)
        weighted = (outputs * weights).sum()
        gradients = torch.autograd.grad(weighted, list(trained.values()), materialize_grads=True)
        pairs = zip(trained, gradients)
        tensors |= {name: gradient for name, gradient in pairs if bool(gradient.any())}
    return tensors


def _check_vmap_on_made_up(
    reason: str, module: nn.Module, criterion: nn.Module, rows: Inputs, targets: Tensor
) -> None:
    """Try vmap on a made-up record, and compare a batch with its records."""
    device = next(module.parameters()).device
    engine = VmapEngine(module, criterion, device)
    trained, frozen = (engine.layout.read([module], device, flag) for flag in (True, False))
    engine.bind(trained, frozen, torch.zeros_like(trained, dtype=torch.float64))
    try:
        with seeded_for(module):
            engine.per_sample_gradients(map_tensors(lambda values: values[:1], rows), targets[:1])
    except Exception as error:
        raise _refusal(reason, module, criterion, error) from None
    check_batch_is_sum_of_records(module, criterion, rows, targets)


#: Error text of PyTorch under ``vmap`` ↦ its meaning for a module.
MEANINGS = {
    "data-dependent control flow": "a branch on a value (if, while, assert), or .item()",
    "batching operators that can support dynamic shape": (
        "a selection by a mask, whose size depends on values"
    ),
    "dynamic shape": "a result whose size depends on values",
    "that would mutate a captured Tensor": "something that changes in place (a buffer, a state)",
    "in-place operation": "something that changes in place (a buffer, a state)",
    "data pointer": "a conversion to NumPy, or to a list",
    "setup_context": (
        "a torch.autograd.Function without setup_context and generate_vmap_rule = True"
    ),
    "does not have vmap support": "a torch.autograd.Function without generate_vmap_rule = True",
    "broadcast shape": "something that changes in place (a buffer, a state)",
}


def _refusal(
    reason: str, module: nn.Module, criterion: nn.Module, error: Exception
) -> PrivacyError:
    if isinstance(error, LeakingEstimatorError):
        return error
    if NO_TOKENS in reason:
        return PrivacyError(
            f"Found numbers that are not whole for an embedding of {net_name(module)}; embeddings "
            "need whole numbers, from 0 to num_embeddings - 1. Give tokens of a whole type: "
            "X.astype('int64')."
        )
    text = str(error).strip()
    first_line = text.splitlines()[0][:200].rstrip(".") if text else type(error).__name__
    cause = next((meaning for words, meaning in MEANINGS.items() if words in text), first_line)
    if any("one_hot" in (frame.line or "") for frame in traceback.extract_tb(error.__traceback__)):
        cause = (
            "F.one_hot, which looks at values (the same is x.unsqueeze(-1) == self.numbers, a "
            "buffer torch.arange(10))"
        )
    return LeakingEstimatorError(
        f"Found {net_name(module)} with {type(criterion).__name__}, which cannot be shown to act "
        f"on each record alone. As a graph: {reason}. One record at a time (torch.func.vmap): "
        f"{cause}. Needed: outputs and a loss that are computed from each record alone, without "
        "branches on values, .item() or NumPy. Use torch.where in place of if, x.shape[0] in place "
        "of len(x), constants known in advance in place of statistics of a batch, and layers of "
        "PyTorch."
    )


# --- made-up records ------------------------------------------------------------------------------


#: Made-up records in a batch.
ROWS = 8
#: Largest relative difference of losses by rounding.
TOLERANCE = 1e-4


def made_up_batch(inputs: Inputs, targets: Tensor) -> tuple[Inputs, Tensor]:
    """Made-up records and targets with the shapes and kinds of real ones.

    A few are ordinary, one is large.
    """
    rng = torch.Generator().manual_seed(0)  # public, and the same every time
    rows = map_tensors(lambda values: _made_up_tensor(values, rng), inputs)
    labels = _made_up_tensor(targets, rng)
    for row in list_tensors(rows):
        if row.is_floating_point():
            row[-1] *= 50
    return rows, labels


def _made_up_tensor(values: Tensor, rng: torch.Generator) -> Tensor:
    shape = (ROWS, *values.shape[1:])
    if values.is_floating_point():
        return torch.randn(shape, generator=rng).to(values.dtype)
    # tokens, and classes, that nearly every net has
    return torch.randint(0, 2, shape, generator=rng).to(values.dtype)


def check_predictions_are_of_records(module: nn.Module, rows: Inputs) -> None:
    """Raise if a record of a batch changes predictions for others.

    Training sees one record at a time, and predictions do not. What a module draws from elsewhere
    than PyTorch's generators makes it incomparable.

    Raises
    ------
    LeakingEstimatorError
    """
    places = torch.arange(ROWS)
    changed = [torch.where(places == i, (i + 1) % ROWS, places) for i in (0, ROWS // 2, ROWS - 1)]
    outputs: list[Any] = []
    for order in (places, places, *changed):
        net = copy_with_same_parameters(module).eval()
        outputs.append(outputs_on_made_up(net, map_tensors(itemgetter(order), rows)))
    if any(values is None or values.shape[:1] != places.shape for values in outputs):
        return
    close = partial(torch.allclose, rtol=TOLERANCE, atol=1e-5, equal_nan=True)
    expected, again, *others = outputs
    unchanged = [order == places for order in changed]
    same = (close(values[rest], expected[rest]) for values, rest in zip(others, unchanged))
    if close(again, expected) and not all(same):
        raise LeakingEstimatorError(
            f"Another record of a table changes predictions of {net_name(module)}: something "
            "couples them (a mean over the batch, a recurrent layer without batch_first=True). "
            "Compute each record's output from that record alone."
        )


def check_batch_is_sum_of_records(
    module: nn.Module, criterion: nn.Module, rows: Inputs, targets: Tensor
) -> None:
    """Raise if a module means something else on a batch than on its records.

    Training runs it on one record at a time, where ``x - x.mean(0)`` is zero: private, but another
    net than the one written. Modules that draw random numbers, or count their calls, are not
    compared.

    Parameters
    ----------
    module, criterion : Module
    rows, targets : tensors; or rows by name
        Made-up records.

    Raises
    ------
    LeakingEstimatorError
    """
    probed, loss = in_training(copy.deepcopy(module)), copy.deepcopy(criterion)
    for layer in probed.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0

    def loss_of(part: slice, seed: int) -> Tensor:
        with torch.no_grad(), seeded_for(probed, seed):
            outputs = probed(map_tensors(lambda values: values[part], rows))
            return loss(outputs, targets[part]).double().sum()

    every, ordinary = slice(None), slice(0, -1)
    try:
        if len({loss_of(every, seed).item() for seed in (0, 1, 1)}) > 1:
            return
        with torch.no_grad(), seeded_for(probed):
            first = torch.zeros(ROWS, dtype=torch.long)
            equal = probed(map_tensors(lambda values: values[first], rows))
        # Numbers may be drawn by place, from another generator.
        expected = equal[:1].expand_as(equal)
        if not torch.allclose(equal, expected, rtol=TOLERANCE, atol=1e-6, equal_nan=True):
            return
        # Without the large record too, which would hide differences.
        single = [loss_of(slice(i, i + 1), 0) for i in range(ROWS)]
        compared = [(loss_of(part, 0), single[part]) for part in (every, ordinary)]
    except Exception:  # no conclusion from made-up records that the code does not take
        return
    if not any(bool(record_loss.isfinite()) for record_loss in single):
        raise LeakingEstimatorError(
            f"{net_name(module)} with {type(criterion).__name__} has no finite loss on any made-up "
            "record by itself: such records contribute nothing, and noise alone would be trained. "
            "A standard deviation over a batch of one record is not a number, for example. Compute "
            "outputs from each record alone."
        )
    for together, alone in compared:
        total, tolerance = torch.stack(alone).sum(), TOLERANCE * torch.stack(alone).abs().sum()
        sums = ((total, tolerance), (total / len(alone), tolerance / len(alone)))
        comparable = bool(total.isfinite()) and bool(together.isfinite())
        agrees = any(bool((together - expected).abs() <= limit) for expected, limit in sums)
        if comparable and not agrees:
            raise LeakingEstimatorError(
                f"The loss of {net_name(module)} with {type(criterion).__name__} on several "
                "records is neither the sum nor the mean of the losses on each: something couples "
                "them (a mean over the batch, a weighted mean in the loss, batch statistics). "
                "Compute each record's output and loss from that record alone, and sum "
                'the losses (reduction="sum").'
            )
