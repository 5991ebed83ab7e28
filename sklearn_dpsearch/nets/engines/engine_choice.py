"""Three ways to train a module with a criterion, and no other: privacy is read from structure.

1. Known layers in sequence with a known loss (``plain``).
2. A graph of operations that act on each record alone, with a known loss (``graph``).
3. Any other code, as the gradient of one record under ``vmap``, where other records cannot be seen (``vmap``).
"""

from __future__ import annotations

import copy
import traceback
from dataclasses import dataclass

import torch
from torch import nn

from ...privacy import LeakingEstimatorError, PrivacyError
from ..named_tensors import Inputs, each, name_of, tensors_of
from ..randomness import global_torch_seed
from ..state import contents
from . import losses, plain, probe
from .base import Engine
from .graph import Traced, trace
from .layered import LayeredEngine
from .linear import PlainEngine, TracedEngine
from .refusals import in_training, refuse
from .rules import NO_TOKENS, NotPerRecord
from .user_code import refuse_code
from .vmap import VmapEngine

#: Assumption where a module, or a criterion, runs unknown code.
TRUST = (
    "{module} and {criterion} run code of their own on one record at a time; it keeps nothing in files, or in other "
    "places that cannot be seen from them."
)


@dataclass(frozen=True)
class Way:
    """One way to train a module with a criterion.

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
        """Return whether several nets of equal signature can be trained as one."""
        return self.traced is not None and self.known and self.traced.linear and not self.traced.random


def way_of(module: nn.Module, criterion: nn.Module, rows: Inputs, targets: torch.Tensor) -> Way:
    """Find the graph of a module that is not plain, and run it once on made-up records.

    Raises
    ------
    LeakingEstimatorError
        For layers and hooks that are refused by type, and code that keeps something of a forward pass.
    ValueError
        For outputs that do not fit the criterion.
    """
    device = next(module.parameters()).device
    rows, targets = rows.to(device), targets.to(device)
    traced, reason = _traced(module, rows)
    outputs = _outputs_of_copies(module, criterion, rows, targets)
    if outputs is not None:
        losses.check_outputs(criterion, outputs)
    # Code may differ from its graph, for example by its own gradient; then the graph is not used.
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
    """Fastest engine for this net's clipped sums, each record alone.

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
        If none of the three ways applies: with the reason and the remedy.
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
    # Unknown code: run as written, one record at a time, and probed on made-up records first.
    refuse_code(module, criterion)
    engine = VmapEngine(module, criterion, device)
    engine.draws = _check_on_made_up(way, module, criterion, rows, targets, round(lot))
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
    """Outputs on made-up records; None if the code takes no batch. The code runs on copies, which must stay equal."""
    probed, loss = in_training(copy.deepcopy(module)), copy.deepcopy(criterion)
    before = contents(probed), contents(loss)
    outputs, given = None, each(torch.Tensor.clone, rows)
    try:
        with torch.no_grad(), global_torch_seed(0):
            outputs = probed(given)
            loss(outputs, targets)
    except Exception:  # the third way raises the explaining error
        pass
    if not all(torch.equal(one, other) for one, other in zip(tensors_of(rows), tensors_of(given))):
        raise LeakingEstimatorError(
            f"{name_of(module)} changes its inputs in place in forward (x.mul_(2), x += 1, x[...] = 0), which are "
            "records. Make new tensors: x = x * 2."
        )
    for code, held in zip((probed, loss), before):
        if contents(code) != held:
            refuse_code(module, criterion)  # may know the reason
            raise kept_something(code)
    return outputs if isinstance(outputs, torch.Tensor) else None


def separate(module: nn.Module) -> nn.Module:
    """Copy with the same parameters: all that its ``forward`` keeps or changes is lost with the copy."""
    memo: dict[int, object] = {id(p): p for p in module.parameters()}
    return copy.deepcopy(module, memo)


def digest_of_code(engine: Engine) -> str:
    """Digest of all that unknown code could have kept: equal before and after a training that may be released."""
    own = isinstance(engine, VmapEngine) and engine.own_code
    return contents(engine.template, engine.criterion) if own else ""


def assumptions(engine: Engine, module: nn.Module, criterion: nn.Module) -> tuple[str, ...]:
    """Assumptions of a training with this engine, as plain sentences."""
    own = isinstance(engine, VmapEngine) and engine.own_code
    return (TRUST.format(module=name_of(module), criterion=type(criterion).__name__),) if own else ()


def kept_something(code: nn.Module) -> LeakingEstimatorError:
    """Make the error for code that keeps something of a forward pass."""
    return LeakingEstimatorError(
        f"{name_of(code)} changes its parameters, buffers or attributes in forward, or something that its code "
        "refers to, so what it holds after training would tell about records without noise. Keep only parameters, and "
        "constant buffers."
    )


def _computes_what_the_module_does(traced: Traced, module: nn.Module, rows: Inputs) -> bool:
    """Return whether outputs and gradients of graph and module agree: a function may have its own gradient."""
    graph, own = (_outputs_and_slopes(runnable, rows) for runnable in (traced.runnable, in_training(separate(module))))
    return graph.keys() == own.keys() and all(
        graph[name].shape == own[name].shape
        and torch.allclose(graph[name], own[name], rtol=1e-3, atol=1e-5, equal_nan=True)
        for name in own
    )


def _outputs_and_slopes(module: nn.Module, rows: Inputs) -> dict[str, torch.Tensor]:
    """Outputs, and gradients of their weighted sum in the relevant parameters, by name."""
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
) -> bool:
    """Try the third way on made-up records, and compare it with the code on batches.

    Returns
    -------
    bool
        Whether the code draws random numbers.
    """
    probed, loss = in_training(probe.awake(module)), copy.deepcopy(criterion)
    engine = VmapEngine(probed, loss, next(module.parameters()).device)
    trained, frozen = (engine.layout.read([probed], engine.device, flag) for flag in (True, False))
    engine.bind(trained, frozen, torch.zeros_like(trained, dtype=torch.float64))
    before = digest_of_code(engine)

    def once() -> None:
        engine.gradients(rows[:1].to(engine.device), targets[:1].to(engine.device))
        if digest_of_code(engine) != before:
            raise kept_something(module)

    try:
        with global_torch_seed(0):
            probe.check_draws_nowhere_else(once)
    except Exception as error:
        raise _refused(way, module, criterion, error) from None
    probe.check_same_on_batches(engine, probed, loss, rows, targets, lot)
    return engine.drew


#: Error text of PyTorch under ``vmap`` ↦ its meaning for a module.
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
    if isinstance(error, LeakingEstimatorError):
        return error
    if NO_TOKENS in str(way.reason):
        return PrivacyError(
            f"Found numbers that are not whole for an embedding of {name_of(module)}; embeddings need whole numbers, "
            "from 0 to num_embeddings - 1. Give tokens of a whole type: X.astype('int64')."
        )
    names = f"{name_of(module)} with {type(criterion).__name__}"
    said = str(error).strip().splitlines()[0][:200].rstrip(".") if str(error).strip() else type(error).__name__
    if any("one_hot" in (frame.line or "") for frame in traceback.extract_tb(error.__traceback__)):
        said = (
            "F.one_hot, which looks at values (the same is x.unsqueeze(-1) == self.numbers, a buffer torch.arange(10))"
        )
        return _unshown(names, way, said)
    meant = next((meaning for words, meaning in MEANINGS.items() if words in str(error)), said)
    return _unshown(names, way, meant)


def _unshown(names: str, way: Way, meant: str) -> PrivacyError:
    return LeakingEstimatorError(
        f"Found {names}, which cannot be shown to act on each record alone. As a graph: "
        f"{way.reason or 'the loss is not one that is known'}. One record at a time (torch.func.vmap): {meant}. "
        "Needed: outputs and a loss that are computed from each record alone, without branches on values, .item() or "
        "NumPy. Use torch.where in place of if, x.shape[0] in place of len(x), constants known in advance in place of "
        "statistics of a batch, and layers of PyTorch."
    )
