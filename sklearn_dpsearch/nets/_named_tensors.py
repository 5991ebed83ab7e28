"""Inputs of a module: a tensor of records, or several by name, with the records in equal places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from torch import Tensor, nn

#: Inputs of a module, with the records in the first dimension of every tensor.
Inputs: TypeAlias = Tensor | dict[str, Tensor]


def map_tensors(change: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """Apply a function to a module's input, or to each by name."""
    if isinstance(inputs, dict):
        return {name: change(part) for name, part in inputs.items()}
    return change(inputs)


def list_tensors(inputs: Inputs) -> list[Tensor]:
    """Tensors of a module's input: one, or all by name."""
    return list(inputs.values()) if isinstance(inputs, dict) else [inputs]


def input_names(inputs: Inputs) -> tuple[str, ...] | None:
    """Names of a module's inputs; None for one tensor."""
    return tuple(inputs) if isinstance(inputs, dict) else None


class ByName(nn.Module):
    """Wrapper of a module with inputs by name, which takes a dict.

    Parameters
    ----------
    module : Module
        Its ``forward`` has an argument for each name.
    names : tuple of str
    """

    def __init__(self, module: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, records: dict[str, Tensor]) -> Any:
        """Call the module as skorch does for a dict of inputs."""
        return self.module(**{name: records[name] for name in self.names})


def wrap_for_named_inputs(module: nn.Module, names: tuple[str, ...] | None) -> nn.Module:
    """Wrap a module so that it takes inputs of these names."""
    return module if names is None else ByName(module, names)


def net_name(module: nn.Module) -> str:
    """Name of the user's module class, also of a wrapped one."""
    return type(module.module if isinstance(module, ByName) else module).__name__
