"""Modules that act on each record alone, with records for them and the engines that they are
given."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("opacus")
import torch
from opacus.layers import DPGRU, DPLSTM, DPMultiheadAttention
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.nets._engines.layered import LayeredEngine
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._engines.per_sample import VmapEngine

from .toys import Residual, mlp

SIZE = 12


def pixels(n=SIZE, shape=(784,), seed=0):
    """Images in [0, 1], and their labels."""
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(n, *shape, generator=rng), torch.randint(0, 3, (n,), generator=rng)


def extremes(shape=(784,)):
    """Records of every scale, one of which would move a coupled batch the most."""
    rng = torch.Generator().manual_seed(1)
    rows = torch.stack(
        [scale * torch.rand(shape, generator=rng) for scale in (0.0, 0.5, 1.0, 255.0, 1e4, -255.0)]
    )
    return rows, torch.arange(len(rows)) % 3


def tokens(n=SIZE, words=50, length=6, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(2, words, (n, length), generator=rng), torch.randint(
        0, 3, (n,), generator=rng
    )


class Net(nn.Module):
    def __init__(self, features=784):
        super().__init__()
        self.first, self.last = nn.Linear(features, 16), nn.Linear(16, 3)

    def head(self, inputs):
        return self.last(torch.relu(self.first(inputs)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, inputs):
        return self.last(self.words(inputs).mean(1))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 5, 2)
        self.second = nn.Conv2d(4, 4, 3)
        self.last = nn.Linear(100, 3)

    def head(self, inputs):
        hidden = F.max_pool2d(F.relu(self.second(F.relu(self.first(inputs)))), 2)
        return self.last(hidden.view(hidden.size(0), -1))

    def forward(self, inputs):
        return self.head(inputs)


class FunctionalDropout(Net):
    def forward(self, inputs):
        return self.last(F.dropout(torch.relu(self.first(inputs)), 0.5, self.training))


class DropPath(Net):
    """Whole records are dropped, by a number drawn for each."""

    def forward(self, inputs):
        kept = torch.rand((inputs.shape[0], 1), dtype=inputs.dtype, device=inputs.device) < 0.5
        return self.last(torch.relu(self.first(inputs)) * kept / 0.5)


class Sampled(Net):
    def forward(self, inputs):
        hidden = torch.relu(self.first(inputs))
        return self.last(hidden * torch.bernoulli(torch.sigmoid(hidden)))


class OwnAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(4, 4) for _ in range(3))
        self.last = nn.Linear(4, 3)

    def forward(self, inputs):
        words = inputs.reshape(inputs.shape[0], 5, 4)
        weights = torch.softmax(self.query(words) @ self.key(words).transpose(1, 2) / 2, dim=-1)
        return self.last((weights @ self.value(words)).mean(1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.middle, self.last = kind(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, inputs):
        return self.last(self.middle(inputs.reshape(-1, 5, 4))[0][:, -1])


class Attention(nn.Module):
    def __init__(self, kind, batch_first):
        super().__init__()
        self.batch_first = batch_first
        self.middle = kind(4, 2, batch_first=batch_first)
        self.last = nn.Linear(4, 3)

    def forward(self, inputs):
        words = inputs.reshape(-1, 5, 4)
        words = words if self.batch_first else words.transpose(0, 1)
        return self.last(self.middle(words, words, words)[0].mean(1 if self.batch_first else 0))


class Transformer(nn.Module):
    """PyTorch's own layer, whose fused attention could draw random numbers, and without dropout
    draws none."""

    def __init__(self):
        super().__init__()
        self.middle = nn.TransformerEncoderLayer(5, 1, 6, dropout=0.0, batch_first=True)
        self.last = nn.Linear(5, 3)

    def forward(self, inputs):
        return self.last(self.middle(inputs.unflatten(1, (4, 5))).mean(1))


class Outside(Net):
    """A weight that is used outside of its layer too."""

    def forward(self, inputs):
        return self.last(self.first(inputs) + inputs @ self.first.weight.T)


class OwnFunction(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(values):
        return values * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, slope):
        return slope * 3  # not its derivative


class WithOwnFunction(Net):
    def forward(self, inputs):
        return self.last(OwnFunction.apply(self.first(inputs)))


def weight_normed():
    return nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(20, 6)), nn.Tanh(), nn.Linear(6, 3)
    )


GRAPH, ANY, LAYERED = (VmapEngine, False), (VmapEngine, True), (LayeredEngine, None)


VECTORS = pixels(shape=(20,)), extremes((20,))


ZOO = {
    "mlp": (lambda: mlp(20), (LinearEngine, None), VECTORS),
    "residual": (lambda: Residual(20), (LinearEngine, None), VECTORS),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(20, 6), nn.Dropout(), nn.Linear(6, 3)),
        (LinearEngine, None), VECTORS,
    ),
    "functional dropout": (lambda: FunctionalDropout(20), (LinearEngine, None), VECTORS),
    "dropout of records": (lambda: DropPath(20), (LinearEngine, None), VECTORS),
    "dropout by samples": (lambda: Sampled(20), (VmapEngine, True), VECTORS),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(20, 6), nn.LayerNorm(6), nn.Linear(6, 3)), LAYERED, VECTORS,
    ),
    "group norm": (
        lambda: nn.Sequential(nn.Linear(20, 6), nn.GroupNorm(2, 6), nn.Linear(6, 3)), LAYERED,
        VECTORS,
    ),
    "cnn": (Images, LAYERED, (pixels(shape=(1, 28, 28)), extremes((1, 28, 28)))),
    "embedding": (Words, LAYERED, (tokens(), tokens(seed=1))),
    "own attention": (OwnAttention, LAYERED, VECTORS),
    "prelu": (lambda: nn.Sequential(nn.Linear(20, 6), nn.PReLU(), nn.Linear(6, 3)), GRAPH, VECTORS),
    "attention": (lambda: Attention(nn.MultiheadAttention, True), ANY, VECTORS),
    "attention with the batch in the second place": (
        lambda: Attention(nn.MultiheadAttention, False), ANY, VECTORS,
    ),
    "attention of Opacus": (lambda: Attention(DPMultiheadAttention, True), ANY, VECTORS),
    "transformer layer": (Transformer, ANY, VECTORS),
    "gru": (lambda: Recurrent(nn.GRU), LAYERED, VECTORS),
    "lstm": (lambda: Recurrent(nn.LSTM), LAYERED, VECTORS),
    "rnn": (lambda: Recurrent(nn.RNN), LAYERED, VECTORS),
    "lstm of Opacus": (lambda: Recurrent(DPLSTM), ANY, VECTORS),
    "gru of Opacus": (lambda: Recurrent(DPGRU), ANY, VECTORS),
    "a weight used outside": (lambda: Outside(20), ANY, VECTORS),
    "a function with its own gradient": (lambda: WithOwnFunction(20), ANY, VECTORS),
    "weight norm": (weight_normed, ANY, VECTORS),
}  # fmt: skip


def frozen(*, affine=True, **more):
    """A net whose batch normalisation has statistics of its own, and is in evaluation mode."""
    net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6, affine=affine, **more), nn.Linear(6, 3))
    if net[1].running_mean is not None:
        net[1].running_mean += torch.arange(6.0)
        net[1].running_var *= 3
    net[1].eval()
    return net


class FrozenInside(nn.Module):
    """In a net that is no graph."""

    def __init__(self):
        super().__init__()
        self.inner = frozen()

    def forward(self, inputs):
        return self.inner(inputs + torch.zeros(5))


FROZEN = {"affine": frozen, "constant": lambda: frozen(affine=False), "inside": FrozenInside}
