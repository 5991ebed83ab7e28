"""A seed for the noise reproduces one training alone: trainings that differ in anything share no
noise."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from opacus.layers import DPLSTM
from sklearn.base import clone
from torch import nn

from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.privacy import PrivacyError

RNG = np.random.default_rng(0)
X, y = RNG.uniform(-1, 1, (60, 400)), RNG.integers(0, 2, 60)
SHORT = {
    "max_epochs": 1000, "sample_rate": 0.5, "bounds_X": (-1.0, 1.0), "classes": [0, 1],
    "noise_multiplier": 50.0, "max_steps": 3, "random_state": 0,
}  # fmt: skip


def net(**given):
    return DPLogisticRegression(**{**SHORT, "noise_seed": 0, **given})


def likeness(first, second):
    """Correlation of changes that are nearly all noise."""
    return float(np.corrcoef(np.ravel(first), np.ravel(second))[0, 1])


def test_the_same_training_is_reproduced(tmp_path):
    first, second = net().fit(X, y), net().fit(X, y)
    assert np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(first.fit(X, y).coef_, second.coef_)
    assert np.allclose(second.coef_, net(max_physical_batch=7).fit(X, y).coef_, rtol=1e-4)


@pytest.mark.parametrize("seed", [3, np.random.RandomState(3)], ids=["number", "generator"])
def test_other_records_have_other_noise_for_the_same_seed(seed):
    """With one noise for both, whoever has both releases could take the noise away without the
    seed."""
    one = net(noise_seed=seed)
    other = clone(one)
    changed = X.copy()
    changed[0] = 0.0
    assert abs(likeness(one.fit(X, y).coef_, other.fit(changed, y).coef_)) < 0.3


@pytest.mark.parametrize("change", [
    {"learning_rate_init": 0.7}, {"noise_multiplier": 50.001}, {"max_grad_norm": 0.9},
    {"alpha": 1e-9},
])  # fmt: skip
def test_other_arguments_have_other_noise(change):
    assert abs(likeness(net().fit(X, y).coef_, net(**change).fit(X, y).coef_)) < 0.3


def test_a_second_training_of_the_same_parameters_has_other_noise():
    model = net().fit(X, y)
    before = model.coef_.copy()
    model.partial_fit(X, y)
    assert abs(likeness(before, model.coef_ - before)) < 0.3


def test_other_initial_parameters_have_other_noise():
    def change(state):
        step = {**SHORT, "noise_seed": 0, "hidden_layer_sizes": (4,), "max_steps": 1}
        step["random_state"] = state
        trained, start = (
            DPMLPClassifier(**{**step, "learning_rate_init": size}).fit(X, y).module_
            for size in (1.0, 1e-12)
        )
        return (trained[0].weight - start[0].weight).detach().numpy()

    assert np.array_equal(change(0), change(0))
    assert abs(likeness(change(0), change(1))) < 0.3


class Scaled(nn.Module):
    """Logits times something that is neither a parameter nor a buffer."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.last, self.factor = nn.Linear(4, 2), factor

    def forward(self, inputs):
        factor = self.factor
        return self.last(inputs) * (factor(1.0) if callable(factor) else factor)


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size

    def times(self, value):
        return self.size * value

    __call__ = times


def times(size, value):
    return size * value


def local_class(size):
    class Local(Scaled):
        def forward(self, inputs):
            return super().forward(inputs) * size

    return Local


def class_with_constant(size):
    class Local(Scaled):
        constant = size

        def forward(self, inputs):
            return super().forward(inputs) * self.constant

    return Local


class Tied(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        with torch.no_grad():
            self.last.weight.copy_(self.first.weight)
        if tied:
            self.last.weight = self.first.weight

    def forward(self, inputs):
        return self.last(self.first(inputs))[:, :2]


def weighted(size):
    return {"criterion": nn.CrossEntropyLoss(weight=torch.tensor([1.0, size]))}


def seed_of(module=Scaled, inputs=X[:, :4], **changed):
    """Seed of a training, which is not run."""
    options = {"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 2, "classes": [0, 1]}
    one = DPNeuralNetClassifier(
        module, **{**options, "random_state": 3, "noise_seed": 0, **changed}
    )
    return one._prepare_fit(inputs, y, True, None).task.seed.entropy


DIFFERENCES = {
    "a factory": lambda size: {"module": lambda: Scaled(size)},
    "a partial": lambda size: {"module": lambda: Scaled(functools.partial(times, size))},
    "slots": lambda size: {"module": lambda: Scaled(Slotted(size))},
    "a closure": lambda size: {"module": lambda: Scaled(lambda value: size * value)},
    "a default": lambda size: {"module": lambda: Scaled(lambda value, size=size: size * value)},
    "code": lambda size: {"module": lambda: Scaled(eval(f"lambda value: {size} * value"))},
    "a global": lambda size: {
        "module": lambda: Scaled(eval("lambda value: size * value", {"size": size}))
    },
    "a tensor": lambda size: {
        "module": lambda: Scaled(functools.partial(times, torch.tensor(size, dtype=torch.bfloat16)))
    },
    "a cached function": lambda size: {
        "module": lambda: Scaled(functools.lru_cache(lambda value: size * value))
    },
    "a bound method": lambda size: {"module": lambda: Scaled(Slotted(size).times)},
    "a local class": lambda size: {"module": local_class(size)},
    "a constant of a class": lambda size: {"module": class_with_constant(size)},
    "shared parameters": lambda size: {"module": lambda: Tied(size > 1)},
    "weights of a criterion": weighted,
    "shapes": lambda size: {
        "module": lambda: nn.Sequential(nn.Flatten(), Scaled()),
        "inputs": X[:, :4].reshape(-1, *((2, 2) if size > 1 else (1, 4))),
    },
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_trainings_that_differ_share_no_noise(difference):
    make = DIFFERENCES[difference]
    assert seed_of(**make(1.0)) == seed_of(**make(1.0))
    assert seed_of(**make(1.0)) != seed_of(**make(3.0))


def test_what_cannot_be_told_apart_is_an_error_with_a_seed_alone():
    lock = threading.Lock()
    make = lambda: Scaled(lambda value: value if lock else 0.0)  # noqa: E731
    needed = "Found lock in a training with noise_seed, which needs .*noise_seed=None"
    with pytest.raises(PrivacyError, match=needed):
        seed_of(make)
    assert seed_of(make, noise_seed=None) != seed_of(make, noise_seed=None)


def seed_of_many_kinds():
    module = local_class(2.0)(functools.partial(times, 3.0))
    module.names, module.recurrent = {"a", "b", "c", "d"}, nn.LSTM(2, 2)
    module.pattern, module.of_opacus = re.compile("a"), DPLSTM(2, 2)
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return seed_of(module)


def test_a_training_has_the_same_noise_in_another_process():
    """Sets of texts have another order there, and objects other addresses."""
    code = f"from {__name__} import seed_of_many_kinds; print(seed_of_many_kinds())"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert run.stdout.decode().strip() == str(seed_of_many_kinds()), run.stderr.decode()


def test_the_statement_says_that_a_seed_voids_the_guarantee_for_everybody():
    parts = net().fit(X, y).privacy_spent_.assumptions
    (said,) = (text for text in parts if "noise_seed was given" in text)
    assert "voids the guarantee for everybody" in said
    unseeded = net(noise_seed=None).fit(X, y).privacy_spent_.assumptions
    assert any("the operating system" in text for text in unseeded)
