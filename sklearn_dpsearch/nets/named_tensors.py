"""Several inputs of one module, by name: moved, cut and stacked like one tensor.

Engines, graphs and ``torch.func.vmap`` take named inputs in the place of a tensor of records. Every part has the
records in its first dimension, or dimensions, and every operation here keeps them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.utils import _pytree


class NamedTensors:
    """Tensors of the same records, by name.

    Parameters
    ----------
    tensors : mapping of str to tensor
    """

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self.tensors = dict(tensors)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(self.tensors)

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> NamedTensors:
        """Apply a function to every part."""
        return NamedTensors({name: change(tensor) for name, tensor in self.tensors.items()})

    def __getitem__(self, key: Any) -> Any:
        """Part of a name, or the same rows of all parts."""
        return self.tensors[key] if isinstance(key, str) else self.each(lambda tensor: tensor[key])

    def __len__(self) -> int:
        return len(self._first)

    @property
    def _first(self) -> torch.Tensor:
        return next(iter(self.tensors.values()))

    @property
    def shape(self) -> torch.Size:
        """Shape of the first part: all parts have the records in the same places."""
        return self._first.shape

    @property
    def device(self) -> torch.device:
        """Device of all parts."""
        return self._first.device

    def to(self, *args: Any, **kwargs: Any) -> NamedTensors:
        """Move or convert every part, like ``Tensor.to``."""
        return self.each(lambda tensor: tensor.to(*args, **kwargs))

    def flatten(self, start_dim: int, end_dim: int) -> NamedTensors:
        """Flatten every part, like ``Tensor.flatten``."""
        return self.each(lambda tensor: tensor.flatten(start_dim, end_dim))

    def unsqueeze(self, dim: int) -> NamedTensors:
        """Add a dimension to every part, like ``Tensor.unsqueeze``."""
        return self.each(lambda tensor: tensor.unsqueeze(dim))


_pytree.register_pytree_node(
    NamedTensors,
    lambda parts: (list(parts.tensors.values()), parts.names),
    lambda values, names: NamedTensors(dict(zip(names, values))),
)

#: Inputs of a module.
Inputs: TypeAlias = torch.Tensor | NamedTensors


def each(change: Callable[[torch.Tensor], torch.Tensor], values: Inputs) -> Inputs:
    """Apply a function to a tensor, or to every part."""
    return values.each(change) if isinstance(values, NamedTensors) else change(values)


def tensors_of(values: Inputs) -> list[torch.Tensor]:
    """List the tensor, or all parts."""
    return list(values.tensors.values()) if isinstance(values, NamedTensors) else [values]


def names_of(values: Inputs) -> tuple[str, ...]:
    """Names of the parts; none of a tensor."""
    return values.names if isinstance(values, NamedTensors) else ()


def joined(rows: Iterable[Inputs], how: Callable[[list[torch.Tensor]], torch.Tensor]) -> Inputs:
    """Tensors, or the parts of each name, joined by ``torch.stack`` or ``torch.cat``."""
    listed = list(rows)
    first = listed[0]
    if not isinstance(first, NamedTensors):
        return how(listed)
    return NamedTensors({name: how([row[name] for row in listed]) for name in first.names})


class ByName(nn.Module):
    """Wrapper of a module with inputs by name, which takes ``NamedTensors``.

    Parameters
    ----------
    module : Module
        Its ``forward`` has an argument for each name.
    names : tuple of str
    """

    def __init__(self, module: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, records: NamedTensors) -> Any:
        """Call the module as skorch does for a dict of inputs."""
        return self.module(**{name: records[name] for name in self.names})


def taking(module: nn.Module, inputs: Inputs) -> nn.Module:
    """Wrap the module if needed, so that it takes such inputs."""
    return ByName(module, inputs.names) if isinstance(inputs, NamedTensors) else module


def name_of(module: nn.Module) -> str:
    """Name of the user's class."""
    return type(module.module if isinstance(module, ByName) else module).__name__
