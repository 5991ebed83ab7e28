"""What one record can do to a step: blanked, it moves the clipped sum by one clipping norm,
replaced by two at most.

Also where all records lie at kinks, and where code seeds, counts, iterates, caches or draws in
``forward``: the record keeps its place, and everything else happens as before.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.nets._engines import engine_choice
from sklearn_dpsearch.nets._engines.base import ParameterLayout
from sklearn_dpsearch.nets._engines.rounding import noise_factor, records_per_piece
from sklearn_dpsearch.nets._randomness import global_torch_seed
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, replaced, seeded, table
from ..zoo import FROZEN, ZOO, Net, extremes, pixels

# PyTorch warns that an LSTM is computed one record after the other
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")

SUM = nn.CrossEntropyLoss(reduction="sum")
SLOW = {"attention of Opacus", "gru of Opacus", "lstm of Opacus", "transformer layer"}
VECTORS = pixels(30, (20,)), extremes((20,))


class Odd(Net):
    """A perceptron with something odd in the middle: a function of the module and its hidden
    values."""

    def __init__(self, odd, **state):
        super().__init__(20)
        self.odd = odd
        vars(self).update(state)

    def forward(self, inputs):
        return self.last(self.odd(self, torch.relu(self.first(inputs))))


def counted(net, hidden):
    net.calls += 1
    return hidden * net.calls


def buffered(net, hidden):
    net.steps += 1
    return hidden * net.steps


def seeded_inside(net, hidden):
    torch.manual_seed(0)
    return hidden * torch.rand(hidden.shape)


def forked(net, hidden):
    with torch.random.fork_rng():
        torch.manual_seed(net.calls)
        return hidden + torch.randn(hidden.shape)


def kept(net, hidden):
    """The last hidden values: of the same place, one call before."""
    before, net.last_seen = net.last_seen, hidden
    return hidden if before is None else hidden + before


def running(net, hidden):
    net.mean = 0.9 * net.mean + 0.1 * hidden.mean()
    return hidden - net.mean


def listed(net, hidden):
    net.seen.append(hidden)
    return sum(net.seen)


def cached(net, hidden):
    if hidden.shape not in net.cache:
        net.cache[hidden.shape] = torch.linspace(0, 1, hidden.shape[-1])
    return hidden * net.cache[hidden.shape]


def own_generator(net, hidden):
    return hidden * torch.rand(hidden.shape, generator=torch.Generator().manual_seed(3))


def alternating(net, hidden):
    net.calls += 1
    return hidden if net.calls % 2 else torch.tanh(hidden)


def in_place(net, hidden):
    hidden = hidden.clone()
    hidden[:, 0] = 0.0
    return hidden.mul_(2.0)


ODD = {
    "a counter": lambda: Odd(counted, calls=0),
    "a counter in a buffer": lambda: with_buffer(Odd(buffered)),
    "every second call": lambda: Odd(alternating, calls=0),
    "an iterator": lambda: Odd(
        lambda net, hidden: hidden * next(net.factors), factors=itertools.count(1)
    ),
    "a cycle": lambda: Odd(
        lambda net, hidden: hidden + next(net.shifts), shifts=itertools.cycle([0.0, 1.0, -1.0])
    ),
    "a seed inside": lambda: Odd(seeded_inside), "a forked seed": lambda: Odd(forked, calls=4),
    "a generator of its own": lambda: Odd(own_generator),
    "dropout by hand": lambda: Odd(lambda net, hidden: hidden * (torch.rand(hidden.shape) < 0.5)),
    "noise": lambda: Odd(lambda net, hidden: hidden + torch.randn_like(hidden)),
    "random of NumPy": lambda: Odd(
        lambda net, hidden: hidden * float(np.random.default_rng(0).random())
    ),
    "a clock": lambda: Odd(lambda net, hidden: hidden * (time.monotonic() > 0)),
    "the last values": lambda: Odd(kept, last_seen=None),
    "a running mean": lambda: Odd(running, mean=torch.zeros(())),
    "a list of all values": lambda: Odd(listed, seen=[]), "a cache": lambda: Odd(cached, cache={}),
    "in place": lambda: Odd(in_place),
    "a mean over the batch": lambda: Odd(lambda net, hidden: hidden - hidden.mean(0)),
    "the batch by its shape": lambda: Odd(lambda net, hidden: hidden / hidden.shape[0]),
    "a branch on values": lambda: Odd(lambda net, hidden: hidden if hidden.sum() > 0 else -hidden),
    "the order in the batch": lambda: Odd(
        lambda net, hidden: hidden * torch.arange(1, hidden.shape[0] + 1)[:, None]
    ),
    "a shift along the batch": lambda: Odd(lambda net, hidden: hidden + hidden.roll(1, 0)),
    "the largest of the batch": lambda: Odd(lambda net, hidden: hidden / (hidden.amax() + 1)),
    "sorted records": lambda: Odd(lambda net, hidden: hidden.sort(0).values),
    "a sum over the batch": lambda: Odd(lambda net, hidden: hidden + hidden.sum(0, keepdim=True)),
    "steps": lambda: Odd(lambda net, hidden: torch.sign(hidden) + hidden.floor()),
    "steep": lambda: Odd(lambda net, hidden: torch.sigmoid(1e6 * hidden)),
    "division by almost nothing": lambda: Odd(
        lambda net, hidden: hidden / (hidden.sum(1, keepdim=True) + 1e-30)
    ),
    "no finite gradient": lambda: Odd(lambda net, hidden: torch.sqrt(hidden)),
    "a kinked loss": lambda: Odd(lambda net, hidden: F.hardtanh(1e4 * hidden).abs()),
    "doubles": lambda: Odd(lambda net, hidden: hidden.double().float()),
    "a hook": lambda: hooked(Odd(lambda net, hidden: hidden)),
}  # fmt: skip


def with_buffer(net):
    net.register_buffer("steps", torch.zeros(()))
    return net


def hooked(net):
    net.first.register_forward_hook(lambda layer, inputs, outputs: outputs - outputs.mean(0))
    return net


def at_kinks(net, inputs):
    """Records on the hyperplane where the first unit of the first layer is zero, to the last
    bits."""
    layer = next((layer for layer in net.modules() if type(layer) is nn.Linear), None)
    if (
        not inputs.is_floating_point()
        or layer is None
        or inputs.shape[1:] != layer.weight.shape[1:]
    ):
        return inputs
    with torch.no_grad():
        normal, shift = layer.weight[0], 0.0 if layer.bias is None else layer.bias[0]
        return inputs - ((inputs @ normal + shift) / normal.square().sum())[:, None] * normal


def step(make, inputs, targets, bounds):
    """The clipped sum of a noiseless step, in several calls, by the way that training takes."""
    net = seeded(make)
    engine = engine_choice.choose_engine(net, SUM, inputs, targets).engine(net, SUM, CPU)
    engine.piece, engine.chunk_size = records_per_piece(len(inputs)), 8
    trained, frozen = (ParameterLayout(net).read([net], CPU, flag) for flag in (True, False))
    sums = torch.zeros_like(trained, dtype=torch.float64)
    engine.bind(trained, frozen, sums)
    with global_torch_seed(0):
        for start in range(0, len(inputs), 16):
            part = slice(start, start + 16)
            engine.add_clipped(inputs[None, part], targets[None, part], bounds[None, part])
    return sums


def largest_moves(make, data, kinks, norm=1.0):
    """Largest move of the sum if a record is blanked, and if it is replaced, in clipping norms."""
    (inputs, targets), (others, labels) = data
    inputs = at_kinks(seeded(make), inputs) if kinks else inputs
    bounds = torch.full((len(inputs),), norm)
    whole, blanked, changed = step(make, inputs, targets, bounds), [], []
    cases = zip((0, len(inputs) // 2, len(inputs) - 1), (len(others) - 1, 0, len(others) // 2))
    for place, i in cases:
        there = (
            replaced(inputs, torch.zeros_like(inputs[0]), place),
            replaced(targets, targets.new_zeros(()), place),
        )
        blanked.append(
            float((step(make, *there, replaced(bounds, torch.tensor(0.0), place)) - whole).norm())
        )
        there = replaced(inputs, others[i], place), replaced(targets, labels[i], place)
        changed.append(float((step(make, *there, bounds) - whole).norm()))
    return max(blanked) / norm, max(changed) / norm


def architectures():
    ordinary = {name: (make, data) for name, (make, _, data) in ZOO.items()}
    frozen = {
        f"frozen statistics, {name}": (make, (table(12), table(6, seed=1)))
        for name, make in FROZEN.items()
    }
    return {**ordinary, **frozen, **{name: (make, VECTORS) for name, make in ODD.items()}}


ALL = architectures()
MARKED = [
    pytest.param(*ALL[name], id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name in ALL
]


@pytest.mark.slow
@pytest.mark.parametrize("kinks", [False, True], ids=["anywhere", "at kinks"])
@pytest.mark.parametrize(("make", "data"), MARKED)
def test_one_record_moves_a_step_by_no_more_than_is_paid_for(make, data, kinks):
    try:
        blanked, changed = largest_moves(make, data, kinks)
    except LeakingEstimatorError:
        assert make in ODD.values()  # ordinary ones are accepted
        return
    allowed = noise_factor(len(data[0][0])) + 1e-6
    assert blanked <= allowed
    assert changed <= 2 * allowed


@pytest.mark.slow
def test_code_that_keeps_counts_seeds_or_draws_is_accepted():
    refused = []
    for name, make in ODD.items():
        try:
            engine_choice.choose_engine(seeded(make), SUM, *VECTORS[0])
        except LeakingEstimatorError:
            refused.append(name)
    coupled = {
        "a mean over the batch", "a branch on values", "a shift along the batch",
        "a counter in a buffer", "the batch by its shape", "the largest of the batch",
        "sorted records", "a sum over the batch", "a running mean",
    }  # fmt: skip
    assert set(refused) <= coupled | {"a hook", "no finite gradient"}
