"""DP-SGD: one net, or many of one architecture at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import nn

from .._process import Stage, contained
from ._engines import rounding
from ._engines.engine_choice import EngineChoice, choose_engine
from ._engines.per_sample import OpacusEngine
from ._randomness import global_torch_seed
from ._records import TrainingData
from ._stacked_training import Stack, TrainingTask
from ._torch_settings import exact_arithmetic

#: Most bytes that a stack uses in a step. More would not fit into a CPU's caches, and a stack would
#: be slower than its nets alone (``examples/benchmarks/nets_at_real_size.py``). A GPU gains from
#: every increase.
CACHE = {"cpu": 6 * 2**20}
#: Fewest nets that must fit into ``CACHE``, so that any are stacked: where fewer fit, padding their
#: batches would cost more than a stack gains, and each net is trained alone.
FEWEST_NETS = 4


def train(
    task: TrainingTask,
    records: TrainingData,
    *,
    max_physical_batch: int,
    tell: Callable[[Stage], None] = lambda stage: None,
) -> None:
    """Train one net in place by DP-SGD.

    Raises
    ------
    LeakingEstimatorError, PrivacyError
        For a net that may mix records.
    """
    with exact_arithmetic(records.device):
        choice = _choice_for_task(task, records)
        engine = choice.engine(task.module, task.criterion, records.device)
        # Seeded for dropout.
        with records.opened(task.seed) as opened, global_torch_seed(task.seed, records.device):
            Stack([task], engine, opened, max_physical_batch, tell).run()
    task.notes[:] = (*choice.assumptions, *records.assumptions())


def _choice_for_task(task: TrainingTask, records: TrainingData) -> EngineChoice:
    """Engine of a training task: Opacus's if its argument says so, or else the fastest of ours."""
    if task.engine == "opacus":
        return EngineChoice(OpacusEngine)
    return choose_engine(task.module, task.criterion, records.inputs, records.targets)


def train_together(
    tasks: Sequence[TrainingTask], records: TrainingData, *, max_physical_batch: int
) -> list[bool]:
    """Train several nets in place, as stacks of equal architecture.

    Each net has its own batches, noise, rates and number of steps; grouping changes time, never
    results. A failing net does not affect the others: the unfinished nets of its stack start again,
    each by itself, with the secrets that they would have had alone.

    Returns
    -------
    list of bool
        Whether each net succeeded.
    """
    done = [False] * len(tasks)
    for group in _group_into_stacks(tasks, records, max_physical_batch):
        remaining = group
        if len(group) > 1:
            unfinished = _train_stack([tasks[i] for i in group], records, max_physical_batch)
            remaining = [i for i in group if any(tasks[i] is task for task in unfinished)]
        for i in group:
            done[i] = i not in remaining
        for i in remaining:
            with contained():  # in a search: the worst score, in silence
                train(tasks[i], records, max_physical_batch=max_physical_batch)
                done[i] = True
    return done


def _train_stack(
    tasks: list[TrainingTask], records: TrainingData, max_physical_batch: int
) -> list[TrainingTask]:
    """Train nets as one stack; return those left unfinished, with their initial parameters."""
    stack = None
    with exact_arithmetic(records.device), contained():
        engine_of, task = _choice_for_task(tasks[0], records).engine, tasks[0]
        engine = engine_of(task.module, task.criterion, records.device)
        stack = Stack(tasks, engine, records, max_physical_batch)  # a schedule may fail
        stack.run()
    return tasks if stack is None else stack.tasks


# --- choice of stacks -----------------------------------------------------------------------------


def _group_into_stacks(
    tasks: Sequence[TrainingTask], records: TrainingData, max_physical_batch: int
) -> list[list[int]]:
    """Group nets into stacks of similar batch sizes that fit memory."""
    by_key: dict[Hashable, list[int]] = {}
    for i, task in enumerate(tasks):
        key = _stack_key(task, records)
        by_key.setdefault(("alone", i) if key is None else key, []).append(i)
    groups: list[list[int]] = []
    for members in by_key.values():
        ordered = sorted(members, key=lambda i: (tasks[i].sample_rate, tasks[i].steps))
        sizes = [max(1, tasks[i].rows(records.units)) for i in ordered]
        largest = _most_records_in_stack(tasks[ordered[-1]], sizes[-1], records.device)
        groups += _split_by_batch_size(ordered, sizes, min(max_physical_batch, largest))
    return groups


def _most_records_in_stack(task: TrainingTask, size: int, device: torch.device) -> float:
    """Most records at once in a stack of nets like this, at least those of one net."""
    room = CACHE.get(device.type, math.inf)
    # Parameters, noise, sums and gradients; inputs and outputs of the layers for the records of one
    # round.
    layers = [layer for layer in task.module.modules() if type(layer) is nn.Linear]
    per_record = sum(layer.in_features + layer.out_features for layer in layers)
    parameters = sum(p.numel() for p in task.module.parameters())
    bytes_of_net = float(20 * parameters + 4 * per_record * min(size, rounding.CHUNK))
    return size * (room // bytes_of_net if room >= FEWEST_NETS * bytes_of_net else 1.0)


def _stack_key(task: TrainingTask, records: TrainingData) -> Hashable | None:
    """Key that is equal for nets that can train as one stack; None for a net that trains alone."""
    if not records.stacks:
        return None
    with contained():  # this net will fail, alone
        structure = _choice_for_task(task, records).stack_key
        if structure is not None:
            hash(structure)  # raises for a layer with a constant that cannot be compared
            return structure, task.optimizer.structure
    return None


def _split_by_batch_size(members: list[int], sizes: list[int], limit: float) -> list[list[int]]:
    """Split nets into stacks of at most ``limit`` records, with batch sizes within a factor two.

    Batches are filled up to the widest of the stack: nets of very different sizes would mostly
    compute on empty rows.
    """
    groups: list[list[int]] = []
    first = 0
    for i, size in zip(members, sizes):
        if groups and size * (len(groups[-1]) + 1) <= limit and size <= 2 * first:
            groups[-1].append(i)
        else:
            groups.append([i])
            first = size
    return groups
