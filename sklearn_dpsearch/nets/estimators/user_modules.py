"""Checks of users' modules, criteria and records before training."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ...data.columns import array_of
from ..engines.made_up import made_up
from ..named_tensors import Inputs, taking

#: Kinds of arrays that hold no numbers: the whole type would tell the longest text of all records.
KINDS = {"U": "text", "S": "bytes", "O": "objects", "c": "complex numbers", "M": "dates", "m": "durations"}


def outputs_of(module: nn.Module, inputs: Inputs) -> torch.Tensor | None:
    """Outputs on made-up records of the same kind; None if the module does not take them."""
    rows = made_up(inputs, torch.empty(0))[0].to(next(module.parameters()).device)
    try:
        with torch.no_grad():
            found = copy.deepcopy(taking(module, inputs)).eval()(rows)
    except Exception:
        return None
    return found if isinstance(found, torch.Tensor) else None


def check_names(module: nn.Module, names: Sequence[str]) -> None:
    """Raise for named inputs that are not the arguments of ``forward``.

    Raises
    ------
    ValueError
    """
    accepted = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted):
        return
    needed = {parameter.name for parameter in accepted if parameter.default is inspect.Parameter.empty}
    if not needed <= set(names) <= {parameter.name for parameter in accepted}:
        raise ValueError(
            f"Found inputs {sorted(names)} for {type(module).__name__}.forward, which takes "
            f"{[parameter.name for parameter in accepted]}. Name the inputs as its arguments."
        )


def in_single_precision(module: nn.Module) -> None:
    """Convert a module in place to single precision, as gradients and the bound on rounding need.

    Raises
    ------
    ValueError
        For parameters other than real numbers.
    """
    for name, parameter in module.named_parameters():
        if not parameter.is_floating_point():
            raise ValueError(f"Found parameter {name!r} of dtype {parameter.dtype}; real numbers are needed.")
    module.float()


def copied(given: Any) -> Any:
    """Copy of a module or criterion that was given as an instance.

    Raises
    ------
    ValueError
    """
    try:
        return copy.deepcopy(given)
    except Exception as error:
        raise ValueError(
            f"Found an instance of {type(given).__name__} that cannot be copied ({type(error).__name__}). Give its "
            "class, and its arguments as module__...."
        ) from None


def is_torchs(owner: Any) -> bool:
    """Return whether a module, or a criterion, and all of its parts are PyTorch's own."""
    parts = list(owner.modules()) if isinstance(owner, nn.Module) else [owner]
    kinds = [part if isinstance(part, type) else type(part) for part in parts]
    return all(kind.__module__.startswith("torch.nn.modules.") for kind in kinds)


def check_keywords(prefix: str, owner: nn.Module | Callable[..., nn.Module], keywords: dict[str, Any]) -> None:
    """Raise for a misspelt argument of a module, before any data is read.

    Raises
    ------
    ValueError
    """
    target: Any = type(owner) if isinstance(owner, nn.Module) else owner
    try:
        accepted = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    unknown = sorted(set(keywords) - set(accepted))
    if unknown:
        raise ValueError(
            f"Found {[f'{prefix}__{name}' for name in unknown]}, which {target.__name__} does not take; it takes "
            f"{[f'{prefix}__{name}' for name in accepted]}."
        )


def array(name: str, data: Any) -> NDArray[Any]:
    """Records as a numeric array without NaN or infinity; a list becomes one of floating-point numbers.

    Raises
    ------
    ValueError
        The message quotes no record.
    """
    found = array_of(data, name)
    if found.dtype.kind not in "fiub":
        raise ValueError(f"Expected {name} as numbers, got an array of {KINDS.get(found.dtype.kind, 'others')}.")
    with np.errstate(all="ignore"):
        finite = found.dtype.kind != "f" or np.isfinite(found.sum()) or np.isfinite(found).all()
    if not finite:
        raise ValueError(f"{name} contains NaN or infinity. Remove or replace such records by a rule fixed in advance.")
    return np.require(found, requirements=["C", "W"])


def single(values: torch.Tensor) -> torch.Tensor:
    """Floating-point numbers in single precision; integers (tokens) as they are, for embeddings."""
    return values.float() if values.is_floating_point() else values.long()
