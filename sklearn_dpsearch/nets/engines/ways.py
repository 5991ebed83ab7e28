"""Three ways to train a module with a criterion, and no other: what is private is read from structure.

1. Known layers in sequence with a known loss (``plain``).
2. A graph of operations that act on each record alone, with a known loss (``graph``).
3. Anything else as the gradient of one record under ``vmap``, where other records cannot be seen (``vmap``).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import nn

from ...privacy import LeakingEstimatorError, PrivacyError
from ..named_tensors import Inputs, name_of
from ..randomness import global_torch_seed
from ..state import contents
from . import losses, plain, probe
from .base import Engine
from .graph import Traced, trace
from .layered import LayeredEngine
from .linear import PlainEngine, TracedEngine
from .refusals import refuse
from .rules import NotPerRecord
from .vmap import VmapEngine

#: What is taken on trust where a module, or a criterion, runs code that is not known.
TRUST = (
    "{module} and {criterion} run code of their own on one record at a time; it keeps nothing in files, or in other "
    "places that cannot be seen from them."
)


@dataclass(frozen=True)
class Way:
    """How a module is trained with a criterion.

    Parameters
    ----------
    traced : Traced or None
        The graph of the module.
    known : bool
        Whether the criterion is known to sum one loss per record.
    reason : str
        Why there is no graph; empty if there is one.
    """

    traced: Traced | None
    known: bool
    reason: str

    @property
    def stacks(self) -> bool:
        """Whether several nets of equal signature can be trained as one."""
        return self.traced is not None and self.known and self.traced.linear and not self.traced.random


def way_of(module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor) -> Way:
    """Find the graph of a module that is not plain, and run it once on made-up records.

    Raises
    ------
    LeakingEstimatorError
        For layers and hooks that are refused by type, and code that keeps something of a forward pass.
    ValueError
        For outputs that the criterion does not take.
    """
    device = next(module.parameters()).device
    rows, targets = rows.to(device), targets.to(device)
    traced, reason = _traced(module, rows)
    outputs = _outputs_of_copies(module, criterion, rows, targets)
    if outputs is not None:
        losses.check_outputs(criterion, outputs)
    # Code may do what its graph does not show (have a gradient of its own, say): then the graph is not what is trained.
    if traced is not None and (outputs is None or not _computes_what_the_module_does(traced, module, rows)):
        traced, reason = None, "forward computes something else than its graph"
    known = outputs is not None and losses.sums_over_records(criterion, outputs, targets)
    return Way(traced, known, reason)


def engine_for(
    module: nn.Module,
    criterion: nn.Module,
    rows: Inputs,
    targets: torch.Tensor,
    device: torch.device,
    lot: float = 1.0,
) -> Engine:
    """The fastest engine that computes this net's clipped sums, each record alone.

    Parameters
    ----------
    module, criterion : Module
        Left as found.
    rows, targets : tensors, or NamedTensors
        Made-up records of the shape and kind of the real ones.
    device : torch.device
    lot : float
        Expected batch size.

    Raises
    ------
    LeakingEstimatorError, PrivacyError
        For what fits none of the three ways: the reason, and the remedy.
    """
    refuse(module)
    refuse(criterion)
    if plain.structure(module, criterion) is not None:
        return PlainEngine(module, criterion, device)
    way = way_of(module, criterion, rows, targets)
    if way.traced is not None and way.known:
        if way.traced.linear:
            return TracedEngine(module, criterion, device, way.traced)
        if way.traced.layered:
            return LayeredEngine(module, criterion, device, way.traced)
        return VmapEngine(module, criterion, device, way.traced.runnable, own_code=False)
    # Nothing is known of this code: it is run as it is, one record at a time, and looked at once more.
    engine = VmapEngine(module, criterion, device)
    _check_on_made_up(way, module, criterion, rows, targets, round(lot))
    return engine


def _traced(module: nn.Module, rows: Inputs) -> tuple[Traced | None, str]:
    try:
        with global_torch_seed(0):
            return trace(module, rows), ""
    except NotPerRecord as error:
        return None, str(error)


def _outputs_of_copies(
    module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor
) -> torch.Tensor | None:
    """Outputs on made-up records; None if the code takes no batch. It runs on copies, which must stay equal."""
    probed, loss = copy.deepcopy(module).train(), copy.deepcopy(criterion)
    before = contents(probed), contents(loss)
    outputs = None
    try:
        with torch.no_grad(), global_torch_seed(0):
            outputs = probed(rows)
            loss(outputs, targets)
    except Exception:  # the third way says what is wrong
        pass
    for code, held in zip((probed, loss), before):
        if contents(code) != held:
            raise kept_something(code)
    return outputs if isinstance(outputs, torch.Tensor) else None


def separate(module: nn.Module) -> nn.Module:
    """A copy with the same parameters: what its forward keeps, or changes, is lost with it."""
    memo: dict[int, object] = {id(p): p for p in module.parameters()}
    return copy.deepcopy(module, memo)


def digest_of_code(engine: Engine) -> str:
    """What code that is not known could have kept; the same before and after a training that may be released."""
    own = isinstance(engine, VmapEngine) and engine.own_code
    return contents(engine.template, engine.criterion) if own else ""


def assumptions(engine: Engine, module: nn.Module, criterion: nn.Module) -> tuple[str, ...]:
    """What is taken on trust in a training with this engine, as plain sentences."""
    own = isinstance(engine, VmapEngine) and engine.own_code
    return (TRUST.format(module=name_of(module), criterion=type(criterion).__name__),) if own else ()


def kept_something(code: nn.Module) -> LeakingEstimatorError:
    """The error for code that keeps something of a forward pass."""
    return LeakingEstimatorError(
        f"{name_of(code)} changes its parameters, buffers or attributes in forward, or something that its code "
        "refers to, so what it holds after training would tell about records without noise. Keep only parameters, and "
        "constant buffers."
    )


def _computes_what_the_module_does(traced: Traced, module: nn.Module, rows: Inputs) -> bool:
    """Whether outputs and gradients of the graph are the module's: a function may have a gradient of its own."""
    graph, own = (_outputs_and_slopes(runnable, rows) for runnable in (traced.runnable, separate(module).train()))
    return graph.keys() == own.keys() and all(
        graph[name].shape == own[name].shape
        and torch.allclose(graph[name], own[name], rtol=1e-3, atol=1e-5, equal_nan=True)
        for name in own
    )


def _outputs_and_slopes(module: nn.Module, rows: Inputs) -> dict[str, torch.Tensor]:
    """Outputs, and gradients of their weighted sum in the parameters that matter, by name."""
    with global_torch_seed(0):
        outputs = module(rows)
    found = {"": outputs.detach()}
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if trained and outputs.requires_grad:
        weights = torch.linspace(0.5, 1.5, outputs.numel(), device=outputs.device).view_as(outputs)
        slopes = torch.autograd.grad((outputs * weights).sum(), list(trained.values()), materialize_grads=True)
        found |= {name: slope for name, slope in zip(trained, slopes) if bool(slope.any())}
    return found


def _check_on_made_up(
    way: Way, module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor, lot: int
) -> None:
    """Try the third way on made-up records, and compare it with what the code does to batches."""
    probed, loss = probe.awake(module).train(), copy.deepcopy(criterion)
    engine = VmapEngine(probed, loss, next(module.parameters()).device)
    trained, frozen = (engine.layout.read([probed], engine.device, flag) for flag in (True, False))
    engine.bind(trained, frozen, torch.zeros_like(trained, dtype=torch.float64))
    before = digest_of_code(engine)
    try:
        with global_torch_seed(0):
            engine.gradients(rows[:1].to(engine.device), targets[:1].to(engine.device))
    except Exception as error:
        raise _refused(way, module, criterion, error) from None
    if digest_of_code(engine) != before:
        raise kept_something(module)
    probe.check_same_on_batches(engine, probed, loss, rows, targets, lot)


#: What PyTorch says under ``vmap`` ↦ what it means for a module.
MEANINGS = {
    "data-dependent control flow": "a branch on a value (if, while, assert), or .item()",
    "batching operators that can support dynamic shape": "a selection by a mask, whose size depends on values",
    "dynamic shape": "a result whose size depends on values",
    "that would mutate a captured Tensor": "something that changes in place (a buffer, a state)",
    "in-place operation": "something that changes in place (a buffer, a state)",
    "data pointer": "a conversion to NumPy, or to a list",
    "setup_context": "a torch.autograd.Function without setup_context and generate_vmap_rule = True",
    "does not have vmap support": "a torch.autograd.Function without generate_vmap_rule = True",
    "broadcast shape": "something that changes in place (a buffer, a state)",
}


def _refused(way: Way, module: nn.Module, criterion: nn.Module, error: Exception) -> PrivacyError:
    names = f"{name_of(module)} with {type(criterion).__name__}"
    said = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    meant = next((meaning for words, meaning in MEANINGS.items() if words in str(error)), said)
    return LeakingEstimatorError(
        f"Found {names}, which cannot be shown to act on each record alone. As a graph: "
        f"{way.reason or 'the loss is not one that is known'}. One record at a time (torch.func.vmap): {meant}. "
        "Needed: outputs and a loss that are computed from each record alone, without branches on values, .item() or "
        "NumPy. Use torch.where in place of if, constants known in advance in place of statistics of a batch, and "
        "layers of PyTorch."
    )
