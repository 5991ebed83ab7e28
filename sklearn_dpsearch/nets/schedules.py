"""Learning-rate schedules without data, as tables computed before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .._process import without_warnings
from .optimizers import Table

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
        Name of a hyperparameter ↦ its value at each step, for those that change.
    """
    if not schedulers:
        return {}
    (group,) = optimizer.param_groups
    before, names = dict(group), [name for name in CHANGED if name in group]
    rows: dict[str, list[Any]] = {name: [] for name in names}
    with without_warnings():  # "step of the optimizer was not called": it is not called on purpose
        running = [(policy(optimizer, **arguments), every) for policy, arguments, every in schedulers]
        for t in range(steps):
            for name in names:
                rows[name].append(group[name])
            for scheduler, every_batch in running:
                if every_batch or (t + 1) % steps_per_epoch == 0:
                    scheduler.step()
    group.clear()
    group.update(before)
    return {name: values for name, values in rows.items() if any(value != before[name] for value in values)}
