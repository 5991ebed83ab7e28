"""A gradient canary: ε estimated from below by training on neighbouring records; broken builds must
be exposed.

One record's gradient always points the same way and is always clipped; its neighbour is the same
table with the record zeroed. The released parameters along that way are compared with a threshold,
chosen on one half of the trainings and certified on the other by Clopper–Pearson bounds at 99.9 %;
seeds are fixed. At full size (SKLEARN_DPSEARCH_FULL=1) fifteen times as many.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_dpsearch.audit import lower_bound
from sklearn_dpsearch.nets import _stacked_training as stack
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._stacked_training import Stack
from sklearn_dpsearch.nets._training import train_together
from sklearn_dpsearch.privacy import DPSGD

from .toys import CPU, traced, training

pytestmark = pytest.mark.slow

RUNS = 30_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 2_000
DELTA = 1e-5
NOISE, RATE, STEPS = 4.0, 0.7, 12
# the last one is the canary
INPUTS = torch.tensor([[0.1, 0.0], [-0.2, 0.0], [0.3, 0.0], [0.0, 1e3]])
TARGETS = torch.tensor([[0.1], [0.0], [-0.1], [1e9]])


class Traced(nn.Module):
    """The same net as ``nn.Linear``, by another engine."""

    def __init__(self):
        super().__init__()
        self.only = nn.Linear(2, 1, bias=False)

    def forward(self, inputs):
        return self.only(inputs)


def plain():
    return nn.Linear(2, 1, bias=False)


def released(present, make=plain, runs=RUNS):
    """The canary's parameter after each training: up if it was there."""
    inputs, targets = INPUTS.clone(), TARGETS.clone()
    if not present:
        inputs[-1], targets[-1] = 0.0, 0.0
    given = {
        "criterion": nn.MSELoss(reduction="sum"), "optimizer": UpdateRule.sgd(lr=1.0),
        "sample_rate": RATE, "steps": STEPS, "noise_multiplier": NOISE, "max_grad_norm": 0.5,
        "expected_batch_size": 2.8,
    }  # fmt: skip
    tasks = [
        training(zeros(make()), **given, seed=np.random.SeedSequence([present, i]))
        for i in range(runs)
    ]
    records = TrainingData.of(inputs, targets, CPU)
    if make is plain:
        assert all(train_together(tasks, records, max_physical_batch=10**6))
    # without the checks that each net of a user's own goes through first: they take most of the
    # time
    else:
        engine = traced(make(), tasks[0].criterion, rows=INPUTS)
        Stack(tasks, engine, records, 10**6).run()
    found = np.array([next(one.module.parameters())[0, 1].item() for one in tasks])
    assert np.isfinite(found).all()
    return found


def zeros(module):
    """Trainings start from the same parameters, which are public."""
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


def reported():
    return float(DPSGD(noise_multiplier=NOISE, sample_rate=RATE, steps=STEPS).epsilon_at(DELTA))


def found(make=plain):
    return lower_bound(
        released(True, make), released(False, make), delta=DELTA, confidence=0.999
    ).epsilon_lower


@pytest.mark.parametrize("make", [plain, Traced])
def test_no_more_than_the_reported_epsilon_is_found(make):
    assert found(make) <= reported()


def test_noise_scaled_by_a_quarter_is_exposed(monkeypatch):
    honest = stack.fill_normals

    def quiet(secrets, scales, out):
        honest(secrets, [0.25 * one for one in scales], out)

    monkeypatch.setattr(stack, "fill_normals", quiet)
    assert found() > reported()
