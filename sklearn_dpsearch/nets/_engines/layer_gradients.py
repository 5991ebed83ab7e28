"""Contributions of each record to a layer's gradient: a rule for each kind of layer, clipped sums.

Per-sample gradients compute the squared norm of each record's part, and add the parts, each times a
factor. Norm and sum use the same vector: a sum over places or words is rounded before its norm is
taken, and cannot get longer afterwards.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .rounding import add_products, row_norms

Convolution: TypeAlias = nn.Conv1d | nn.Conv2d | nn.Conv3d
#: (layer, its inputs, gradient of the loss in its outputs) ↦ per-record gradients of the
#: parameters, by name.
LayerRule = Callable[[Any, Tensor, Tensor], "LayerGradients"]


class PerSampleGradients(ABC):
    """The gradients of B records in one parameter."""

    @abstractmethod
    def squares(self) -> Tensor:
        """Squared norms of the records' gradients, in double precision, shape (B,)."""

    @abstractmethod
    def add(self, sums: Tensor, factors: Tensor, finite: Tensor | None, piece: int) -> None:
        """Add the sum of the records' gradients, each times its factor.

        Parameters
        ----------
        sums : tensor of the parameter's shape, in double precision
        factors : tensor of shape (B,)
        finite : tensor of shape (B,), optional
            Mask of records with a finite norm; None if all have one.
        piece : int
            Records per sum in single precision (``rounding``).
        """


#: Gradients of the parameters of a layer, by their names.
LayerGradients: TypeAlias = dict[str, PerSampleGradients]


class DenseGradients(PerSampleGradients):
    """Gradients of B records in full, shape (B, ...)."""

    def __init__(self, gradients: Tensor) -> None:
        self.gradients = gradients.reshape(len(gradients), -1)

    def squares(self) -> Tensor:
        return row_norms([self.gradients])[0].square()

    def add(self, sums: Tensor, factors: Tensor, finite: Tensor | None, piece: int) -> None:
        gradients = _without_dropped(self.gradients, finite)
        add_products(sums.view(1, 1, -1), factors[None, :, None], gradients[None], piece)


class ConvolutionGradients(DenseGradients):
    """Gradients of B records in the weight of a convolution, channels last.

    They have the shape (B, outputs, *window, inputs); PyTorch has channels second.
    """

    def __init__(self, gradients: Tensor) -> None:
        super().__init__(gradients)
        self.shape = gradients.shape[1:]

    def add(self, sums: Tensor, factors: Tensor, finite: Tensor | None, piece: int) -> None:
        turned = sums.new_zeros(self.shape)
        super().add(turned, factors, finite, piece)
        sums.add_(turned.movedim(-1, 1))


class OuterProducts(PerSampleGradients):
    """Gradients of B records as outer products δ⊗a that are never formed.

    δ has the shape (B, p), a the shape (B, q).
    """

    def __init__(self, grad_outputs: Tensor, inputs: Tensor) -> None:
        self.grad_outputs, self.inputs = grad_outputs, inputs

    def squares(self) -> Tensor:
        return row_norms([self.grad_outputs])[0].mul_(row_norms([self.inputs])[0]).square()

    def add(self, sums: Tensor, factors: Tensor, finite: Tensor | None, piece: int) -> None:
        grad_outputs = _without_dropped(self.grad_outputs, finite) * factors[:, None]
        inputs = _without_dropped(self.inputs, finite)
        add_products(sums[None], grad_outputs[None], inputs[None], piece)


class EmbeddingGradients(PerSampleGradients):
    """Gradients of B records in an embedding: rows of their own words.

    Parameters
    ----------
    words : tensor of shape (B, T), integers
    grad_outputs : tensor of shape (B, T, size)
    number : int
        Rows of the table.
    """

    def __init__(self, words: Tensor, grad_outputs: Tensor, number: int) -> None:
        self.number = number
        owners = torch.arange(len(words), device=words.device).unsqueeze(1).expand_as(words)
        # A word that occurs twice in a record has one row: its gradients are added before the norm.
        pairs, places = torch.unique(owners * number + words, return_inverse=True)
        grad_outputs = grad_outputs.reshape(-1, grad_outputs.shape[-1])
        self.rows = grad_outputs.new_zeros(len(pairs), grad_outputs.shape[-1])
        self.rows.index_add_(0, places.reshape(-1), grad_outputs)
        self.owners, self.words, self.records = pairs // number, pairs % number, len(words)

    def squares(self) -> Tensor:
        squares = row_norms([self.rows])[0].square()
        return squares.new_zeros(self.records).index_add_(0, self.owners, squares)

    def add(self, sums: Tensor, factors: Tensor, finite: Tensor | None, piece: int) -> None:
        rows = _without_dropped(self.rows, None if finite is None else finite[self.owners])
        # In double precision any order of additions keeps the bound.
        sums.index_add_(0, self.words, rows.double() * factors[self.owners, None])


def _without_dropped(rows: Tensor, finite: Tensor | None) -> Tensor:
    """Set the gradients of dropped records to zero.

    A factor of 0 is not enough, because 0·∞ is not a number.
    """
    return rows if finite is None else torch.where(finite.unsqueeze(-1), rows, 0.0)


# --- layers ---------------------------------------------------------------------------------------


def _linear_gradients(layer: nn.Module, inputs: Tensor, grad_outputs: Tensor) -> LayerGradients:
    """Per-record gradients of an affine map; inputs of shape (B, ..., features)."""
    if inputs.dim() == 2:
        return {"weight": OuterProducts(grad_outputs, inputs), "bias": DenseGradients(grad_outputs)}
    inputs, grad_outputs = inputs.flatten(1, -2), grad_outputs.flatten(1, -2)
    weight = DenseGradients(torch.bmm(grad_outputs.mT, inputs))
    return {"weight": weight, "bias": DenseGradients(grad_outputs.sum(1))}


def _recurrent_gradients(layer: nn.RNNBase, inputs: Tensor, grad_outputs: Tensor) -> LayerGradients:
    """Per-record gradients of one affine map in a recurrent layer.

    The steps are in the first dimension of inputs and grad_outputs.
    """
    return _linear_gradients(layer, inputs.transpose(0, 1), grad_outputs.transpose(0, 1))


def _convolution_gradients(
    layer: Convolution, inputs: Tensor, grad_outputs: Tensor
) -> LayerGradients:
    """Per-record gradients of a convolution; inputs of shape (B, channels, ...)."""
    # (B · groups, places, numbers in a window)
    windows = _convolution_windows(layer, inputs, grad_outputs.shape[2:])
    places = grad_outputs.flatten(2).reshape(len(windows), -1, windows.shape[1])
    shape = (len(inputs), layer.out_channels, *layer.kernel_size, -1)
    weight = ConvolutionGradients(torch.bmm(places, windows).view(shape))
    return {"weight": weight, "bias": DenseGradients(grad_outputs.flatten(2).sum(2))}


def _convolution_windows(layer: Convolution, inputs: Tensor, places: Sequence[int]) -> Tensor:
    """Windows of a convolution's input at each place.

    Channels come last, so that whole lines are copied.
    """
    padding = _convolution_padding(layer)
    if any(padding):
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        inputs = F.pad(inputs, padding, mode=mode)
    images = inputs.movedim(1, -1).contiguous().unflatten(-1, (layer.groups, -1))
    steps = images.stride()[1:-2]
    between = [step * stride for step, stride in zip(steps, layer.stride)]
    inside = [step * apart for step, apart in zip(steps, layer.dilation)]
    shape = (len(inputs), layer.groups, *places, *layer.kernel_size, images.shape[-1])
    windows = images.as_strided(shape, (images.stride(0), images.stride(-2), *between, *inside, 1))
    return windows.reshape(len(inputs) * layer.groups, math.prod(places), -1)


def _convolution_padding(layer: Convolution) -> list[int]:
    """Padding of a convolution before and after each dimension, the last first."""
    if layer.padding == "valid":
        return [0] * (2 * len(layer.kernel_size))
    if layer.padding == "same":
        totals = [apart * (size - 1) for apart, size in zip(layer.dilation, layer.kernel_size)]
        return [end for total in reversed(totals) for end in (total // 2, total - total // 2)]
    return [size for size in reversed(layer.padding) for _ in range(2)]


def _embedding_gradients(
    layer: nn.Embedding, inputs: Tensor, grad_outputs: Tensor
) -> LayerGradients:
    """Per-record gradients of an embedding; inputs are words, of shape (B, ...)."""
    words = inputs.reshape(len(inputs), -1)
    grad_outputs = grad_outputs.reshape(len(inputs), -1, layer.embedding_dim)
    if layer.padding_idx is not None:
        grad_outputs = torch.where((words == layer.padding_idx).unsqueeze(-1), 0.0, grad_outputs)
    return {"weight": EmbeddingGradients(words, grad_outputs, layer.num_embeddings)}


def _layer_norm_gradients(
    layer: nn.LayerNorm, inputs: Tensor, grad_outputs: Tensor
) -> LayerGradients:
    """Per-record gradients of a layer norm; inputs of shape (B, ..., *normalized_shape)."""
    scaled = F.layer_norm(inputs, layer.normalized_shape, eps=layer.eps)
    size = math.prod(layer.normalized_shape)
    scaled, grad_outputs = (rows.reshape(len(inputs), -1, size) for rows in (scaled, grad_outputs))
    return _scale_and_shift_gradients(scaled, grad_outputs, 1)


def _group_norm_gradients(
    layer: nn.GroupNorm, inputs: Tensor, grad_outputs: Tensor
) -> LayerGradients:
    """Per-record gradients of a group norm; inputs of shape (B, channels, ...)."""
    scaled = F.group_norm(inputs, layer.num_groups, eps=layer.eps)
    scaled, grad_outputs = (rows.unsqueeze(-1).flatten(2) for rows in (scaled, grad_outputs))
    return _scale_and_shift_gradients(scaled, grad_outputs, 2)


def _scale_and_shift_gradients(scaled: Tensor, grad_outputs: Tensor, places: int) -> LayerGradients:
    """Per-record gradients of a factor and a term for each channel."""
    weight = DenseGradients((scaled * grad_outputs).sum(places))
    return {"weight": weight, "bias": DenseGradients(grad_outputs.sum(places))}


#: Layers by exact type ↦ rule.
RULES: dict[type[nn.Module], LayerRule] = {
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _convolution_gradients),
    **dict.fromkeys((nn.GRU, nn.LSTM, nn.RNN), _recurrent_gradients),
    nn.Embedding: _embedding_gradients,
    nn.GroupNorm: _group_norm_gradients,
    nn.LayerNorm: _layer_norm_gradients,
    nn.Linear: _linear_gradients,
}
