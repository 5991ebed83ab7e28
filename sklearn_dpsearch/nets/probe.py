"""Checks on made-up records: does each record act on its own, and does an engine compute its gradient?"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import nn

from ..privacy import LeakingEstimatorError, PrivacyError
from . import plain
from .engines import Engine
from .linear import LinearEngine, PlainEngine, TracedEngine
from .per_sample import PerSampleEngine

ROWS = 8
#: Where PyTorch's own dropout layers are.
DROPOUT = nn.modules.dropout.__name__
#: Relative difference of gradients that single precision explains; coupled records differ by 0.1 and more.
TOLERANCE = 1e-4
#: Parameters below this are made larger in a second check: behind a layer of zeros nothing shows in gradients.
ASLEEP = 1e-3


def made_up(inputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Public records of the same shape and kind: a few ordinary ones, one large."""
    rng = torch.Generator().manual_seed(0)  # public, and the same every time
    shape = (ROWS, *inputs.shape[1:])
    rows = (
        torch.randn(shape, generator=rng) if inputs.is_floating_point() else torch.randint(0, 2, shape, generator=rng)
    )
    if inputs.is_floating_point():
        rows[-1] *= 50
    answers = (ROWS, *targets.shape[1:])
    labels = (
        torch.randn(answers, generator=rng)
        if targets.is_floating_point()
        else torch.randint(0, 2, answers, generator=rng)
    )
    return rows.to(inputs.dtype), labels.to(targets.dtype)


def records_for(module: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
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


def check_records_are_apart(module: nn.Module, criterion: nn.Module, rows: torch.Tensor, targets: torch.Tensor) -> None:
    """Raise unless the gradient of the summed loss is the sum of every record's own.

    Raises
    ------
    LeakingEstimatorError
        For layers with batch statistics, losses that average or weigh by the batch, state that remembers records.
    """
    for name, one in module.named_modules():
        if isinstance(one, nn.modules.batchnorm._BatchNorm) or getattr(one, "track_running_stats", False):
            raise LeakingEstimatorError(
                f"Layer {name!r} ({type(one).__name__}) keeps statistics over the records of a batch, so one record "
                "changes the gradients of others and clipping bounds nothing. Use nn.GroupNorm or nn.LayerNorm."
            )
    probed, loss = _quiet_copy(module), copy.deepcopy(criterion)
    before = state_of(probed), state_of(loss)
    together = _gradient(probed, loss, rows, targets)
    for one, remembered in zip((probed, loss), before):
        if state_of(one) != remembered:
            raise LeakingEstimatorError(
                f"{type(one).__name__} changes its parameters, buffers or attributes in forward, so what it holds "
                "after training would tell about records without noise. Keep only parameters, and constant buffers."
            )
    apart = [_gradient(probed, loss, rows[i : i + 1], targets[i : i + 1]) for i in range(len(rows))]
    single = torch.stack(apart)
    ordinary = _gradient(probed, loss, rows[:-1], targets[:-1])  # the large one would hide a lot
    if _differ(together, single) or _differ(ordinary, single[:-1]):
        raise LeakingEstimatorError(
            f"The gradient of {type(module).__name__} with {type(criterion).__name__} on several records is not the "
            "sum of the gradients on each: something couples them (a mean over the batch, a weighted mean in the "
            "loss, batch statistics). Compute each record's output and loss from that record alone, and sum the "
            'losses (reduction="sum").'
        )


def engine_for(
    module: nn.Module, criterion: nn.Module, rows: torch.Tensor, targets: torch.Tensor, device: torch.device
) -> Engine:
    """The engine that computes this net's clipped sums, checked against gradients record by record."""
    if plain.structure(module, criterion) is not None:
        return PlainEngine(module, criterion, device)
    nets = [module, *awake(module)]
    for one in nets:
        check_records_are_apart(one, criterion, rows, targets)
    expected = [reference(one, criterion, rows, targets) for one in nets]
    if LinearEngine.suits(module):
        traced = TracedEngine(module, criterion, device, several=False)
        if all(agrees(traced, *pair, rows, targets) for pair in zip(nets, expected)):
            return traced
    per_sample = PerSampleEngine(module, criterion, device)
    if all(agrees(per_sample, *pair, rows, targets) for pair in zip(nets, expected)):
        return per_sample
    raise PrivacyError(
        f"The per-record gradients that Opacus computes for {type(module).__name__} are not those of PyTorch on single "
        "records, so clipping them would bound nothing. Usual reason: a parameter used outside of its layer, or two "
        "layers that share one."
    )


def agrees(
    engine: Engine, module: nn.Module, expected: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor
) -> bool:
    """Whether an engine computes the expected clipped sum for a net (in a stack of two: for records in any order)."""
    device = next(engine.template.parameters()).device
    stack = 2 if getattr(engine, "several", False) else 1
    modules = [module] * stack
    trained, frozen = (engine.layout.read(modules, device, flag) for flag in (True, False))
    sums = torch.zeros_like(trained, dtype=torch.float64)
    inputs, answers = (torch.stack([one, one.flip(0)][:stack]).to(device) for one in (rows, targets))
    state = {name: one.training for name, one in engine.template.named_modules()}
    _silence(engine.template)
    try:
        engine.bind(trained, frozen, sums)
        engine.add_clipped(inputs, answers, torch.ones(inputs.shape[:2], device=device))
    except Exception:
        return False  # made-up records: whatever went wrong, this engine is not for this net
    finally:
        for name, one in engine.template.named_modules():
            one.training = state[name]
    return bool((sums.cpu() - expected).norm() <= TOLERANCE * max(1.0, float(expected.norm())) * stack)


def reference(module: nn.Module, criterion: nn.Module, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The sum of clipped gradients at clipping norm 1, one record at a time: slow and plain."""
    probed, criterion = _quiet_copy(module), copy.deepcopy(criterion)
    gradients = [_gradient(probed, criterion, rows[i : i + 1], targets[i : i + 1]) for i in range(len(rows))]
    return torch.stack([one * min(1.0, 1.0 / max(float(one.norm()), 1e-30)) for one in gradients]).sum(0)


def _gradient(module: nn.Module, criterion: nn.Module, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Gradient of the loss in all trained parameters, flat, on the CPU."""
    device = next(module.parameters()).device
    trained = [p for p in module.parameters() if p.requires_grad]
    loss = criterion.to(device)(module(rows.to(device)), targets.to(device))
    found = torch.autograd.grad(loss, trained, allow_unused=True)
    flat = [torch.zeros_like(p) if one is None else one.to_dense() for p, one in zip(trained, found)]
    return torch.cat([one.reshape(-1) for one in flat]).cpu()


def _differ(together: torch.Tensor, single: torch.Tensor) -> bool:
    """Whether a gradient is not the sum of these, or not a number."""
    return not bool((together - single.sum(0)).norm() <= TOLERANCE * single.norm(dim=1).sum())


def awake(module: nn.Module) -> list[nn.Module]:
    """The net with public random numbers in place of parameters near zero; none if it has no such parameters."""
    copied, rng = copy.deepcopy(module), torch.Generator().manual_seed(0)
    asleep = False
    for parameter in copied.parameters():
        small = parameter.detach().abs() < ASLEEP
        drawn = torch.randn(parameter.shape, generator=rng).to(parameter)
        parameter.data = torch.where(small, 0.1 * drawn, parameter.detach())
        asleep = asleep or bool(small.any())
    return [copied] if asleep else []


def _quiet_copy(module: nn.Module) -> nn.Module:
    copied = copy.deepcopy(module).train()
    _silence(copied)
    return copied


def _silence(module: nn.Module) -> None:
    """PyTorch's random layers off: their masks would differ between two evaluations, and they couple nothing."""
    for one in module.modules():
        if isinstance(one, nn.modules.dropout._DropoutNd) and type(one).forward.__module__ == DROPOUT:
            one.eval()


def has_random_layers(module: nn.Module) -> bool:
    """Whether training draws masks."""
    return any(isinstance(one, nn.modules.dropout._DropoutNd) for one in module.modules())


def state_of(module: nn.Module, parameters: bool = True) -> dict[str, Any]:
    """Everything that a forward pass could leave on a module, in comparable form."""
    kept: dict[str, Any] = {}
    for name, one in module.named_modules():
        for key, value in {**(one._parameters if parameters else {}), **one._buffers, **vars(one)}.items():
            if key not in ("_parameters", "_buffers", "_modules", "training"):
                kept[f"{name}.{key}"] = _comparable(value)
    return kept


def _comparable(value: Any, depth: int = 3) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, (list, tuple, set)) and depth:
        return [_comparable(one, depth - 1) for one in value]
    if isinstance(value, dict) and depth:
        return {str(key): _comparable(one, depth - 1) for key, one in value.items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else id(value)
