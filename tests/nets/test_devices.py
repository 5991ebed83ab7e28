"""Tensors of two devices never meet in a step: checked without an accelerator, on tensors without data."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from sklearn_dpsearch.nets import randomness
from sklearn_dpsearch.nets.linear import PlainEngine, TracedEngine
from sklearn_dpsearch.nets.training import Records, Stack

from .toys import Residual, mlp, training

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")

CUDA = torch.device("cuda:0")


def moved(module, device):
    """``Module.to``, which cannot replace parameters without data."""
    for one in module.modules():
        for name, parameter in one.named_parameters(recurse=False):
            setattr(one, name, nn.Parameter(parameter.detach().to(device), requires_grad=parameter.requires_grad))
    return module


@pytest.fixture
def pretended(monkeypatch):
    """Tensors without data, and what needs a real device left out: its random numbers and its backward pass."""

    def normals(secrets, out, scale):
        assert out.device == CUDA
        assert out.dtype is torch.float64

    monkeypatch.setattr(nn.Module, "to", moved)
    monkeypatch.setattr(randomness.Secrets, "normals", normals)
    monkeypatch.setattr(torch.autograd, "grad", lambda loss, outputs: [torch.zeros_like(one) for one in outputs])
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        yield mode


def optimizers():
    def with_momentum(module):
        return torch.optim.SGD(module.parameters(), lr=0.3, momentum=0.9, weight_decay=0.1)

    def adam(module):
        return torch.optim.Adam(module.parameters(), lr=0.01)

    def another(module):
        return torch.optim.RMSprop(module.parameters(), lr=0.01)

    return [with_momentum, adam, another]


def stack(make, engine, optimizer, number):
    records = Records.of(torch.randn(60, 5), torch.randint(0, 3, (60,)), CUDA)
    tasks = [
        training(
            make().to(CUDA), optimizer=optimizer, seed=i, steps=4, sample_rate=0.2 + 0.1 * i, noise_multiplier=1.0 + i,
            max_grad_norm=1.0 + i,
        )
        for i in range(number)
    ]  # fmt: skip
    return Stack(tasks, engine(tasks[0].module, tasks[0].criterion, CUDA), records, 30)


def alone(module, criterion, device):
    return TracedEngine(module, criterion, device, several=False)


@pytest.mark.parametrize("optimizer", optimizers(), ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    ("make", "engine", "number"), [(mlp, PlainEngine, 1), (mlp, PlainEngine, 3), (Residual, alone, 1)]
)
def test_a_step_stays_on_one_device(pretended, make, engine, number, optimizer):
    nets = stack(make, engine, optimizer, number)
    nets.run()
    assert nets.tasks == []
    assert nets.trained.device == nets.sums.device == nets.gradients.device == CUDA


def test_a_tensor_left_on_the_cpu_would_be_noticed(pretended):
    nets = stack(mlp, PlainEngine, optimizers()[0], 2)
    nets.divisors = torch.ones(2, 1)
    with pytest.raises(Exception, match="device"):
        nets.run()
