"""Stacks: nets of one architecture that train together, each with its own batches and noise."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from .._process import Stage
from ..privacy._checks import Neighboring
from ..privacy._mechanisms.release_sum import is_listened_to, release_sum
from ._engines import rounding
from ._engines.base import Engine
from ._engines.linear import LinearEngine
from ._optimizers import Memory, Table, UpdateRule, stepper_for
from ._randomness import Secrets, Seed, fill_normals
from ._records import TrainingData
from ._sampling import PersonBatches, PoissonBatches, padded_batches, rows_per_batch
from ._torch_settings import torch_threads

#: Record numbers drawn ahead, over all nets: enough that drawing costs little, few enough to fit
#: into memory.
DRAWS_AHEAD = 2**17
#: Number of times that a training tells how far it is.
PROGRESS_REPORTS = 100


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """Task of training one net, fixed before data is touched.

    Parameters
    ----------
    module : Module
        Trained in place.
    criterion : Module
        (outputs, targets) ↦ sum of the records' losses.
    optimizer : UpdateRule
    sample_rate : float
        Probability of each record to be in each batch.
    steps : int
    noise_multiplier : float
        Standard deviation of the noise ÷ ``max_grad_norm``; 0 only in tests and benchmarks.
    max_grad_norm : float
        Largest norm of a record's gradient in the sums.
    expected_batch_size : float
        Divisor of the noisy sum; public.
    neighboring : {"zero_out", "replace_one"}
        Relation of the guarantee; a record that is replaced moves a sum by twice the norm.
    places : int or None
        Public number of places from which batches are drawn, at least the number of records; those
        without a record are blank. None: the number of records, which is then public.
    schedule : mapping of str to sequence
        The hyperparameters that change from step to step, with their values, computed without data.
    engine : {"auto", "opacus"}
        Source of per-sample gradients.
    seed : None, int, RandomState or SeedSequence
        For batches and noise; None: the operating system. A seed is for tests.
    memory : dict
        Optimizer memory of an earlier training of this net; filled by training.
    notes : list of str
        Assumptions, filled by training.
    """

    module: nn.Module
    criterion: nn.Module
    optimizer: UpdateRule
    sample_rate: float
    steps: int
    noise_multiplier: float
    max_grad_norm: float
    expected_batch_size: float
    neighboring: Neighboring = "zero_out"
    places: int | None = None
    schedule: Table = field(default_factory=dict)
    engine: str = "auto"
    seed: Seed = None
    memory: Memory = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rows(self, n: int) -> int:
        """Number of rows of each batch of a training on ``n`` records, or persons."""
        return rows_per_batch(self.sample_rate, self.places or n)


def noise_scale(task: TrainingTask, rows: int) -> float:
    """Standard deviation of the noise on a clipped gradient sum.

    The sum is over ``rows`` rows; the share for rounding is included.
    """
    return task.noise_multiplier * task.max_grad_norm * rounding.noise_factor(rows)


class Stack:
    """M nets of one architecture in training together, with parameters of shape (M, size).

    Parameters
    ----------
    tasks : sequence of TrainingTask
        Of one architecture.
    engine : Engine
        Sums their clipped gradients.
    records : TrainingData
    max_physical_batch : int
        Most records in memory at once, over all nets.
    tell : callable
        Told a stage from time to time.
    """

    def __init__(
        self,
        tasks: Sequence[TrainingTask],
        engine: Engine,
        records: TrainingData,
        max_physical_batch: int,
        tell: Callable[[Stage], None] = lambda stage: None,
    ) -> None:
        self.engine, self.records, self.max_physical_batch = engine, records, max_physical_batch
        self.tell = tell
        self.device = device = records.device
        self.tasks = list(tasks)
        layout, modules = engine.layout, [task.module for task in tasks]
        self.trained, self.frozen = (layout.read(modules, device, flag) for flag in (True, False))
        rules, schedules = [task.optimizer for task in tasks], [task.schedule for task in tasks]
        self.stepper = stepper_for(rules, schedules, device)
        memory, names = self.tasks[0].memory, layout.names(trained=True)
        if len(tasks) == 1 and memory.get("of") == names:  # an earlier training of these parameters
            self.stepper.recall(memory["kept"])
        # One source of secrets per net: nets that shared batches or noise would not be independent
        # runs, which the theorems about the best of several candidates need.
        self.secrets = [Secrets(task.seed) for task in tasks]
        self.batches: list[PoissonBatches | PersonBatches] = []
        for task, randomness in zip(tasks, self.secrets):
            n = task.places or records.units
            units = PoissonBatches(randomness.coins, randomness.rows, task.sample_rate, n)
            if records.persons is None:
                self.batches.append(units)
            else:
                self.batches.append(PersonBatches(units, records.persons, randomness.turns))
        self.done = 0  # steps
        self._allocate()

    def run(self) -> None:
        """Take all training steps of every net, empty batches included."""
        # Steps of linear nets are too short for two threads, which cost much on a busy machine.
        linear = isinstance(self.engine, LinearEngine)
        total = max(task.steps for task in self.tasks)
        with torch_threads(1) if linear else contextlib.nullcontext():
            while self.tasks:
                steps = self._ahead(self.done)
                drawn = padded_batches(self.batches, steps, len(self.records), self.rows)
                for batches in torch.from_numpy(drawn).to(self.device):
                    self._step(batches, self.done)
                    self.done += 1
                    if self.done % math.ceil(total / PROGRESS_REPORTS) == 0 or self.done == total:
                        self.tell(Stage("training", self.done, total))
                self._finish(self.done)

    def _ahead(self, t: int) -> int:
        """Number of steps whose batches are drawn at once.

        They last until the next net is done, within the memory allowed.
        """
        memory = max(1, self.rows * len(self.tasks))
        return max(1, min(min(task.steps for task in self.tasks) - t, DRAWS_AHEAD // memory))

    def _step(self, batches: Tensor, t: int) -> None:
        """Take one DP-SGD step: noise, clipped sums, division, optimizer."""
        # Noise first: the sums are added to it, in double precision, so that rounding to single
        # comes after noise.
        fill_normals(self.secrets, self.scales, self.sums)
        noise = self.sums.clone() if is_listened_to() else None
        for chunk in batches.split(self.width, dim=1):
            self._add(chunk)
        if noise is not None:
            self._replay_release(noise)
        # By the expected batch size: the real one is secret, and would scale the noise with it.
        self.gradients.copy_(self.sums).div_(self.divisors)
        self.stepper.step(self.trained, self.gradients, t)

    def _replay_release(self, noise: Tensor) -> None:
        """Let an audit hear the clipped sums, and replace the noisy ones."""
        for net, task in enumerate(self.tasks):
            declared = task.max_grad_norm * rounding.noise_factor(self.batches[net].rows)
            declared *= 2.0 if task.neighboring == "replace_one" else 1.0
            noise_of_net = noise[net].numpy(force=True)
            exact = self.sums[net].numpy(force=True) - noise_of_net
            add_noise, squared = partial(np.add, noise_of_net), Fraction(declared) ** 2
            answer = release_sum("clipped gradients", exact, squared, add_noise)
            self.sums[net].copy_(torch.from_numpy(answer))

    def _add(self, chunk: Tensor) -> None:
        """Add clipped gradients of a chunk, shape (M, width), of each net's batch."""
        # 0 in a row without a record: nothing is added
        bounds = (chunk < len(self.records)) * self.norms
        inputs, targets = self.records.take(chunk)
        if self.records.lacking:
            bounds, targets = bounds * (targets >= 0), targets.clamp(min=0)
        self.engine.add_clipped(inputs, targets, bounds)

    def _finish(self, t: int) -> None:
        """Take nets out of the stack that have taken all their steps."""
        unfinished = [i for i, task in enumerate(self.tasks) if task.steps > t]
        if len(unfinished) == len(self.tasks):
            return
        for i, task in enumerate(self.tasks):
            if task.steps <= t:
                names = self.engine.layout.names(trained=True)
                task.memory.clear()
                task.memory.update(of=names, kept=self.stepper.memory(i, task.steps))
                self.engine.layout.write(self.trained[i], task.module)
        self.trained, self.frozen = self.trained[unfinished], self.frozen[unfinished]
        self.tasks = [self.tasks[i] for i in unfinished]
        self.secrets = [self.secrets[i] for i in unfinished]
        self.batches = [self.batches[i] for i in unfinished]
        self.stepper.keep(unfinished)
        if unfinished:
            self._allocate()

    def _allocate(self) -> None:
        """Allocate noisy sums and the constants of each net of a stack."""
        self.gradients = torch.empty_like(self.trained)
        self.sums = torch.empty_like(self.trained, dtype=torch.float64)
        self.norms = self._as_column([task.max_grad_norm for task in self.tasks]).float()
        rows = [batches.rows for batches in self.batches]
        self.scales = [noise_scale(task, n_rows) for task, n_rows in zip(self.tasks, rows)]
        self.divisors = self._as_column([task.expected_batch_size for task in self.tasks]).float()
        self.engine.piece = min(map(rounding.records_per_piece, rows), default=1)
        # Rows of a chunk and of a batch, equal in every step.
        allowed = max(1, min(self.max_physical_batch // max(1, len(self.tasks)), rounding.CHUNK))
        largest = max(rows, default=0)
        chunks = max(1, math.ceil(largest / allowed))
        self.width = max(1, math.ceil(largest / chunks))
        self.rows = self.width * chunks
        self.engine.bind(self.trained, self.frozen, self.sums)

    def _as_column(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(np.asarray(values, float), device=self.device).unsqueeze(1)
