"""What it takes for an operation to act on each record alone: one rule for each kind of arguments.

A tensor of records has the records in its first dimension. Every rule keeps it so: what an operation computes for one
record depends on that record, on constants, and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


class NotPerRecord(Exception):
    """Why something is not known to act on each record alone."""


@dataclass(frozen=True)
class Rows:
    """A tensor with one row per record, by its shape on made-up records."""

    shape: torch.Size
    whole: bool = False  # integers

    @property
    def rank(self) -> int:
        """Number of dimensions, that of the records included."""
        return len(self.shape)


@dataclass(frozen=True)
class Fixed:
    """A tensor that no record is in: a parameter or a buffer."""

    shape: torch.Size


@dataclass(frozen=True)
class Several:
    """Several tensors of records."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Shape:
    """The shape of a tensor of records."""

    rows: Rows


class _Number:
    """The number of records in the batch."""


NUMBER = _Number()
PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device, torch.memory_format, torch.layout)
OperationRule = Callable[..., Any]


def needs(condition: Any, reason: str) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise NotPerRecord(reason)


def within(dim: Any, rank: int) -> None:
    """A dimension that is not that of the records."""
    needs(type(dim) is int and -rank <= dim < rank, "a dimension that is not given as a number")
    needs(dim % rank != 0, "an operation across the records (dimension 0)")


def dims_within(dims: Any, rank: int) -> None:
    """One or several dimensions, none of them that of the records."""
    needs(dims is not None, "an operation over all dimensions, that of the records included; name the others (dim=...)")
    for dim in dims if isinstance(dims, (tuple, list)) else (dims,):
        within(dim, rank)
    needs(dims != () and dims != [], "an operation over all dimensions")


def rows(value: Any, rank: int = 1) -> Rows:
    """A tensor of records with at least so many dimensions."""
    needs(isinstance(value, Rows) and value.rank >= rank, f"an input that is not a tensor of records of rank {rank}")
    found: Rows = value
    return found


def plain(*values: Any) -> None:
    """Constants of Python, and no batch size among them."""
    for value in values:
        if isinstance(value, (tuple, list)):
            plain(*value)
        else:
            needs(type(value) in PLAIN, "an argument that depends on the batch")


# --- rules ---------------------------------------------------------------------------------------------------------


def elementwise(*args: Any, inplace: bool = False, **kwargs: Any) -> None:
    """Element by element. Tensors of records have equal ranks, others broadcast over the records."""
    needs(not inplace, "an operation in place")
    given = [*args, *kwargs.values()]
    needs("out" not in kwargs, "an argument out=")
    ranks = {value.rank for value in given if isinstance(value, Rows)}
    needs(len(ranks) == 1, "tensors of records of different ranks, of which one is spread over the others' records")
    (rank,) = ranks
    for value in given:
        if isinstance(value, Fixed):
            apart = len(value.shape) < rank or (len(value.shape) == rank and value.shape[0] == 1)
            needs(apart, "a constant with an entry per record")
        elif not isinstance(value, Rows):
            plain(value)


def chosen(condition: Any, *others: Any) -> None:
    """``where`` with a choice for either case; with the condition alone it returns places, across records."""
    needs(len(others) == 2, "where with a condition alone")
    elementwise(condition, *others)


def along(*names: str, dims: str = "dim", default: Any = None, rank: int = 2) -> OperationRule:
    """An operation along dimensions that are named; the other arguments are constants."""

    def rule(value: Any, *args: Any, **kwargs: Any) -> None:
        found, given = rows(value, rank), bound(names, args, kwargs)
        dims_within(given.pop(dims, default), found.rank)
        plain(*given.values())

    return rule


def gathered(value: Any, dim: Any, index: Any) -> None:
    """Entries of each record picked by indices of the same record."""
    found = rows(value)
    within(dim, found.rank)
    needs(rows(index).rank == found.rank, "indices of another rank")


def greatest(value: Any, *args: Any, **kwargs: Any) -> None:
    """``max`` and ``min``: of two tensors, or along a dimension."""
    if args and isinstance(args[0], (Rows, Fixed)):
        elementwise(value, *args, **kwargs)
    else:
        along("dim", "keepdim")(value, *args, **kwargs)


def flattened(value: Any, start_dim: Any = 0, end_dim: Any = -1) -> None:
    """All dimensions but that of the records."""
    found = rows(value, 2)
    within(start_dim, found.rank)
    within(end_dim, found.rank)


def reshaped(value: Any, *shape: Any) -> None:
    """A new shape that keeps the records in the first place."""
    found = rows(value)
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    needs(
        len(sizes) >= 1 and all(size is NUMBER or type(size) is int for size in sizes), "a shape that is not constant"
    )
    first, rest = sizes[0], sizes[1:]
    needs(NUMBER not in rest, "the number of records in another place than the first")
    if first is not NUMBER:
        whole = -1 not in rest and math.prod(rest) == math.prod(found.shape[1:])
        needs(first == -1 and whole, "a shape that mixes records; write x.flatten(1) or x.view(len(x), ...)")


def unflattened(value: Any, dim: Any, sizes: Any) -> None:
    """One dimension in several."""
    within(dim, rows(value, 2).rank)
    plain(sizes)


def permuted(value: Any, *dims: Any) -> None:
    """Dimensions in another order, the records first."""
    found = rows(value)
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    plain(order)
    needs(order and order[0] in (0, -found.rank), "records moved out of the first place")


def turned(value: Any, first: Any, second: Any) -> None:
    """Two dimensions exchanged."""
    dims_within((first, second), rows(value, 2).rank)


def turned_last(value: Any) -> None:
    """The last two dimensions exchanged."""
    rows(value, 3)


def inserted(value: Any, dim: Any) -> None:
    """A new dimension behind that of the records."""
    within(dim, rows(value).rank + 1)


def expanded(value: Any, *sizes: Any) -> None:
    """Dimensions of size one repeated, that of the records left."""
    found = rows(value)
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    needs(len(shape) == found.rank and (shape[0] is NUMBER or shape[0] == -1), "records repeated")
    plain(*shape[1:])


def joined(values: Any, dim: Any = 0, new: int = 0) -> None:
    """Tensors of the same records, joined along another dimension."""
    needs(isinstance(values, (tuple, list)) and values, "tensors that are not listed one by one")
    ranks = {rows(value).rank for value in values}
    needs(len(ranks) == 1, "tensors of different ranks")
    within(dim, ranks.pop() + new)


def stacked(values: Any, dim: Any = 0) -> None:
    """Tensors of the same records, stacked along a new dimension."""
    joined(values, dim, new=1)


def multiplied(left: Any, right: Any) -> None:
    """Products of matrices: of each record with its own, or with constants."""
    found = rows(left, 2)
    if isinstance(right, Fixed):
        needs(len(right.shape) <= 2, "constant matrices of more than two dimensions")
    else:
        needs(found.rank >= 3 and rows(right, 3).rank == found.rank, "a product across records")


def summed(equation: Any, *operands: Any) -> None:
    """``einsum`` with one letter for the records: the first of every tensor of records and of the result."""
    needs(type(equation) is str and "->" in equation and "." not in equation, "einsum without explicit letters")
    left, right = equation.replace(" ", "").split("->")
    terms = left.split(",")
    needs(len(terms) == len(operands) and right, "einsum without a result for each record")
    for term, operand in zip(terms, operands):
        known = term[:1] == right[0] and right[0] not in term[1:] if isinstance(operand, Rows) else right[0] not in term
        needs(known and isinstance(operand, (Rows, Fixed)), "einsum across records")
    needs(right[0] not in right[1:] and any(isinstance(operand, Rows) for operand in operands), "einsum across records")


def attended(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: Any = 0.0, is_causal: Any = False
) -> None:
    """Attention among the parts of one record."""
    ranks = {rows(tensor, 3).rank for tensor in (query, key, value)}
    needs(len(ranks) == 1, "tensors of different ranks")
    needs(attn_mask is None or (isinstance(attn_mask, Fixed) and len(attn_mask.shape) == 2), "a mask of another kind")
    plain(dropout_p, is_causal)


def normed(value: Any, shape: Any, weight: Any = None, bias: Any = None, eps: Any = None) -> None:
    """Layer normalisation over dimensions of a record."""
    plain(shape, eps)
    needs(rows(value).rank > len(shape), "normalisation over the records")
    needs(all(scale is None or isinstance(scale, Fixed) for scale in (weight, bias)), "scales that are not constant")


def affine(value: Any, weight: Any, bias: Any = None) -> None:
    """A linear map of the last dimension by constants."""
    rows(value, 2)
    needs(isinstance(weight, Fixed) and (bias is None or isinstance(bias, Fixed)), "weights that are not constant")


def spatial(rank: int) -> OperationRule:
    """Pooling, padding and the like on (records, channels, places)."""

    def rule(value: Any, *args: Any, **kwargs: Any) -> None:
        needs(rows(value).rank == rank, f"an input that is not of rank {rank}: (records, channels, ...)")
        needs(not kwargs.get("return_indices"), "an argument return_indices")
        plain(*args, *kwargs.values())

    return rule


def indexed(value: Any, index: Any) -> Any:
    """A part of each record, of a shape, or one of several tensors."""
    if isinstance(value, Several):
        needs(type(index) is int, "an index that is not a number")
        return value.parts[index]
    if isinstance(value, Shape):
        return _size(value.rows, index)
    found = rows(value, 2)
    places = index if isinstance(index, tuple) else (index,)
    if places[0] is Ellipsis:
        used = sum(place is not None for place in places[1:])
        needs(0 < used < found.rank and None not in places, "an index over the records")
    else:
        needs(places[0] == slice(None) and Ellipsis not in places[1:], "an index over the records")
    for place in places[1:]:
        plain(*((place.start, place.stop, place.step) if isinstance(place, slice) else (place,)))
        needs(type(place) in (int, slice, type(None)), "an index that is not constant")
    return None


def sized(value: Any, dim: Any = None) -> Any:
    """``x.size()``."""
    return Shape(rows(value)) if dim is None else _size(rows(value), dim)


def _size(value: Rows, dim: Any) -> Any:
    needs(type(dim) is int and -value.rank <= dim < value.rank, "a part of a shape")
    return NUMBER if dim % value.rank == 0 else value.shape[dim]


def attribute(value: Any, name: str) -> Any:
    """Shapes and the like; no other attributes of tensors."""
    found = rows(value)
    if name == "mT":
        return turned_last(value)
    needs(name in ("shape", "ndim"), f"an attribute .{name}")
    return Shape(found) if name == "shape" else found.rank


def bound(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name."""
    needs(len(args) <= len(names) and set(kwargs) <= set(names[len(args) :]), "arguments that are not known")
    return {**dict(zip(names, args)), **kwargs}


# --- layers -----------------------------------------------------------------------------------------------------


def any_shape(layer: nn.Module, value: Any) -> None:
    needs(not getattr(layer, "inplace", False), "a layer in place")
    rows(value)


def of_rank(least: int, most: int = 99) -> OperationRule:
    def rule(layer: nn.Module, value: Any) -> None:
        any_shape(layer, value)
        needs(least <= value.rank <= most, f"{type(layer).__name__} on an input of rank {value.rank}")
        needs(not getattr(layer, "return_indices", False), "an argument return_indices")
        needs(not getattr(layer, "track_running_stats", False), "statistics over the records of a batch")

    return rule


def looked_up(layer: Any, value: Any) -> None:
    needs(rows(value).whole, "an embedding of something else than integers")
    needs(layer.max_norm is None, "Embedding(max_norm=...), which changes parameters")
    needs(not layer.scale_grad_by_freq, "Embedding(scale_grad_by_freq=True), which counts over the batch")
    needs(not layer.sparse, "Embedding(sparse=True)")


def over_last(layer: Any, value: Any) -> None:
    needs(rows(value).rank > len(layer.normalized_shape), "normalisation over the records")
