"""Operations that act on each record alone: a table, with a rule for the arguments of each.

An operation outside of the table, or with arguments unknown to its rule, counts as one that may mix
records.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._engines import operation_rules as rules
from .operation_rules import LITERALS, OperationRule, rule_along_dims, rule_for_images

_ELEMENTWISE_NAMES = """
abs add addcdiv addcmul alpha_dropout asin asinh acos acosh atan atan2 atanh bitwise_and bitwise_not
bitwise_or ceil celu clamp clamp_max clamp_min clip clone contiguous cos cosh detach div double
dropout elu eq erf erfc exp expm1 float floor frac full_like ge gelu gt hardshrink hardsigmoid
hardswish hardtanh heaviside hypot isfinite isinf isnan le leaky_relu lerp log log10 log1p log2
logaddexp logical_and logical_not logical_or logical_xor logit logsigmoid long lt masked_fill
maximum minimum mish mul multiply nan_to_num ne neg negative ones_like polar pow rand_like
randn_like reciprocal relu relu6 round rsqrt rsub selu sigmoid sign silu sin sinc sinh softplus
softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold to true_divide trunc
type_as where zeros_like
"""
_RANDOM_OPS = """
alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout
gumbel_softmax rand rand_like randn randn_like
"""
#: Operations that draw random numbers: nets with one of them are trained alone.
RANDOM_OPS = frozenset(_RANDOM_OPS.split())
_REDUCTIONS = "all amax amin any argmax argmin cumprod cumsum logsumexp mean prod sum"
_AXIS_RULES: dict[str, OperationRule] = {
    **dict.fromkeys(_REDUCTIONS.split(), rule_along_dims("dim", "keepdim", "dtype")),
    **dict.fromkeys(
        ("softmax", "log_softmax", "softmin"), rule_along_dims("dim", "_stacklevel", "dtype")
    ),
    **dict.fromkeys(("std", "var"), rule_along_dims("dim", "unbiased", "keepdim", "correction")),
    "norm": rule_along_dims("p", "dim", "keepdim", "dtype"),
    "median": rule_along_dims("dim", "keepdim"),
    "topk": rule_along_dims("k", "dim", "largest", "sorted", default=-1),
    "sort": rule_along_dims("dim", "descending", "stable", default=-1),
    "flip": rules.flip,
    "roll": rule_along_dims("shifts", "dims", dims="dims"),
    "chunk": rule_along_dims("chunks", "dim"),
    "split": rule_along_dims("split_size_or_sections", "dim"),
    "unbind": rule_along_dims("dim"),
    "unflatten": rule_along_dims("dim", "sizes"),
    "squeeze": rules.squeeze,
    "narrow": rule_along_dims("dim", "start", "length"),
    "select": rule_along_dims("dim", "index"),
    "glu": rule_along_dims("dim", default=-1),
    "normalize": rule_along_dims("p", "dim", "eps", default=1),
}
_SHAPE_RULES: dict[str, OperationRule] = {
    **dict.fromkeys(("cat", "concat"), rules.cat),
    "einsum": rules.einsum,
    "expand": rules.expand,
    "flatten": rules.flatten,
    **dict.fromkeys(("bmm", "matmul"), rules.matmul),
    **dict.fromkeys(("max", "min"), rules.max_or_min),
    "permute": rules.permute,
    **dict.fromkeys(("reshape", "view"), rules.reshape),
    "stack": partial(rules.cat, new=1),
    **dict.fromkeys(("swapaxes", "transpose"), rules.transpose),
    "unsqueeze": rules.unsqueeze,
}
_FUNCTIONAL_RULES: dict[str, OperationRule] = {
    "layer_norm": rules.layer_norm,
    "linear": rules.linear,
    "scaled_dot_product_attention": rules.attention,
    "gumbel_softmax": rule_along_dims("tau", "hard", "eps", "dim", default=-1),
    **dict.fromkeys(("rand", "randn"), rules.new_rows),
    "zeros": rules.zeros,
    **{
        f"{kind}_pool{n}d": rule_for_images(n + 2)
        for kind in ("max", "avg", "adaptive_avg", "adaptive_max")
        for n in (1, 2, 3)
    },
    **{f"dropout{n}d": rule_for_images(n + 2) for n in (1, 2, 3)},
}
_NAMED_RULES: dict[str, OperationRule] = {
    **dict.fromkeys(_ELEMENTWISE_NAMES.split(), rules.elementwise),
    **_AXIS_RULES,
    **_SHAPE_RULES,
    **dict.fromkeys(("floor_divide", "fmod", "remainder"), rules.quotient),
    "div": rules.division,
    "where": rules.where,
}
_OPERATORS = "add and_ eq ge gt invert le lt mul ne neg or_ pow sub truediv xor"

#: Functions ↦ rule.
FUNCTIONS: dict[Any, OperationRule] = {
    **{
        getattr(torch, name): rule
        for name, rule in {**_FUNCTIONAL_RULES, **_NAMED_RULES}.items()
        if callable(getattr(torch, name, None))
    },
    **{
        getattr(F, name): rules.out_of_place(getattr(F, name), rule)
        for name, rule in {**_NAMED_RULES, **_FUNCTIONAL_RULES}.items()
        if hasattr(F, name)
    },
    **{getattr(operator, name): rules.elementwise for name in _OPERATORS.split()},
    operator.floordiv: rules.quotient,
    operator.mod: rules.quotient,
    operator.getitem: rules.getitem,
    operator.matmul: rules.matmul,
    getattr: rules.attribute,
}
#: Methods of tensors ↦ rule.
METHODS: dict[str, OperationRule] = {
    **{name: rule for name, rule in _NAMED_RULES.items() if hasattr(Tensor, name)},
    "new_zeros": lambda value, *sizes, **kwargs: rules.zeros(*sizes, **kwargs),
    "size": rules.size,
    "dim": lambda value: rules.require_rows(value).rank,
}
#: Operations allowed on numbers that are equal in every batch.
_ARITHMETIC = "add floordiv mod mul neg pow sub truediv"
ARITHMETIC = {getattr(operator, name) for name in _ARITHMETIC.split()}

# --- layers ---------------------------------------------------------------------------------------

_LAYERS_OF_ANY_SHAPE = """
AlphaDropout CELU Dropout ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU
LogSigmoid Mish ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Threshold
"""
#: Layers with one, two and three dimensions besides records and channels.
_SPATIAL_LAYERS = """
AdaptiveAvgPool AdaptiveMaxPool AvgPool ConstantPad Conv ConvTranspose Dropout InstanceNorm LPPool
MaxPool ReflectionPad ReplicationPad ZeroPad
"""
_LAYER_RULES: dict[str, OperationRule] = {
    **dict.fromkeys(_LAYERS_OF_ANY_SHAPE.split(), rules.layer_of_any_shape),
    **dict.fromkeys(("GroupNorm", "Linear", "PReLU"), rules.rule_for_layers_of_rank(2)),
    **dict.fromkeys(("Upsample", "LocalResponseNorm"), rules.rule_for_layers_of_rank(3)),
    **{
        f"{kind}{n}d": rules.rule_for_layers_of_rank(n + 2, n + 2)
        for n in (1, 2, 3)
        for kind in _SPATIAL_LAYERS.split()
    },
    **dict.fromkeys(
        ("PixelShuffle", "PixelUnshuffle", "Softmax2d"), rules.rule_for_layers_of_rank(4, 4)
    ),
    **dict.fromkeys(
        ("GLU", "LogSoftmax", "Softmax", "Softmin"),
        lambda layer, value: rules.require_inner_dim(layer.dim, rules.require_rows(value).rank),
    ),
    "BatchNorm1d": rules.rule_for_layers_of_rank(2, 3, frozen=True),
    **{f"BatchNorm{n}d": rules.rule_for_layers_of_rank(n + 2, n + 2, frozen=True) for n in (2, 3)},
    "Embedding": rules.embedding,
    "FeatureAlphaDropout": rules.rule_for_layers_of_rank(3),
    "Flatten": lambda layer, value: rules.flatten(value, layer.start_dim, layer.end_dim),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), rules.recurrent),
    **dict.fromkeys(
        ("LayerNorm", "RMSNorm"),
        lambda layer, value: rules.layer_norm(value, layer.normalized_shape),
    ),
    "Unflatten": lambda layer, value: _AXIS_RULES["unflatten"](
        value, layer.dim, tuple(layer.unflattened_size)
    ),
}
#: Layers of PyTorch, by exact type ↦ rule.
LAYERS: dict[type[nn.Module], OperationRule] = {
    getattr(nn, name): rule for name, rule in _LAYER_RULES.items() if hasattr(nn, name)
}


def is_random_op(target: Callable[..., Any] | str, layer: nn.Module | None = None) -> bool:
    """Return whether an operation, or a layer, draws random numbers."""
    if isinstance(layer, nn.RNNBase):
        return bool(layer.dropout)
    named = target if layer is None else type(layer)
    name = named if isinstance(named, str) else named.__name__
    return name.lower() in {random_name.replace("_", "") for random_name in RANDOM_OPS} | RANDOM_OPS


def layer_signature(layer: nn.Module) -> tuple[str, str]:
    """Type and constants of a layer, or a criterion, to compare."""
    constants = [item for item in vars(layer).items() if type(item[1]) in (*LITERALS, tuple)]
    return type(layer).__name__, repr(sorted(constants))
