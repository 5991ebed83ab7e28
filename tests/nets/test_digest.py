"""Digests: equal for equal things in every process, and different for all that a training depends on."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch import nn

from sklearn_dpsearch.nets.digest import digest

from .toys import mlp


class Own(nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, inputs):
        return self.factor * inputs


def one(inputs):
    return inputs + 1


def other(inputs):
    return inputs + 2


DIFFERENT = {
    "numbers": (1, 2),
    "types": (1, 1.0),
    "text": (["a", "b"], ["ab"]),
    "nesting": ([1, [2]], [1, 2]),
    "order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "sets": ({1, 2}, {1, 3}),
    "arrays": (np.zeros(2), np.zeros(3)),
    "dtypes": (np.zeros(2), np.zeros(2, np.float32)),
    "tensors": (torch.zeros(2), torch.tensor([0.0, 1e-30])),
    "kinds of numbers": (torch.float32, torch.float64),
    "parameters": (mlp(seed=0), mlp(seed=1)),
    "layers": (mlp(activation=nn.Tanh), mlp()),
    "attributes": (Own(1.0), Own(2.0)),
    "code": (one, other),
    "arguments": (functools.partial(one, 1), functools.partial(one, 2)),
    "methods": (Own(1.0).forward, Own(2.0).forward),
    "classes": (Own, nn.Identity),
}


@pytest.mark.parametrize(("first", "second"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_has_another_digest(first, second):
    assert digest(first) == digest(first)
    assert digest(first) != digest(second)


def test_equal_things_are_equal_and_cycles_end():
    assert digest(mlp()) == digest(mlp())
    assert digest({3, 1, 2}) == digest({1, 2, 3})
    circle = [1]
    circle.append(circle)
    assert digest(circle) == digest(circle)


SCRIPT = """
import torch, functools
from sklearn_dpsearch.nets.digest import digest
def forward(x, names=frozenset({"a", "b", "c"})):
    return x if str(x) in {"a", "b", "c", "d"} else [y for y in x]
print(digest(torch.optim.Adam, forward, functools.partial(forward, 3), {"x": torch.ones(3)}, torch.nn.Linear))
"""


@pytest.mark.slow
def test_digests_are_equal_in_every_process():
    runs = [
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True) for _ in range(3)
    ]
    assert len({run.stdout for run in runs}) == 1
