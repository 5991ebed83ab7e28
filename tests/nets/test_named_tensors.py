"""Inputs by name: the same nets as with one input, by every way a module is trained, and no record
in another's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sklearn_dpsearch.nets._engines import engine_choice
from sklearn_dpsearch.nets._engines.layered import LayeredEngine
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._engines.per_sample import VmapEngine
from sklearn_dpsearch.nets._named_tensors import ByName, input_names
from sklearn_dpsearch.nets._records import TrainingData
from sklearn_dpsearch.privacy import LeakingEstimatorError

from .toys import CPU, Both, seeded


def inputs(n=40):
    made = torch.Generator().manual_seed(3)
    return {
        "values": torch.randn(n, 4, generator=made),
        "words": torch.randint(0, 6, (n, 3), generator=made),
    }


def labels(n=40):
    return torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(4))


class Wide(nn.Module):
    """Linear layers alone: sums without per-record gradients."""

    def __init__(self):
        super().__init__()
        self.deep, self.wide, self.last = nn.Linear(4, 5), nn.Linear(3, 5), nn.Linear(10, 2)

    def forward(self, values, words):
        return self.last(
            torch.cat([torch.relu(self.deep(values)), self.wide(words.float())], dim=1)
        )


class Scaled(Both):
    """A graph with a parameter outside of layers: ``vmap`` of the graph."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, values, words):
        return super().forward(values * self.scale, words)


class NoGraph(Both):
    """Code that is no graph: ``vmap`` of the code."""

    def forward(self, values, words):
        return super().forward(values + torch.zeros(4), words)


class Coupled(Wide):
    def forward(self, values, words):
        return super().forward(values - values.mean(0), words)


class CoupledBranch(Wide):
    def forward(self, values, words):
        return super().forward(values / 255 if words.max() > 3 else values, words)


def engine_of(kind, criterion=None):
    module = ByName(seeded(kind), input_names(inputs()))
    loss = nn.CrossEntropyLoss(reduction="sum") if criterion is None else criterion
    choice = engine_choice.choose_engine(module, loss, inputs(), labels())
    return module, choice.engine(module, loss, CPU)


def by_hand(module, norm):
    """Clipped gradients, one record at a time, added up."""
    total = 0
    for i in range(40):
        record = {name: part[i : i + 1] for name, part in inputs().items()}
        loss = nn.functional.cross_entropy(module(record), labels()[i : i + 1])
        slope = torch.cat(
            [g.reshape(-1) for g in torch.autograd.grad(loss, list(module.parameters()))]
        )
        total = total + slope * min(1.0, norm / float(slope.norm()))
    return total


@pytest.mark.parametrize(("kind", "engine", "own"), [
    (Wide, LinearEngine, False), (Both, LayeredEngine, False), (Scaled, VmapEngine, False),
    (NoGraph, VmapEngine, True),
])  # fmt: skip
@pytest.mark.parametrize("norm", [0.3, 100.0])
def test_every_way_sums_the_clipped_gradients_of_single_records(kind, engine, own, norm):
    module, found = engine_of(kind)
    assert type(found) is engine
    assert getattr(found, "own_code", False) is own
    sums = clipped_sums_of(found, module, inputs(), labels(), norm)
    torch.testing.assert_close(
        sums[0].float(), by_hand(module, norm).detach(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("kind", [Coupled, CoupledBranch])
def test_a_module_that_couples_records_through_one_of_its_inputs_is_refused(kind):
    with pytest.raises(LeakingEstimatorError, match=f"(?s){kind.__name__}"):
        engine_of(kind)


@pytest.mark.slow
def test_one_record_more_moves_a_sum_by_one_clipping_norm_whatever_its_parts_hold():
    for kind in (Wide, Both, Scaled, NoGraph):
        module, engine = engine_of(kind)
        for value in (0.0, 1e-30, 50.0, -1e10, 3e38):
            extra = {"values": torch.full((1, 4), value), "words": torch.full((1, 3), 5)}
            more = {name: torch.cat([inputs()[name], extra[name]]) for name in extra}
            without = clipped_sums_of(engine, module, inputs(), labels())
            joined = clipped_sums_of(engine, module, more, torch.cat([labels(), labels()[:1]]))
            assert float((joined - without).norm()) <= 1.0001


def clipped_sums_of(engine, module, rows, answers, norm=1.0):
    trained, frozen = (engine.layout.read([module], CPU, flag) for flag in (True, False))
    sums = torch.zeros_like(trained, dtype=torch.float64)
    engine.bind(trained, frozen, sums)
    everything = TrainingData.of(rows, answers, CPU).take(torch.arange(len(answers)).unsqueeze(0))
    engine.add_clipped(*everything, torch.full((1, len(answers)), norm))
    return sums


def test_places_without_a_record_have_rows_in_every_part():
    kept = TrainingData.of(inputs(4), labels(4), CPU)
    assert len(kept) == 4
    rows, answers = kept.take(torch.tensor([[0, 4], [4, 4]]))
    expected = ((2, 2, 4), (2, 2, 3), (2, 2))
    assert (rows["values"].shape, rows["words"].shape, answers.shape) == expected
