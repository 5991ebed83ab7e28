"""Per-sample gradients of Opacus, with everything else of this library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.optimizers import DPOptimizer
from torch import nn

from sklearn_dpsearch.errors import TrainingError
from sklearn_dpsearch.nets import DPNeuralNetClassifier
from sklearn_dpsearch.nets._engines.per_sample import OpacusEngine
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._training import train
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, Residual, clipped_sums, flat, mlp, records, seeded, table, training
from ..zoo import Attention, Recurrent

pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus's own

SUM = nn.CrossEntropyLoss(reduction="sum")


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(36, 3),
    )  # fmt: skip


NETS = {
    "mlp": (mlp, (5,)),
    "residual": (Residual, (5,)),
    "cnn": (cnn, (1, 8, 8)),
    "lstm": (lambda: Recurrent(DPLSTM), (20,)),
    "attention": (lambda: Attention(DPMultiheadAttention, True), (20,)),
}


def some(shape, n=40):
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.normal(size=(n, *shape)).astype(np.float32)), torch.from_numpy(
        rng.integers(0, 3, n)
    )


@pytest.mark.parametrize("name", ["mlp", "residual", "cnn"])
def test_trained_parameters_are_those_of_our_engines(name):
    make, shape = NETS[name]
    found = []
    for engine in ("auto", "opacus"):
        module = seeded(make)
        optimizer = UpdateRule.sgd(lr=0.5)
        task = training(module, engine=engine, optimizer=optimizer, expected_batch_size=8.0)
        train(task, TrainingData.of(*some(shape), CPU), max_physical_batch=10_000)
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
    train(task, TrainingData.of(inputs, targets, CPU), max_physical_batch=10_000)
    model = GradSampleModule(plain)
    options = {"noise_multiplier": 0.0, "max_grad_norm": 1.0, "expected_batch_size": 40}
    optimizer = DPOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), **options)
    for _ in range(4):
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(inputs), targets).backward()
        optimizer.step()
    # Opacus adds 1e-6 to norms
    torch.testing.assert_close(flat(module), flat(plain), rtol=0, atol=2e-6)


def test_no_record_adds_more_than_the_norm_and_one_without_a_finite_gradient_nothing():
    module = mlp()
    engine = OpacusEngine(module, SUM, CPU)
    inputs, targets = table(6)
    assert not clipped_sums(engine, module, torch.full((1, 5), 3e38), targets[:1]).any()
    expected = pytest.approx(1.0)
    assert float(clipped_sums(engine, module, 50 * inputs[:1], targets[:1]).norm()) == expected


def test_frozen_parameters_and_buffers_stay():
    module = mlp()
    module[0].weight.requires_grad_(False)
    module.register_buffer("constant", torch.ones(3))
    before = module[0].weight.clone()
    train(training(module, engine="opacus"), records(), max_physical_batch=10_000)
    assert torch.equal(module[0].weight, before)
    assert module[0].weight.requires_grad is False


@pytest.mark.parametrize("padding", [None, 0])
def test_an_embedding_that_is_never_used_is_an_error_with_what_to_do(padding):
    module = seeded(Residual)
    module.unused = nn.Embedding(3, 2, padding_idx=padding)
    with pytest.raises(TrainingError, match=r"no gradient .*unused.weight.*; freeze them, or use"):
        clipped_sums(OpacusEngine(module, SUM, CPU), module, *table(6))


# --- estimators -----------------------------------------------------------------------------------

RATE = {"sample_rate": 0.2, "max_steps": 10, "neighboring": "zero_out"}


def test_the_statement_says_first_whose_gradients_they_are():
    options = {"engine": "opacus", "noise_multiplier": 1.0, "classes": [0, 1]}
    net = DPNeuralNetClassifier(mlp()[0].__class__, **options, **RATE)
    assert "per-sample gradients are Opacus's" in net.privacy_assumptions()[0]
    assert "engine='opacus'" in net.privacy_assumptions()[0]
    assert not any("Opacus" in text for text in net.set_params(engine="auto").privacy_assumptions())


def test_a_module_that_opacus_refuses_is_an_error_with_its_reason():
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(LeakingEstimatorError, match="BatchNorm"):
        OpacusEngine(module, SUM, CPU)
