"""Per-sample gradients of Opacus, with everything else of this library."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")

import torch
from opacus import GradSampleModule
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.optimizers import DPOptimizer
from torch import nn

from sklearn_dpsearch.nets import DPNeuralNetClassifier
from sklearn_dpsearch.nets.engines.per_sample import OpacusEngine
from sklearn_dpsearch.nets.optimizers import UpdateRule
from sklearn_dpsearch.nets.records import Records
from sklearn_dpsearch.nets.training import train
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, Residual, flat, mlp, records, seeded, table, training

pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus's own

SUM = nn.CrossEntropyLoss(reduction="sum")


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )


class Series(nn.Module):
    """Opacus's own recurrent layer."""

    def __init__(self):
        super().__init__()
        self.lstm, self.last = DPLSTM(5, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, X):
        return self.last(self.lstm(X)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.last = DPMultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 3)

    def forward(self, X):
        return self.last(self.attention(X, X, X)[0].mean(1))


NETS = {
    "mlp": (mlp, (5,)),
    "residual": (Residual, (5,)),
    "cnn": (cnn, (1, 8, 8)),
    "lstm": (Series, (7, 5)),
    "attention": (Attention, (4, 6)),
}


def some(shape, n=40):
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.normal(size=(n, *shape)).astype(np.float32)), torch.from_numpy(rng.integers(0, 3, n))


@pytest.mark.parametrize("name", ["mlp", "residual", "cnn"])
def test_trained_parameters_are_those_of_our_engines(name):
    make, shape = NETS[name]
    found = []
    for engine in ("auto", "opacus"):
        module = seeded(make)
        task = training(module, engine=engine, optimizer=UpdateRule.sgd(lr=0.5), expected_batch_size=8.0)
        train(task, Records.of(*some(shape), CPU), max_physical_batch=10_000)
        found.append(flat(module))
    torch.testing.assert_close(*found, rtol=0, atol=1e-6)
    assert not torch.equal(found[0], flat(seeded(make)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NETS))
def test_trained_parameters_are_those_of_a_plain_script_with_opacus(name):
    make, shape = NETS[name]
    inputs, targets = some(shape)
    module, plain = seeded(make), seeded(make)
    task = training(module, engine="opacus", sample_rate=1.0, steps=4, expected_batch_size=40.0)
    train(task, Records.of(inputs, targets, CPU), max_physical_batch=10_000)
    model = GradSampleModule(plain)
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.5), noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=40
    )
    for _ in range(4):
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(inputs), targets).backward()
        optimizer.step()
    torch.testing.assert_close(flat(module), flat(plain), rtol=0, atol=2e-6)  # Opacus adds 1e-6 to norms


def test_places_without_a_record_add_nothing_and_no_record_adds_more_than_the_norm():
    module = mlp()
    engine = OpacusEngine(module, SUM, CPU)
    inputs, targets = table(6)
    inputs[2] = 3e38  # its gradient is not finite
    trained, frozen = (engine.layout.read([module], CPU, flag) for flag in (True, False))
    sums = torch.zeros_like(trained, dtype=torch.float64)
    engine.bind(trained, frozen, sums)
    engine.add_clipped(inputs[None], targets[None], torch.zeros(1, 6))
    assert not sums.any()
    engine.add_clipped(inputs[None, 2:3], targets[None, 2:3], torch.ones(1, 1))
    assert not sums.any()
    engine.add_clipped(50 * inputs[None, :1], targets[None, :1], torch.ones(1, 1))
    assert float(sums.norm()) == pytest.approx(1.0)


def test_frozen_parameters_and_buffers_stay():
    module = mlp()
    module[0].weight.requires_grad_(False)
    module.register_buffer("constant", torch.ones(3))
    before = module[0].weight.clone()
    train(training(module, engine="opacus"), records(), max_physical_batch=10_000)
    assert torch.equal(module[0].weight, before)
    assert module[0].weight.requires_grad is False


# --- estimators -------------------------------------------------------------------------------------------------------

RATE = {"sample_rate": 0.2, "max_steps": 10, "neighboring": "zero_out"}


def test_the_statement_says_first_whose_gradients_they_are():
    net = DPNeuralNetClassifier(mlp()[0].__class__, engine="opacus", noise_multiplier=1.0, classes=[0, 1], **RATE)
    assert "per-sample gradients are Opacus's" in net.privacy_assumptions()[0]
    assert "engine='opacus'" in net.privacy_assumptions()[0]
    assert not any("Opacus" in text for text in net.set_params(engine="auto").privacy_assumptions())


def test_a_module_that_opacus_refuses_is_an_error_with_its_reason():
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(LeakingEstimatorError, match="BatchNorm"):
        OpacusEngine(module, SUM, CPU)
