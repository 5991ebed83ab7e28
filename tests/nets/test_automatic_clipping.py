"""Automatic clipping: every gradient is brought to the norm, none beyond it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch
from torch import nn

from sklearn_dpsearch.nets.engines.base import STABILITY, clip_factors
from sklearn_dpsearch.nets.optimizers import UpdateRule
from sklearn_dpsearch.nets.task import Records
from sklearn_dpsearch.nets.training import train, train_together

from .toys import ADVERSARIAL, CPU, Residual, alone, flat, mlp, records, same, seeded, table, training


class Convolution(nn.Module):
    """Trained by gradients of single records."""

    def __init__(self):
        super().__init__()
        self.filters, self.last = nn.Conv1d(1, 2, 3), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.filters(inputs.unsqueeze(1)).flatten(1))


def moved(module, inputs, targets, norm, automatic=True):
    """What one step of rate 1 without noise adds for these records."""
    before = flat(module)
    task = training(
        module, steps=1, sample_rate=1.0, max_grad_norm=norm, expected_batch_size=1.0,
        optimizer=UpdateRule.sgd(lr=1.0), automatic=automatic,
    )  # fmt: skip
    train(task, Records.of(inputs, targets, CPU), max_physical_batch=1)
    return flat(module) - before


@pytest.mark.parametrize("make", [mlp, lambda: seeded(Residual), lambda: seeded(Convolution)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_one_record_is_brought_to_the_norm(make, scale):
    inputs, targets = table(1)
    inputs = inputs * scale
    free = moved(make(), inputs, targets, 1e30, automatic=False).double()  # the gradient itself
    found = moved(make(), inputs, targets, 0.5).double()
    torch.testing.assert_close(found, free * (0.5 / (free.norm() + STABILITY)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [mlp, lambda: seeded(Residual), lambda: seeded(Convolution)])
@pytest.mark.parametrize("value", ADVERSARIAL)
def test_no_record_moves_the_sum_by_more_than_the_norm(make, value):
    inputs, targets = table(1)
    inputs[0, 1] = torch.tensor(value, dtype=torch.float64).float()
    change = moved(make(), inputs, targets, 0.5).double().norm()
    assert torch.isfinite(change)
    assert change <= 0.5 * (1 + 2**-15)


def test_factors_keep_gradients_within_their_bounds():
    norms = torch.tensor([[1e-20, 1e-3, 0.5, 2.0, 1e18, torch.inf]]).repeat(2, 1)
    bounds = torch.tensor([[0.5], [0.5]]).expand_as(norms)
    automatic = torch.tensor([[True], [False]])
    factors = clip_factors(norms, bounds, torch.isfinite(norms), automatic)
    assert bool(((norms * factors).nan_to_num(0.0) <= bounds * (1 + 1e-6)).all())
    assert factors[0, 1] > 1.0 == factors[1, 1]
    assert factors[:, -1].tolist() == [0.0, 0.0]
    assert clip_factors(norms, bounds * 0, None, automatic)[:, :-1].abs().max() == 0  # no record there


def test_nets_of_one_stack_may_clip_in_different_ways():
    def tasks():
        return [training(mlp(seed=i), seed=i, steps=6, noise_multiplier=1.0, automatic=i % 2 == 0) for i in range(4)]

    together = tasks()
    assert all(train_together(together, records(), max_physical_batch=1000))
    same([flat(one.module) for one in together], alone(tasks()))
