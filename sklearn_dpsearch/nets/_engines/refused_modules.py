"""Modules and criteria refused by their types, and layers that are not what their types say."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...privacy import LeakingEstimatorError


def has_frozen_statistics(layer: nn.Module) -> bool:
    """Return whether a layer is batch normalisation in evaluation mode.

    It is then a fixed map of each record alone.
    """
    fixed = type(layer) in BATCH_NORMS and not layer.training and not is_altered(layer)
    statistics = ("running_mean", "running_var")
    return fixed and all(isinstance(getattr(layer, name), Tensor) for name in statistics)


def in_training(module: nn.Module) -> nn.Module:
    """Put a module into training mode, except batch normalisation with frozen statistics."""
    frozen = [layer for layer in module.modules() if has_frozen_statistics(layer)]
    module.train()
    for layer in frozen:
        layer.eval()
    return module


def _keeps_statistics(layer: nn.Module) -> bool:
    is_norm = isinstance(layer, nn.modules.batchnorm._BatchNorm)
    keeps = is_norm or bool(getattr(layer, "track_running_stats", False))
    return keeps and not has_frozen_statistics(layer)


def _is_compiled(layer: nn.Module) -> bool:
    kind = type(layer)
    optimized = kind.__name__ == "OptimizedModule" and kind.__module__.startswith("torch.")
    is_script = isinstance(layer, torch.jit.ScriptModule)
    return optimized or is_script or layer._compiled_call_impl is not None


BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
#: Test for a kind of layer, what such a layer does, and the remedy.
KINDS: tuple[tuple[Callable[[nn.Module], bool], str, str], ...] = (
    (
        _keeps_statistics,
        "keeps statistics over the records of a batch, so one record changes the gradients of "
        "others and clipping bounds nothing",
        "Use nn.GroupNorm or nn.LayerNorm; or, to fine-tune with its statistics as they are, call "
        "its eval()",
    ),
    (
        _is_compiled,
        "is compiled, or a script (torch.compile, torch.jit), which cannot be run on one record at "
        "a time",
        "Give the module as it was before",
    ),
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


def refuse_module(module: nn.Module) -> None:
    """Raise for a module or criterion that cannot be trained privately.

    Raises
    ------
    LeakingEstimatorError
        For statistics over a batch, compiled, distributed and lazy modules, and for parameters or
        buffers of a type of one's own.
    """
    for name, layer in module.named_modules():
        for applies, effect, remedy in KINDS:
            if applies(layer):
                where = f"Layer {name!r} ({type(layer).__name__})" if name else type(layer).__name__
                raise LeakingEstimatorError(f"{where} {effect}. {remedy}.")
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if type(tensor) not in (Tensor, nn.Parameter):
            raise LeakingEstimatorError(
                f"Found {name!r} of type {type(tensor).__name__}: the operations of a subclass of "
                "Tensor are its own, and may see several records at once. Make it an nn.Parameter, "
                "or a plain tensor."
            )


#: Attributes in which PyTorch keeps hooks of one module, and of all.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_altered(layer: nn.Module) -> bool:
    """Return whether a layer may do something else than its type says.

    It may have hooks, or methods other than PyTorch's, of its own or put into its class.
    """
    kind, every = type(layer), nn.modules.module
    if any(getattr(layer, name, None) or getattr(every, f"_global{name}") for name in HOOKS):
        return True
    if any(callable(getattr(kind, name, None)) for name in vars(layer)):
        return True
    attributes = (value for parent in kind.__mro__[:-1] for value in vars(parent).values())
    return not all(map(_is_pytorchs, filter(inspect.isfunction, attributes)))


@functools.lru_cache(maxsize=4096)
def _is_pytorchs(method: Callable[..., object]) -> bool:
    """Return whether a function is PyTorch's or of this library."""
    name = inspect.unwrap(method).__module__ or ""
    return name.partition(".")[0] in ("torch", "typing", __name__.partition(".")[0])
