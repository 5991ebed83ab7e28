"""Recurrent layers step by step: gradients of each record as under vmap, from that record alone."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import nn

from sklearn_dpsearch.nets._engines import engine_choice, layered
from sklearn_dpsearch.nets._engines.layered import LayeredEngine
from sklearn_dpsearch.nets._engines.per_sample import VmapEngine
from sklearn_dpsearch.nets._randomness import global_torch_seed
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, gradients, seeded

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
SUM = nn.CrossEntropyLoss(reduction="sum")
KINDS = {
    "lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN,
    "rnn with relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
}  # fmt: skip
#: Half of all options, with all combinations of any three of them.
OPTIONS = [
    {"num_layers": 1 + two, "bidirectional": both, "bias": bias, "batch_first": two ^ both ^ bias}
    for two, both, bias in itertools.product((False, True), repeat=3)
]


class Net(nn.Module):
    """A recurrent layer, and a linear one on its last outputs and states."""

    def __init__(self, make, turn=lambda values: values.transpose(0, 1), **options):
        super().__init__()
        self.layer, self.turn = make(3, 4, **options), turn
        self.last = nn.Linear(8 if options.get("bidirectional") else 4, 3)

    def forward(self, inputs):
        turn = (lambda values: values) if self.layer.batch_first else self.turn
        return self.last(torch.tanh(turn(self.layer(turn(inputs))[0])).mean(1))


class OnState(nn.Module):
    """A linear layer on the last state, which ``read`` takes from what the layer returns beside its
    outputs."""

    def __init__(self, make, read, width=4, **options):
        super().__init__()
        self.layer = make(3, 4, batch_first=True, **options)
        self.last = nn.Linear(width, 3)
        self.read = read

    def forward(self, inputs):
        _, state = self.layer(inputs)
        return self.last(self.read(state))


def data(n=7):
    rng = torch.Generator().manual_seed(0)
    return torch.randn(n, 5, 3, generator=rng), torch.randint(0, 3, (n,), generator=rng)


def per_sample_gradients(engine, net, inputs, targets, dtype=torch.float32):
    """Gradients of each record in each parameter, in this precision."""
    trained, frozen = (engine.layout.read([net], CPU, flag) for flag in (True, False))
    engine.bind(trained, frozen, torch.zeros_like(trained, dtype=torch.float64))
    for parameter in engine.template.parameters():
        parameter.data = parameter.data.to(dtype)
    shares = engine.per_sample_gradients(inputs.to(dtype), targets)
    made = {
        name: share.gradients if hasattr(share, "gradients") else outer(share)
        for name, share in shares.items()
    }
    return torch.cat(
        [made[name].flatten(1) for name, _ in net.named_parameters() if name in made], 1
    )


def outer(share):
    return share.grad_outputs.unsqueeze(2) * share.inputs.unsqueeze(1)


def chosen(net, inputs, targets):
    return engine_choice.choose_engine(net, SUM, inputs, targets).engine(net, SUM, CPU)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_every_option_gives_the_gradients_of_single_records(kind, options):
    """In double precision of single records: there PyTorch's LSTM does not run under vmap."""
    net, (inputs, targets) = seeded(lambda: Net(KINDS[kind], **options)), data()
    engine = chosen(net, inputs, targets)
    assert type(engine) is LayeredEngine
    expected = gradients(copy.deepcopy(net).double(), SUM, inputs.double(), targets)
    found = per_sample_gradients(engine, net, inputs, targets, torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


READS = {
    "the last layer": (nn.GRU, lambda state: state[-1], {"num_layers": 2}),
    "the hidden state of two": (nn.LSTM, lambda state: state[0][-1], {}),
    "the cell": (nn.LSTM, lambda state: state[1][0], {}),
    "the only layer": (nn.RNN, lambda state: state.squeeze(0), {}),
    "both directions": (
        nn.GRU, lambda state: torch.cat((state[-2], state[-1]), dim=1),
        {"bidirectional": True, "width": 8},
    ),
    "layers as places": (
        nn.GRU, lambda state: state.transpose(0, 1).flatten(1), {"num_layers": 2, "width": 8},
    ),
    "layers as places, permuted": (
        nn.GRU, lambda state: state.permute(1, 0, 2).flatten(1), {"num_layers": 2, "width": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "read", "options"), READS.values(), ids=READS)
def test_the_last_states_are_read_as_people_read_them(make, read, options):
    net, (inputs, targets) = seeded(lambda: OnState(make, read, **options)), data()
    engine = chosen(net, inputs, targets)
    assert type(engine) is LayeredEngine
    cases = (engine, VmapEngine(net, SUM, CPU))
    found, expected = (per_sample_gradients(one, net, inputs, targets) for one in cases)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_a_record_are_those_of_that_record_alone(kind):
    """To the last bit, whatever the others are."""
    net = seeded(lambda: Net(KINDS[kind], num_layers=2, bidirectional=True, batch_first=True))
    inputs, targets = data()
    engine, others = chosen(net, inputs, targets), [0, 1, 2, 4, 5, 6]
    expected = per_sample_gradients(engine, net, inputs, targets)[others]
    for value in (0.0, 1e20, torch.inf, torch.nan):
        spoiled = inputs.clone()
        spoiled[3] = value
        assert torch.equal(per_sample_gradients(engine, net, spoiled, targets)[others], expected)


def test_dropout_between_layers_is_that_of_pytorch():
    layer = nn.LSTM(3, 4, num_layers=3, dropout=0.5)
    inputs = torch.randn(5, 200, 3)
    outputs = []

    def unrolled(values):
        return layered.unrolled_forward(layer.requires_grad_(False), lambda *seen: None, values)

    for run in (layer, unrolled):
        with global_torch_seed(0):
            outputs.append(run(inputs)[0])
    torch.testing.assert_close(outputs[1], outputs[0], rtol=0, atol=1e-6)
    assert float(outputs[0].detach().std(1).min()) > 0  # masks of its own for each record


def test_dropout_between_layers_stays_on_the_fast_way():
    net = seeded(lambda: Net(nn.GRU, num_layers=2, dropout=0.3, batch_first=True))
    assert type(chosen(net, *data())) is LayeredEngine


class WithOwnStart(Net):
    """Initial states as tutorials write them."""

    def forward(self, inputs):
        start = torch.zeros(self.layer.num_layers, inputs.size(0), 4).to(inputs.device)
        start = (
            (start, inputs.new_zeros(2, inputs.shape[0], 4))
            if isinstance(self.layer, nn.LSTM)
            else start
        )
        return self.last(self.layer(inputs, start)[0].mean(1))


class StartOfTheBatch(Net):
    """An initial state with the records in the wrong place."""

    def forward(self, inputs):
        return self.last(self.layer(inputs, inputs.new_zeros(inputs.size(0), 1, 4))[0].mean(1))


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU])
def test_initial_states_of_zeros_are_taken(make):
    net = seeded(lambda: WithOwnStart(make, num_layers=2, batch_first=True))
    (inputs, targets) = data()
    engine = chosen(net, inputs, targets)
    assert type(engine) is LayeredEngine
    expected = gradients(copy.deepcopy(net), SUM, inputs, targets)
    torch.testing.assert_close(
        per_sample_gradients(engine, net, inputs, targets), expected, rtol=0, atol=1e-6
    )


def tied():
    net = Net(nn.GRU, num_layers=2, batch_first=True)
    net.layer.weight_hh_l1 = net.layer.weight_hh_l0
    return net


@pytest.mark.parametrize("make", [tied, lambda: StartOfTheBatch(nn.GRU, batch_first=True)])
def test_one_weight_for_two_layers_and_misplaced_states_are_left_to_vmap(make):
    assert type(chosen(seeded(make), *data())) is VmapEngine


def test_what_neither_a_rule_nor_vmap_takes_is_refused_by_name():
    with pytest.raises(LeakingEstimatorError, match="proj_size"):
        chosen(
            seeded(lambda: OnState(nn.LSTM, lambda state: state[0][-1], width=2, proj_size=2)),
            *data(),
        )
