"""Optimizer steps on stacked parameters, with rates and state of each net; schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from .._process import without_warnings
from ..errors import TrainingError

#: Scheduled hyperparameters: name ↦ one value per step.
Table = Mapping[str, Sequence[Any]]
#: Memory of an optimizer from step to step: a function of noisy gradients, as public as the
#: parameters.
Memory = dict[str, Any]


class Rates:
    """Hyperparameters of M optimizers of one kind, constant or scheduled, as columns of M."""

    def __init__(
        self, groups: Sequence[Mapping[str, Any]], tables: Sequence[Table], device: torch.device
    ) -> None:
        self.groups, self.tables, self.device = list(groups), list(tables), device
        self._columns: dict[str, Any] = {}

    def __call__(self, name: str, t: int, pick: int | None = None) -> Any:
        """Hyperparameter at step ``t`` of M optimizers: a number if all agree, or else a column."""
        scheduled = any(name in table for table in self.tables)
        key = f"{name}{pick}"
        # cached: making a tensor in every step would cost more than the step
        if scheduled or key not in self._columns:
            pairs = zip(self.groups, self.tables)
            values = [table[name][t] if name in table else group[name] for group, table in pairs]
            numbers = [float(value if pick is None else value[pick]) for value in values]
            if len(set(numbers)) == 1:
                self._columns[key] = numbers[0]
            else:
                column = torch.tensor(numbers, dtype=torch.float32, device=self.device)
                self._columns[key] = column.unsqueeze(1)
        return self._columns[key]

    def any(self, name: str) -> bool:
        """Return whether a hyperparameter is ever different from zero."""
        scheduled = any(any(table.get(name, ())) for table in self.tables)
        return scheduled or any(group.get(name) for group in self.groups)

    def keep(self, places: Sequence[int]) -> None:
        self.groups = [self.groups[i] for i in places]
        self.tables = [self.tables[i] for i in places]
        self._columns = {}


class Stepper(ABC):
    """Optimizer that updates the parameters of M nets, shape (M, size), in place.

    Parameters
    ----------
    rates : Rates
    flag : bool
        As in ``UpdateRule``.

    Attributes
    ----------
    state : list of tensors of shape (M, size)
        State kept from step to step; empty before the first one.
    """

    def __init__(self, rates: Rates, flag: bool) -> None:
        self.rates, self.flag = rates, flag
        self._decay, self._momentum = rates.any("weight_decay"), rates.any("momentum")
        self.state: list[Tensor] = []
        self._before = 0  # steps of earlier trainings

    @abstractmethod
    def step(self, weights: Tensor, gradients: Tensor, t: int) -> None:
        """Take step number ``t`` of all optimizers, from 0."""

    def keep(self, places: list[int]) -> None:
        """Go on with some of the nets, by their places in ascending order."""
        self.rates.keep(places)
        self.state = [values[places] for values in self.state]

    def memory(self, place: int, steps: int) -> Memory:
        """Memory of one net's optimizer after ``steps`` steps, for a training that goes on."""
        rows = [values[place].detach().clone() for values in self.state]
        return {"optimizer": type(self).__name__, "state": rows, "steps": self._before + steps}

    def recall(self, memory: Memory) -> None:
        """Go on from the memory of a single net's earlier training with the same optimizer."""
        if memory.get("optimizer") == type(self).__name__:
            self._before = memory["steps"]
            device, rows = self.rates.device, memory["state"]
            self.state = [row.unsqueeze(0).to(device, copy=True) for row in rows]


class StackedSGD(Stepper):
    """``torch.optim.SGD`` with weight decay, momentum and dampening; the flag is Nesterov's."""

    def step(self, weights: Tensor, gradients: Tensor, t: int) -> None:
        moved = gradients
        if self._decay:
            moved = moved + weights * self.rates("weight_decay", t)
        if self._momentum:
            momentum = self.rates("momentum", t)
            if not self.state:  # as in PyTorch: the first gradient is not damped
                self.state = [moved.clone()]
            else:
                # nets without momentum have none
                undamped = 1.0 - self.rates("dampening", t) * (momentum != 0)
                self.state[0].mul_(momentum).add_(moved * undamped)
            moved = moved + self.state[0] * momentum if self.flag else self.state[0]
        _subtract_step(weights, moved, self.rates("lr", t))


class StackedAdam(Stepper):
    """``torch.optim.Adam`` without AMSGrad, or by the flag ``AdamW``, whose decay is decoupled."""

    def step(self, weights: Tensor, gradients: Tensor, t: int) -> None:
        rate = self.rates("lr", t)
        first, second = (self.rates("betas", t, place) for place in (0, 1))
        if not self.state:
            self.state = [torch.zeros_like(weights), torch.zeros_like(weights)]
        if self._decay and self.flag:
            weights.mul_(1.0 - self.rates("weight_decay", t) * rate)
        elif self._decay:
            gradients = gradients + weights * self.rates("weight_decay", t)
        mean, square = self.state
        mean.mul_(first).add_(gradients * (1.0 - first))
        square.mul_(second).add_(gradients.square() * (1.0 - second))
        count = self._before + t + 1
        scale = (square / (1.0 - second**count)).sqrt_() + self.rates("eps", t)
        _subtract_step(weights, mean / scale, rate / (1.0 - first**count))


@dataclass(frozen=True)
class UpdateRule:
    """SGD or Adam by hyperparameters, without an optimizer object.

    Importing those takes seconds.

    Parameters
    ----------
    kind : type
        ``StackedSGD`` or ``StackedAdam``.
    flag : bool
        Nesterov momentum, or weight decay decoupled from the gradient.
    group : mapping
        Hyperparameters under PyTorch's names.
    """

    kind: type[StackedSGD] | type[StackedAdam]
    flag: bool
    group: Mapping[str, Any]

    @classmethod
    def sgd(cls, lr: float, momentum: float = 0.0, weight_decay: float = 0.0) -> UpdateRule:
        """Update rule of ``torch.optim.SGD``."""
        group = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "dampening": 0.0}
        return cls(StackedSGD, False, group)

    @classmethod
    def adam(cls, lr: float, weight_decay: float = 0.0, decoupled: bool = False) -> UpdateRule:
        """Update rule of ``torch.optim.Adam``, or of ``AdamW``.

        The latter has the decay decoupled; all else is PyTorch's default.
        """
        group = {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": weight_decay}
        return cls(StackedAdam, decoupled, group)

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> UpdateRule:
        """Rule of an optimizer of PyTorch that passes ``check_optimizer``."""
        (group,) = optimizer.param_groups
        if type(optimizer) is torch.optim.SGD:
            return cls(StackedSGD, bool(group["nesterov"]), group)
        is_decoupled = type(optimizer) is torch.optim.AdamW
        decoupled = is_decoupled or bool(group.get("decoupled_weight_decay"))
        return cls(StackedAdam, decoupled, group)

    @property
    def structure(self) -> tuple[Any, ...]:
        """Kind and flag that optimizers stepped as one must share."""
        return self.kind, self.flag


def check_optimizer(kind: object, arguments: Mapping[str, Any]) -> None:
    """Raise for an optimizer whose steps are not known here.

    Raises
    ------
    ValueError
    """
    # By exact type: a subclass may step in another way, or evaluate the loss, which would read
    # records without noise.
    if kind not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        raise TrainingError(
            f"Found optimizer {getattr(kind, '__name__', type(kind).__name__)}; one that works on "
            "given gradients is needed, whose steps are known here: torch.optim.SGD, Adam or AdamW."
        )
    for name in ("amsgrad", "maximize", "param_groups"):
        if arguments.get(name):
            raise TrainingError(
                f"Found optimizer__{name}, which steps of private nets do not have: all trained "
                "parameters move by one rate, downhill. Leave it out; skorch's Freezer keeps some "
                "parameters as they are."
            )


def stepper_for(
    rules: Sequence[UpdateRule], tables: Sequence[Table], device: torch.device
) -> Stepper:
    """Stepper for nets whose rules have one structure."""
    return rules[0].kind(Rates([rule.group for rule in rules], tables, device), rules[0].flag)


def memory_on_cpu(memory: Memory) -> Memory:
    """Copy of an optimizer's memory on the CPU.

    Every machine can read it there.
    """
    copy: Memory = tree_map(lambda held: held.cpu() if isinstance(held, Tensor) else held, memory)
    return copy


def _subtract_step(weights: Tensor, moved: Tensor, rate: float | Tensor) -> None:
    if isinstance(rate, float):
        weights.sub_(moved, alpha=rate)
    else:
        weights.addcmul_(moved, rate.to(weights.dtype), value=-1.0)


# --- schedules ------------------------------------------------------------------------------------

#: Hyperparameters that PyTorch's schedulers change.
SCHEDULED_HYPERPARAMETERS = ("lr", "momentum", "betas")


def lr_table(
    optimizer: torch.optim.Optimizer, schedulers: Sequence[Any], steps: int, steps_per_epoch: int
) -> Table:
    """Table of learning rates, from schedulers that run without training.

    Parameters
    ----------
    optimizer : Optimizer
        Left as found.
    schedulers : sequence of skorch.callbacks.LRScheduler
    steps, steps_per_epoch : int

    Returns
    -------
    dict
        Name of a hyperparameter ↦ its value at each step, for those that change.
    """
    (group,) = optimizer.param_groups
    before, names = dict(group), [name for name in SCHEDULED_HYPERPARAMETERS if name in group]
    rows: dict[str, list[Any]] = {name: [] for name in names}
    with without_warnings():  # "step of the optimizer was not called": it is not called on purpose
        running = [
            (callback._get_policy_cls()(optimizer, **callback.kwargs), callback.step_every)
            for callback in schedulers
        ]
        for t in range(steps):
            for name in names:
                rows[name].append(group[name])
            for scheduler, step_every in running:
                if step_every == "batch" or (t + 1) % steps_per_epoch == 0:
                    scheduler.step()
    group.clear()
    group.update(before)
    changing = [name for name in names if any(value != before[name] for value in rows[name])]
    return {name: rows[name] for name in changing}
