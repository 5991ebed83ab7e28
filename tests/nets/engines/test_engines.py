"""Engines: sums of clipped gradients are those of autograd, and no record moves them by more than
the clipping norm."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn

from sklearn_dpsearch.nets._engines import base, graph, linear, per_sample
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._engines.per_sample import OpacusEngine, VmapEngine
from sklearn_dpsearch.nets._engines.rounding import NORM_EXCESS, row_norms
from sklearn_dpsearch.nets._fingerprint import text_of_value
from sklearn_dpsearch.nets._randomness import Secrets
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.nets._sampling import PoissonBatches
from sklearn_dpsearch.nets._training import train

from ..toys import (
    ADVERSARIAL,
    CPU,
    Residual,
    check_sums,
    clipped_sums,
    engine_for,
    flat,
    mlp,
    places_add_nothing,
    seeded,
    table,
    traced,
    training,
)

# PyTorch warns about hooks of Opacus on inputs that need no gradient
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")

CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="sum")
LOSSES = [
    nn.BCEWithLogitsLoss(reduction="sum"), CROSS_ENTROPY,
    nn.CrossEntropyLoss(reduction="sum", label_smoothing=0.1),
    nn.CrossEntropyLoss(reduction="sum", ignore_index=1), nn.HuberLoss(reduction="sum", delta=0.5),
    nn.L1Loss(reduction="sum"), nn.MSELoss(reduction="sum"),
    nn.SmoothL1Loss(reduction="sum", beta=0.5),
    nn.CrossEntropyLoss(reduction="sum", weight=torch.tensor([500.0, 1.0, 0.0])),
    nn.CrossEntropyLoss(reduction="sum", weight=torch.tensor([0.1, 1.0, 2.0]), label_smoothing=0.1),
]  # fmt: skip
ACTIVATIONS = [
    nn.ELU(alpha=0.7), nn.GELU(), nn.GELU(approximate="tanh"), nn.Identity(), nn.LeakyReLU(0.2),
    nn.ReLU(), nn.ReLU(inplace=True), nn.SiLU(), nn.Sigmoid(), nn.Softplus(beta=2.0, threshold=5.0),
    nn.Tanh(),
]  # fmt: skip


#: Every activation with a loss, and every loss with an activation.
PAIRS = [(layer, LOSSES[1]) for layer in ACTIVATIONS]
PAIRS += [(ACTIVATIONS[10], criterion) for criterion in LOSSES]


def name(one):
    return repr(one)


def targets_for(criterion, labels, outputs=3):
    if isinstance(criterion, nn.CrossEntropyLoss):
        return labels
    return torch.nn.functional.one_hot(labels, outputs).float() + (
        0 if isinstance(criterion, nn.BCEWithLogitsLoss) else 1
    )


class Scaled(nn.Module):
    """A parameter that lies in no layer."""

    def __init__(self):
        super().__init__()
        self.last, self.scale = nn.Linear(5, 3), nn.Parameter(torch.ones(3))

    def forward(self, inputs):
        return self.last(inputs) * self.scale


def images(*layers):
    return nn.Sequential(nn.Unflatten(1, (1, 5)), *layers)


#: Further layers are in ``ZOO``, by whichever engine they are given.
PER_SAMPLE = {
    "conv2d": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 1, 5)),
        nn.Conv2d(1, 4, (1, 3)),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(12, 3),
    ),
    "group norm": lambda: images(
        nn.Conv1d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)
    ),
    "instance norm": lambda: images(
        nn.Conv1d(1, 4, 3), nn.InstanceNorm1d(4, affine=True), nn.Flatten(), nn.Linear(12, 3)
    ),
    "layer norm": lambda: nn.Sequential(
        nn.Linear(5, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 3)
    ),
    "prelu": lambda: nn.Sequential(nn.Linear(5, 6), nn.PReLU(), nn.Linear(6, 3)),
    "parameter of no layer": Scaled,
}


# --- the gradients spelled out --------------------------------------------------------------------


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=name)
def test_backward_of_every_activation_is_that_of_autograd(layer):
    inputs = torch.linspace(-8, 8, 201).requires_grad_()
    slope = torch.linspace(1, 2, 201)
    kept = inputs.detach().clone()
    layer = copy.deepcopy(layer)
    layer.inplace = False
    outputs = layer(kept)
    expected = torch.autograd.grad((copy.deepcopy(layer)(inputs * 1.0) * slope).sum(), inputs)[0]
    torch.testing.assert_close(
        linear.ELEMENTWISE_LAYERS[type(layer)](layer, slope, kept, outputs),
        expected,
        rtol=1e-5,
        atol=1e-6,
    )


def test_every_activation_of_the_table_is_tested():
    assert {type(one) for one in ACTIVATIONS} == set(linear.ELEMENTWISE_LAYERS)


# --- the sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layer", "criterion"), PAIRS, ids=name)
def test_plain_nets_sum_what_autograd_gives_record_by_record(layer, criterion):
    net = nn.Sequential(
        nn.Linear(5, 6),
        copy.deepcopy(layer),
        nn.Sequential(nn.Linear(6, 4), nn.Tanh()),
        nn.Linear(4, 3),
    )
    inputs, labels = table(40)
    targets = targets_for(criterion, labels)
    assert linear.sequence_structure(net) is not None
    check_sums(
        LinearEngine(net, criterion, CPU), net, criterion, inputs, targets, norm=0.7, stack=3
    )


@pytest.mark.parametrize("make", PER_SAMPLE.values(), ids=PER_SAMPLE)
def test_other_layers_sum_what_autograd_gives_record_by_record(make):
    net = seeded(make)
    check_sums(VmapEngine(net, CROSS_ENTROPY, CPU), net, CROSS_ENTROPY, *table(20), 0.4)


def engines_of(net, criterion=CROSS_ENTROPY):
    """Every engine that serves a net of linear layers, with how many nets it is given."""
    runnable = graph.trace_module(net, table(8)[0]).runnable
    found = [
        (traced(net, criterion), 1),
        (traced(net, criterion), 2),
        (VmapEngine(net, criterion, CPU), 1),
        (VmapEngine(net, criterion, CPU, runnable, own_code=False), 1),
    ]
    if linear.sequence_structure(net) is None:
        return found
    return [*found, (LinearEngine(net, criterion, CPU), 2)]


@pytest.mark.parametrize(
    "make", [mlp, lambda: mlp(bias=False), Residual], ids=["mlp", "without biases", "residual"]
)
def test_all_engines_agree_with_the_slow_reference(make):
    net = make()
    for engine, stack in engines_of(net):
        check_sums(engine, net, CROSS_ENTROPY, *table(30), 1.0, stack)


@pytest.mark.parametrize(
    "frozen", [("0.weight",), ("0.weight", "0.bias"), ("2.bias",), ("0.bias", "2.weight")]
)
def test_frozen_parameters_neither_move_nor_count_in_the_norm(frozen):
    net = mlp()
    for key, parameter in net.named_parameters():
        parameter.requires_grad_(key not in frozen)
    inputs, targets = table(30)
    for engine, stack in engines_of(net):
        check_sums(engine, net, CROSS_ENTROPY, inputs, targets, 0.3, stack)
    before = {key: p.detach().clone() for key, p in net.named_parameters()}
    train(training(net), TrainingData.of(inputs, targets, CPU), max_physical_batch=100)
    moved = {key for key, p in net.named_parameters() if not torch.equal(p, before[key])}
    assert moved == set(before) - set(frozen)


@pytest.mark.parametrize("criterion", LOSSES, ids=name)
@pytest.mark.parametrize(("bias", "as_graph"), [(True, True), (False, False)])
def test_places_without_a_record_add_nothing(criterion, bias, as_graph):
    net = mlp(bias=bias)
    inputs, labels = table(10)
    targets = targets_for(criterion, labels)
    engine = traced(net, criterion) if as_graph else LinearEngine(net, criterion, CPU)
    places_add_nothing(engine, net, inputs, targets)


@pytest.mark.parametrize("engine", [VmapEngine, OpacusEngine])
@pytest.mark.filterwarnings("ignore:Full backward hook")  # of Opacus
def test_places_without_a_record_add_nothing_to_gradients_of_single_records(engine):
    net = mlp()
    places_add_nothing(engine(net, nn.CrossEntropyLoss(reduction="sum"), CPU), net, *table(10))


# --- sensitivity ----------------------------------------------------------------------------------


def moved_by(engine, net, inputs, targets, norm, stack):
    """How far the last record moves the sums, in the worst place of the stack."""
    alone = clipped_sums(engine, net, inputs[-1:], targets[-1:], norm, stack)
    with_it = clipped_sums(engine, net, inputs, targets, norm, stack)
    without = clipped_sums(engine, net, inputs[:-1], targets[:-1], norm, stack)
    assert with_it.isfinite().all()
    return max(float((with_it - without).norm(dim=1).max()), float(alone.norm(dim=1).max()))


def worst(engine, net, targets, norm, stack, kinds=ADVERSARIAL):
    """The most that any of many records, ordinary or adversarial, moves the sums."""
    inputs, _ = table(33)
    found = [moved_by(engine, net, inputs, targets, norm, stack)]
    for value in kinds:
        cases = (torch.ones(5), torch.tensor([1.0, 0, 0, 0, 0]), torch.tensor([1.0, -1, 1, -1, 1]))
        for pattern in cases:
            changed = inputs.clone()
            changed[-1] = torch.nan_to_num(pattern.double() * value).float()
            found.append(moved_by(engine, net, changed, targets, norm, stack))
    return max(found)


@pytest.mark.parametrize(("layer", "criterion"), PAIRS, ids=name)
def test_no_record_moves_a_plain_net_by_more_than_the_norm(layer, criterion):
    net = nn.Sequential(nn.Linear(5, 6), copy.deepcopy(layer), nn.Linear(6, 3))
    targets = targets_for(criterion, table(33)[1])
    assert worst(LinearEngine(net, criterion, CPU), net, targets, 0.5, 2) <= 0.5 * (1 + NORM_EXCESS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [mlp, lambda: mlp(bias=False), Residual], ids=["mlp", "without biases", "residual"]
)
@pytest.mark.parametrize("norm", [1e-3, 1.0, 100.0])
def test_no_record_moves_any_engine_by_more_than_the_norm(make, norm):
    net = make()
    for engine, stack in engines_of(net):
        assert worst(engine, net, table(33)[1], norm, stack) <= norm * (1 + NORM_EXCESS)


@pytest.mark.slow
@pytest.mark.parametrize("make", PER_SAMPLE.values(), ids=PER_SAMPLE)
def test_no_record_moves_other_layers_by_more_than_the_norm(make):
    net = seeded(make)
    assert worst(VmapEngine(net, CROSS_ENTROPY, CPU), net, table(33)[1], 0.5, 1) <= 0.5 * (
        1 + NORM_EXCESS
    )


@pytest.mark.parametrize("answer", [0.0, 1e10, 3e38, -3e38])
def test_no_target_moves_a_regression_by_more_than_the_norm(answer):
    net = mlp(classes=1)
    inputs, _ = table(33)
    targets = torch.ones(33, 1)
    targets[-1] = answer
    cases = (nn.MSELoss(reduction="sum"), nn.L1Loss(reduction="sum"), nn.HuberLoss(reduction="sum"))
    for criterion in cases:
        for engine, stack in engines_of(net, criterion):
            assert moved_by(engine, net, inputs, targets, 0.5, stack) <= 0.5 * (1 + NORM_EXCESS)


@pytest.mark.parametrize("value", [3e38, float("inf"), float("nan")])
def test_a_record_without_a_finite_gradient_contributes_nothing(value):
    net = mlp()
    inputs, targets = table(20)
    spoiled = inputs.clone()
    spoiled[3] = value
    others = [i for i in range(20) if i != 3]
    for engine, stack in engines_of(net):
        found = clipped_sums(engine, net, spoiled, targets, 1.0, stack)
        expected = clipped_sums(engine, net, inputs[others], targets[others], 1.0, stack)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "make", [mlp, Residual, PER_SAMPLE["layer norm"]], ids=["plain", "traced", "per sample"]
)
def test_extreme_records_leave_a_whole_training_finite(make):
    net = seeded(make)
    inputs, targets = table(60)
    inputs[:12] = torch.tensor([50.0, 1e10, 1e20, 3e38, float("inf"), 0.0]).repeat(2).unsqueeze(1)
    train(
        training(net, steps=20, sample_rate=0.5),
        TrainingData.of(inputs, targets, CPU),
        max_physical_batch=100,
    )
    assert flat(net).isfinite().all()


def test_a_layer_used_twice_is_clipped_as_the_one_parameter_it_is():
    layer = nn.Linear(5, 5)
    net = nn.Sequential(layer, nn.Tanh(), layer)
    inputs, targets = table(30)
    assert linear.sequence_structure(net) is None
    engine = engine_for(net, CROSS_ENTROPY, inputs, targets)
    check_sums(engine, net, CROSS_ENTROPY, inputs, targets, 0.1)
    assert worst(engine, net, table(33)[1], 0.1, 1) <= 0.1 * (1 + NORM_EXCESS)


@pytest.mark.parametrize("size", [100, 5_000, 1_000_000])
@pytest.mark.parametrize("value", [0.013, 0.7, 1 / 3])
def test_norms_of_long_vectors_are_not_too_small(size, value):
    """Added one after the other in single precision, 1e6 squares are off by 7e-4."""
    (found,) = row_norms([torch.full((2, size), value)])
    expected = np.float32(value).astype(float) * np.sqrt(size)
    np.testing.assert_allclose(found, expected, rtol=5e-6)


def test_engines_work_on_a_loss_of_their_own():
    criterion = nn.CrossEntropyLoss(reduction="sum")
    assert all(engine.criterion is not criterion for engine, _ in engines_of(mlp(), criterion))


# --- against Opacus -------------------------------------------------------------------------------


def opacus_steps(module, task, inputs, targets):
    """The same training with Opacus's module and optimizer at noise 0, on the same batches."""
    wrapped = GradSampleModule(copy.deepcopy(module), loss_reduction="sum")
    sizes = {name: getattr(task, name) for name in ("max_grad_norm", "expected_batch_size")}
    descent = torch.optim.SGD(wrapped.parameters(), lr=0.5)
    optimizer = DPOptimizer(descent, noise_multiplier=0.0, loss_reduction="mean", **sizes)
    own = Secrets(task.seed)
    source = PoissonBatches(own.coins, own.rows, task.sample_rate, len(inputs))
    for batch in torch.from_numpy(source.draw(task.steps)):
        members = batch[batch < len(inputs)]
        optimizer.zero_grad()
        task.criterion(wrapped(inputs[members]), targets[members]).backward()
        optimizer.step()
    return flat(wrapped)


@pytest.mark.parametrize("make", [
    mlp, lambda: mlp(activation=nn.Tanh, bias=False), Residual, PER_SAMPLE["conv2d"],
    PER_SAMPLE["layer norm"],
], ids=["plain", "without biases", "traced", "conv2d", "layer norm"])  # fmt: skip
@pytest.mark.parametrize("norm", [0.3, 5.0])
def test_steps_without_noise_are_those_of_opacus(make, norm):
    net = seeded(make)
    inputs, targets = table(120)
    task = training(net, steps=8, max_grad_norm=norm, expected_batch_size=24.5)
    expected = opacus_steps(net, task, inputs, targets)
    before = flat(net)
    train(task, TrainingData.of(inputs, targets, CPU), max_physical_batch=17)
    assert float((flat(net) - before).abs().max()) > 0.01
    torch.testing.assert_close(flat(net), expected, rtol=0, atol=1e-6)


# --- which engine, and what it keeps --------------------------------------------------------------


def test_which_nets_need_no_gradients_record_by_record():
    def is_linear(net):
        return graph.trace_module(net, table(8)[0]).linear

    assert is_linear(mlp())
    assert is_linear(Residual())
    assert not is_linear(seeded(PER_SAMPLE["layer norm"]))
    tied = Residual(width=5, classes=5)
    tied.last.weight = tied.middle.weight
    assert not is_linear(tied)
    twice = Residual(width=5, classes=5)
    twice.last = twice.middle
    assert not is_linear(twice)


@pytest.mark.parametrize("make", PER_SAMPLE.values(), ids=PER_SAMPLE)
def test_the_engine_for_any_code_keeps_nothing_of_the_records(make):
    net = seeded(make)
    inputs, targets = table(20)
    engine = VmapEngine(net, CROSS_ENTROPY, CPU)

    def kept():
        cases = (engine.template, engine.criterion, net)
        return text_of_value([vars(layer) for one in cases for layer in one.modules()])

    before = kept()
    clipped_sums(engine, net, inputs, targets)
    assert kept() == before
    for parameter in (*engine.template.parameters(), *net.parameters()):
        assert parameter.grad is None
        assert not vars(parameter)


def test_memory_is_bounded_by_the_bytes_of_the_gradients():
    assert (
        VmapEngine(nn.Linear(2, 2), CROSS_ENTROPY, CPU).chunk_size
        == per_sample.DEVICE_RECORDS["cpu"]
    )
    wide = VmapEngine(nn.Linear(10_000, 2), CROSS_ENTROPY, CPU)
    assert base.FEWEST_RECORDS < wide.chunk_size < 256
    assert wide.chunk_size * 4 * wide.layout.trained <= per_sample.MEMORY["cpu"]
    assert VmapEngine(nn.Linear(3_000_000, 1), CROSS_ENTROPY, CPU).chunk_size == base.FEWEST_RECORDS
