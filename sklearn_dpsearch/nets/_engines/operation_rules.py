"""Rules under which operations act on each record alone, by PyTorch's names.

A tensor of records has the records in its first dimension, and every rule preserves that: the
result for one record depends only on that record and on constants. A rule is called with the
arguments of the operation, with tensors replaced by their kinds, and raises ``NotPerRecord``; most
rules return nothing, some a part of a shape.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from .refused_modules import has_frozen_statistics

#: Reason why an embedding refuses its inputs.
NO_TOKENS = "an embedding of something else than integers"


class NotPerRecord(Exception):
    """Reason why an operation may mix records."""


@dataclass(frozen=True)
class Rows:
    """Tensor with one row per record, by its shape on made-up records."""

    shape: torch.Size
    integers: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions, with the dimension of records."""
        return len(self.shape)


@dataclass(frozen=True)
class Turned:
    """Tensor of records with the steps of sequences first, and the records second."""

    rows: Rows


@dataclass(frozen=True)
class Constant:
    """Tensor without records: a parameter or a buffer."""

    shape: torch.Size


@dataclass(frozen=True)
class Several:
    """Several tensors of records."""

    parts: tuple[Rows | Turned | Constant | Several | Named, ...]


@dataclass(frozen=True)
class Named:
    """Tensors of the same records by name: the inputs of a module."""

    parts: Mapping[str, Rows]


@dataclass(frozen=True)
class Shape:
    """The shape of a tensor of records."""

    rows: Rows


class _BatchSize:
    """Number of records in the batch, with which no operation may compute."""


class _Property:
    """Device or dtype of a tensor: the same in every batch."""


BATCH_SIZE = _BatchSize()
PROPERTY = _Property()
#: Kind of the result of an operation, or of its argument.
Kind: TypeAlias = (
    Rows | Turned | Constant | Several | Named | Shape | _BatchSize | _Property | int | float
)
#: Constants of Python and PyTorch, by exact type.
LITERALS = (
    *(bool, int, float, str, type(None)),
    *(torch.dtype, torch.device, torch.memory_format, torch.layout, _Property),
)
OperationRule: TypeAlias = Callable[..., Any]


def needs(condition: bool, reason: str) -> None:
    """Raise ``NotPerRecord`` with a reason unless a condition holds."""
    if not condition:
        raise NotPerRecord(reason)


def require_inner_dim(dim: object, rank: int) -> None:
    """Require a dimension of a tensor other than that of the records."""
    if type(dim) is not int or not -rank <= dim < rank:
        raise NotPerRecord("a dimension that is not given as a number")
    needs(dim % rank != 0, "an operation across the records (dimension 0)")


def require_inner_dims(dims: object, rank: int) -> None:
    """Require dimensions of a tensor that leave out that of the records."""
    if dims is None:
        raise NotPerRecord(
            "an operation over all dimensions, that of the records included; name the others "
            "(dim=...)"
        )
    for dim in dims if isinstance(dims, (tuple, list)) else (dims,):
        require_inner_dim(dim, rank)
    # to PyTorch an empty list means all
    needs(dims != () and dims != [], "an operation over all dimensions")


def require_rows(value: object, rank: int = 1) -> Rows:
    """Require a tensor of records with at least ``rank`` dimensions."""
    if not isinstance(value, Rows) or value.rank < rank:
        raise NotPerRecord(f"an input that is not a tensor of records of rank {rank}")
    return value


def require_constants(*values: object) -> None:
    """Require constants of Python, none of which is a batch size."""
    for value in values:
        if isinstance(value, (tuple, list)):
            require_constants(*value)
        else:
            needs(type(value) in LITERALS, "an argument that depends on the batch")


def arguments_by_name(
    names: tuple[str, ...], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Arguments of an operation by their names."""
    fit = len(args) <= len(names) and set(kwargs) <= set(names[len(args) :])
    needs(fit, "arguments that are not known")
    return {**dict(zip(names, args)), **kwargs}


def listed_arguments(values: tuple[object, ...]) -> Sequence[object]:
    """Arguments given one by one or as one list.

    ``x.view(2, 3)`` is ``x.view((2, 3))``.
    """
    return values[0] if len(values) == 1 and isinstance(values[0], (tuple, list)) else values


def require_one_rank(values: Sequence[object], rank: int = 1) -> int:
    """Require several tensors of records of one rank, and return the rank."""
    ranks = {require_rows(value, rank).rank for value in values}
    needs(len(ranks) == 1, "tensors of different ranks")
    return ranks.pop()


# --- element by element, and along dimensions -----------------------------------------------------


def elementwise(*args: object, inplace: object = False, **kwargs: object) -> Turned | None:
    """Rule of element-wise operations: tensors of records have equal ranks.

    Tensors of other ranks would broadcast over the records.
    """
    needs(not inplace, "an operation in place")
    needs("out" not in kwargs, "an argument out=")
    arguments = [*args, *kwargs.values()]
    if isinstance(arguments[0], Turned):
        require_constants(*arguments[1:])
        return arguments[0]
    ranks = {value.rank for value in arguments if isinstance(value, Rows)}
    if len(ranks) != 1:
        raise NotPerRecord(
            "tensors of records of different ranks, of which one is spread over the others' records"
        )
    (rank,) = ranks
    for value in arguments:
        if isinstance(value, Constant):
            apart = len(value.shape) < rank or (len(value.shape) == rank and value.shape[0] == 1)
            needs(apart, "a constant with an entry per record")
        elif not isinstance(value, Rows):
            require_constants(value)
    return None


def out_of_place(function: Callable[..., Any], rule: OperationRule) -> OperationRule:
    """Rule for a function of PyTorch that is not called in place, also not by position."""
    try:
        place = list(inspect.signature(function).parameters).index("inplace")
    except ValueError:  # no such argument, or no signature
        return rule

    def checked(*args: object, **kwargs: object) -> Any:
        needs(args[place : place + 1] in ((), (False,)), "an operation in place")
        return rule(*args[:place], **kwargs)

    return checked


def quotient(dividend: object, divisor: object, **kwargs: object) -> None:
    """Rule of quotients: whole numbers are divided by constants alone, as by 0 they raise."""
    real = any(isinstance(value, Rows) and not value.integers for value in (dividend, divisor))
    needs(real or (type(divisor) is int and divisor != 0), "whole numbers divided by what may be 0")
    elementwise(dividend, divisor, **kwargs)


def division(dividend: object, divisor: object, *, rounding_mode: object = None) -> None:
    """Rule of ``torch.div``: rounded, it is a quotient."""
    (elementwise if rounding_mode is None else quotient)(dividend, divisor)


def where(condition: object, *choices: object) -> None:
    """Rule of ``torch.where``: a choice between two given cases.

    With the condition alone it returns places, across records.
    """
    needs(len(choices) == 2, "where with a condition alone")
    elementwise(condition, *choices)


def rule_along_dims(*names: str, dims: str = "dim", default: object = None) -> OperationRule:
    """Rule for operations along named dimensions of each record."""

    def rule(value: object, *args: object, **kwargs: object) -> None:
        rows, arguments = require_rows(value, 2), arguments_by_name(names, args, kwargs)
        require_inner_dims(arguments.pop(dims, default), rows.rank)
        require_constants(*arguments.values())

    return rule


def new_rows(*sizes: object, **kwargs: object) -> None:
    """Rule of ``torch.rand``: a new tensor with a row per record."""
    require_constants(*kwargs.values())
    shape = listed_arguments(sizes)
    if len(shape) == 1 and isinstance(shape[0], Shape):  # that of a tensor of records
        return
    constant = all(type(size) is int for size in shape[1:])
    rows = len(shape) >= 1 and shape[0] is BATCH_SIZE and constant
    needs(rows, "a new tensor without a row for each record")


def zeros(*sizes: object, **kwargs: object) -> Turned | None:
    """Rule of ``torch.zeros``: rows per record, or initial states of recurrent layers."""
    shape = listed_arguments(sizes)
    if len(shape) != 3 or shape[1] is not BATCH_SIZE:
        new_rows(*sizes, **kwargs)
        return None
    require_constants(*kwargs.values())
    needs(type(shape[0]) is int and type(shape[2]) is int, "a shape that is not constant")
    return Turned(Rows(torch.Size((0, shape[0], shape[2]))))


def flip(value: object, *dims: object) -> None:
    """Rule of ``torch.flip``: dimensions as numbers or as a list."""
    require_inner_dims(listed_arguments(dims), require_rows(value).rank)


def max_or_min(value: object, *args: object, **kwargs: object) -> None:
    """Rule of ``torch.max``: of two tensors, or along a dimension."""
    if args and isinstance(args[0], (Rows, Constant)):
        elementwise(value, *args, **kwargs)
    else:
        rule_along_dims("dim", "keepdim")(value, *args, **kwargs)


# --- shapes ---------------------------------------------------------------------------------------


def flatten(value: object, start_dim: object = 0, end_dim: object = -1) -> None:
    """Rule of ``torch.flatten``: all dimensions but that of the records."""
    rows = require_rows(value, 2)
    require_inner_dim(start_dim, rows.rank)
    require_inner_dim(end_dim, rows.rank)


def reshape(value: object, *shape: object) -> None:
    """Rule of ``Tensor.view``: a new shape with the records still first."""
    rows, sizes = require_rows(value), listed_arguments(shape)
    constant = all(size is BATCH_SIZE or type(size) is int for size in sizes)
    needs(len(sizes) >= 1 and constant, "a shape that is not constant")
    first, inner = sizes[0], [size for size in sizes[1:] if type(size) is int]
    needs(len(inner) == len(sizes) - 1, "the number of records in another place than the first")
    if first is not BATCH_SIZE:
        # -1 is the number of records only if the rest is all that a record has.
        complete = -1 not in inner and math.prod(inner) == math.prod(rows.shape[1:])
        reason = "a shape that mixes records; write x.flatten(1) or x.view(len(x), ...)"
        needs(first == -1 and complete, reason)


def swap_records_and_steps(value: object) -> Rows | Turned:
    """Move the records into the second dimension, or back into the first."""
    return value.rows if isinstance(value, Turned) else Turned(require_rows(value, 2))


def permute(value: object, *dims: object) -> Rows | Turned | None:
    """Rule of ``torch.permute``: the records stay first, or change with the second."""
    rows = value.rows if isinstance(value, Turned) else require_rows(value)
    order = listed_arguments(dims)
    require_constants(*order)
    if tuple(order) == (1, 0, *range(2, rows.rank)):
        return swap_records_and_steps(value)
    require_rows(value)
    needs(len(order) > 0 and order[0] in (0, -rows.rank), "records moved out of the first place")
    return None


def transpose(value: object, first: object, second: object) -> Rows | Turned | None:
    """Rule of ``torch.transpose``: two dimensions exchanged."""
    if (first, second) in ((0, 1), (1, 0)):
        return swap_records_and_steps(value)
    require_inner_dims((first, second), require_rows(value, 2).rank)
    return None


def squeeze(value: object, dim: object) -> None:
    """Rule of ``torch.squeeze``: a dimension of size one left out.

    It is of each record, or the one in front of the records.
    """
    if isinstance(value, Turned):
        needs(dim == 0 and value.rows.shape[1] == 1, "a dimension of steps")
    else:
        require_inner_dims(dim, require_rows(value, 2).rank)


def unsqueeze(value: object, dim: object) -> None:
    """Rule of ``torch.unsqueeze``: a new dimension behind that of the records."""
    require_inner_dim(dim, require_rows(value).rank + 1)


def expand(value: object, *sizes: object) -> None:
    """Rule of ``Tensor.expand``: repeats in each record alone."""
    rows, shape = require_rows(value), listed_arguments(sizes)
    apart = len(shape) == rows.rank and (shape[0] is BATCH_SIZE or shape[0] == -1)
    needs(apart, "records repeated")
    require_constants(*shape[1:])


def cat(values: object, dim: object = 0, new: int = 0) -> None:
    """Rule of ``torch.cat``: tensors of the same records, joined in each record."""
    if not isinstance(values, (tuple, list)) or not values:
        raise NotPerRecord("tensors that are not listed one by one")
    require_inner_dim(dim, require_one_rank(values) + new)


# --- products -------------------------------------------------------------------------------------


def matmul(input: object, other: object) -> None:
    """Rule of ``torch.matmul``: products within each record, or with constants."""
    rows = require_rows(input, 2)
    if isinstance(other, Constant):
        needs(len(other.shape) <= 2, "constant matrices of more than two dimensions")
    else:
        apart = rows.rank >= 3 and require_rows(other, 3).rank == rows.rank
        needs(apart, "a product across records")


def einsum(equation: object, *operands: object) -> None:
    """Rule of ``torch.einsum``: one letter stands for the records throughout.

    It is the first of every tensor of records and of the result.
    """
    if type(equation) is not str or "->" not in equation or "." in equation:
        raise NotPerRecord("einsum without explicit letters")
    inputs, output = equation.replace(" ", "").split("->")
    terms = inputs.split(",")
    needs(len(terms) == len(operands) and output != "", "einsum without a result for each record")
    for term, operand in zip(terms, operands):
        first = term[:1] == output[0] and output[0] not in term[1:]
        apart = first if isinstance(operand, Rows) else output[0] not in term
        needs(apart and isinstance(operand, (Rows, Constant)), "einsum across records")
    of_records = any(isinstance(operand, Rows) for operand in operands)
    needs(output[0] not in output[1:] and of_records, "einsum across records")


def linear(value: object, weight: object, bias: object = None) -> None:
    """Rule of ``F.linear``: a map of the last dimension by constants."""
    require_rows(value, 2)
    constant = isinstance(weight, Constant) and (bias is None or isinstance(bias, Constant))
    needs(constant, "weights that are not constant")


def attention(
    query: object,
    key: object,
    value: object,
    attn_mask: object = None,
    dropout_p: object = 0.0,
    is_causal: object = False,
) -> None:
    """Rule of attention among the parts of one record."""
    require_one_rank((query, key, value), 3)
    plane = isinstance(attn_mask, Constant) and len(attn_mask.shape) == 2
    needs(attn_mask is None or plane, "a mask of another kind")
    require_constants(dropout_p, is_causal)


def layer_norm(
    value: object, shape: object, weight: object = None, bias: object = None, eps: object = None
) -> None:
    """Rule of ``F.layer_norm``: normalisation over dimensions of a record."""
    require_constants(shape, eps)
    inner = isinstance(shape, (tuple, list)) and require_rows(value).rank > len(shape)
    needs(inner, "normalisation over the records")
    constant = all(scale is None or isinstance(scale, Constant) for scale in (weight, bias))
    needs(constant, "scales that are not constant")


def rule_for_images(rank: int) -> OperationRule:
    """Rule for pooling, padding and the like on (records, channels, places)."""

    def rule(value: object, *args: object, **kwargs: object) -> None:
        fits = require_rows(value).rank == rank
        needs(fits, f"an input that is not of rank {rank}: (records, channels, ...)")
        needs(not kwargs.get("return_indices"), "an argument return_indices")
        require_constants(*args, *kwargs.values())

    return rule


# --- parts of tensors and shapes ------------------------------------------------------------------


def getitem(value: object, index: object) -> Kind | None:
    """Rule of indexing: a part of each record, or of a shape."""
    if isinstance(value, Named):
        needs(type(index) is str and index in value.parts, "an input that is not given by its name")
        return value.parts[str(index)]
    if isinstance(value, Several):
        if type(index) is not int:
            raise NotPerRecord("an index that is not a number")
        return value.parts[index]
    if isinstance(value, Turned):
        needs(type(index) is int, "an index over the records")
        return None
    if isinstance(value, Shape):
        return _part_of_shape(value.rows, index)
    rank = require_rows(value, 2).rank
    # x[()] is x[...]
    first, *places = (index or (Ellipsis,)) if isinstance(index, tuple) else (index,)
    if first is Ellipsis:  # the records are in front of all that is named
        of_each = 0 < len(places) < rank and None not in places
    else:
        of_each = first == slice(None) and Ellipsis not in places
    needs(of_each, "an index over the records")
    for place in places:
        parts = (place.start, place.stop, place.step) if isinstance(place, slice) else (place,)
        require_constants(*parts)
        needs(type(place) in (int, slice, type(None)), "an index that is not constant")
    return None


def size(value: object, dim: object = None) -> Shape | _BatchSize | int:
    """Rule of ``Tensor.size``."""
    return Shape(require_rows(value)) if dim is None else _part_of_shape(require_rows(value), dim)


def _part_of_shape(value: Rows, dim: object) -> _BatchSize | int:
    if type(dim) is not int or not -value.rank <= dim < value.rank:
        raise NotPerRecord("a part of a shape")
    return BATCH_SIZE if dim % value.rank == 0 else int(value.shape[dim])


def attribute(value: object, name: str) -> Shape | _Property | int | None:
    """Rule of ``getattr``: shapes and the like, no other attributes of tensors."""
    rows = require_rows(value)
    if name in ("device", "dtype"):
        return PROPERTY
    if name == "mT":
        require_rows(value, 3)
        return None
    needs(name in ("shape", "ndim"), f"an attribute .{name}")
    return Shape(rows) if name == "shape" else rows.rank


# --- layers ---------------------------------------------------------------------------------------


def layer_of_any_shape(layer: nn.Module, value: object) -> None:
    """Rule of layers that take tensors of records of every rank."""
    needs(not getattr(layer, "inplace", False), "a layer in place")
    require_rows(value)


def rule_for_layers_of_rank(
    min_rank: int, max_rank: int = 99, frozen: bool = False
) -> OperationRule:
    """Rule for layers that take inputs of some ranks alone.

    Of another rank they would take a single record. ``frozen``: with statistics that are constants.
    """

    def rule(layer: nn.Module, value: object) -> None:
        layer_of_any_shape(layer, value)
        rank = require_rows(value).rank
        needs(min_rank <= rank <= max_rank, f"{type(layer).__name__} on an input of rank {rank}")
        needs(not getattr(layer, "return_indices", False), "an argument return_indices")
        statistics = getattr(layer, "track_running_stats", False) or frozen
        constant = not statistics or has_frozen_statistics(layer)
        needs(constant, "statistics over the records of a batch")

    return rule


def embedding(layer: nn.Embedding, value: object) -> None:
    """Rule of ``nn.Embedding``: rows of a table, by integers."""
    needs(require_rows(value).integers, NO_TOKENS)
    needs(layer.max_norm is None, "Embedding(max_norm=...), which changes parameters")
    reason = "Embedding(scale_grad_by_freq=True), which counts over the batch"
    needs(not layer.scale_grad_by_freq, reason)
    needs(not layer.sparse, "Embedding(sparse=True)")


def recurrent(layer: nn.RNNBase, value: object, start: object = ()) -> Several:
    """Rule of recurrent layers: steps of a sequence, and last states."""
    first = require_rows(value, 3) if layer.batch_first else swap_records_and_steps(value)
    if not isinstance(first, Rows) or first.rank != 3:
        raise NotPerRecord(f"{type(layer).__name__} on an input of another order or rank")
    starts = start if isinstance(start, tuple) else (start,)
    needs(all(isinstance(state, Turned) for state in starts), "an initial state of another kind")
    needs(layer.proj_size == 0, "LSTM(proj_size=...)")
    directions = 1 + layer.bidirectional
    outputs = Rows(torch.Size((*first.shape[:2], directions * layer.hidden_size)))
    shape = (first.shape[0], directions * layer.num_layers, layer.hidden_size)
    state = Turned(Rows(torch.Size(shape)))
    states = Several((state, state)) if type(layer) is nn.LSTM else state
    return Several((outputs if layer.batch_first else Turned(outputs), states))
