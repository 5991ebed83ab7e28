"""Small nets, records and trainings that the tests of this folder share."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch import nn

from sklearn_dpsearch.nets._engines import engine_choice, graph
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._randomness import global_torch_seed
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._stacked_training import TrainingTask
from sklearn_dpsearch.nets._training import train

CPU = torch.device("cpu")
#: Features that records may have, sensible or not; 1e39 is infinite in single precision.
ADVERSARIAL = [0.0, 1e-30, 50.0, -1e10, 1e20, 3e38, 1e39]


def table(n=60, features=5, classes=3, seed=0):
    """Made-up records, as single-precision inputs and labels."""
    rng = np.random.default_rng(seed)
    inputs = torch.from_numpy(rng.normal(size=(n, features)).astype(np.float32))
    return inputs, torch.from_numpy(rng.integers(0, classes, n))


def records(n=60, features=5, classes=3, seed=0):
    """The same on the device, ready for training."""
    return TrainingData.of(*table(n, features, classes, seed), CPU)


def mlp(features=5, width=7, classes=3, seed=0, activation=nn.ReLU, bias=True):
    """A plain net with initial parameters of its own."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(features, width, bias=bias),
            activation(),
            nn.Linear(width, classes, bias=bias),
        )


class Residual(nn.Module):
    """Linear layers in an order of their own: traced, not plain."""

    def __init__(self, features=5, width=7, classes=3):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.middle = nn.Linear(width, width)
        self.last = nn.Linear(width, classes)

    def forward(self, inputs):
        hidden = torch.relu(self.first(inputs))
        return self.last(hidden + torch.tanh(self.middle(hidden)))


class Both(nn.Module):
    """Two inputs, by the names of its arguments."""

    def __init__(self, width=6):
        super().__init__()
        self.words, self.last = nn.Embedding(6, width), nn.Linear(4 + width, 2)

    def forward(self, values, words):
        return self.last(torch.cat([values, self.words(words).mean(1)], dim=1))


def traced(module, criterion=None, device=CPU, rows=None):
    """The engine of a net whose graph has linear layers alone, whichever way it would be given."""
    rows = table(8)[0].to(device) if rows is None else rows
    criterion = nn.CrossEntropyLoss(reduction="sum") if criterion is None else criterion
    return LinearEngine(module, criterion, device, graph.trace_module(module, rows).runnable)


def engine_for(module, criterion, inputs, targets, device=CPU):
    """The engine that training takes."""
    return engine_choice.choose_engine(module, criterion, inputs, targets).engine(
        module, criterion, device
    )


def seeded(make, seed=0):
    """A module made with the initial parameters of a seed, whatever the user's generator is
    doing."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def training(module=None, **changed):
    """A short training without noise; everything can be changed."""
    return TrainingTask(
        **{
            "module": mlp() if module is None else module,
            "criterion": nn.CrossEntropyLoss(reduction="sum"), "optimizer": UpdateRule.sgd(lr=0.5),
            "sample_rate": 0.2, "steps": 6, "noise_multiplier": 0.0, "max_grad_norm": 1.0,
            "expected_batch_size": 12.0, "seed": 0, **changed,
        },
    )  # fmt: skip


def rule(kind=torch.optim.SGD, **arguments):
    """The rule of an optimizer of PyTorch."""
    return UpdateRule.of(kind([nn.Parameter(torch.zeros(1))], **arguments))


def flat(module):
    """All parameters of a module, one after the other."""
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def alone(tasks, most=10_000):
    """The parameters of nets that are trained one after the other."""
    for one in tasks:
        train(one, records(), max_physical_batch=most)
    return [flat(one.module) for one in tasks]


def same(found, expected, atol=2e-6):
    """Parameters agree, to rounding."""
    for mine, theirs in zip(found, expected):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=atol)


def places_add_nothing(engine, net, inputs, targets):
    """Assert that ten places without a record add exactly nothing, whatever lies there, to the sums
    of ten records."""
    alone = clipped_sums(engine, net, inputs, targets)
    trained = engine.layout.read([net], CPU, True)
    found, bounds = [], torch.tensor([[1.0] * 10 + [0.0] * 10])
    for value in (0.0, 1.0, 1e30, torch.inf, torch.nan):
        others = (
            torch.full_like(inputs, value)
            if inputs.is_floating_point()
            else torch.full_like(inputs, value == 1.0)
        )
        found.append(torch.zeros_like(trained, dtype=torch.float64))
        engine.bind(trained, trained[:, :0], found[-1])
        rows = torch.cat([inputs, others]).unsqueeze(0)
        answers = torch.cat([targets, targets]).unsqueeze(0)
        engine.add_clipped(rows, answers, bounds)
    torch.testing.assert_close(found[0].float(), alone, rtol=1e-6, atol=1e-7)
    assert all(torch.equal(one, found[0]) for one in found)  # exactly nothing, whatever lies there


def clipped_sums(engine, module, inputs, targets, norm=1.0, stack=1):
    """What an engine adds up for one net (in every place of a stack), in one call."""
    trained, frozen = (engine.layout.read([module] * stack, CPU, flag) for flag in (True, False))
    sums = torch.zeros_like(trained, dtype=torch.float64)
    engine.bind(trained, frozen, sums)
    rows, answers = (torch.stack([one] * stack) for one in (inputs, targets))
    engine.add_clipped(rows, answers, torch.full(rows.shape[:2], norm))
    return sums.float()


def largest_change(module, criterion, inputs, targets, extra, labels, norm=1.0):
    """The most by which blanking any one record changes the sum of a step, in clipping norms: 1 is
    allowed.

    The record stands in front of the others, among them, and behind them. Raises what training
    would raise if the net is refused.
    """
    engine = engine_for(module, criterion, inputs, targets)
    changes = []
    for record, label in zip(extra, labels):
        for place in (0, len(inputs) // 2, len(inputs) - 1):
            rows, answers = replaced(inputs, record, place), replaced(targets, label, place)
            changes.append(change(engine, module, rows, answers, place, norm))
    assert max(changes) > 0.01 * min(1.0, norm)  # something is trained
    return max(changes)


def change(engine, module, inputs, targets, place, norm=1.0, other=None):
    """By how much the sum changes if one record is blanked, or replaced by another, in clipping
    norms."""
    bounds = torch.full((1, len(inputs)), norm)
    without = bounds.clone()
    if other is None:
        without[0, place] = 0.0
        other = torch.zeros_like(inputs[0]), torch.zeros_like(targets[0])
    rows, answers = (replaced(values, one, place) for values, one in zip((inputs, targets), other))
    cases = ((inputs, targets, bounds), (rows, answers, without))
    first, second = (summed(engine, module, *pair) for pair in cases)
    return float((first - second).norm()) / norm


def summed(engine, module, inputs, targets, bounds):
    """The clipped sum of one step, in double precision, with the random numbers of a seed."""
    trained, frozen = (engine.layout.read([module], CPU, flag) for flag in (True, False))
    sums = torch.zeros_like(trained, dtype=torch.float64)
    engine.bind(trained, frozen, sums)
    with global_torch_seed(0):
        engine.add_clipped(inputs[None], targets[None], bounds)
    return sums


def replaced(values, one, place):
    """The same values with another record at a place."""
    return torch.cat([values[:place], one[None].to(values), values[place + 1 :]])


def gradients(module, criterion, inputs, targets):
    """Per-record gradients by autograd, one record at a time, in double precision where the module
    is."""
    rows = []
    trained = [p for p in module.parameters() if p.requires_grad]
    for i in range(len(inputs)):
        loss = criterion(module(inputs[i : i + 1]), targets[i : i + 1])
        found = torch.autograd.grad(loss, trained, allow_unused=True)
        found = [torch.zeros_like(p) if g is None else g for g, p in zip(found, trained)]
        rows.append(torch.cat([gradient.reshape(-1) for gradient in found]))
    return torch.stack(rows)


def check_sums(engine, module, criterion, inputs, targets, norm=1.0, stack=1, rtol=1e-4, atol=2e-6):
    """Assert that an engine sums, for each net of a stack, the clipped gradients of autograd record
    by record."""
    expected = clipped(gradients(module, criterion, inputs, targets), norm)
    for found in clipped_sums(engine, module, inputs, targets, norm, stack):
        torch.testing.assert_close(found, expected, rtol=rtol, atol=atol)


def clipped(rows, norm=1.0):
    """The sum of clipped gradients, from the gradients."""
    norms = rows.norm(dim=1, keepdim=True).clamp(min=1e-30)
    return (rows * torch.clamp(norm / norms, max=1.0)).sum(0)
