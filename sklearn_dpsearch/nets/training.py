"""DP-SGD: one net, or many of one architecture at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from .._process import contained
from . import operations, plain, probe, rounding, ways
from .engines import Engine
from .linear import LinearEngine, PlainEngine, TracedEngine
from .optimizers import Built, Rule, Table, stepper_for
from .randomness import Secrets, fill_normals, global_torch_seed
from .sampling import PoissonBatches, padded_batches
from .switches import exactly, one_thread

#: Record numbers drawn ahead, over all nets.
AHEAD = 2**17


@dataclass(frozen=True, kw_only=True)
class Training:
    """One net to train: everything that is fixed before the data is touched.

    Parameters
    ----------
    module : Module
        Trained in place.
    criterion : Module
        (outputs, targets) ↦ sum of the records' losses.
    optimizer : callable or Rule
        Module ↦ torch optimizer over its parameters; or what an optimizer would do.
    sample_rate : float
        Probability of each record to be in each batch.
    steps : int
    noise_multiplier : float
        Standard deviation of the noise ÷ ``max_grad_norm``; 0 only in tests and benchmarks.
    max_grad_norm : float
    expected_batch_size : float
        What the noisy sum is divided by; public.
    schedule : callable
        Torch optimizer ↦ table of the hyperparameters that change from step to step, computed without data.
    seed : None, int, RandomState or SeedSequence
        For batches and noise; None: the operating system. A seed is for tests.
    notes : list of str
        Filled by training: what was taken on trust.
    """

    module: nn.Module
    criterion: nn.Module
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] | Rule
    sample_rate: float
    steps: int
    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float
    schedule: Callable[[torch.optim.Optimizer], Table] = field(default=lambda optimizer: {})
    seed: Any = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Records:
    """Records on the device, with one more row of zeros that stands for "no record"."""

    inputs: torch.Tensor
    targets: torch.Tensor

    @classmethod
    def of(cls, inputs: torch.Tensor, targets: torch.Tensor, device: torch.device) -> Records:
        """Copy to the device: shapes (n, ...) become (n + 1, ...)."""
        return cls(*(_with_empty_row(one, device) for one in (inputs, targets)))

    def __len__(self) -> int:
        return len(self.inputs) - 1

    def take(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of some records, shapes (*places.shape, ...)."""
        flat = places.reshape(-1)
        inputs, targets = (one.index_select(0, flat) for one in (self.inputs, self.targets))
        return inputs.view(*places.shape, *inputs.shape[1:]), targets.view(*places.shape, *targets.shape[1:])


def _with_empty_row(rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    copied = torch.zeros((len(rows) + 1, *rows.shape[1:]), dtype=rows.dtype, device=device)
    copied[:-1] = rows
    return copied


def train(task: Training, records: Records, *, max_physical_batch: int) -> None:
    """Train one net in place.

    Raises
    ------
    LeakingEstimatorError, PrivacyError
        For a net that is not known to act on each record alone, or that kept something of them.
    """
    device = records.inputs.device
    with exactly(device):
        rows, targets = probe.records_for(task.module, records.inputs, records.targets)
        engine = ways.engine_for(task.module, task.criterion, rows, targets, device, task.expected_batch_size)
        held = ways.held(engine)
        with global_torch_seed(task.seed):  # dropout
            Stack([task], engine, records, max_physical_batch).run()
        if ways.held(engine) != held:
            raise ways.kept_something(task.module)
    task.notes[:] = ways.trusts(engine, task.module, task.criterion)


def train_together(tasks: Sequence[Training], records: Records, *, max_physical_batch: int) -> list[bool]:
    """Train several nets in place, as one stack where they share an architecture; which ones came out well.

    Each net has its own batches, noise, rates and number of steps; grouping changes time, never results. A net that
    fails leaves the others alone: those of its stack that are not done then start again, each by itself, with the
    secrets that they would have had alone.
    """
    done = [False] * len(tasks)
    for group in _groups(tasks, records, max_physical_batch):
        finished = _run_together([tasks[i] for i in group], records, max_physical_batch) if len(group) > 1 else []
        for i in group:
            done[i] = any(tasks[i] is one for one in finished) or _succeeds(tasks[i], records, max_physical_batch)
    return done


def _run_together(tasks: Sequence[Training], records: Records, max_physical_batch: int) -> list[Training]:
    """Train nets as one stack; those that came to their end. The others have the parameters that they started with."""
    with exactly(records.inputs.device):
        stack = _stack(tasks, records, max_physical_batch)
        if stack is None:
            return []
        with contained():
            stack.run()
    return [one for one in tasks if not any(one is left for left in stack.tasks)]


def _succeeds(task: Training, records: Records, max_physical_batch: int) -> bool:
    done = False
    with contained():  # in a search: the worst score, and nothing told
        train(task, records, max_physical_batch=max_physical_batch)
        done = True
    return done


def _groups(tasks: Sequence[Training], records: Records, max_physical_batch: int) -> list[list[int]]:
    """Nets that can be trained as one stack, of similar batch sizes, within the memory allowed."""
    device = records.inputs.device
    found: dict[Any, list[int]] = {}
    for i, task in enumerate(tasks):
        key: Any = i
        with contained():
            own = (_structure(task, records), Built(task.module, task.optimizer, device).structure)
            hash(own)
            key = i if None in own else own
        found.setdefault(key, []).append(i)
    groups: list[list[int]] = []
    for members in found.values():
        ordered = sorted(members, key=lambda i: (tasks[i].sample_rate, tasks[i].steps))
        groups += _within(ordered, [max(1.0, tasks[i].sample_rate * len(records)) for i in ordered], max_physical_batch)
    return groups


def _structure(task: Training, records: Records) -> Any:
    """What nets of one stack have in common: plain ones their structure, graphs their signature; None: alone."""
    ways.refuse(task.module)
    ways.refuse(task.criterion)
    known = plain.structure(task.module, task.criterion)
    if known is not None:
        return known
    way = ways.way_of(task.module, task.criterion, *probe.records_for(task.module, records.inputs, records.targets))
    if way.traced is None or not way.stacks:
        return None
    return (way.traced.signature, *_signature(task.criterion))


def _signature(criterion: nn.Module) -> tuple[Any, ...]:
    """Type, attributes and weights of a known criterion, and of one inside of it."""
    parts = [(type(one).__name__, repr(sorted(operations.attributes(one).items()))) for one in criterion.modules()]
    return (*parts, *(one.detach().cpu().numpy().tobytes() for one in criterion.buffers()))


def _within(members: list[int], lots: list[float], most: int) -> list[list[int]]:
    """Consecutive runs whose padded batches hold at most ``most`` records, with lots within a factor of two."""
    groups: list[list[int]] = []
    first = 0.0
    for i, lot in zip(members, lots):
        if groups and lot * (len(groups[-1]) + 1) <= most and lot <= 2 * first:
            groups[-1].append(i)
        else:
            groups.append([i])
            first = lot
    return groups


def _stack(tasks: Sequence[Training], records: Records, max_physical_batch: int) -> Stack | None:
    """All nets in one stack; None if they must be trained alone (one of them has a schedule that fails, say)."""
    found = None
    with contained():  # nothing has been trained yet
        engine = _stacked_engine(tasks, records)
        found = None if engine is None else Stack(tasks, engine, records, max_physical_batch)
    return found


def _stacked_engine(tasks: Sequence[Training], records: Records) -> Engine | None:
    """One engine for nets of equal structure."""
    first = tasks[0]
    device = records.inputs.device
    if plain.structure(first.module, first.criterion) is not None:
        return PlainEngine(first.module, first.criterion, device)
    rows, targets = probe.records_for(first.module, records.inputs, records.targets)
    traced = ways.way_of(first.module, first.criterion, rows, targets).traced
    return None if traced is None else TracedEngine(first.module, first.criterion, device, traced)


def noise_scale(task: Training) -> float:
    """Standard deviation of the noise on a clipped sum, what rounding needs included."""
    return task.noise_multiplier * task.max_grad_norm * rounding.noise_factor(task.expected_batch_size)


class Stack:
    """M nets in training: parameters of shape (M, size)."""

    def __init__(self, tasks: Sequence[Training], engine: Engine, records: Records, max_physical_batch: int) -> None:
        self.engine, self.records, self.max_physical_batch = engine, records, max_physical_batch
        self.device = device = records.inputs.device
        self.tasks = list(tasks)
        layout, modules = engine.layout, [task.module for task in tasks]
        self.trained, self.frozen = (layout.read(modules, device, flag) for flag in (True, False))
        built = [Built(task.module, task.optimizer, device) for task in tasks]
        tables = [{} if one.optimizer is None else task.schedule(one.optimizer) for task, one in zip(tasks, built)]
        self.stepper = stepper_for(built, tables, layout, device)
        self.secrets = [Secrets(task.seed) for task in tasks]
        self.batches = [PoissonBatches(s.coins, task.sample_rate, len(records)) for s, task in zip(self.secrets, tasks)]
        self._allocate()

    def run(self) -> None:
        """Every step of every net, whatever its batches hold."""
        with one_thread() if isinstance(self.engine, LinearEngine) else contextlib.nullcontext():
            self._run()

    def _run(self) -> None:
        t = 0
        while self.tasks:
            steps = self._ahead(t)
            batches, sizes = padded_batches(self.batches, steps, len(self.records))
            places = torch.from_numpy(batches).to(self.device)
            bounds = (places < len(self.records)) * self.norms
            for step, widest in enumerate(sizes.max(axis=1, initial=0).tolist()):
                self._step(places[step, :, :widest], bounds[step, :, :widest], t + step)
            t += steps
            self._finish(t)

    def _ahead(self, t: int) -> int:
        """Steps drawn at once: until the next net is done, within the memory allowed."""
        widest = max(1.0, max(task.sample_rate for task in self.tasks) * len(self.records))
        return max(1, min(min(task.steps for task in self.tasks) - t, int(AHEAD / (widest * len(self.tasks)))))

    def _step(self, places: torch.Tensor, bounds: torch.Tensor, t: int) -> None:
        """Noise once, clipped sums over the batches, division by a constant, optimizer."""
        if self.noisy:
            fill_normals(self.secrets, self.scales, self.sums)
        else:
            self.sums.zero_()
        self.engine.piece = self.piece if places.shape[1] <= self.most else 0
        width = max(1, self.max_physical_batch // len(self.tasks))
        for start in range(0, places.shape[1], width):
            chunk = slice(start, start + width)
            self.engine.add_clipped(*self.records.take(places[:, chunk]), bounds[:, chunk])
        self.gradients.copy_(self.sums).div_(self.divisors)
        self.stepper.step(self.trained, self.gradients, t)

    def _finish(self, t: int) -> None:
        """Take nets out that have taken all their steps."""
        kept = [i for i, task in enumerate(self.tasks) if task.steps > t]
        if len(kept) == len(self.tasks):
            return
        for i, task in enumerate(self.tasks):
            if task.steps <= t:
                self.engine.layout.write(self.trained[i], task.module)
        self.trained, self.frozen = self.trained[kept], self.frozen[kept]
        self.tasks, self.secrets, self.batches = (
            [one[i] for i in kept] for one in (self.tasks, self.secrets, self.batches)
        )
        self.stepper.keep(kept)
        if kept:
            self._allocate()

    def _allocate(self) -> None:
        """Room for the noisy sums, and the constants of each net as columns."""
        self.gradients = torch.empty_like(self.trained)
        self.sums = torch.empty_like(self.trained, dtype=torch.float64)
        self.noisy = any(task.noise_multiplier for task in self.tasks)
        self.norms = self._column([task.max_grad_norm for task in self.tasks]).float()
        self.scales = [noise_scale(task) for task in self.tasks]
        expected = [task.expected_batch_size for task in self.tasks]
        self.divisors = self._column(expected).float()
        self.most = min(map(rounding.most_records, expected), default=0.0)
        self.piece = min(map(rounding.piece, expected), default=0) if rounding.single_is_single() else 0
        self.engine.bind(self.trained, self.frozen, self.sums)

    def _column(self, values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(np.asarray(values, float), device=self.device).unsqueeze(1)
