"""DP-SGD: one net, or many of one architecture at once."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterator, Sequence

import torch
from torch import nn

from .._disk.store import KeyedFile
from .._process import contained
from ..errors import TrainingError
from .engines import engine_choice, operations, plain, probe, rounding
from .engines.base import Engine
from .engines.linear import PlainEngine, TracedEngine
from .engines.refusals import refuse
from .named_tensors import name_of
from .optimizers import BuiltOptimizer
from .randomness import global_torch_seed
from .resuming import kept, shared
from .stack import Stack
from .task import Records, TrainingTask
from .torch_settings import exactly
from .training_progress import NO_WATCHERS, Watchers

#: Most bytes that a stack uses in a step. More would not fit into a CPU's caches, and a stack would be slower than its
#: nets alone (``examples/benchmarks/nets_at_real_size.py``). A GPU gains from every increase.
CACHE = {"cpu": 6 * 2**20}
#: Fewest nets in a stack: a smaller one gains less than padding its batches costs, so each net is trained alone.
FEWEST = 4


def train(task: TrainingTask, records: Records, *, max_physical_batch: int, watchers: Watchers = NO_WATCHERS) -> None:
    """Train one net in place.

    Raises
    ------
    LeakingEstimatorError, PrivacyError
        For a net that may mix records, or that kept something of them; for records whose source changes when it is
        read.
    ValueError
        For tokens that an embedding has no row for.
    """
    device = records.inputs.device
    with exactly(device), contextlib.closing(watchers):
        engine = _engine(task, records)
        before = engine_choice.digest_of_code(engine)
        # Seeded for dropout.
        with records.opened(task.seed) as opened, global_torch_seed(task.seed), _tokens_explained(task.module):
            Stack([task], engine, opened, max_physical_batch, watchers).run()
        if engine_choice.digest_of_code(engine) != before:  # its contents could tell about records
            raise engine_choice.kept_something(task.module)
    task.notes[:] = (*engine_choice.assumptions(engine, task.module, task.criterion), *records.assumptions())


def _engine(task: TrainingTask, records: Records) -> Engine:
    """Engine for one net."""
    device = records.inputs.device
    if task.engine == "opacus":
        from .engines.opacus import OpacusEngine

        return OpacusEngine(task.module, task.criterion, device)
    rows, targets = probe.records_for(task.module, records.inputs, records.targets)
    return engine_choice.engine_for(task.module, task.criterion, rows, targets, device, task.expected_batch_size)


@contextlib.contextmanager
def _tokens_explained(module: nn.Module) -> Iterator[None]:
    """Replace PyTorch's error for a token beyond an embedding by one with the remedy, and without the record."""
    try:
        yield
    except IndexError as error:
        sizes = sorted({layer.num_embeddings for layer in module.modules() if isinstance(layer, nn.Embedding)})
        if not sizes or "index out of range" not in str(error):
            raise
        raise TrainingError(
            f"Found tokens in X that an embedding of {name_of(module)} has no row for: num_embeddings is "
            f"{' and '.join(map(str, sizes))}, and tokens from 0 to one less are needed. Map all others to one of them "
            "by a rule fixed in advance, or make the embedding larger."
        ) from None


def train_together(
    tasks: Sequence[TrainingTask],
    records: Records,
    *,
    max_physical_batch: int,
    keepers: Sequence[KeyedFile | None] | None = None,
) -> list[bool]:
    """Train several nets in place, as stacks of equal architecture; return for each whether it succeeded.

    Each net has its own batches, noise, rates and number of steps; grouping changes time, never results. A failing net
    does not affect the others: the unfinished nets of its stack start again, each by itself, with the secrets that they
    would have had alone. ``keepers`` save the trainings for a restart after a crash, one for each net.
    """
    done, places = [False] * len(tasks), keepers or [None] * len(tasks)
    for group in _groups(tasks, records, max_physical_batch):
        finished: list[TrainingTask] = []
        if len(group) > 1:
            place = shared([places[i] for i in group])
            finished = _run_together([tasks[i] for i in group], records, max_physical_batch, place)
        for i in group:
            done[i] = _is_among(tasks[i], finished) or _succeeds(tasks[i], records, max_physical_batch, places[i])
    return done


def _is_among(task: TrainingTask, tasks: Sequence[TrainingTask]) -> bool:
    """Return whether a task itself is among others; equal tasks may belong to two nets."""
    return any(task is other for other in tasks)


def _run_together(
    tasks: Sequence[TrainingTask], records: Records, max_physical_batch: int, keeper: KeyedFile | None
) -> list[TrainingTask]:
    """Train nets as one stack; return the finished ones. The others keep their initial parameters."""
    with exactly(records.inputs.device):
        stack = _stack(tasks, records, max_physical_batch, keeper)
        if stack is None:
            return []
        with contained():
            stack.run()
    return [task for task in tasks if not _is_among(task, stack.tasks)]


def _succeeds(task: TrainingTask, records: Records, max_physical_batch: int, keeper: KeyedFile | None = None) -> bool:
    done = False
    with contained():  # in a search: the worst score, in silence
        train(task, records, max_physical_batch=max_physical_batch, watchers=Watchers(kept(keeper, [task])))
        done = True
    return done


# --- choice of stacks ------------------------------------------------------------------------------------------------


def _groups(tasks: Sequence[TrainingTask], records: Records, max_physical_batch: int) -> list[list[int]]:
    """Group nets into stacks of similar batch sizes, within the memory allowed."""
    found: dict[Hashable, list[int]] = {}
    for i, task in enumerate(tasks):
        key = _stack_key(task, records)
        found.setdefault(("alone", i) if key is None else key, []).append(i)
    groups: list[list[int]] = []
    for members in found.values():
        ordered = sorted(members, key=lambda i: (tasks[i].sample_rate, tasks[i].steps))
        sizes = [max(1.0, tasks[i].sample_rate * len(records)) for i in ordered]
        most = min(max_physical_batch, _most_in_cache(tasks[ordered[-1]], sizes[-1], records.inputs.device))
        groups += _within(ordered, sizes, most)
    return groups


def _most_in_cache(task: TrainingTask, size: float, device: torch.device) -> float:
    """Largest number of records in a stack of nets like this one; at least those of one net."""
    room = CACHE.get(device.type, math.inf)
    # Parameters, noise, sums and gradients; inputs and outputs of the layers for one part of a batch.
    layers = [layer for layer in task.module.modules() if type(layer) is nn.Linear]
    numbers = sum(layer.in_features + layer.out_features for layer in layers) * size / rounding.parts(size)
    each = float(20 * sum(p.numel() for p in task.module.parameters()) + 4 * numbers)
    return size * (room // each if room >= FEWEST * each else 1.0)


def _stack_key(task: TrainingTask, records: Records) -> Hashable | None:
    """Key of a stack: equal for nets that can be stepped as one; None for a net that is trained alone."""
    key = None
    if not records.stacks or task.engine != "auto":
        return None
    with contained():  # this net will fail, alone
        structure = _structure(task, records)
        update = BuiltOptimizer(task.module, task.optimizer, records.inputs.device).structure
        if structure is not None and update is not None:
            hash((structure, update))  # raises for a layer with a constant that cannot be compared
            key = (structure, update)
    return key


def _structure(task: TrainingTask, records: Records) -> Hashable | None:
    """Key shared by all nets of one stack: structure of plain nets, signature of graphs; None for a net alone."""
    refuse(task.module)
    refuse(task.criterion)
    known = plain.structure(task.module, task.criterion)
    if known is not None:
        return known
    way = engine_choice.way_of(
        task.module, task.criterion, *probe.records_for(task.module, records.inputs, records.targets)
    )
    if way.traced is None or not way.stacks:
        return None
    return (way.traced.signature, *_signature(task.criterion))


def _signature(criterion: nn.Module) -> tuple[Hashable, ...]:
    """Type, attributes and weights of a known criterion, and of one inside of it."""
    kinds = [
        (type(inner).__name__, repr(sorted(operations.attributes(inner).items()))) for inner in criterion.modules()
    ]
    return (*kinds, *(weights.detach().cpu().numpy().tobytes() for weights in criterion.buffers()))


def _within(members: list[int], sizes: list[float], most: float) -> list[list[int]]:
    """Cut into consecutive groups: padded batches of at most ``most`` records, sizes within a factor of two.

    Batches are padded to the widest of the stack: nets of very different sizes would mostly compute on padding.
    """
    groups: list[list[int]] = []
    first = 0.0
    for i, size in zip(members, sizes):
        if groups and size * (len(groups[-1]) + 1) <= most and size <= 2 * first:
            groups[-1].append(i)
        else:
            groups.append([i])
            first = size
    return groups


def _stack(
    tasks: Sequence[TrainingTask], records: Records, max_physical_batch: int, keeper: KeyedFile | None
) -> Stack | None:
    """Put all nets into one stack; return None if they must be trained alone (for example if a schedule fails)."""
    found = None
    with contained():  # nothing has been trained yet
        engine = _stacked_engine(tasks, records)
        watchers = Watchers(kept(keeper, tasks))
        found = None if engine is None else Stack(tasks, engine, records, max_physical_batch, watchers)
    return found


def _stacked_engine(tasks: Sequence[TrainingTask], records: Records) -> Engine | None:
    """Engine for nets of equal structure."""
    first = tasks[0]
    device = records.inputs.device
    if plain.structure(first.module, first.criterion) is not None:
        return PlainEngine(first.module, first.criterion, device)
    rows, targets = probe.records_for(first.module, records.inputs, records.targets)
    traced = engine_choice.way_of(first.module, first.criterion, rows, targets).traced
    return None if traced is None else TracedEngine(first.module, first.criterion, device, traced)
