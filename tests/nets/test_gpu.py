"""On an accelerator: the same results without noise, noise drawn there, and models that come
home."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from sklearn_dpsearch.nets import DPNeuralNetClassifier
from sklearn_dpsearch.nets._randomness import Secrets, fill_normals
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._training import train, train_together

from .toys import Residual, flat, mlp, rule, seeded, table, training

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
]

X, y = (one.numpy() for one in table(200, classes=2))
CUDA = torch.device("cuda")


def norms():
    return nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 3))


def images():
    return nn.Sequential(
        nn.Unflatten(1, (1, 1, 5)), nn.Conv2d(1, 4, (1, 3)), nn.Tanh(), nn.Flatten(),
        nn.Linear(12, 3),
    )  # fmt: skip


WITH_MOMENTUM = rule(lr=0.3, momentum=0.9)


@pytest.mark.parametrize(
    "make", [mlp, Residual, norms, images], ids=["plain", "traced", "layer norm", "conv2d"]
)
@pytest.mark.parametrize("optimizer", [None, torch.optim.Adam])
def test_without_noise_the_device_makes_no_difference(make, optimizer):
    found = []
    for device in ("cpu", CUDA):
        net = seeded(make).to(device)
        changed = {} if optimizer is None else {"optimizer": rule(optimizer, lr=0.01)}
        train(
            training(net, steps=15, **changed),
            TrainingData.of(*table(), torch.device(device)),
            max_physical_batch=50,
        )
        found.append(flat(net).cpu())
    torch.testing.assert_close(*found, rtol=0, atol=1e-4)


def test_nets_trained_together_there_are_the_nets_trained_alone_here():
    def tasks(device, noise=0.0):
        made = [mlp(seed=i, bias=i % 2 == 0).to(device) for i in range(6)]
        shared = {"optimizer": WITH_MOMENTUM, "noise_multiplier": noise}
        return [
            training(one, seed=i, steps=4 + i, sample_rate=0.1 + 0.05 * i, **shared)
            for i, one in enumerate(made)
        ]

    here, there = tasks("cpu"), tasks(CUDA)
    for one in here:
        train(one, TrainingData.of(*table(), torch.device("cpu")), max_physical_batch=1000)
    assert all(train_together(there, TrainingData.of(*table(), CUDA), max_physical_batch=1000))
    for one, other in zip(here, there):
        torch.testing.assert_close(flat(other.module).cpu(), flat(one.module), rtol=0, atol=1e-4)
    noisy = tasks(CUDA, 1.0)
    assert all(train_together(noisy, TrainingData.of(*table(), CUDA), max_physical_batch=1000))
    again = tasks(CUDA, 1.0)
    for one, other in zip(noisy, again):
        train(other, TrainingData.of(*table(), CUDA), max_physical_batch=1000)
        torch.testing.assert_close(flat(other.module), flat(one.module), rtol=0, atol=1e-4)


def test_noise_is_that_of_the_cpu_in_double_precision():
    out = torch.empty(3, 100_000, dtype=torch.float64, device=CUDA)
    fill_normals([Secrets(0), Secrets(1), Secrets(0)], [1.0] * 3, out)
    assert torch.equal(out[0], out[2])
    found = out[:2].cpu().numpy()
    assert abs(np.corrcoef(found)[0, 1]) < 5.5 / np.sqrt(100_000)
    assert stats.kstest(found[0], "norm").pvalue > 1e-6
    assert len(np.unique(found)) == found.size
    drawn = torch.empty(10, dtype=torch.float64, device=CUDA)
    source = Secrets(0)
    source.normals(drawn)
    first = drawn.clone()
    source.normals(drawn)
    assert not torch.equal(first, drawn)


def test_unseeded_noise_does_not_follow_the_users_seed():
    def noise():
        torch.manual_seed(0)
        out = torch.empty(1, 8, dtype=torch.float64, device=CUDA)
        fill_normals([Secrets()], [1.0], out)
        return out

    assert not torch.equal(noise(), noise())


def test_a_fitted_skorch_net_comes_home():
    options = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": 10, "device": "cuda"}
    net = DPNeuralNetClassifier(Residual, module__classes=2, classes=[0, 1], **options).fit(X, y)
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_allclose(again.predict_proba(X), net.predict_proba(X), atol=1e-5)
    home = again.set_params(device="cpu")
    home.module_.to("cpu")
    np.testing.assert_allclose(home.predict_proba(X), net.predict_proba(X), atol=1e-5)


def test_gradients_of_opacus_give_the_parameters_of_the_cpu():
    found = []
    for device in (torch.device("cpu"), CUDA):
        module = seeded(mlp).to(device)
        train(
            training(module, engine="opacus"),
            TrainingData.of(*table(), device),
            max_physical_batch=10_000,
        )
        found.append(flat(module).cpu())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
