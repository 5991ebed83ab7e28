"""A module as users write them, its records, and a classifier with it: what the tests of skorch
nets share."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
from torch import nn

from sklearn_dpsearch.nets import DPNeuralNetClassifier

from .toys import flat

X = np.random.default_rng(0).normal(size=(120, 4))
y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


class Small(nn.Module):
    """A module of a user's own, importable in workers."""

    def __init__(self, width=6, outputs=2, activation=nn.ReLU, dropout=0.0):
        super().__init__()
        self.first, self.last = nn.Linear(4, width), nn.Linear(width, outputs)
        self.activation, self.dropout = activation(), nn.Dropout(dropout)

    def forward(self, inputs):
        return self.last(self.dropout(self.activation(self.first(inputs))))


class Centred(Small):
    """Couples the records of a batch."""

    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(0))


def net(module=Small, **changed):
    arguments = {
        "noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 12, "classes": [0, 1], "lr": 0.5,
        **changed,
    }  # fmt: skip
    return DPNeuralNetClassifier(
        module, **{key: value for key, value in arguments.items() if value is not ...}
    )


def parameters(one):
    return flat(one.module_)
