"""Shares of layers: those of autograd record by record, none longer than the clipping norm, memory
bounded by bytes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from sklearn_dpsearch.nets._engines import graph, layer_gradients
from sklearn_dpsearch.nets._engines.layered import LayeredEngine
from sklearn_dpsearch.nets._engines.operation_rules import NotPerRecord
from sklearn_dpsearch.nets._engines.rounding import NORM_EXCESS

from ..toys import (
    ADVERSARIAL,
    CPU,
    clipped,
    clipped_sums,
    engine_for,
    gradients,
    places_add_nothing,
    same,
    seeded,
)

SUM = nn.CrossEntropyLoss(reduction="sum")


def convolved(convolution, *shape):
    """A net with one convolution, and records of this shape."""

    def make():
        layers = [convolution(), nn.Tanh(), nn.Flatten()]
        outputs = nn.Sequential(*layers)(torch.zeros(1, *shape)).shape[1]
        return nn.Sequential(*layers, nn.Linear(outputs, 3))

    return make, shape


class PerWord(nn.Module):
    """A linear layer and a norm on each of several vectors."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 6)
        self.norm = nn.LayerNorm((4, 6))
        self.last = nn.Linear(6, 3, bias=False)

    def forward(self, inputs):
        return self.last(torch.relu(self.norm(self.first(inputs)))).mean(1)


class Words(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.table, self.last = nn.Embedding(10, 6, **settings), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(torch.tanh(self.table(inputs)).mean(1))


class Positions(Words):
    """A second table that is looked up by places, which are the same in all records."""

    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(4, 6)
        self.register_buffer("numbers", torch.arange(4))

    def forward(self, inputs):
        return self.last(torch.tanh(self.table(inputs) + self.places(self.numbers)).mean(1))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.last = nn.LayerNorm(5), nn.Linear(5, 3)

    def forward(self, inputs):
        return self.last(self.norm(torch.tanh(self.norm(inputs))))


class Recurrent(nn.Module):
    """The mean of all states, of steps in the second place of the records or in the first of the
    layer."""

    def __init__(self, kind, **options):
        super().__init__()
        self.middle = kind(5, 4, **options)
        self.last = nn.Linear(4 * (1 + options.get("bidirectional", False)), 3)

    def forward(self, inputs):
        inputs = inputs if self.middle.batch_first else inputs.transpose(0, 1)
        outputs = self.middle(inputs)[0]
        return self.last((outputs if self.middle.batch_first else outputs.transpose(0, 1)).mean(1))


IMAGE = (2, 8, 7)
NETS = {
    "conv1d": convolved(lambda: nn.Conv1d(2, 4, 3, padding=1), 2, 9),
    "conv1d, same, dilated": convolved(
        lambda: nn.Conv1d(2, 4, 4, padding="same", dilation=2), 2, 9
    ),
    "conv2d": convolved(lambda: nn.Conv2d(2, 4, 3), *IMAGE),
    "conv2d, one number per window": convolved(lambda: nn.Conv2d(2, 4, 1), *IMAGE),
    "conv2d, valid": convolved(lambda: nn.Conv2d(2, 4, (3, 2), padding="valid"), *IMAGE),
    "conv2d, strided, padded, uneven": convolved(
        lambda: nn.Conv2d(2, 3, (3, 2), (2, 3), (1, 0)), *IMAGE
    ),
    "conv2d, grouped, dilated": convolved(
        lambda: nn.Conv2d(2, 4, 2, dilation=(2, 1), groups=2), *IMAGE
    ),
    "conv2d, without bias": convolved(lambda: nn.Conv2d(2, 4, 3, bias=False), *IMAGE),
    "conv2d, reflected": convolved(
        lambda: nn.Conv2d(2, 4, 3, padding=(1, 2), padding_mode="reflect"), *IMAGE
    ),
    "conv2d, circular": convolved(
        lambda: nn.Conv2d(2, 4, 3, padding="same", padding_mode="circular"), *IMAGE
    ),
    "conv3d": convolved(
        lambda: nn.Conv3d(2, 4, (2, 1, 3), (1, 2, 1), (1, 0, 1), groups=2), 2, 4, 5, 3
    ),
    "convolutions with pools": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, 1),
            nn.GroupNorm(2, 4), nn.Conv2d(4, 3, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        ),
        IMAGE,
    ),
    "group norm of vectors": (
        lambda: nn.Sequential(nn.Linear(5, 6), nn.GroupNorm(2, 6), nn.Linear(6, 3)), (5,),
    ),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6, bias=False), nn.Linear(6, 3)), (5,),
    ),
    "a norm without parameters": (
        lambda: nn.Sequential(
            nn.LayerNorm(5, elementwise_affine=False), nn.LayerNorm(5), nn.Linear(5, 3)
        ),
        (5,),
    ),
    "linear layers on several vectors": (PerWord, (4, 5)),
    "gru, two layers both ways": (
        lambda: Recurrent(nn.GRU, num_layers=2, bidirectional=True, batch_first=True), (4, 5),
    ),
    "lstm, steps first": (lambda: Recurrent(nn.LSTM), (4, 5)),
    "rnn, without biases": (lambda: Recurrent(nn.RNN, bias=False, batch_first=True), (4, 5)),
    "words": (Words, None),
    "words with padding": (lambda: Words(padding_idx=2), None),
}  # fmt: skip


#: A group of two numbers is always -1 and 1: its gradient is the rounding of a difference, another
#: on each processor.
ILL_CONDITIONED = {
    "group norm of two": (
        lambda: nn.Sequential(nn.Linear(5, 6), nn.GroupNorm(3, 6), nn.Linear(6, 3)),
        (5,),
    )
}


#: Records that are taken at once, where a layer has a way of its own for them.
AT_ONCE = [(name, most) for name in ("conv2d", "words", "lstm, steps first") for most in (1, 100)]


def data(shape, n=20, seed=0):
    rng = torch.Generator().manual_seed(seed)
    inputs = (
        torch.randint(0, 10, (n, 4), generator=rng)
        if shape is None
        else torch.randn((n, *shape), generator=rng)
    )
    return inputs, torch.randint(0, 3, (n,), generator=rng)


def layered_engine(net, inputs, targets):
    made = engine_for(net, SUM, inputs[:8], targets[:8])
    assert type(made) is LayeredEngine
    return made


def in_double_precision(net, inputs, targets, summed):
    """A function of the gradients in double precision, and what rounding may do to it in single, on
    any processor.

    That is 64 times what it moves by if all numbers that go in are rounded to single precision, at
    random.
    """
    rng, exact = torch.Generator().manual_seed(0), copy.deepcopy(net).double()

    def rounded(values):
        moved = torch.rand(values.shape, generator=rng, dtype=torch.float64) * 2 - 1
        return values * (1 + 2**-24 * moved) if values.is_floating_point() else values

    rows = inputs.double() if inputs.is_floating_point() else inputs
    expected = summed(gradients(exact, SUM, rows, targets))
    moved = torch.zeros_like(expected)
    for _ in range(8):
        near = copy.deepcopy(exact)
        for parameter in near.parameters():
            parameter.data = rounded(parameter.data)
        moved = torch.maximum(
            moved, (summed(gradients(near, SUM, rounded(rows), targets)) - expected).abs()
        )
    return expected, 64 * float(moved.max())


def test_every_rule_is_tried_on_a_net():
    layers = {type(layer) for make, _ in NETS.values() for layer in seeded(make).modules()}
    assert set(layer_gradients.RULES) <= layers


@pytest.mark.parametrize(("name", "most"), [*((name, 3) for name in NETS), *AT_ONCE])
def test_every_rule_gives_what_autograd_gives_record_by_record(name, most):
    make, shape = NETS[name]
    net, (inputs, targets) = seeded(make), data(shape)
    engine = layered_engine(net, inputs, targets)
    engine.chunk_size = most
    # some are clipped, some are not
    norm = float(gradients(net, SUM, inputs, targets).norm(dim=1).median())
    found = clipped_sums(engine, net, inputs, targets, norm)[0].double()
    expected, rounding = in_double_precision(net, inputs, targets, lambda each: clipped(each, norm))
    torch.testing.assert_close(found, expected, rtol=0, atol=rounding)


@pytest.mark.parametrize(("make", "shape"), NETS.values(), ids=NETS)
def test_norms_are_those_of_the_gradients_alone(make, shape):
    """Not only of their sum: a part that is left out of the norm would show in each record."""
    net, (inputs, targets) = seeded(make), data(shape)
    engine = layered_engine(net, inputs, targets)
    trained, frozen = (engine.layout.read([net], CPU, flag) for flag in (True, False))
    engine.bind(trained, frozen, torch.zeros_like(trained, dtype=torch.float64))
    squares = sum(
        share.squares() for share in engine.per_sample_gradients(inputs, targets).values()
    )
    expected, rounding = in_double_precision(
        net, inputs, targets, lambda each: each.square().sum(1)
    )
    torch.testing.assert_close(squares, expected, rtol=0, atol=rounding)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "shape"), [*NETS.values(), *ILL_CONDITIONED.values()], ids=[*NETS, *ILL_CONDITIONED]
)
def test_no_record_moves_the_sum_by_more_than_the_norm(make, shape):
    net, (inputs, targets) = seeded(make), data(shape, 33)
    engine = layered_engine(net, inputs, targets)
    for spoiled in _spoiled(inputs):
        for norm in (1e-3, 0.5):
            alone = clipped_sums(engine, net, spoiled[-1:], targets[-1:], norm)
            together = clipped_sums(engine, net, spoiled, targets, norm)
            without = clipped_sums(engine, net, spoiled[:-1], targets[:-1], norm)
            assert together.isfinite().all()
            assert float(alone.norm()) <= norm * (1 + NORM_EXCESS)
            assert float((together - without).norm()) <= norm * (1 + NORM_EXCESS)


def _spoiled(inputs):
    """The last record replaced by others: the same number everywhere, in one place, with both
    signs."""
    if not inputs.is_floating_point():
        for word in range(10):
            yield torch.cat([inputs[:-1], torch.full_like(inputs[-1:], word)])
        return
    size = inputs[0].numel()
    cases = (torch.ones(size), torch.eye(size)[0], torch.ones(size) * (-1) ** torch.arange(size))
    for pattern in cases:
        for value in ADVERSARIAL:
            record = (pattern.double() * value).nan_to_num().float().view_as(inputs[-1:])
            yield torch.cat([inputs[:-1], record])


def test_places_that_cancel_leave_a_gradient_that_is_clipped_as_it_was_rounded():
    """Terms of 1e8 with a sum near 0: single precision leaves an error, which is clipped like
    everything else."""
    net = seeded(
        lambda: nn.Sequential(nn.Conv1d(1, 1, 1, bias=False), nn.AvgPool1d(4096), nn.Flatten())
    )
    inputs = torch.randn(1, 1, 4096, generator=torch.Generator().manual_seed(0)) * 1e8
    inputs[..., 2048:] = -inputs[..., :2048].flip(-1)
    targets = torch.ones(1, 1)
    loss = nn.MSELoss(reduction="sum")
    engine = engine_for(net, loss, inputs.repeat(8, 1, 1), targets.repeat(8, 1))
    assert type(engine) is LayeredEngine
    assert float(clipped_sums(engine, net, inputs, targets, 1e-6).norm()) <= 1e-6 * (
        1 + NORM_EXCESS
    )


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("name", [
    "conv2d", "group norm of vectors", "linear layers on several vectors",
    "gru, two layers both ways",
])  # fmt: skip
def test_a_record_without_a_finite_gradient_contributes_nothing(name, value):
    (make, shape) = NETS[name]
    net, (inputs, targets) = seeded(make), data(shape)
    engine = layered_engine(net, inputs, targets)
    spoiled, others = inputs.clone(), [i for i in range(20) if i != 3]
    spoiled[3] = value
    found = clipped_sums(engine, net, spoiled, targets, 0.5)
    same(found, clipped_sums(engine, net, inputs[others], targets[others], 0.5), atol=1e-6)


def test_a_word_whose_row_is_not_finite_takes_only_its_own_records_out():
    net = seeded(Words)
    inputs, targets = data(None)
    inputs[inputs == 7] = 1
    inputs[4, 2] = inputs[9, 0] = 7
    net.table.weight.data[7] = torch.nan
    others = [i for i in range(20) if i not in (4, 9)]
    engine = layered_engine(net, data(None)[0].clamp(max=6), targets)
    found = clipped_sums(engine, net, inputs, targets, 0.5)
    same(found, clipped_sums(engine, net, inputs[others], targets[others], 0.5), atol=1e-6)


def test_a_word_that_comes_twice_counts_as_the_one_row_it_is():
    slopes = torch.tensor(
        [[[3.0, 0.0], [4.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0]]]
    )
    share = layer_gradients.EmbeddingGradients(torch.tensor([[5, 5, 1], [5, 5, 1]]), slopes, 10)
    assert share.squares().tolist() == pytest.approx([49 + 1, 0 + 4], rel=1e-6)
    sums = torch.zeros(10, 2, dtype=torch.float64)
    share.add(sums, torch.tensor([1.0, 0.5]), None, 1)
    assert sums[5].tolist() == [7.0, 0.0]
    assert sums[1].tolist() == [0.0, 2.0]


@pytest.mark.parametrize("name", ["conv2d", "words", "linear layers on several vectors"])
def test_places_without_a_record_add_nothing(name):
    (make, shape) = NETS[name]
    net, (inputs, targets) = seeded(make), data(shape, 10)
    places_add_nothing(layered_engine(net, inputs, targets), net, inputs, targets)


def test_layers_on_something_else_than_records_and_layers_used_twice_are_not_split():
    with pytest.raises(NotPerRecord, match="places"):
        graph.trace_module(seeded(Positions), data(None)[0][:8])
    assert not graph.trace_module(seeded(Twice), data((5,))[0][:8]).layered
    assert not graph.trace_module(
        nn.Sequential(nn.Linear(5, 3), nn.PReLU()), data((5,))[0][:8]
    ).layered


# --- memory ---------------------------------------------------------------------------------------


def test_a_large_table_of_words_costs_as_much_as_the_words_that_come():
    words = torch.randint(0, 10**6, (5, 7), generator=torch.Generator().manual_seed(0))
    share = layer_gradients.EmbeddingGradients(words, torch.ones(5, 7, 3), 10**6)
    assert share.rows.shape == (35, 3)
    example, layers = torch.zeros(8, 2, dtype=torch.long), (nn.Flatten(), nn.Linear(8, 3))
    small, large = (
        graph.trace_module(nn.Sequential(nn.Embedding(n, 4), *layers), example) for n in (10, 10**5)
    )
    assert small.numbers == large.numbers
