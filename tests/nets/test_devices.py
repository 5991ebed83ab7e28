"""Tensors of two devices never meet in a step: checked without an accelerator, on one whose tensors
hold no data."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sklearn_dpsearch.nets import _randomness as randomness
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._stacked_training import Stack
from sklearn_dpsearch.nets._torch_settings import checked_device

from .toys import Residual, mlp, rule, traced, training

ELSEWHERE = torch.device("meta")
#: Operations that may take tensors of two devices: copies, and places in a list.
ALLOWED = {torch.ops.aten.copy_, torch.ops.aten.index}


class OneDevice(TorchDispatchMode):
    """No operation has tensors of two devices, single numbers apart."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        parts = tree_leaves((args, kwargs))
        tensors = [one for one in parts if isinstance(one, torch.Tensor) and one.dim()]
        found = {one.device for one in tensors}
        assert len(found) <= 1 or func.overloadpacket in ALLOWED, f"{func} on devices {found}"
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def _watched(monkeypatch):
    """Without random numbers, which tensors without data cannot hold."""

    def normals(secrets, out, scale):
        assert out.device == ELSEWHERE
        assert out.dtype is torch.float64

    monkeypatch.setattr(randomness.Secrets, "normals", normals)
    with OneDevice():
        yield


def optimizers():
    return [rule(lr=0.3, momentum=0.9, weight_decay=0.1), rule(torch.optim.Adam, lr=0.01)]


def stack(make, engine, optimizer, number):
    records = TrainingData.of(torch.randn(60, 5), torch.randint(0, 3, (60,)), ELSEWHERE)
    tasks = [
        training(
            make().to(ELSEWHERE), optimizer=optimizer, seed=i, steps=4 + i,
            sample_rate=0.2 + 0.1 * i, noise_multiplier=1.0 + i, max_grad_norm=1.0 + i,
        )
        for i in range(number)
    ]  # fmt: skip
    return Stack(tasks, engine(tasks[0].module, tasks[0].criterion, ELSEWHERE), records, 30)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", optimizers(), ids=["sgd", "adam"])
@pytest.mark.parametrize(("make", "engine", "number"), [
    (mlp, LinearEngine, 1), (mlp, LinearEngine, 3), (Residual, traced, 1),
])  # fmt: skip
def test_a_step_stays_on_one_device(make, engine, number, optimizer):
    nets = stack(make, engine, optimizer, number)
    nets.run()
    assert nets.tasks == []
    assert nets.trained.device == nets.sums.device == nets.gradients.device == ELSEWHERE


def test_a_tensor_left_on_the_cpu_would_be_noticed():
    nets = stack(mlp, LinearEngine, optimizers()[0], 2)
    nets.divisors = torch.ones(2, 1)
    with pytest.raises(AssertionError, match="on devices"):
        nets.run()


def test_a_device_without_double_precision_is_refused_with_a_reason():
    with pytest.raises(ValueError, match="device='mps'.*no double precision.*device='cpu'"):
        checked_device("mps")
