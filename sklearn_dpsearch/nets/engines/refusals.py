"""Modules and criteria that are always refused: by their types, and for hooks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from ...privacy import LeakingEstimatorError


def has_frozen_statistics(layer: nn.Module) -> bool:
    """Return whether a layer is batch normalisation in evaluation mode: a fixed map of each record alone."""
    fixed = type(layer) in BATCH_NORMS and not layer.training and not touched(layer)
    return fixed and all(isinstance(getattr(layer, name), torch.Tensor) for name in ("running_mean", "running_var"))


def in_training(module: nn.Module) -> nn.Module:
    """Put a module into training mode, except batch normalisation with frozen statistics."""
    frozen = [layer for layer in module.modules() if has_frozen_statistics(layer)]
    module.train()
    for layer in frozen:
        layer.eval()
    return module


def _keeps_statistics(layer: nn.Module) -> bool:
    keeps = isinstance(layer, nn.modules.batchnorm._BatchNorm) or bool(getattr(layer, "track_running_stats", False))
    return keeps and not has_frozen_statistics(layer)


def _is_compiled(layer: nn.Module) -> bool:
    optimized = type(layer).__name__ == "OptimizedModule" and type(layer).__module__.startswith("torch.")
    return optimized or isinstance(layer, torch.jit.ScriptModule) or layer._compiled_call_impl is not None


BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
#: Test for a kind of layer, what such a layer does, and the remedy.
KINDS: tuple[tuple[Callable[[nn.Module], bool], str, str], ...] = (
    (
        _keeps_statistics,
        "keeps statistics over the records of a batch, so one record changes the gradients of others and clipping "
        "bounds nothing",
        "Use nn.GroupNorm or nn.LayerNorm; or, to fine-tune with its statistics as they are, call its eval()",
    ),
    (_is_compiled, "is compiled, so what it does cannot be read", "Give the module as it was before it was compiled"),
    (
        lambda layer: isinstance(layer, (nn.DataParallel, nn.parallel.DistributedDataParallel)),
        "spreads batches over devices",
        "Give the module inside of it",
    ),
    (
        lambda layer: isinstance(layer, nn.modules.lazy.LazyModuleMixin),
        "takes the shapes of its parameters from the records",
        "State the shapes, e.g. nn.Linear in place of nn.LazyLinear",
    ),
)
#: Attributes in which PyTorch keeps hooks of one module, and of all.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def touched(module: nn.Module) -> bool:
    """Return whether this instance carries hooks, or a method in the place of one of its class."""
    hooked = any(getattr(module, hooks, None) for hooks in HOOKS)
    return hooked or any(callable(getattr(type(module), name, None)) for name in vars(module))


def refuse(module: nn.Module) -> None:
    """Raise for a module or a criterion that can never be trained privately.

    Raises
    ------
    LeakingEstimatorError
        For statistics over a batch, compiled or distributed modules, hooks.
    """
    _refuse_hooks_on_everything()
    for name, layer in module.named_modules():
        where = f"Layer {name!r} ({type(layer).__name__})" if name else type(layer).__name__
        for applies, found, remedy in KINDS:
            if applies(layer):
                raise LeakingEstimatorError(f"{where} {found}. {remedy}.")
        if any(getattr(layer, hooks, None) for hooks in HOOKS):
            raise LeakingEstimatorError(
                f"{where} has hooks: they would see records without noise, and may keep them. Remove the hooks, and "
                "compute in forward what they compute (torch.nn.utils.parametrizations.weight_norm and the like do)."
            )
    for name, parameter in module.named_parameters():
        if _has_hooks(parameter):
            raise LeakingEstimatorError(
                f"Parameter {name!r} has hooks: they would see gradients without noise. Remove the hooks."
            )


def _refuse_hooks_on_everything() -> None:
    if any(getattr(nn.modules.module, f"_global{hooks}", None) for hooks in HOOKS):
        raise LeakingEstimatorError(
            "Found hooks on all modules of PyTorch (torch.nn.modules.module.register_module_forward_hook and the "
            "like): they would see records without noise. Remove them before training."
        )


def _has_hooks(parameter: nn.Parameter) -> bool:
    return bool(parameter._backward_hooks) or bool(getattr(parameter, "_post_accumulate_grad_hooks", None))
