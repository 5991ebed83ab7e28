"""Training: the same in any company and any chunks, exactly as many steps, and nobody's failure is
another's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_dpsearch._process.containment import PRIVATE_VARIABLE
from sklearn_dpsearch.nets import _stacked_training as stack
from sklearn_dpsearch.nets import _torch_settings as torch_settings
from sklearn_dpsearch.nets import _training as module_under_test
from sklearn_dpsearch.nets._engines.linear import LinearEngine
from sklearn_dpsearch.nets._optimizers import UpdateRule
from sklearn_dpsearch.nets._stacked_training import Stack
from sklearn_dpsearch.nets._training import train, train_together

from .toys import CPU, Residual, alone, flat, mlp, records, rule, same, seeded, training


def mixed():
    """Nets that differ in everything that may differ: rates, steps, clipping, noise, optimizers,
    widths."""
    sgd, halving = rule(lr=0.3, momentum=0.9), {"lr": [0.3] * 3 + [0.15] * 3 + [0.075] * 3}
    return [
        training(mlp(seed=0), seed=10, noise_multiplier=1.0),
        training(mlp(seed=1), seed=11, steps=3, sample_rate=0.3, noise_multiplier=0.5),
        training(mlp(seed=2), seed=12, steps=9, optimizer=sgd, schedule=halving, max_grad_norm=0.1),
        training(mlp(seed=3, width=4), seed=13, steps=4, noise_multiplier=2.0),
        training(mlp(seed=4), seed=14, optimizer=UpdateRule.adam(lr=0.05), noise_multiplier=1.0),
        training(seeded(Residual, 5), seed=15, steps=5, noise_multiplier=1.0),
        training(
            seeded(Residual, 6), seed=16, steps=7, sample_rate=0.25,
            optimizer=UpdateRule.sgd(lr=0.2, momentum=0.5),
        ),
        training(mlp(seed=7), seed=17, sample_rate=0.9, steps=5, noise_multiplier=1.0),
        training(mlp(seed=8), seed=18, sample_rate=0.001, steps=8, noise_multiplier=1.0),
    ]  # fmt: skip


def together(tasks, most=10_000):
    assert all(train_together(tasks, records(), max_physical_batch=most))
    return [flat(one.module) for one in tasks]


# --- results do not depend on how -----------------------------------------------------------------


@pytest.mark.slow
def test_trained_together_is_trained_alone():
    before = [flat(one.module) for one in mixed()]
    expected = alone(mixed())
    same(together(mixed()), expected)
    assert all(float((a - b).abs().max()) > 1e-3 for a, b in zip(before, expected))


@pytest.mark.slow
def test_grouping_and_order_change_nothing():
    expected = alone(mixed())
    places = [8, 3, 0, 7, 6, 1, 5, 2, 4]
    tasks = mixed()
    same(together([tasks[i] for i in places]), [expected[i] for i in places])
    halves = mixed()
    same(together(halves[::2]) + together(halves[1::2]), expected[::2] + expected[1::2])


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, 40])
def test_memory_for_few_records_changes_nothing(most):
    expected = alone(mixed())
    same(alone(mixed(), most), expected)
    same(together(mixed(), most), expected)


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [1, 50, 2**20])
def test_how_far_ahead_batches_are_drawn_changes_nothing(ahead, monkeypatch):
    expected = alone(mixed())
    monkeypatch.setattr(stack, "DRAWS_AHEAD", ahead)
    same(together(mixed()), expected)


def test_nets_of_one_architecture_are_one_stack_and_others_are_not():
    groups = module_under_test._group_into_stacks(mixed(), records(), 10_000)
    assert sorted(i for group in groups for i in group) == list(range(9))
    found = {i: tuple(sorted(group)) for group in groups for i in group}
    assert found[0] == found[2]
    assert found[5] == found[6]
    assert len({found[i] for i in (0, 3, 4, 5)}) == 4


def test_groups_respect_the_memory_allowed():
    tasks = [training(mlp(seed=i), seed=i) for i in range(10)]  # 19 rows in each batch
    for most, largest in [(10_000, 10), (95, 5), (38, 2), (1, 1)]:
        groups = module_under_test._group_into_stacks(tasks, records(), most)
        assert max(len(group) for group in groups) == largest


def normed():
    return nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.Linear(6, 3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")
@pytest.mark.parametrize("make", [mlp, Residual, normed], ids=["plain", "traced", "per sample"])
def test_what_the_user_has_set_in_pytorch_changes_no_precision(make):
    expected = seeded(make)
    train(training(expected), records(), max_physical_batch=1000)
    found = seeded(make)
    tasks = [training(seeded(make)) for _ in range(2)]
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            train(training(found), records(), max_physical_batch=1000)
            assert all(train_together(tasks, records(), max_physical_batch=1000))
        with torch_settings.exact_arithmetic(CPU):
            assert torch.backends.cuda.matmul.allow_tf32 is False
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert torch.equal(flat(found), flat(expected))
    same([flat(one.module) for one in tasks], [flat(expected)] * 2)


# --- how many steps -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 60])
def test_every_step_is_taken_whatever_the_batches_hold(n):
    """At rate 0.001 nearly all batches are empty; each step still multiplies the weights by 1 −
    0.5·0.1."""
    net = mlp()
    before = flat(net)
    options = {"optimizer": UpdateRule.sgd(lr=0.5, weight_decay=0.1), "max_grad_norm": 1e-9}
    task = training(net, sample_rate=0.001, steps=50, **options)
    train(task, records(n), max_physical_batch=100)
    torch.testing.assert_close(flat(net), before * 0.95**50, rtol=1e-4, atol=1e-7)


def test_an_empty_batch_is_a_step_of_noise_alone():
    net = mlp()
    before = flat(net)
    train(
        training(net, sample_rate=1e-12, steps=1, noise_multiplier=1.0),
        records(),
        max_physical_batch=100,
    )
    assert float((flat(net) - before).abs().min()) > 0


# --- failures -------------------------------------------------------------------------------------


class Coupled(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(5, 3)

    def forward(self, inputs):
        outputs = self.last(inputs)
        return outputs - outputs.mean(0)


WITH_MOMENTUM = rule(lr=0.3, momentum=0.9)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")
@pytest.mark.parametrize("bad", [
    {"optimizer": UpdateRule.sgd(lr=None)},
    {"optimizer": WITH_MOMENTUM, "schedule": {"lr": [1.0, 0.5]}},
    {"module": "coupled"},
    {"criterion": nn.NLLLoss()},
], ids=["rate", "schedule", "coupled", "mean"])  # fmt: skip
def test_a_net_that_fails_leaves_the_others(bad):
    def tasks(bad):
        if bad.get("module"):
            broken = [training(Coupled(), seed=5), training(Coupled(), seed=6)]
        else:
            broken = [training(mlp(seed=5), seed=5, **bad), training(mlp(seed=6), seed=6, **bad)]
        good = [
            training(mlp(seed=i), seed=i, optimizer=WITH_MOMENTUM, noise_multiplier=1.0)
            for i in range(3)
        ]
        return [good[0], broken[0], good[1], broken[1], good[2]]

    found = tasks(bad)
    untouched = [flat(found[i].module) for i in (1, 3)]
    expected = [True, False, True, False, True]
    assert train_together(found, records(), max_physical_batch=1000) == expected
    same([flat(found[i].module) for i in (1, 3)], untouched, atol=0)
    good = [tasks(bad)[i] for i in (0, 2, 4)]
    same([flat(found[i].module) for i in (0, 2, 4)], alone(good))


class Breaks(RuntimeError):
    """What an operation may raise at some parameters of one net."""


def ranges(monkeypatch, kind, limit):
    """As with an operation that takes values in a range: any net whose parameters leave it makes a
    call fail."""
    honest = kind.add_clipped

    def checked(self, *batch):
        if self.checked.abs().max() > limit:
            raise Breaks
        honest(self, *batch)

    def bind(self, trained, frozen, sums):
        self.checked = trained
        binds(self, trained, frozen, sums)

    binds = kind.bind
    monkeypatch.setattr(kind, "bind", bind)
    monkeypatch.setattr(kind, "add_clipped", checked)


def unseeded_mlp():
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))


def sixteen(make):
    rules = [UpdateRule.sgd(lr=float(rate)) for rate in np.geomspace(0.01, 20.0, 16)]
    return [
        training(seeded(make, i), seed=i, steps=4 + i % 3, optimizer=rule, noise_multiplier=1.0)
        for i, rule in enumerate(rules)
    ]


@pytest.mark.parametrize("make", [
    pytest.param(unseeded_mlp, id="plain"),
    pytest.param(Residual, id="graph", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_net_that_breaks_takes_no_other_of_its_stack_with_it(make, monkeypatch):
    """A range check in a stack of 16: as many succeed as alone, with the same parameters, in any
    grouping."""
    start = [flat(one.module) for one in sixteen(make)]
    ranges(monkeypatch, LinearEngine, limit=2.0)
    single = sixteen(make)
    fine = [train_together([one], records(), max_physical_batch=10_000)[0] for one in single]
    assert 5 <= sum(fine) <= 13
    for order in (range(16), range(15, -1, -1), [*range(0, 16, 2), *range(1, 16, 2)]):
        made = sixteen(make)
        found = train_together([made[i] for i in order], records(), max_physical_batch=10_000)
        assert found == [fine[i] for i in order]
        for i, one in enumerate(made):
            expected = flat(single[i].module) if fine[i] else start[i]
            torch.testing.assert_close(flat(one.module), expected, rtol=1e-5, atol=2e-6)


def test_nets_that_start_again_have_secrets_that_nobody_else_had():
    """Without a seed, too, and never those of another net."""
    tasks = [training(mlp(seed=0), seed=None, noise_multiplier=1.0) for _ in range(4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stack, "run", _once_broken(Stack.run))
        assert train_together(tasks, records(), max_physical_batch=10_000) == [True] * 4
    assert len({flat(one.module).numpy().tobytes() for one in tasks}) == 4


def _once_broken(honest):
    calls = []

    def run(self):
        calls.append(1)
        if len(calls) == 1:
            raise Breaks
        honest(self)

    return run


def test_an_interrupt_is_nobodys_failure_but_ends_everything():
    class Interrupted(Residual):
        def forward(self, inputs):
            raise KeyboardInterrupt

    tasks = [training(), training(Interrupted())]
    with pytest.raises(KeyboardInterrupt):
        train_together(tasks, records(), max_physical_batch=100)


def test_in_a_search_what_one_net_raises_is_its_own_failure_whatever_it_is(monkeypatch):
    class Panics(Residual):
        def forward(self, inputs):
            raise GeneratorExit

    tasks = [training(), training(Panics()), training()]
    monkeypatch.setenv(PRIVATE_VARIABLE, "1")
    assert train_together(tasks, records(), max_physical_batch=100) == [True, False, True]


# --- what is left ---------------------------------------------------------------------------------


def test_trained_modules_share_no_storage_and_hold_parameters_alone():
    tasks = [training(mlp(seed=i), seed=i, steps=3 + i) for i in range(6)]
    tasks += [training(seeded(Residual, i), seed=i) for i in range(2)]
    sizes = [len(pickle.dumps(one.module)) for one in tasks]
    together(tasks)
    pointers = [p.untyped_storage().data_ptr() for one in tasks for p in one.module.parameters()]
    assert len(set(pointers)) == len(pointers)
    for one, before in zip(tasks, sizes):
        assert len(pickle.dumps(one.module)) <= before + 64
        assert all(p.untyped_storage().nbytes() == 4 * p.numel() for p in one.module.parameters())
        assert all(p.grad is None and p.requires_grad for p in one.module.parameters())
        assert not any(
            layer._forward_hooks or "forward" in vars(layer) for layer in one.module.modules()
        )
