"""What couples records is refused before training; what treats each record on its own passes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("opacus")
import torch
from opacus.layers import DPMultiheadAttention
from torch import nn

from sklearn_dpsearch.nets import probe
from sklearn_dpsearch.nets.linear import PlainEngine, TracedEngine
from sklearn_dpsearch.nets.per_sample import PerSampleEngine
from sklearn_dpsearch.nets.training import train, train_together
from sklearn_dpsearch.privacy import LeakingEstimatorError, PrivacyError

from .toys import CPU, Residual, clipped, clipped_sums, flat, gradients, mlp, records, seeded, table, training

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")

SUM = nn.CrossEntropyLoss(reduction="sum")
INPUTS, TARGETS = table(30)


def engine_for(net, criterion=SUM, inputs=INPUTS, targets=TARGETS):
    return probe.engine_for(net, criterion, *probe.made_up(inputs, targets), CPU)


def between(*layers):
    return nn.Sequential(nn.Linear(5, 6), *layers, nn.Linear(6, 3))


def images(*layers):
    return nn.Sequential(nn.Unflatten(1, (1, 1, 5)), nn.Conv2d(1, 4, (1, 3)), *layers, nn.Flatten(), nn.Linear(12, 3))


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


class Remembers(Net):
    def forward(self, inputs):
        self.seen = self.first(inputs)
        return self.last(torch.relu(self.seen))


class RemembersInAList(Net):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, inputs):
        self.seen.append(inputs.mean().item())
        return self.last(self.first(inputs))


class Counts(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, inputs):
        self.count += len(inputs)
        return self.last(self.first(inputs))


class RunningMean(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, inputs):
        outputs = self.last(self.first(inputs - self.mean))
        self.mean = 0.9 * self.mean + 0.1 * inputs.detach().mean(0)
        return outputs


class ConstantBuffer(Net):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.arange(5.0))

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs - self.shift)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 3)
        self.second.weight = self.first.weight

    def forward(self, inputs):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(inputs)))))


class Outside(Net):
    """A weight that is used outside of its layer too, where nobody sees it."""

    def forward(self, inputs):
        return self.last(self.first(inputs) + inputs @ self.first.weight.T)


class WithinSequences(Net):
    def forward(self, inputs):
        words = torch.stack([inputs, inputs.flip(1), 2 * inputs], dim=1)
        return self.last(torch.relu(self.first(words)).mean(1))


class Swapped(nn.Module):
    """Batch in the second place: Opacus would take words for records."""

    def __init__(self):
        super().__init__()
        self.attention, self.last = DPMultiheadAttention(5, 1), nn.Linear(5, 3)

    def forward(self, inputs):
        words = torch.stack([inputs, inputs.flip(1)])
        return self.last(self.attention(words, words, words)[0].mean(0))


class WeightedMean(nn.Module):
    def forward(self, outputs, targets):
        return nn.functional.cross_entropy(outputs, targets, weight=torch.tensor([500.0, 1.0, 1.0]))


# --- refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: between(nn.BatchNorm1d(6)),
        lambda: between(nn.BatchNorm1d(6, affine=False)),
        lambda: between(nn.BatchNorm1d(6, affine=False, track_running_stats=False)),
        lambda: between(nn.SyncBatchNorm(6)),
        lambda: images(nn.BatchNorm2d(4)),
        lambda: images(nn.InstanceNorm2d(4, track_running_stats=True)),
    ],
)
def test_statistics_over_the_batch_are_refused_by_type_with_a_remedy(make):
    with pytest.raises(LeakingEstimatorError, match="(?s)statistics over the records.*GroupNorm or nn.LayerNorm"):
        engine_for(make())


@pytest.mark.parametrize("kind", [Centred, Scaled, AcrossTheBatch])
def test_modules_that_couple_records_by_hand_are_refused_by_their_gradients(kind):
    with pytest.raises(LeakingEstimatorError, match="(?s)not the sum of the gradients.*something couples them"):
        engine_for(seeded(kind))


@pytest.mark.parametrize(
    "criterion",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(weight=torch.tensor([500.0, 1.0, 1.0])),
        nn.CrossEntropyLoss(ignore_index=0),
        WeightedMean(),
    ],
)
@pytest.mark.parametrize("kind", [mlp, Residual])
def test_losses_that_average_over_the_batch_are_refused(criterion, kind):
    with pytest.raises(LeakingEstimatorError, match='(?s)weighted mean in the loss.*reduction="sum"'):
        engine_for(seeded(kind), criterion)


@pytest.mark.parametrize("kind", [Remembers, RemembersInAList, Counts, RunningMean])
def test_modules_that_keep_something_of_a_forward_pass_are_refused(kind):
    with pytest.raises(LeakingEstimatorError, match="changes its parameters, buffers or attributes in forward"):
        engine_for(seeded(kind))


def test_a_refused_module_is_left_as_it_was():
    net = seeded(RemembersInAList)
    before = flat(net)
    with pytest.raises(LeakingEstimatorError):
        engine_for(net)
    assert net.seen == []
    assert torch.equal(flat(net), before)


class OutsideWithDropout(Outside):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, inputs):
        return super().forward(self.dropout(inputs))


@pytest.mark.parametrize("kind", [Outside, OutsideWithDropout])
def test_parameters_used_where_no_layer_sees_them_are_refused(kind):
    with pytest.raises(PrivacyError, match="(?s)not those of PyTorch on single records.*outside of its layer"):
        engine_for(seeded(kind))


def test_batches_in_the_second_place_are_refused():
    with pytest.raises(PrivacyError, match="not those of PyTorch on single records"):
        engine_for(seeded(Swapped))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.middle, self.last = nn.LSTM(5, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(self.middle(inputs.unsqueeze(1).expand(-1, 3, -1))[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.middle, self.last = nn.MultiheadAttention(5, 1, batch_first=True), nn.Linear(5, 3)

    def forward(self, inputs):
        words = torch.stack([inputs, inputs.flip(1)], dim=1)
        return self.last(self.middle(words, words, words)[0].mean(1))


@pytest.mark.parametrize("kind", [Recurrent, Attention])
def test_layers_without_gradients_per_record_are_refused_with_a_replacement(kind):
    with pytest.raises(ValueError, match="(?s)without per-record gradients.*Replace the layer"):
        engine_for(seeded(kind))


class Renormed(nn.Module):
    """PyTorch shrinks the rows of the words that occur, without noise."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(10, 6, max_norm=1.0), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.words(inputs).mean(1))


def test_modules_that_change_their_parameters_in_forward_are_refused():
    with pytest.raises(LeakingEstimatorError, match="Renormed changes its parameters"):
        engine_for(seeded(Renormed), inputs=torch.zeros(30, 4, dtype=torch.long))


class Remembering(nn.CrossEntropyLoss):
    """A loss that keeps what it computed."""

    def forward(self, outputs, targets):
        self.last = super().forward(outputs, targets)
        return self.last


@pytest.mark.parametrize("kind", [mlp, Residual])
def test_losses_that_keep_something_are_refused_and_left_as_they_were(kind):
    criterion = Remembering(reduction="sum")
    with pytest.raises(LeakingEstimatorError, match="Remembering changes its parameters, buffers or attributes"):
        engine_for(seeded(kind), criterion)
    assert not hasattr(criterion, "last")


def zeros(module):
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


@pytest.mark.parametrize("kind", [Centred, Outside])
def test_coupling_behind_layers_of_zeros_is_seen(kind):
    """All gradients but that of the last bias are zero at first; noise soon ends that."""
    with pytest.raises(PrivacyError):
        engine_for(zeros(seeded(kind)))
    tasks = [training(zeros(seeded(kind)), seed=seed) for seed in range(3)]
    assert train_together(tasks, records(60), max_physical_batch=1000) == [False] * 3


def test_nets_that_start_at_zero_pass():
    assert type(engine_for(zeros(seeded(Residual)))) is TracedEngine


class Rare(nn.Module):
    """Weights of the classes, divided by their mean in the batch: seen only where the third class occurs."""

    def forward(self, outputs, targets):
        weights = torch.tensor([1.0, 1.0, 50.0])[targets]
        return (weights / weights.mean() * nn.functional.cross_entropy(outputs, targets, reduction="none")).sum()


def test_every_class_is_among_the_made_up_labels():
    rows, targets = probe.records_for(mlp(), INPUTS, TARGETS)
    assert set(targets.tolist()) == {0, 1, 2}
    assert set(targets[:-1].tolist()) == {0, 1, 2}
    with pytest.raises(LeakingEstimatorError, match="something couples them"):
        probe.engine_for(seeded(Residual), Rare(), rows, targets, CPU)


class SmallRowsOnly(Net):
    """Ordinary records are moved by the others, large ones are not."""

    def forward(self, inputs):
        ordinary = inputs.norm(dim=1, keepdim=True) < 10
        return self.last(torch.relu(self.first(inputs + 0.003 * ordinary * torch.tanh(inputs).mean(0))))


def test_a_large_record_does_not_hide_what_moves_the_others():
    with pytest.raises(LeakingEstimatorError, match="something couples them"):
        engine_for(seeded(SmallRowsOnly), nn.MSELoss(reduction="sum"), targets=torch.zeros(30, 3))


class CentredDropout(nn.Dropout):
    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(0) if self.training else inputs)


def test_only_dropout_of_pytorch_is_left_out_of_the_probe():
    with pytest.raises(LeakingEstimatorError, match="something couples them"):
        engine_for(seeded(lambda: between(CentredDropout(0.1))))


class Detached(Net):
    """A weight that is used outside of its layer, where no gradient shows it."""

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs)) / self.first.weight.detach().norm())


def test_a_weight_used_without_its_gradient_is_the_one_in_training():
    net = seeded(Detached)
    assert type(engine_for(net)) is PerSampleEngine
    expected = seeded(Detached)
    kept = records(60)
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.5)
    for _ in range(4):
        optimizer.zero_grad()
        (SUM(expected(kept.inputs[:-1]), kept.targets[:-1]) / 12).backward()
        optimizer.step()
    train(training(net, sample_rate=1.0, steps=4, max_grad_norm=1e6), kept, max_physical_batch=1000)
    torch.testing.assert_close(flat(net), flat(expected), rtol=1e-4, atol=1e-5)


class MixedInStacks(Net):
    """On (batch, features) each record is alone; on (nets, batch, features) the nets are mixed."""

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(hidden.mean(0, keepdim=True).expand_as(hidden) if hidden.dim() == 3 else hidden)


def test_nets_that_would_be_mixed_in_a_stack_are_not_stacked():
    net = seeded(MixedInStacks)
    rows, targets = probe.made_up(INPUTS, TARGETS)
    expected = probe.reference(net, SUM, rows, targets)
    assert probe.agrees(TracedEngine(net, SUM, CPU, several=False), net, expected, rows, targets)
    assert not probe.agrees(TracedEngine(net, SUM, CPU, several=True), net, expected, rows, targets)


# --- passed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "engine"),
    [
        (mlp, PlainEngine),
        (Residual, TracedEngine),
        (ConstantBuffer, TracedEngine),
        (lambda: between(nn.Dropout(0.5)), TracedEngine),
        (lambda: between(nn.Hardtanh()), TracedEngine),
        (lambda: between(nn.LayerNorm(6)), PerSampleEngine),
        (lambda: between(nn.PReLU()), PerSampleEngine),
        (lambda: images(nn.GroupNorm(2, 4)), PerSampleEngine),
        (lambda: images(nn.InstanceNorm2d(4)), PerSampleEngine),
        (lambda: images(nn.Dropout2d(0.5)), PerSampleEngine),
        (WithinSequences, PerSampleEngine),
    ],
)
def test_modules_that_treat_each_record_alone_get_the_fastest_engine(make, engine):
    assert type(engine_for(seeded(make))) is engine


@pytest.mark.parametrize("kind", [mlp, Residual])
@pytest.mark.parametrize(
    "criterion",
    [
        nn.CrossEntropyLoss(weight=torch.tensor([500.0, 1.0, 1.0]), reduction="sum"),
        nn.CrossEntropyLoss(label_smoothing=0.2, reduction="sum"),
        nn.CrossEntropyLoss(ignore_index=1, reduction="sum"),
        nn.MultiMarginLoss(reduction="sum"),
    ],
)
def test_sums_of_losses_pass_weighted_or_not(kind, criterion):
    net = seeded(kind)
    engine = engine_for(net, criterion)
    expected = clipped(gradients(net, criterion, INPUTS, TARGETS), 0.5)
    stack = 2 if isinstance(engine, PlainEngine) else 1
    for row in clipped_sums(engine, net, INPUTS, TARGETS, 0.5, stack):
        torch.testing.assert_close(row, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("kind", [Tied, WithinSequences])
def test_shared_parameters_are_clipped_as_one(kind):
    net = seeded(kind)
    engine = engine_for(net)
    expected = clipped(gradients(net, SUM, INPUTS, TARGETS), 0.2)
    torch.testing.assert_close(clipped_sums(engine, net, INPUTS, TARGETS, 0.2)[0], expected, rtol=1e-4, atol=2e-6)


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


def test_the_probe_does_not_touch_the_users_generator_or_module():
    net = seeded(lambda: between(nn.Dropout(0.5), nn.LayerNorm(6)))
    net.eval()
    before, state = flat(net), torch.get_rng_state()
    engine_for(net)
    assert torch.equal(before, flat(net))
    assert torch.equal(state, torch.get_rng_state())
    assert not net.training
    assert not any(layer._forward_hooks for layer in net.modules())
    assert all(p.grad is None for p in net.parameters())


def test_the_template_of_an_engine_trains_even_if_the_module_was_left_evaluating():
    net = seeded(lambda: between(nn.Dropout(0.5)))
    net.eval()
    assert engine_for(net).template.training
    assert all(one.training for one in engine_for(net).template.modules())


def test_an_engine_that_computes_something_else_does_not_agree():
    net = mlp()
    rows, targets = probe.made_up(INPUTS, TARGETS)
    engine = PlainEngine(net, SUM, CPU)
    expected = probe.reference(net, SUM, rows, targets)
    assert probe.agrees(engine, net, expected, rows, targets)
    assert not probe.agrees(engine, net, expected * 1.01, rows, targets)
    assert not probe.agrees(PlainEngine(net, nn.MSELoss(reduction="sum"), CPU), net, expected, rows, targets)


def test_dropout_trains_with_records_on_their_own():
    """Masks are drawn per record: the same record twice does not give twice the same gradient."""
    net = seeded(lambda: between(nn.Dropout(0.5)))
    engine = engine_for(net)
    one = clipped_sums(engine, net, INPUTS[:1], TARGETS[:1])[0]
    two = clipped_sums(engine, net, INPUTS[:1].expand(2, 5), TARGETS[:1].expand(2))[0]
    assert not torch.allclose(2 * one, two)
    assert float(two.norm()) <= 2.0001


def test_the_same_records_are_never_asked_twice():
    """A training calls the module on batches and on made-up records only."""
    seen = []

    class Watched(Residual):
        def forward(self, inputs):
            seen.append(len(inputs))
            return super().forward(inputs)

    net = seeded(Watched)
    train(training(net, sample_rate=1.0, steps=4), records(60), max_physical_batch=1000)
    assert seen[-4:] == [60] * 4
    assert max(seen[:-4]) <= probe.ROWS
