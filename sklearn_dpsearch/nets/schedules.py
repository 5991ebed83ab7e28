"""Learning-rate schedules without data, as tables computed before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .._process import without_warnings
from .optimizers import PerGroup, Table

#: Hyperparameters that PyTorch's schedulers change.
CHANGED = ("lr", "momentum", "betas")


class Scheduler(NamedTuple):
    """One of PyTorch's learning-rate schedulers: its class, its arguments, and whether it steps after every batch."""

    policy: Callable[..., Any]
    arguments: dict[str, Any]
    every_batch: bool


def table_of(
    optimizer: torch.optim.Optimizer, schedulers: Sequence[Scheduler], steps: int, steps_per_epoch: int
) -> Table:
    """Run schedulers without training, and note their values.

    Parameters
    ----------
    optimizer : Optimizer
        Left as found.
    schedulers : sequence of Scheduler
    steps, steps_per_epoch : int

    Returns
    -------
    dict
        Name of a hyperparameter ↦ its value at each step, for those that change; of several groups one for each.
    """
    if not schedulers:
        return {}
    groups = optimizer.param_groups
    names = [name for name in CHANGED if name in groups[0]]
    before = [{name: group[name] for name in names} for group in groups]
    keys = [set(group) for group in groups]
    rows: dict[str, list[Any]] = {name: [] for name in names}
    with without_warnings():  # "step of the optimizer was not called": it is not called on purpose
        running = [(policy(optimizer, **arguments), every) for policy, arguments, every in schedulers]
        for t in range(steps):
            for name, values in rows.items():
                values.append(PerGroup(group[name] for group in groups))
            for scheduler, every_batch in running:
                if every_batch or (t + 1) % steps_per_epoch == 0:
                    scheduler.step()
    for group, own, known in zip(groups, before, keys):
        for name in set(group) - known:
            del group[name]
        group.update(own)
    changed = {name: values for name, values in rows.items() if any(tuple(v) != _of(before, name) for v in values)}
    return changed if len(groups) > 1 else {name: [only for (only,) in values] for name, values in changed.items()}


def _of(groups: Sequence[dict[str, Any]], name: str) -> tuple[Any, ...]:
    return tuple(group[name] for group in groups)
