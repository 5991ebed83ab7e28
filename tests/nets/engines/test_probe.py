"""Made-up records, and the second look at what is trained record by record: it can refuse, and never allows."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.nets.engines import engine_choice, probe
from sklearn_dpsearch.nets.engines.vmap import VmapEngine
from sklearn_dpsearch.nets.randomness import global_torch_seed
from sklearn_dpsearch.nets.training import train, train_together
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import CPU, clipped_sums, flat, mlp, records, seeded, table, training

SUM = nn.CrossEntropyLoss(reduction="sum")
INPUTS, TARGETS = table(30)


def engine_for(net, criterion=SUM, inputs=INPUTS, targets=TARGETS):
    return engine_choice.engine_for(net, criterion, *probe.made_up(inputs, targets), CPU)


def between(*layers):
    return nn.Sequential(nn.Linear(5, 6), *layers, nn.Linear(6, 3))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 3)


class Centred(Net):
    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(torch.relu(hidden - hidden.mean(0)))


class Scaled(Net):
    def forward(self, inputs):
        return self.last(self.first(inputs) / inputs.abs().max())


class AcrossTheBatch(Net):
    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(torch.softmax(hidden @ hidden.T, dim=1) @ hidden)


class SmallRowsOnly(Net):
    """Ordinary records are moved by the others, large ones are not."""

    def forward(self, inputs):
        ordinary = inputs.norm(dim=1, keepdim=True) < 10
        return self.last(torch.relu(self.first(inputs + 0.3 * ordinary * torch.tanh(inputs).mean(0))))


class LargeRowsOnly(Net):
    """Only pixels beyond 200 are moved by the others."""

    def forward(self, inputs):
        large = (inputs > 200).any(dim=1, keepdim=True)
        return self.last(torch.relu(self.first(inputs + large * inputs.mean(0))))


class CentredDropout(nn.Dropout):
    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(0) if self.training else inputs)


class Rare(nn.Module):
    """Weights of the classes, divided by their mean in the batch: seen only where the third class occurs."""

    def forward(self, outputs, targets):
        weights = torch.tensor([1.0, 1.0, 50.0])[targets]
        return (weights / weights.mean() * F.cross_entropy(outputs, targets, reduction="none")).sum()


def zeros(module):
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


@pytest.mark.parametrize("kind", [Centred, Scaled, AcrossTheBatch, SmallRowsOnly, LargeRowsOnly])
def test_modules_that_mean_something_else_for_a_batch_are_refused(kind):
    with pytest.raises(LeakingEstimatorError, match="(?s)neither the sum nor the mean.*something couples them"):
        engine_for(seeded(kind))


def test_coupling_inside_of_dropout_is_seen():
    with pytest.raises(LeakingEstimatorError, match="something couples them"):
        engine_for(seeded(lambda: between(CentredDropout(0.1))))


def test_coupling_behind_layers_of_zeros_is_seen():
    """All gradients but that of the last bias are zero at first; noise soon ends that."""
    with pytest.raises(LeakingEstimatorError):
        engine_for(zeros(seeded(Centred)))
    tasks = [training(zeros(seeded(Centred)), seed=seed) for seed in range(3)]
    assert train_together(tasks, records(60), max_physical_batch=1000) == [False] * 3


class WithConstant(Net):
    """No graph (the constant is no buffer), and functional dropout, whose masks differ from run to run."""

    def forward(self, inputs):
        hidden = F.dropout(torch.relu(self.first(inputs + torch.ones(5))), 0.5, self.training)
        return self.last(hidden)


def test_random_masks_are_not_taken_for_coupling():
    net = seeded(WithConstant)
    engine = engine_for(net)
    assert type(engine) is VmapEngine
    clipped_sums(engine, net, INPUTS, TARGETS)
    with global_torch_seed(0):
        same = engine.gradients(INPUTS[:1].expand(20, 5), TARGETS[:1].expand(20))["last.weight"]
    assert len(set(map(tuple, same.tolist()))) > 2  # each record has a mask of its own


class AlwaysNoisy(Net):
    """Noise in evaluation as well."""

    def forward(self, inputs):
        hidden = torch.relu(self.first(inputs + torch.ones(5)))
        return self.last(hidden + torch.randn_like(hidden))


def test_noise_that_never_ends_is_not_taken_for_coupling():
    net = seeded(AlwaysNoisy)
    engine = engine_for(net)
    with global_torch_seed(0):
        assert float(clipped_sums(engine, net, INPUTS, TARGETS).norm()) > 0


def test_every_class_is_among_the_made_up_labels():
    rows, targets = probe.records_for(mlp(), INPUTS, TARGETS)
    assert set(targets.tolist()) == {0, 1, 2}
    assert set(targets[:-1].tolist()) == {0, 1, 2}
    with pytest.raises(LeakingEstimatorError, match="something couples them"):
        engine_choice.engine_for(seeded(mlp), Rare(), rows, targets, CPU)


def test_large_and_small_records_are_both_among_the_made_up_ones():
    rows, targets = probe.made_up(INPUTS, TARGETS)
    assert rows.shape == (probe.ROWS, 5)
    assert rows[-1].norm() > 20 * rows[:-1].norm(dim=1).median()
    again, _ = probe.made_up(INPUTS + 100, TARGETS)
    assert torch.equal(rows, again)  # nothing of the records but their shape and kind
    assert set(targets.tolist()) <= {0, 1}
    tokens, answers = probe.made_up(torch.zeros(3, 4, dtype=torch.long), torch.zeros(3, 2))
    assert tokens.dtype is torch.long
    assert answers.shape == (probe.ROWS, 2)


def test_made_up_batches_have_every_scale_and_the_size_of_a_lot():
    rows, _ = probe.made_up(INPUTS, TARGETS)
    found = list(probe.batches(mlp(), rows, lot=40))
    largest = sorted(float(one.abs().max()) for one in found)
    assert max(map(len, found)) == 40
    for scale in (1.0, 255.0, 1e4):
        assert any(0.3 * scale < one <= scale for one in largest), scale
    mixed = next(one for one in found if len(one) == len(probe.SCALES))
    assert mixed[:, 0].tolist() == list(probe.SCALES)
    assert max(map(len, probe.batches(mlp(), rows, lot=10**6))) == probe.LOT


def test_made_up_words_are_those_that_embeddings_know():
    net = nn.Sequential(nn.Embedding(7, 2), nn.Flatten(), nn.Linear(8, 3))
    rows, _ = probe.made_up(torch.zeros(3, 4, dtype=torch.long), TARGETS)
    found = torch.cat([one.reshape(-1) for one in probe.batches(net, rows, lot=30)])
    assert set(found.tolist()) == set(range(7))


def test_looking_does_not_touch_the_users_generator_or_module():
    for net in (seeded(lambda: between(nn.Dropout(0.5), nn.LayerNorm(6))), seeded(WithConstant)):
        net.eval()
        before, state = flat(net), torch.get_rng_state()
        engine_for(net)
        assert torch.equal(before, flat(net))
        assert torch.equal(state, torch.get_rng_state())
        assert not net.training
        assert not any("forward" in vars(layer) for layer in net.modules())
        assert all(p.grad is None and p.requires_grad for p in net.parameters())


def test_the_template_of_an_engine_trains_even_if_the_module_was_left_evaluating():
    for net in (seeded(lambda: between(nn.Dropout(0.5))), seeded(WithConstant)):
        net.eval()
        assert all(one.training for one in engine_for(net).template.modules())


def test_dropout_trains_with_records_on_their_own():
    """Masks are drawn per record: the same record twice does not give twice the same gradient."""
    net = seeded(lambda: between(nn.Dropout(0.5)))
    engine = engine_for(net)
    with global_torch_seed(0):
        one = clipped_sums(engine, net, INPUTS[:1], TARGETS[:1])[0]
        two = clipped_sums(engine, net, INPUTS[:1].expand(2, 5), TARGETS[:1].expand(2))[0]
    assert not torch.allclose(2 * one, two)
    assert float(two.norm()) <= 2.0001


class Saturated(Net):
    """The softmax of numbers of 1e10 that are equal but for rounding: another for a batch than for a record."""

    def forward(self, inputs):
        rounded = torch.nextafter(torch.ones(()), torch.tensor(2.0 if len(inputs) > 1 else 0.0)).to(inputs.dtype)
        scores = torch.stack([inputs.sum(1) * 1e6, inputs.sum(1) * 1e6 * (rounded if inputs.dtype.itemsize < 8 else 1)])
        hidden = self.first(inputs)
        return self.last(hidden * torch.softmax(scores.T, dim=1)[:, :1])


def test_rounding_is_not_taken_for_coupling_on_any_processor():
    """Which numbers a processor rounds to must not decide whether attention is accepted."""
    net, answers = seeded(Saturated), TARGETS[:4]
    engine = VmapEngine(net, SUM, CPU)
    trained, frozen = (engine.layout.read([net], CPU, flag) for flag in (True, False))
    engine.bind(trained, frozen, torch.zeros_like(trained, dtype=torch.float64))
    rows = torch.stack([torch.full((5,), scale) for scale in probe.SCALES])
    assert not probe._explained(*reversed(probe._both(engine, net, SUM, rows, answers)))
    engine_for(net)
    assert not probe._explained_in_double(seeded(Centred), SUM, *table(8))


@pytest.mark.parametrize("kind", [Centred, Scaled])
def test_a_refused_module_is_left_as_it_was(kind):
    net = seeded(kind)
    before = flat(net)
    with pytest.raises(LeakingEstimatorError):
        train(training(net), records(60), max_physical_batch=1000)
    assert torch.equal(flat(net), before)
