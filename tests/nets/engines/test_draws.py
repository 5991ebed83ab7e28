"""Draws of random numbers: an operation that could draw and does not is fine; a draw is checked wherever it happens."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_dpsearch.nets import DPNeuralNetClassifier
from sklearn_dpsearch.nets.engines.draws import Draws
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, table

QUERIES = torch.ones(1, 1, 4, 5)
LIBRARY = torch.library.Library("tests_of_draws", "DEF")
LIBRARY.define("hidden_draw(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))


def hidden_draw(values):
    """Random numbers from a generator that is then set back."""
    state = torch.get_rng_state()
    drawn = torch.rand(values.shape)
    torch.set_rng_state(state)
    return drawn


LIBRARY.impl("hidden_draw", hidden_draw, "CPU")


class Tagged(TorchDispatchMode):
    """Collects operations that PyTorch tags as random."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def watched(*steps, allowed=True):
    """Take steps under the watch, and tell if one of them drew."""
    with Draws(CPU, allowed) as draws:
        for step in steps:
            step()
    return draws.drawn


def attention(dropout=0.0):
    return F.scaled_dot_product_attention(QUERIES, QUERIES, QUERIES, dropout_p=dropout)


#: Each draws; the last two inside of an operation that need not.
DRAWING = {
    "rand": lambda: torch.rand(3),
    "dropout": lambda: F.dropout(torch.ones(8), 0.5),
    "one operation with a draw inside": lambda: torch.native_dropout(torch.ones(8), 0.5, True),
    "attention with dropout": lambda: attention(0.5),
}


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        yield


@pytest.mark.slow
def test_attention_without_dropout_is_no_draw():
    with Tagged() as tagged:
        attention()
    assert len(tagged.names) == 1  # else the next lines show nothing
    assert not watched(attention, attention, allowed=False)  # the second one from the same state


@pytest.mark.slow
def test_a_transformer_layer_without_dropout_trains():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.middle = nn.TransformerEncoderLayer(5, 1, 6, dropout=0.0, batch_first=True)
            self.last = nn.Linear(5, 3)

        def forward(self, inputs):
            return self.last(self.middle(inputs.unflatten(1, (1, 5))).mean(1))

    inputs, targets = (one.numpy() for one in table(40))
    net = DPNeuralNetClassifier(Words, classes=[0, 1, 2], noise_multiplier=1.0, sample_rate=0.2, max_epochs=1)
    assert net.fit(inputs, targets).predict(inputs).shape == (40,)


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
def test_draws_are_noticed_where_they_are_allowed(draw):
    assert watched(draw, draw)


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
def test_draws_are_refused_where_none_is_allowed(draw):
    with pytest.raises(LeakingEstimatorError, match="where the module is copied"):
        watched(draw, allowed=False)


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
@pytest.mark.parametrize("between", [lambda: None, attention], ids=["alone", "beside attention without dropout"])
def test_a_draw_from_a_state_met_before_is_refused_at_once(draw, between):
    reached, state = [], torch.get_rng_state()
    steps = (draw, between, lambda: torch.set_rng_state(state), between, draw, lambda: reached.append("the end"))
    with pytest.raises(LeakingEstimatorError, match="seeded or set back"):
        watched(*steps)
    assert reached == []


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
def test_a_draw_after_a_seed_is_refused_at_once(draw):
    reached = []
    with pytest.raises(LeakingEstimatorError, match="seeded or set back"):
        watched(lambda: torch.manual_seed(0), draw, lambda: reached.append("the end"))
    assert reached == []


def test_a_draw_that_an_operation_hides_is_refused():
    def hidden():
        return torch.ops.tests_of_draws.hidden_draw(torch.ones(3))

    assert torch.equal(hidden(), hidden())  # numbers repeat
    with pytest.raises(LeakingEstimatorError, match="seeded or set back"):
        watched(hidden, hidden)
    with pytest.raises(LeakingEstimatorError, match="where the module is copied"):
        watched(hidden, allowed=False)
