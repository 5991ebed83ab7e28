"""skorch's callbacks without access to batches or losses, recognised by exact type.

All other callbacks are refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from skorch.callbacks import Freezer, LRScheduler, ProgressBar
from skorch.utils import freeze_parameter
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ...privacy import LeakingEstimatorError


def callbacks_of_kind(callbacks: Any, kind: type) -> list[Any]:
    """skorch callbacks of one kind, after a check of all.

    Raises
    ------
    LeakingEstimatorError
        For a callback that is not allowed, and for an allowed one that would act between the start
        and the end.
    """
    entries = [] if callbacks in (None, "disable") else callbacks
    return [callback for callback in map(_checked_callback, entries) if type(callback) is kind]


def _checked_callback(entry: Any) -> Any:
    """Callback of an entry of ``callbacks``, or an error."""
    callback = entry[1] if isinstance(entry, tuple) else entry
    callback = callback() if isinstance(callback, type) else callback
    # By exact type: a subclass may do anything.
    if type(callback) not in (LRScheduler, Freezer, ProgressBar):
        raise LeakingEstimatorError(
            f"Found callback {type(callback).__name__}: it would see records, losses or batch "
            "sizes without noise. Only LRScheduler with a policy that does not look at losses, "
            "Freezer and ProgressBar (all of skorch.callbacks) are possible. To keep a net, call "
            "save_params, or pickle it, after fit."
        )
    if type(callback) is Freezer and not _freezes_at_the_start(callback):
        raise LeakingEstimatorError(
            "Found callback Freezer with at=, fn= or schedule=: a change during training could "
            "depend on what is seen there. Only Freezer(patterns), which freezes parameters before "
            "the first step, is possible."
        )
    if type(callback) is LRScheduler and callback._get_policy_cls() is ReduceLROnPlateau:
        raise LeakingEstimatorError(
            "Found callback LRScheduler with ReduceLROnPlateau: it would see losses without noise. "
            "Only LRScheduler with a policy that does not look at losses is possible."
        )
    return callback


def _freezes_at_the_start(callback: Freezer) -> bool:
    """Return whether a skorch ``Freezer`` acts before the first step alone.

    It is then as made, or as initialised by skorch (copies keep the methods of their original).
    """
    at, schedule = callback.at, callback.schedule
    partial_at = isinstance(at, partial) and _is_method_of(at.func, Freezer._epoch_at)
    by_constructor = partial_at and at.keywords == {"epoch": 1}
    first = (type(at) is int and at == 1) or by_constructor
    by_default = schedule is None or _is_method_of(schedule, Freezer._default_schedule)
    return first and by_default and callback.fn is freeze_parameter


def _is_method_of(method: object, function: object) -> bool:
    return getattr(method, "__func__", None) is function


# --- before the first step ------------------------------------------------------------------------


def freeze_parameters(module: nn.Module, callbacks: Any) -> None:
    """Freeze parameters by name, for each skorch ``Freezer`` among the callbacks.

    Raises
    ------
    ValueError
        If a freezer finds no parameter, or none is left to train.
    """
    parameters = list(module.named_parameters())
    for callback in callbacks_of_kind(callbacks, Freezer):
        patterns = callback.patterns
        patterns = patterns if isinstance(patterns, (list, tuple)) else [patterns]
        matches = list(callback.filter_parameters(patterns, parameters))
        if not matches:
            names, patterns = [name for name, _ in parameters], callback.patterns
            raise ValueError(f"Found Freezer({patterns!r}), which matches none of {names}.")
        for _, parameter in matches:
            freeze_parameter(parameter)
    if not any(parameter.requires_grad for _, parameter in parameters):
        raise ValueError(
            "Found a module whose parameters are all frozen: nothing is left to train."
        )
