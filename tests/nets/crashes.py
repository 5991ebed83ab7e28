"""Nets of all kinds that keep something from step to step, and crashes to cut their trainings off."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch
from skorch.callbacks import LRScheduler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from sklearn_dpsearch.nets import (
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
)
from sklearn_dpsearch.nets.resuming import TRAINING
from sklearn_dpsearch.nets.stack import Stack

from .toys import flat, table

X, y = (one.numpy() for one in table(80, classes=2))
STEPS = 24
#: The file of the secrets.
STATE = TRAINING.state
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")


class PowerCut(BaseException):
    """The end of a process, as far as a test in the same process can have one."""


class WithDropout(nn.Module):
    """Masks come from PyTorch's global generator; layer normalisation is no sum of linear layers."""

    def __init__(self, width=6, frozen=True):
        super().__init__()
        self.first, self.norm = nn.Linear(5, width), nn.LayerNorm(width)
        self.drop, self.last = nn.Dropout(0.4), nn.Linear(width, 2)
        self.last.bias.requires_grad_(not frozen)  # of a value that only this object has
        nn.init.normal_(self.last.bias)

    def forward(self, inputs):
        return self.last(self.drop(torch.relu(self.norm(self.first(inputs)))))


class Recurrent(nn.Module):
    """No graph: its code itself runs, on one record at a time."""

    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.GRUCell(1, 4), nn.Linear(4, 2)

    def forward(self, inputs):
        hidden = inputs.new_zeros(len(inputs), 4)
        for step in range(inputs.shape[1]):
            hidden = self.cell(inputs[:, step : step + 1], hidden)
        return self.last(hidden)


def skorch_net(module=WithDropout, **changed):
    given = {"classes": [0, 1], "noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": STEPS, "lr": 0.3}
    return DPNeuralNetClassifier(module, **{**given, **changed})


def table_net(kind=DPMLPClassifier, **changed):
    given = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": STEPS}
    hidden = {} if kind is DPLogisticRegression else {"hidden_layer_sizes": (7,)}
    return kind(**{**hidden, **given, **changed})


def one_logit(**more):
    given = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": STEPS, "lr": 0.3, "module__in_features": 5}
    return DPNeuralNetBinaryClassifier(nn.Linear, module__out_features=1, classes=[0, 1], **{**given, **more})


#: Everything that keeps something from step to step.
NETS = {
    "sgd": table_net,
    "momentum": lambda **more: table_net(momentum=0.9, alpha=0.01, **more),
    "adam": lambda **more: table_net(solver="adam", learning_rate_init=0.05, **more),
    "constant": lambda **more: table_net(learning_rate="constant", **more),
    "logistic": lambda **more: table_net(DPLogisticRegression, **more),
    "regressor": lambda **more: table_net(DPMLPRegressor, **more),
    "dropout": skorch_net,
    "one logit": one_logit,
    "own code": lambda **more: skorch_net(Recurrent, **more),
    "schedule": lambda **more: skorch_net(
        callbacks=[("lr", LRScheduler(CosineAnnealingLR, T_max=STEPS, step_every="batch"))], **more
    ),
    "adamw": lambda **more: skorch_net(optimizer=torch.optim.AdamW, lr=0.05, **more),
    "nesterov": lambda **more: skorch_net(optimizer__momentum=0.5, optimizer__nesterov=True, **more),
}
SEEDED = {"noise_seed": 3, "random_state": 1}


@contextmanager
def power_cut(after):
    """The power fails after so many steps."""
    taken, step = [], Stack._step

    def failing(self, *given):
        step(self, *given)
        taken.append(1)
        if len(taken) == after:
            raise PowerCut

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stack, "_step", failing)
        with pytest.raises(PowerCut):
            yield


def cut_off(make, folder, after=7, data=(X, y), method="fit"):
    """A training that ends after so many steps."""
    one = make(checkpoint=folder)
    with power_cut(after):
        getattr(one, method)(*data)
    assert (folder / STATE).stat().st_size
    return one


def parameters(one):
    return flat(one.module_)
