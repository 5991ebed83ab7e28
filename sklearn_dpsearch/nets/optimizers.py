"""Optimizer steps on stacked parameters: every net with its own rates and its own state."""

from __future__ import annotations

import copy
import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from ..errors import TrainingError
from .digest import digest
from .layout import Layout, named_trained

#: Attributes of an optimizer that its ``state_dict`` holds, and those with which PyTorch tracks calls.
KEPT = ("state", "param_groups", "step", "_opt_called", "_warned_capturable_if_run_uncaptured")

#: Scheduled hyperparameters: name ↦ one value per step.
Table = Mapping[str, Sequence[Any]]


class PerGroup(tuple[Any, ...]):
    """The values of a hyperparameter in each group of parameters."""

    __slots__ = ()


#: Memory of an optimizer from step to step: a function of noisy gradients, as public as the parameters.
Memory = dict[str, Any]


class Stepper(ABC):
    """Updates the parameters of M nets, shape (M, size), in place."""

    @abstractmethod
    def step(self, weights: torch.Tensor, gradients: torch.Tensor, t: int) -> None:
        """Take step number ``t``, from 0."""

    @abstractmethod
    def keep(self, kept: list[int]) -> None:
        """Go on with some of the nets only (their places, ascending)."""

    @abstractmethod
    def memory(self, place: int, steps: int) -> Memory:
        """Memory of one net's optimizer after ``steps`` steps, for a training that goes on from there."""

    @abstractmethod
    def recall(self, memory: Memory) -> None:
        """Go on, with a single net, from the memory of its earlier training."""

    @abstractmethod
    def state(self) -> Any:
        """State kept from step to step."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go on from a saved state."""


class Rates:
    """Hyperparameters of M optimizers of one kind, constant or scheduled, as columns of shape (M, 1)."""

    def __init__(self, groups: Sequence[Mapping[str, Any]], tables: Sequence[Table], device: torch.device) -> None:
        self.groups, self.tables, self.device = list(groups), list(tables), device
        self._columns: dict[str, Any] = {}

    def __call__(self, name: str, t: int, pick: int | None = None) -> Any:
        """One value per net at step ``t``: a plain number if all agree, otherwise a column."""
        scheduled = any(name in table for table in self.tables)
        key = f"{name}{pick}"
        if scheduled or key not in self._columns:  # cached: making a tensor in every step would cost more than the step
            values = [
                table[name][t] if name in table else group[name] for group, table in zip(self.groups, self.tables)
            ]
            numbers = [float(value if pick is None else value[pick]) for value in values]
            same = len(set(numbers)) == 1
            self._columns[key] = (
                numbers[0] if same else torch.tensor(numbers, dtype=torch.float32, device=self.device).unsqueeze(1)
            )
        return self._columns[key]

    def any(self, name: str) -> bool:
        """Return whether a hyperparameter is ever different from zero."""
        return any(group[name] for group in self.groups) or any(any(table.get(name, ())) for table in self.tables)

    def keep(self, kept: Sequence[int]) -> None:
        self.groups, self.tables = [self.groups[i] for i in kept], [self.tables[i] for i in kept]
        self._columns = {}


class StackedSGD(Stepper):
    """``torch.optim.SGD`` with weight decay, momentum, dampening, Nesterov."""

    def __init__(self, rates: Rates, nesterov: bool) -> None:
        self.rates, self.nesterov = rates, nesterov
        self._momentum = rates.any("momentum")
        self._decay = rates.any("weight_decay")
        self._buffer: torch.Tensor | None = None

    def step(self, weights: torch.Tensor, gradients: torch.Tensor, t: int) -> None:
        moved = gradients
        if self._decay:
            moved = moved + weights * self.rates("weight_decay", t)
        if self._momentum:
            momentum = self.rates("momentum", t)
            if self._buffer is None:  # as in PyTorch: the first gradient is not damped
                self._buffer = moved.clone()
            else:
                self._buffer.mul_(momentum).add_(moved * self._undamped(t))
            moved = moved + self._buffer * momentum if self.nesterov else self._buffer
        _subtract(weights, moved, self.rates("lr", t))

    def _undamped(self, t: int) -> Any:
        """1 − dampening; nets without momentum have none."""
        dampening = self.rates("dampening", t)
        momentum = self.rates("momentum", t)
        if isinstance(momentum, float):
            return 1.0 - dampening if momentum else 1.0
        return 1.0 - dampening * (momentum != 0)

    def keep(self, kept: list[int]) -> None:
        self.rates.keep(kept)
        self._buffer = None if self._buffer is None else self._buffer[kept]

    def memory(self, place: int, steps: int) -> Memory:
        return {} if self._buffer is None else {"momentum": _row_of(self._buffer, place)}

    def recall(self, memory: Memory) -> None:
        if self._momentum and "momentum" in memory:
            self._buffer = memory["momentum"].to(self.rates.device).unsqueeze(0).clone()

    def state(self) -> torch.Tensor | None:
        return self._buffer

    def restore(self, state: torch.Tensor | None) -> None:
        self._buffer = None if state is None else state.to(self.rates.device)


class StackedAdam(Stepper):
    """``torch.optim.Adam`` and ``AdamW`` (decoupled weight decay) without AMSGrad."""

    def __init__(self, rates: Rates, decoupled: bool) -> None:
        self.rates, self.decoupled = rates, decoupled
        self._decay = rates.any("weight_decay")
        self._moments: tuple[torch.Tensor, torch.Tensor] | None = None
        self._before = 0  # steps of earlier trainings, for the correction of the moments

    def step(self, weights: torch.Tensor, gradients: torch.Tensor, t: int) -> None:
        rate, first, second = self.rates("lr", t), self.rates("betas", t, 0), self.rates("betas", t, 1)
        if self._moments is None:
            self._moments = torch.zeros_like(weights), torch.zeros_like(weights)
        if self._decay and self.decoupled:
            weights.mul_(1.0 - self.rates("weight_decay", t) * rate)
        elif self._decay:
            gradients = gradients + weights * self.rates("weight_decay", t)
        mean, square = self._moments
        mean.mul_(first).add_(gradients * (1.0 - first))
        square.mul_(second).add_(gradients.square() * (1.0 - second))
        taken = self._before + t + 1
        scale = (square / (1.0 - second**taken)).sqrt_() + self.rates("eps", t)
        _subtract(weights, mean / scale, rate / (1.0 - first**taken))

    def keep(self, kept: list[int]) -> None:
        self.rates.keep(kept)
        self._moments = None if self._moments is None else (self._moments[0][kept], self._moments[1][kept])

    def memory(self, place: int, steps: int) -> Memory:
        if self._moments is None:
            return {}
        return {"moments": tuple(_row_of(one, place) for one in self._moments), "steps": self._before + steps}

    def recall(self, memory: Memory) -> None:
        if "moments" in memory:
            first, second = (one.to(self.rates.device).unsqueeze(0).clone() for one in memory["moments"])
            self._moments, self._before = (first, second), memory["steps"]

    def state(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        return self._moments

    def restore(self, state: tuple[torch.Tensor, torch.Tensor] | None) -> None:
        self._moments = None if state is None else (state[0].to(self.rates.device), state[1].to(self.rates.device))


class EachTorchOptimizer(Stepper):
    """Any torch optimizer that works on given gradients: one object per net, over views of its parameters."""

    def __init__(self, optimizers: Sequence[BuiltOptimizer], tables: Sequence[Table], layout: Layout) -> None:
        self.optimizers, self.tables, self.layout = list(optimizers), list(tables), layout

    def step(self, weights: torch.Tensor, gradients: torch.Tensor, t: int) -> None:
        for row, slopes, built, table in zip(weights, gradients, self.optimizers, self.tables):
            assert built.optimizer is not None
            for name, values in table.items():
                for number, group in enumerate(built.optimizer.param_groups):
                    group[name] = values[t][number] if isinstance(values[t], PerGroup) else values[t]
            for name, parameter in built.parameters:
                parameter.data = self.layout.view(name, row, row)
                parameter.grad = self.layout.view(name, slopes, slopes)
            built.optimizer.step()
            for name, parameter in built.parameters:
                self.layout.view(name, row, row).copy_(parameter.data)  # an optimizer may have put another tensor there

    def keep(self, kept: list[int]) -> None:
        self.optimizers, self.tables = [self.optimizers[i] for i in kept], [self.tables[i] for i in kept]

    def memory(self, place: int, steps: int) -> Memory:
        optimizer = self.optimizers[place].optimizer
        assert optimizer is not None
        return {"of": _name_of(optimizer), "state": copy.deepcopy(optimizer.state_dict()["state"])}

    def recall(self, memory: Memory) -> None:
        (built,) = self.optimizers
        assert built.optimizer is not None
        if memory.get("of") == _name_of(built.optimizer):  # with the hyperparameters that are given now
            state = copy.deepcopy(memory["state"])
            built.optimizer.load_state_dict({**built.optimizer.state_dict(), "state": state})

    def state(self) -> list[dict[str, Any]]:
        return [built.state() for built in self.optimizers]

    def restore(self, state: list[dict[str, Any]]) -> None:
        for built, own in zip(self.optimizers, state):
            built.restore(own)


def _name_of(optimizer: torch.optim.Optimizer) -> str:
    return f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"


@dataclass(frozen=True)
class UpdateRule:
    """SGD or Adam by their hyperparameters, without an optimizer object (importing those takes seconds).

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
    def sgd(cls, lr: float, momentum: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> UpdateRule:
        """``torch.optim.SGD``."""
        group = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "dampening": 0.0, "nesterov": nesterov}
        return cls(StackedSGD, nesterov, group)

    @classmethod
    def adam(cls, lr: float, weight_decay: float = 0.0, decoupled: bool = False) -> UpdateRule:
        """``torch.optim.Adam``, or ``AdamW`` with the decay decoupled, otherwise with PyTorch's defaults."""
        return cls(StackedAdam, decoupled, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": weight_decay})

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> UpdateRule | None:
        """Rule of a torch optimizer, if it is one of the two and has one group of plain numbers; else None."""
        # By exact type: a subclass may step in another way. All that the stacked steps do not know is left to PyTorch.
        kind, groups = type(optimizer), optimizer.param_groups
        if len(groups) != 1 or groups[0].get("maximize") or groups[0].get("amsgrad") or _of_tensors(groups[0]):
            return None
        if kind is torch.optim.SGD:
            return cls(StackedSGD, bool(groups[0]["nesterov"]), groups[0])
        if kind in (torch.optim.Adam, torch.optim.AdamW):
            decoupled = kind is torch.optim.AdamW or bool(groups[0].get("decoupled_weight_decay"))
            return cls(StackedAdam, decoupled, groups[0])
        return None


class BuiltOptimizer:
    """The optimizer of one net, over a private copy of its parameters.

    Raises
    ------
    ValueError
        If the optimizer evaluates the loss itself (a closure).
    """

    def __init__(
        self, module: nn.Module, make: Callable[[nn.Module], torch.optim.Optimizer] | UpdateRule, device: torch.device
    ) -> None:
        self.optimizer: torch.optim.Optimizer | None = None
        if isinstance(make, UpdateRule):
            self.rule: UpdateRule | None = make
            return
        # Over a copy: nothing that an optimizer keeps, or changes when constructed, is released.
        copied = copy.deepcopy(module).to(device)
        self.parameters = named_trained(copied)
        self.optimizer = make(copied)
        self.rule = UpdateRule.of(self.optimizer)
        check_works_on_gradients(type(self.optimizer))
        self._elsewhere: str | None = None

    def state(self) -> dict[str, Any]:
        """State that PyTorch says the optimizer keeps from step to step.

        Raises
        ------
        ValueError
            If the optimizer has state elsewhere, which would be lost.
        """
        assert self.optimizer is not None
        own = {name: value for name, value in vars(self.optimizer).items() if name not in KEPT}
        before, self._elsewhere = self._elsewhere, digest(own)
        if before not in (None, self._elsewhere):
            raise TrainingError(
                f"Found optimizer {type(self.optimizer).__name__}, which keeps something from step to step outside of "
                "its state and param_groups: a checkpoint could not bring it back. Keep it in state, or leave "
                "checkpoint=None."
            )
        found: dict[str, Any] = self.optimizer.state_dict()
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        assert self.optimizer is not None
        self.optimizer.load_state_dict(state)
        places = itertools.chain.from_iterable(group["params"] for group in state["param_groups"])
        parameters = itertools.chain.from_iterable(group["params"] for group in self.optimizer.param_groups)
        for place, parameter in zip(places, parameters):
            for name, value in state["state"].get(place, {}).items():
                if isinstance(value, torch.Tensor):  # as it was: PyTorch has brought it to the parameter's precision
                    there = self.optimizer.state[parameter][name].device
                    self.optimizer.state[parameter][name] = value.to(there, copy=True)

    @property
    def structure(self) -> tuple[Any, ...] | None:
        """Kind and flag that optimizers stepped as one must share; None if this one steps alone."""
        return None if self.rule is None else (self.rule.kind, self.rule.flag)


def check_works_on_gradients(kind: type[torch.optim.Optimizer]) -> None:
    """Raise for an optimizer that evaluates the loss itself."""
    closure = inspect.signature(kind.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise TrainingError(
            f"Found optimizer {kind.__name__}, whose step evaluates the loss itself (a closure): each evaluation would "
            "read the records without noise. Use one that works on given gradients, e.g. torch.optim.SGD or "
            "torch.optim.Adam."
        )


def _of_tensors(group: Mapping[str, Any]) -> bool:
    return any(isinstance(value, torch.Tensor) for name, value in group.items() if name != "params")


def stepper_for(
    built: Sequence[BuiltOptimizer], tables: Sequence[Table], layout: Layout, device: torch.device
) -> Stepper:
    """Fastest stepper for these optimizers: stacked if all are of one known kind."""
    rules = [own.rule for own in built if own.rule is not None]
    if len(rules) < len(built) or len({own.structure for own in built}) > 1:
        return EachTorchOptimizer(built, tables, layout)
    rates = Rates([rule.group for rule in rules], tables, device)
    return rules[0].kind(rates, rules[0].flag)


def on_cpu(memory: Memory) -> Memory:
    """Copy of the memory on the CPU, where every machine can read it."""
    found: Memory = tree_map(lambda held: held.cpu() if isinstance(held, torch.Tensor) else held, memory)
    return found


def _row_of(stacked: torch.Tensor, place: int) -> torch.Tensor:
    return stacked[place].detach().clone()


def _subtract(weights: torch.Tensor, moved: torch.Tensor, rate: float | torch.Tensor) -> None:
    if isinstance(rate, float):
        weights.sub_(moved, alpha=rate)
    else:
        weights.addcmul_(moved, rate.to(weights.dtype), value=-1.0)
