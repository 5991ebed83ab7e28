"""Operations that act on each record alone: a table, with a rule for the arguments of each.

A tensor of records has the records in its first dimension. Every rule keeps it so: what an operation computes for one
record depends on that record, on constants, and on nothing else. What is not in the table, or has arguments that its
rule does not know, is not taken for an operation of this kind.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class NotAlone(Exception):
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
Rule = Callable[..., Any]


def needs(condition: Any, reason: str) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise NotAlone(reason)


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
    ranks = {one.rank for one in given if isinstance(one, Rows)}
    needs(len(ranks) == 1, "tensors of records of different ranks, of which one is spread over the others' records")
    (rank,) = ranks
    for one in given:
        if isinstance(one, Fixed):
            apart = len(one.shape) < rank or (len(one.shape) == rank and one.shape[0] == 1)
            needs(apart, "a constant with an entry per record")
        elif not isinstance(one, Rows):
            plain(one)


def chosen(condition: Any, *others: Any) -> None:
    """``where`` with a choice for either case; with the condition alone it returns places, across records."""
    needs(len(others) == 2, "where with a condition alone")
    elementwise(condition, *others)


def along(*names: str, dims: str = "dim", default: Any = None, rank: int = 2) -> Rule:
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
    needs(len(sizes) >= 1 and all(one is NUMBER or type(one) is int for one in sizes), "a shape that is not constant")
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
    ranks = {rows(one).rank for one in values}
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
    for term, one in zip(terms, operands):
        known = term[:1] == right[0] and right[0] not in term[1:] if isinstance(one, Rows) else right[0] not in term
        needs(known and isinstance(one, (Rows, Fixed)), "einsum across records")
    needs(right[0] not in right[1:] and any(isinstance(one, Rows) for one in operands), "einsum across records")


def attended(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: Any = 0.0, is_causal: Any = False
) -> None:
    """Attention among the parts of one record."""
    ranks = {rows(one, 3).rank for one in (query, key, value)}
    needs(len(ranks) == 1, "tensors of different ranks")
    needs(attn_mask is None or (isinstance(attn_mask, Fixed) and len(attn_mask.shape) == 2), "a mask of another kind")
    plain(dropout_p, is_causal)


def normed(value: Any, shape: Any, weight: Any = None, bias: Any = None, eps: Any = None) -> None:
    """Layer normalisation over dimensions of a record."""
    plain(shape, eps)
    needs(rows(value).rank > len(shape), "normalisation over the records")
    needs(all(one is None or isinstance(one, Fixed) for one in (weight, bias)), "scales that are not constant")


def affine(value: Any, weight: Any, bias: Any = None) -> None:
    """A linear map of the last dimension by constants."""
    rows(value, 2)
    needs(isinstance(weight, Fixed) and (bias is None or isinstance(bias, Fixed)), "weights that are not constant")


def spatial(rank: int) -> Rule:
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
        used = sum(one is not None for one in places[1:])
        needs(0 < used < found.rank and None not in places, "an index over the records")
    else:
        needs(places[0] == slice(None) and Ellipsis not in places[1:], "an index over the records")
    for one in places[1:]:
        plain(*((one.start, one.stop, one.step) if isinstance(one, slice) else (one,)))
        needs(type(one) in (int, slice, type(None)), "an index that is not constant")
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


# --- the table -----------------------------------------------------------------------------------------------------

_ELEMENTWISE = """
abs add addcdiv addcmul alpha_dropout asin asinh acos acosh atan atan2 atanh bitwise_and bitwise_not bitwise_or ceil
celu clamp clamp_max clamp_min clip clone contiguous cos cosh detach div double dropout elu eq erf erfc exp expm1
float floor floor_divide fmod frac ge gelu gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot isfinite isinf
isnan le leaky_relu lerp log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor logit
logsigmoid long lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative ones_like
polar pow rand_like randn_like reciprocal relu relu6 remainder round rrelu rsqrt rsub selu sigmoid sign silu sin sinc
sinh softplus softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold to true_divide trunc type_as
where zeros_like
"""
#: What draws random numbers: nets that contain it are trained alone.
RANDOM = {"alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "rand_like", "randn_like", "rrelu"}
_ALONG: dict[str, Rule] = {
    **dict.fromkeys(("sum", "mean", "amax", "amin", "logsumexp", "all", "any"), along("dim", "keepdim", "dtype")),
    **dict.fromkeys(("prod", "argmax", "argmin", "cumsum", "cumprod"), along("dim", "keepdim", "dtype")),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), along("dim", "_stacklevel", "dtype")),
    **dict.fromkeys(("std", "var"), along("dim", "unbiased", "keepdim", "correction")),
    **dict.fromkeys(("norm",), along("p", "dim", "keepdim", "dtype")),
    "median": along("dim", "keepdim"),
    "topk": along("k", "dim", "largest", "sorted", default=-1),
    "sort": along("dim", "descending", "stable", default=-1),
    "flip": lambda value, *dims: dims_within(dims[0] if isinstance(dims[0], (tuple, list)) else dims, rows(value).rank),
    "roll": along("shifts", "dims", dims="dims"),
    "chunk": along("chunks", "dim"),
    "split": along("split_size_or_sections", "dim"),
    "unbind": along("dim"),
    "squeeze": along("dim"),
    "narrow": along("dim", "start", "length"),
    "select": along("dim", "index"),
    "glu": along("dim", default=-1),
    "normalize": along("p", "dim", "eps", default=1),
}
_SHAPES: dict[str, Rule] = {
    "cat": joined,
    "concat": joined,
    "einsum": summed,
    "expand": expanded,
    "flatten": flattened,
    "gather": gathered,
    "bmm": multiplied,
    "matmul": multiplied,
    "max": greatest,
    "min": greatest,
    "permute": permuted,
    "reshape": reshaped,
    "view": reshaped,
    "stack": stacked,
    "swapaxes": turned,
    "transpose": turned,
    "unflatten": unflattened,
    "unsqueeze": inserted,
}
_FUNCTIONAL: dict[str, Rule] = {
    "layer_norm": normed,
    "linear": affine,
    "scaled_dot_product_attention": attended,
    **{
        f"{kind}_pool{n}d": spatial(n + 2) for kind in ("max", "avg", "adaptive_avg", "adaptive_max") for n in (1, 2, 3)
    },
    **{f"dropout{n}d": spatial(n + 2) for n in (1, 2, 3)},
}
_NAMED: dict[str, Rule] = {**dict.fromkeys(_ELEMENTWISE.split(), elementwise), **_ALONG, **_SHAPES, "where": chosen}
_OPERATORS = [
    "add",
    "and_",
    "eq",
    "floordiv",
    "ge",
    "gt",
    "invert",
    "le",
    "lt",
    "mod",
    "mul",
    "ne",
    "neg",
    "or_",
    "pow",
    "sub",
    "truediv",
    "xor",
]

#: Functions ↦ rule.
FUNCTIONS: dict[Any, Rule] = {
    **{
        getattr(torch, name): rule
        for name, rule in {**_FUNCTIONAL, **_NAMED}.items()
        if callable(getattr(torch, name, None))
    },
    **{getattr(F, name): rule for name, rule in {**_NAMED, **_FUNCTIONAL}.items() if hasattr(F, name)},
    **{getattr(operator, name): elementwise for name in _OPERATORS},
    operator.getitem: indexed,
    operator.matmul: multiplied,
    getattr: attribute,
}
#: Methods of tensors ↦ rule.
METHODS: dict[str, Rule] = {
    **{name: rule for name, rule in _NAMED.items() if hasattr(torch.Tensor, name)},
    "size": sized,
    "dim": lambda value: rows(value).rank,
}
#: What may be computed with numbers that are the same in every batch.
NUMBERS = {getattr(operator, name) for name in ("add", "floordiv", "mod", "mul", "neg", "pow", "sub", "truediv")}


# --- layers --------------------------------------------------------------------------------------------------------


def _any(layer: nn.Module, value: Any) -> None:
    needs(not getattr(layer, "inplace", False), "a layer in place")
    rows(value)


def _of_rank(least: int, most: int = 99) -> Rule:
    def rule(layer: nn.Module, value: Any) -> None:
        _any(layer, value)
        needs(least <= value.rank <= most, f"{type(layer).__name__} on an input of rank {value.rank}")
        needs(not getattr(layer, "return_indices", False), "an argument return_indices")
        needs(not getattr(layer, "track_running_stats", False), "statistics over the records of a batch")

    return rule


def _looked_up(layer: Any, value: Any) -> None:
    needs(rows(value).whole, "an embedding of something else than integers")
    needs(layer.max_norm is None, "Embedding(max_norm=...), which changes parameters")
    needs(not layer.scale_grad_by_freq, "Embedding(scale_grad_by_freq=True), which counts over the batch")
    needs(not layer.sparse, "Embedding(sparse=True)")


def _layer_norm(layer: Any, value: Any) -> None:
    needs(rows(value).rank > len(layer.normalized_shape), "normalisation over the records")


_LAYERS: dict[str, Rule] = {
    **dict.fromkeys(
        [
            "AlphaDropout",
            "CELU",
            "Dropout",
            "ELU",
            "GELU",
            "Hardshrink",
            "Hardsigmoid",
            "Hardswish",
            "Hardtanh",
            "Identity",
            "LeakyReLU",
            "LogSigmoid",
            "Mish",
            "ReLU",
            "ReLU6",
            "RReLU",
            "SELU",
            "SiLU",
            "Sigmoid",
            "Softplus",
            "Softshrink",
            "Softsign",
            "Tanh",
            "Tanhshrink",
            "Threshold",
        ],
        _any,
    ),
    **dict.fromkeys(("GroupNorm", "Linear", "PReLU"), _of_rank(2)),
    **dict.fromkeys(("Upsample", "LocalResponseNorm"), _of_rank(3)),
    **{
        f"{kind}{n}d": _of_rank(n + 2, n + 2)
        for n in (1, 2, 3)
        for kind in [
            "AdaptiveAvgPool",
            "AdaptiveMaxPool",
            "AvgPool",
            "ConstantPad",
            "Conv",
            "ConvTranspose",
            "Dropout",
            "InstanceNorm",
            "LPPool",
            "MaxPool",
            "ReflectionPad",
            "ReplicationPad",
            "ZeroPad",
        ]
    },
    **dict.fromkeys(("PixelShuffle", "PixelUnshuffle", "Softmax2d"), _of_rank(4, 4)),
    **dict.fromkeys(
        ("GLU", "LogSoftmax", "Softmax", "Softmin"), lambda layer, value: within(layer.dim, rows(value).rank)
    ),
    "Embedding": _looked_up,
    "Flatten": lambda layer, value: flattened(value, layer.start_dim, layer.end_dim),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), _layer_norm),
    "Unflatten": lambda layer, value: unflattened(value, layer.dim, tuple(layer.unflattened_size)),
}
#: Layers of PyTorch, by exact type ↦ rule.
LAYERS: dict[type[nn.Module], Rule] = {getattr(nn, name): rule for name, rule in _LAYERS.items() if hasattr(nn, name)}


def is_random(target: Any, layer: nn.Module | None = None) -> bool:
    """Whether an operation, or a layer, draws random numbers."""
    name = type(layer).__name__ if layer is not None else target if type(target) is str else target.__name__
    return name.lower() in {one.replace("_", "") for one in RANDOM} | RANDOM


def attributes(layer: nn.Module) -> dict[str, Any]:
    """The constants that a layer, or a criterion, was made with."""
    return {name: value for name, value in vars(layer).items() if type(value) in (*PLAIN, tuple)}
