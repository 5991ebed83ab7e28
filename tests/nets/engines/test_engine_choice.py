"""Three ways and no other: records act alone by structure, or the net is refused with a reason and
a remedy."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.nets._engines import engine_choice, linear, losses
from sklearn_dpsearch.nets._engines.engine_choice import ROWS, made_up_batch
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._training import train, train_together
from sklearn_dpsearch.privacy import LeakingEstimatorError

# PyTorch warns that an LSTM is computed one record after the other
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")

from ..toys import (
    Residual,
    check_sums,
    engine_for,
    flat,
    largest_change,
    mlp,
    records,
    seeded,
    table,
    training,
)
from ..zoo import (
    ANY,
    FROZEN,
    SIZE,
    ZOO,
    DropPath,
    FrozenInside,
    FunctionalDropout,
    Images,
    Net,
    Sampled,
    Words,
    extremes,
    frozen,
    pixels,
    tokens,
)

SUM = nn.CrossEntropyLoss(reduction="sum")


# --- coupling that depends on values or on batch sizes --------------------------------------------


class PixelRange(Net):
    def forward(self, inputs):
        if inputs.max() > 1:
            inputs = inputs / 255
        return self.head(inputs)


class ColumnMaximum(Net):
    def forward(self, inputs):
        largest = inputs.amax(0)
        return self.head(inputs / torch.where(largest > 200, largest, 1.0))


class DropsColumns(Words):
    def forward(self, inputs):
        kept = (inputs > 1).any(0)
        return super().forward(inputs[:, kept | ~kept.any()])


class AcrossTheLot(Net):
    """The sixteen largest records alone; made-up batches had eight."""

    def forward(self, inputs):
        size = inputs.norm(dim=1, keepdim=True)
        return self.head(inputs) * (size >= size.topk(min(16, len(size)), 0).values[-1])


class LargeBatchesOnly(Net):
    def forward(self, inputs):
        return self.head(inputs - inputs.mean(0) if inputs.shape[0] > 100 else inputs)


class OnceItIsLarge(Net):
    """Couples records only where parameters have grown."""

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(torch.relu(hidden - hidden.mean(0) * (hidden.abs().mean() > 1e9)))


class InNumpy(Net):
    def forward(self, inputs):
        return self.head(inputs - float(inputs.detach().numpy().mean()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LargeBatchesOnly, OnceItIsLarge, ColumnMaximum, AcrossTheLot])
def test_coupling_that_no_trial_would_find_cannot_happen(kind):
    """Under vmap a batch is one record: another one is nowhere to be seen."""
    inputs, targets = pixels(150)
    assert largest_change(seeded(kind), SUM, inputs, targets, *extremes()) <= 1 + 1e-4


# --- a zoo of nets that act on each record alone --------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_every_way_sums_what_autograd_gives_record_by_record(name):
    make, kind, ((inputs, targets), _) = ZOO[name]
    net = seeded(make)
    engine = engine_for(net, SUM, inputs, targets)
    assert (type(engine), getattr(engine, "own_code", None)) == kind
    if "dropout" not in name:
        check_sums(engine, net, SUM, inputs, targets, 0.4)


def watched(note, change=lambda inputs: inputs):
    """A net, and what it notes of all that it sees, where no comparison of contents looks."""
    hidden = logging.getLogger("hidden")
    hidden.seen = []

    class Watched(Residual):
        def forward(self, inputs):
            hidden.seen.append(note(inputs))
            return super().forward(change(inputs))

    return seeded(Watched), hidden.seen


def test_the_code_of_a_graph_never_sees_a_record():
    (net, seen), kept = watched(lambda inputs: inputs), records(60)
    train(training(net, sample_rate=1.0, steps=4), kept, max_physical_batch=1000)
    values = [one for one in seen if isinstance(one, torch.Tensor)]
    assert max(map(len, values)) <= ROWS
    made_up = made_up_batch(kept.inputs, kept.targets)[0].tolist()
    assert all(row in made_up for rows in values for row in rows.tolist())


def test_the_code_of_the_third_way_sees_batches_of_one():
    net, seen = watched(
        lambda inputs: tuple(inputs.shape), lambda inputs: inputs + torch.zeros(5)
    )  # no buffer: no graph
    train(training(net, sample_rate=1.0, steps=4), records(60), max_physical_batch=1000)
    assert seen[-4:] == [(1, 5)] * 4
    assert max(shape[0] for shape in seen) <= ROWS


# --- criteria -------------------------------------------------------------------------------------


class OwnLoss(nn.Module):
    def forward(self, outputs, targets):
        return F.cross_entropy(outputs, targets, reduction="none").square().sum()


class MeanLoss(nn.Module):
    def forward(self, outputs, targets):
        return F.cross_entropy(outputs, targets)


class WeightedMean(nn.Module):
    def forward(self, outputs, targets):
        return F.cross_entropy(outputs, targets, weight=torch.tensor([500.0, 1.0, 1.0]))


class HardestOnly(nn.Module):
    def forward(self, outputs, targets):
        losses = F.cross_entropy(outputs, targets, reduction="none")
        return losses[losses > losses.mean()].sum()


@pytest.mark.slow
@pytest.mark.parametrize("make", [mlp, Residual])
@pytest.mark.parametrize("criterion", [OwnLoss(), MeanLoss(), nn.CrossEntropyLoss()])
def test_losses_of_ones_own_are_those_of_single_records(make, criterion):
    inputs, targets = table(SIZE)
    net = seeded(make)
    assert largest_change(net, criterion, inputs, targets, *table(6, seed=1)) <= 1 + 1e-4
    check_sums(engine_for(net, criterion, inputs, targets), net, criterion, inputs, targets, 0.4)


@pytest.mark.parametrize(
    "criterion",
    [WeightedMean(), HardestOnly(), nn.CrossEntropyLoss(weight=torch.tensor([500.0, 1.0, 1.0]))],
)
@pytest.mark.parametrize("make", [mlp, Residual])
def test_losses_that_weigh_by_the_batch_are_refused(make, criterion):
    match = "(?s)weighted mean in the loss|selection by a mask"
    with pytest.raises(LeakingEstimatorError, match=match):
        largest_change(seeded(make), criterion, *table(SIZE), *table(6, seed=1))


@pytest.mark.parametrize("criterion", [
    nn.CrossEntropyLoss(weight=torch.tensor([500.0, 1.0, 1.0]), reduction="sum"),
    nn.CrossEntropyLoss(ignore_index=0, reduction="sum"),
    nn.MultiMarginLoss(reduction="sum"),
])  # fmt: skip
def test_known_sums_are_not_run_one_record_at_a_time(criterion):
    net = seeded(Residual)
    assert type(engine_for(net, criterion, *table(SIZE))) is LinearEngine
    assert largest_change(net, criterion, *table(SIZE), *table(6, seed=1)) <= 1 + 1e-4


def test_a_loss_that_would_spread_targets_over_the_records_is_not_known():
    """(B, 1) against (B,) makes (B, B) differences."""
    net = Residual(classes=1)
    inputs = table(SIZE)[0]
    targets = torch.randn(SIZE)
    criterion, outputs = nn.MSELoss(reduction="sum"), net(inputs)
    assert not losses.sums_one_loss_per_record(criterion, outputs, targets)
    assert losses.sums_one_loss_per_record(criterion, outputs, targets.unsqueeze(1))


def test_weights_with_an_entry_per_record_are_not_known():
    net = Residual(classes=3)
    rows, targets = made_up_batch(table(SIZE)[0], torch.randn(SIZE, 3))
    for weight, known in ((torch.ones(3), True), (torch.ones(ROWS, 3), False)):
        criterion = nn.BCEWithLogitsLoss(weight, reduction="sum")
        assert losses.sums_one_loss_per_record(criterion, net(rows), targets) is known


# --- refused by type, and altered layers ----------------------------------------------------------


def patched_class(monkeypatch, net):
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, inputs: torch.relu(inputs))


ALTERED = {
    "a hook": lambda monkeypatch, net: net[0].register_forward_hook(lambda *args: None),
    "a hook before": lambda monkeypatch, net: net.register_forward_pre_hook(lambda *args: None),
    "a method of one layer": lambda monkeypatch, net: setattr(
        net[1], "forward", lambda inputs: torch.relu(inputs)
    ),
    "a method of a class of PyTorch": patched_class,
    "hooks on all modules": lambda monkeypatch, net: monkeypatch.setitem(
        nn.modules.module._global_forward_hooks, 0, lambda *args: None
    ),
}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_layers_that_are_not_what_their_types_say_leave_the_fast_ways(alter, monkeypatch):
    net = mlp()
    assert type(engine_for(net, SUM, *table())) is LinearEngine
    alter(monkeypatch, net)
    assert linear.sequence_structure(net) is None
    assert largest_change(net, SUM, *table(SIZE), *table(6, seed=1)) <= 1 + 1e-4


class OwnLinear(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(0))


def own_convolution():
    """``_conv_forward`` is what a convolution calls."""
    net = seeded(Images)
    honest = net.first._conv_forward
    net.first._conv_forward = lambda inputs, *rest: honest(inputs - inputs.mean(0), *rest)
    return net


MIXING = {
    "a method of a class of PyTorch": (lambda: mlp(activation=nn.Tanh), table()),
    "a method of one layer": (own_convolution, pixels(shape=(1, 28, 28))),
    "a subclass": (lambda: nn.Sequential(nn.Linear(5, 6), nn.ReLU(), OwnLinear(6, 3)), table()),
}


@pytest.mark.parametrize(("make", "data"), MIXING.values(), ids=MIXING)
def test_an_altered_layer_that_mixes_records_sees_one_at_a_time(make, data, monkeypatch):
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, x: torch.tanh(x - x.mean(0)))
    with pytest.raises(LeakingEstimatorError, match="something couples them"):
        engine_for(make(), SUM, *data)


class ByPlace(nn.Module):
    """Records become one another's parts where a batch is read as a sequence."""

    def __init__(self, mixed, *, recurrent=False):
        super().__init__()
        self.mixed = mixed
        self.first = nn.RNN(5, 5) if recurrent else nn.Identity()
        self.last = nn.Linear(20, 3)

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(self.mixed(self, hidden[0] if isinstance(hidden, tuple) else hidden))


def rows_of(net, inputs):
    return inputs.reshape(len(inputs), -1)


BY_PLACE = {
    "time and batch change places": ByPlace(
        lambda net, x: rows_of(net, x.transpose(0, 1).reshape(x.shape))
    ),
    "a running sum over records": ByPlace(lambda net, x: rows_of(net, x.cumsum(0))),
    "a running sum from the end": ByPlace(lambda net, x: rows_of(net, x.flip(0).cumsum(0).flip(0))),
    "the first record is taken away": ByPlace(lambda net, x: rows_of(net, x - x[:1])),
    "batches in evaluation": ByPlace(
        lambda net, x: rows_of(net, x - x.mean(0) * (not net.training))
    ),
    "a recurrent layer that has time first": ByPlace(rows_of, recurrent=True),
}


@pytest.mark.parametrize("net", BY_PLACE.values(), ids=BY_PLACE)
def test_a_module_whose_predictions_depend_on_other_records_is_refused(net):
    torch.manual_seed(0)
    data = torch.randn(SIZE, 4, 5), torch.randint(0, 3, (SIZE,))
    with pytest.raises(LeakingEstimatorError, match="couples them"):
        engine_for(net, SUM, *data)


def test_numbers_that_are_drawn_by_place_couple_no_records():
    net = ByPlace(lambda net, x: rows_of(net, x + torch.randn_like(x)))
    engine_for(net, SUM, torch.randn(SIZE, 4, 5), torch.zeros(SIZE, dtype=torch.long))


class Batchwise(torch.Tensor):
    """A subclass sees whole batches wherever it meets them."""


def test_parameters_and_buffers_of_a_type_of_their_own_are_refused():
    net, loss = mlp(), nn.CrossEntropyLoss(reduction="sum", weight=torch.ones(3))
    net.register_buffer("own", torch.ones(3).as_subclass(Batchwise))
    loss.weight = torch.ones(3).as_subclass(Batchwise)
    for module, criterion in ((net, SUM), (mlp(), loss)):
        match = "(own|weight)' of type Batchwise.*nn.Parameter"
        with pytest.raises(LeakingEstimatorError, match=match):
            engine_for(module, criterion, *table())


REFUSED = {
    "batch norm": (
        lambda: nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)),
        "nn.GroupNorm",
    ),
    "scripted": (lambda: nn.Sequential(torch.jit.script(nn.Linear(5, 3))), "as it was before"),
    "compiled": (lambda: torch.compile(Residual()), "as it was before"),
    "parallel": (lambda: nn.DataParallel(Residual()), "the module inside"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(3)), "nn.Linear in place of nn.LazyLinear"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"
)
@pytest.mark.parametrize(("make", "remedy"), REFUSED.values(), ids=REFUSED)
def test_kinds_of_modules_that_cannot_be_private_are_refused_with_a_remedy(make, remedy):
    with pytest.raises(LeakingEstimatorError, match=remedy):
        engine_for(make(), SUM, *table())


# --- batch normalisation with frozen statistics ---------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("make", FROZEN.values(), ids=FROZEN)
def test_batch_normalisation_with_frozen_statistics_acts_on_each_record_alone(make):
    net, (inputs, targets) = seeded(make), table(SIZE)
    assert largest_change(net, SUM, inputs, targets, *table(6, seed=1)) <= 1 + 1e-4
    check_sums(engine_for(net, SUM, inputs, targets), net, SUM, inputs, targets, 0.4)
    before = {name: value.clone() for name, value in net.named_buffers()}
    train(training(net, noise_multiplier=1.0), records(), max_physical_batch=100)
    assert all(torch.equal(value, before[name]) for name, value in net.named_buffers())
    assert float((flat(net) - flat(seeded(make))).abs().max()) > 1e-3


class OwnBatchNorm(nn.BatchNorm1d):
    """Not PyTorch's own: it may do anything in evaluation mode."""


class ThawsItself(FrozenInside):
    def forward(self, inputs):
        self.inner[1].train()
        return super().forward(inputs)


def of_own_kind():
    net = frozen()
    net[1] = OwnBatchNorm(6).eval()
    return net


THAWED = {
    "training": lambda: frozen().train(),
    "without statistics": lambda: frozen(track_running_stats=False),
    "of its own kind": of_own_kind,
    "thaws itself": ThawsItself,
}


@pytest.mark.parametrize("make", THAWED.values(), ids=THAWED)
def test_batch_normalisation_with_statistics_of_the_batch_is_refused(make):
    with pytest.raises(LeakingEstimatorError):
        engine_for(seeded(make), SUM, *table())


# --- what refusals say ----------------------------------------------------------------------------


class OneHot(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(60, 3)

    def forward(self, inputs):
        return self.last(F.one_hot(inputs, 10).float().flatten(1))


class ByHand(Net):
    """Batch normalisation, which of one record is not a number."""

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last((hidden - hidden.mean(0)) / hidden.std(0))


SAID = {
    "one-hot": (
        OneHot, tokens(words=10),
        r"F\.one_hot, which looks at values.*a buffer torch\.arange\(10\)",
    ),
    "a branch": (
        PixelRange, pixels(), r"Found PixelRange.*a branch on a value.*Needed.*torch\.where",
    ),
    "a mask": (DropsColumns, tokens(), "the method any.*across the records.*selection by a mask"),
    "NumPy": (InNumpy, pixels(), "each"),
    "noise alone": (
        lambda: ByHand(5), table(), "no finite loss on any made-up record.*noise alone",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")
@pytest.mark.parametrize(("make", "data", "said"), SAID.values(), ids=SAID)
def test_refusals_say_what_it_is(make, data, said):
    with pytest.raises(LeakingEstimatorError, match=f"(?s){said}") as caught:
        engine_for(seeded(make), SUM, *data)
    assert "something couples them" not in str(caught.value)
    assert "alone" in str(caught.value)
    assert caught.value.__cause__ is None


# --- what graphs are not taken for ----------------------------------------------------------------


class MixedInStacks(Net):
    """On (batch, features) each record is alone; on (nets, batch, features) the nets are mixed."""

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(
            hidden.mean(0, keepdim=True).expand_as(hidden) if hidden.dim() == 3 else hidden
        )


class AlongTheSecond(Net):
    """Dimension 1 is that of features for one net, and would be that of records in a naive
    stack."""

    def forward(self, inputs):
        return self.last(torch.softmax(self.first(inputs), dim=1).flatten(1))


@pytest.mark.slow
@pytest.mark.parametrize("make", [MixedInStacks, AlongTheSecond])
def test_nets_trained_together_do_not_mix(make):
    nets = [[seeded(lambda: make(5), seed) for seed in range(3)] for _ in range(2)]
    for i, net in enumerate(nets[0]):
        train(training(net, seed=i), records(), max_physical_batch=1000)
    tasks = [training(net, seed=i) for i, net in enumerate(nets[1])]
    assert all(train_together(tasks, records(), max_physical_batch=1000))
    for one, other in zip(*nets):
        torch.testing.assert_close(flat(one), flat(other), rtol=1e-5, atol=2e-6)


class Detached(Net):
    """A weight that is used outside of its layer, where no gradient shows it."""

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs)) / self.first.weight.detach().norm())


class ByItsNorm(Net):
    """A number made of parameters, which a graph would hold fast."""

    def forward(self, inputs):
        return self.last(
            torch.relu(self.first(inputs)) / (1 + self.first.weight.detach().norm().item())
        )


def test_a_weight_used_without_its_gradient_is_the_one_in_training():
    net, expected = seeded(lambda: Detached(5)), seeded(lambda: Detached(5))
    kept = records(60)
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.5)
    for _ in range(4):
        optimizer.zero_grad()
        (SUM(expected(kept.inputs), kept.targets) / 12).backward()
        optimizer.step()
    train(training(net, sample_rate=1.0, steps=4, max_grad_norm=1e6), kept, max_physical_batch=1000)
    torch.testing.assert_close(flat(net), flat(expected), rtol=1e-4, atol=1e-5)


class Surprising(Residual):
    """Another function for stand-ins than for tensors."""

    def forward(self, inputs):
        return super().forward(inputs if isinstance(inputs, torch.Tensor) else inputs * 2)


@pytest.mark.parametrize("kind", [Surprising, ByItsNorm])
def test_a_graph_that_is_not_the_module_or_holds_a_number_of_it_fast_is_not_used(kind):
    # it runs its own code
    assert engine_choice.choose_engine(seeded(lambda: kind(5)), SUM, *table()).assumptions


def test_recording_a_graph_patches_nothing_that_other_threads_use():
    """fx's own tracer replaces ``nn.Module.__call__`` for the whole process."""
    before = (nn.Module.__call__, nn.Module.__getattr__)
    net, seen = watched(lambda inputs: (nn.Module.__call__, nn.Module.__getattr__) == before)
    assert engine_choice.choose_engine(net, SUM, *table()).assumptions == ()
    assert all(seen)


@pytest.mark.parametrize("make", [FunctionalDropout, DropPath, Sampled])
def test_masks_are_drawn_from_secrets_whatever_the_user_has_seeded(make):

    def once(seed, public):
        torch.manual_seed(public)
        net = seeded(lambda: make(5))
        train(training(net, seed=seed), records(), max_physical_batch=100)
        return flat(net), torch.rand(()).item()

    (first, drawn), (second, again) = once(None, 0), once(None, 0)
    assert not torch.equal(first, second)
    assert drawn == again  # the user's generator goes on as if nothing had been drawn
    assert torch.equal(once(4, 1)[0], once(4, 2)[0])


def test_masks_of_a_stack_are_not_shared():
    """Nets with masks are trained alone: shared ones would make candidates depend on each other."""
    nets = [seeded(lambda: FunctionalDropout(5)) for _ in range(2)]
    tasks = [training(net, seed=seed, sample_rate=1.0) for seed, net in enumerate(nets)]
    assert train_together(tasks, records(), max_physical_batch=1000) == [True, True]
    alone = [seeded(lambda: FunctionalDropout(5)) for _ in range(2)]
    for seed, net in enumerate(alone):
        train(training(net, seed=seed, sample_rate=1.0), records(), max_physical_batch=1000)
    for one, other in zip(nets, alone):
        assert torch.equal(flat(one), flat(other))


class UnderAutocast(Net):
    def forward(self, inputs):
        with torch.autocast("cpu", torch.bfloat16):
            return self.head(inputs).float()


class FrozenPart(Net):
    def forward(self, inputs):
        with torch.no_grad():
            hidden = torch.relu(self.first(inputs))
        return self.last(hidden)


@pytest.mark.parametrize("kind", [UnderAutocast, FrozenPart])
def test_what_a_graph_does_not_record_is_not_lost(kind):
    """Precision and missing gradients are seen by comparing; such a net takes the third way."""
    net = seeded(lambda: kind(5))
    made = engine_for(net, SUM, *table())
    assert (type(made), made.own_code) == ANY
    check_sums(made, net, SUM, *table(8), 0.4, rtol=2e-2, atol=2e-3)
