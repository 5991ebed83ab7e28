"""Stacked optimizers are PyTorch's, for every net of a stack with hyperparameters of its own."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("torch")
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, ReduceLROnPlateau, StepLR

from sklearn_dpsearch.nets.layout import Layout, named_trained
from sklearn_dpsearch.nets.optimizers import (
    BuiltOptimizer,
    EachTorchOptimizer,
    StackedAdam,
    StackedSGD,
    UpdateRule,
    check_works_on_gradients,
    stepper_for,
)
from sklearn_dpsearch.nets.schedules import table_of
from sklearn_dpsearch.nets.training import train

from . import toys
from .toys import CPU, flat, mlp, records, training

SGD = [
    {"lr": 0.5},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.3, "momentum": 0.5, "dampening": 0.4},
    {"lr": 0.2, "weight_decay": 0.1},
    {"lr": 0.05, "momentum": 0.8, "dampening": 0.1, "weight_decay": 0.01},
]
NESTEROV = [
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.4, "momentum": 0.3, "weight_decay": 0.1, "nesterov": True},
]
ADAM = [
    {"lr": 0.01},
    {"lr": 0.1, "betas": (0.5, 0.9)},
    {"lr": 0.02, "eps": 1e-3},
    {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.99), "eps": 1e-6},
]
KINDS = {
    "sgd": (torch.optim.SGD, SGD, StackedSGD),
    "nesterov": (torch.optim.SGD, NESTEROV, StackedSGD),
    "adam": (torch.optim.Adam, ADAM, StackedAdam),
    "adamw": (torch.optim.AdamW, ADAM, StackedAdam),
    "rmsprop": (
        torch.optim.RMSprop,
        [{"lr": 0.01}, {"lr": 0.05, "momentum": 0.5, "centered": True}],
        EachTorchOptimizer,
    ),
    "adagrad": (torch.optim.Adagrad, [{"lr": 0.1}, {"lr": 0.05, "lr_decay": 0.1}], EachTorchOptimizer),
    "amsgrad": (torch.optim.Adam, [{"lr": 0.1, "amsgrad": True}, {"lr": 0.2, "amsgrad": True}], EachTorchOptimizer),
    "maximize": (torch.optim.SGD, [{"lr": 0.1, "maximize": True}], EachTorchOptimizer),
}


def over(kind, arguments):
    """Module ↦ optimizer, as the nets make them."""
    return lambda module: kind([p for _, p in named_trained(module)], **arguments)


def both(kind, settings, steps=12, tables=None, drop=None):
    """Parameters after the same made-up gradients: stacked, and by PyTorch one net at a time.

    ``drop`` is (after which step, which nets go on).
    """
    modules = [mlp(seed=i) for i in range(len(settings))]
    layout = Layout(modules[0])
    built = [BuiltOptimizer(module, over(kind, one), CPU) for module, one in zip(modules, settings)]
    tables = [{}] * len(settings) if tables is None else tables
    stepper = stepper_for(built, tables, layout, CPU)
    weights = layout.read(modules, CPU, True)
    rng = torch.Generator().manual_seed(0)
    slopes = torch.randn(steps, *weights.shape, generator=rng)
    kept, finished = list(range(len(settings))), {}
    for t in range(steps):
        stepper.step(weights, slopes[t, kept], t)
        if drop and t == drop[0]:
            finished |= {i: weights[k].clone() for k, i in enumerate(kept) if i not in drop[1]}
            stepper.keep(torch.tensor([kept.index(i) for i in drop[1]]))
            weights, kept = weights[drop[1]], list(drop[1])
    finished |= {i: weights[k] for k, i in enumerate(kept)}
    expected = []
    for i, (module, one) in enumerate(zip(modules, settings)):
        last = steps if not drop or i in drop[1] else drop[0] + 1
        optimizer = over(kind, one)(module)
        for t in range(last):
            for name, values in tables[i].items():
                optimizer.param_groups[0][name] = values[t]
            for name, parameter in named_trained(module):
                parameter.grad = layout.view(name, slopes[t, i], slopes[t, i]).clone()
            optimizer.step()
        expected.append(flat(module))
    return stepper, [finished[i] for i in range(len(settings))], expected


def agree(found, expected):
    for mine, theirs in zip(found, expected):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", KINDS)
def test_a_stack_takes_the_steps_of_pytorch(name):
    kind, settings, wanted = KINDS[name]
    stepper, found, expected = both(kind, settings)
    assert type(stepper) is wanted
    agree(found, expected)


@pytest.mark.parametrize("name", ["sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad"])
def test_nets_that_go_on_alone_take_their_state_with_them(name):
    kind, settings, _ = KINDS[name]
    last = len(settings) - 1
    _, found, expected = both(kind, settings, drop=(4, [last]))
    agree(found, expected)
    _, found, expected = both(kind, settings, drop=(0, list(range(1, last + 1))))
    agree(found, expected)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "rmsprop"])
def test_one_net_is_a_stack_of_one(name):
    kind, settings, _ = KINDS[name]
    for one in settings:
        agree(*both(kind, [one])[1:])


def test_equal_hyperparameters_are_plain_numbers_and_give_the_same():
    agree(*both(torch.optim.SGD, [SGD[4]] * 3)[1:])
    agree(*both(torch.optim.Adam, [ADAM[3]] * 3)[1:])


def test_scheduled_hyperparameters_follow_their_own_table():
    steps = 12
    momenta = [{"lr": [0.5 / (t + 1) for t in range(steps)], "momentum": [0.9 - 0.05 * t for t in range(steps)]}, {}]
    settings = [{"lr": 0.5, "momentum": 0.9}, {"lr": 0.2, "momentum": 0.3}]
    agree(*both(torch.optim.SGD, settings, steps, momenta)[1:])
    agree(*both(torch.optim.SGD, settings, steps, momenta[::-1], drop=(5, [1]))[1:])
    betas = [{"betas": [(0.95 - 0.01 * t, 0.99) for t in range(steps)]}, {"lr": [0.1] * 6 + [0.01] * 6}]
    agree(*both(torch.optim.Adam, [{"lr": 0.1}, {"lr": 0.1}], steps, betas)[1:])
    agree(*both(torch.optim.RMSprop, [{"lr": 0.5}, {"lr": 0.2}], steps, [{"lr": momenta[0]["lr"]}, {}])[1:])


def test_rules_without_an_optimizer_object_are_the_same_rules():
    module = mlp()
    pairs = [
        (
            UpdateRule.sgd(lr=0.3, momentum=0.5, weight_decay=0.1),
            torch.optim.SGD,
            {"momentum": 0.5, "weight_decay": 0.1},
        ),
        (UpdateRule.adam(lr=0.3, weight_decay=0.1), torch.optim.Adam, {"weight_decay": 0.1}),
    ]
    for rule, kind, arguments in pairs:
        built = BuiltOptimizer(module, over(kind, {"lr": 0.3, **arguments}), CPU).rule
        assert (rule.kind, rule.flag) == (built.kind, built.flag)
        assert {name: built.group[name] for name in rule.group} == dict(rule.group)


def test_optimizers_of_different_kinds_are_not_stacked_as_one():
    built = [BuiltOptimizer(mlp(), over(kind, {"lr": 0.1}), CPU) for kind in (torch.optim.SGD, torch.optim.Adam)]
    assert built[0].structure != built[1].structure
    assert type(stepper_for(built, [{}, {}], Layout(mlp()), CPU)) is EachTorchOptimizer


def test_several_parameter_groups_keep_their_own_rates():
    module = mlp()

    def make(one):
        return torch.optim.SGD([{"params": one[0].parameters(), "lr": 0.5}, {"params": one[2].parameters(), "lr": 0.0}])

    layout, built = Layout(module), BuiltOptimizer(module, make, CPU)
    assert built.rule is None
    weights = layout.read([module], CPU, True)
    before = weights.clone()
    stepper_for([built], [{}], layout, CPU).step(weights, torch.ones_like(weights), 0)
    moved = layout.view("0.weight", weights[0] - before[0], weights[0])
    torch.testing.assert_close(moved, torch.full_like(moved, -0.5))
    torch.testing.assert_close(layout.view("2.weight", weights[0], weights[0]), module[2].weight.detach())


def test_rates_given_as_tensors_are_left_to_pytorch():
    built = BuiltOptimizer(mlp(), over(torch.optim.SGD, {"lr": torch.tensor(0.1)}), CPU)
    assert built.structure is None


def test_an_optimizer_that_needs_a_closure_is_refused_with_what_to_use_instead():
    with pytest.raises(ValueError, match="(?s)LBFGS.*closure.*without noise.*torch.optim.SGD"):
        BuiltOptimizer(mlp(), over(torch.optim.LBFGS, {}), CPU)
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        check_works_on_gradients(kind)


@pytest.mark.slow
def test_the_module_itself_is_never_handed_to_an_optimizer():
    module = mlp()
    built = BuiltOptimizer(module, over(torch.optim.SGD, {"lr": 0.1}), CPU)
    mine = {p.data_ptr() for p in module.parameters()}
    assert not mine & {p.data_ptr() for group in built.optimizer.param_groups for p in group["params"]}


# --- schedules ---------------------------------------------------------------------------------------------------


def followed(kind, arguments, make, scheduled, steps, per_epoch, every_batch):
    """What PyTorch's scheduler does during training, step by step."""
    optimizer = kind(mlp().parameters(), **arguments)
    scheduler = make(optimizer, **scheduled)
    seen = []
    for t in range(steps):
        seen.append({name: optimizer.param_groups[0].get(name) for name in ("lr", "momentum", "betas")})
        optimizer.step()
        if every_batch or (t + 1) % per_epoch == 0:
            scheduler.step()
    return seen


@pytest.mark.parametrize("every_batch", [False, True])
@pytest.mark.parametrize(
    ("make", "scheduled"),
    [
        (StepLR, {"step_size": 2, "gamma": 0.5}),
        (CosineAnnealingLR, {"T_max": 7}),
        (OneCycleLR, {"max_lr": 1.0, "total_steps": 30}),
    ],
)
@pytest.mark.parametrize(
    ("kind", "arguments"), [(torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}), (torch.optim.Adam, {"lr": 0.1})]
)
def test_tables_are_what_pytorchs_schedulers_do(make, scheduled, kind, arguments, every_batch):
    optimizer = kind(mlp().parameters(), **arguments)
    before = copy.deepcopy(optimizer.state_dict())
    table = table_of(optimizer, [(make, scheduled, every_batch)], 20, 3)
    assert optimizer.state_dict()["param_groups"][0].items() >= before["param_groups"][0].items()
    expected = followed(kind, arguments, make, scheduled, 20, 3, every_batch)
    assert "lr" in table
    for name in ("lr", "momentum", "betas"):
        constant = [expected[0][name]] * 20
        assert list(table.get(name, constant)) == [one[name] for one in expected]


def test_no_schedule_is_an_empty_table_and_several_add_up():
    optimizer = torch.optim.SGD(mlp().parameters(), lr=1.0)
    assert table_of(optimizer, [], 10, 2) == {}
    table = table_of(optimizer, [(StepLR, {"step_size": 1, "gamma": 0.5}, False)] * 2, 6, 2)
    assert table["lr"] == [1.0, 1.0, 0.25, 0.25, 0.0625, 0.0625]


def in_groups(module, lr=0.1, last=0.01, momentum=0.0):
    return torch.optim.SGD(
        [{"params": module[0].parameters()}, {"params": module[-1].parameters(), "lr": last}], lr=lr, momentum=momentum
    )


@pytest.mark.parametrize(
    ("make", "scheduled"),
    [(StepLR, {"step_size": 1, "gamma": 0.5}), (OneCycleLR, {"max_lr": [1.0, 0.1], "total_steps": 9})],
)
def test_a_schedule_moves_every_group_of_parameters_by_its_own_rates(make, scheduled):
    optimizer, followed = in_groups(mlp(), momentum=0.9), in_groups(mlp(), momentum=0.9)
    before = [dict(group) for group in optimizer.param_groups]
    table = table_of(optimizer, [(make, scheduled, True)], 8, 1)
    assert [group["lr"] for group in optimizer.param_groups] == [group["lr"] for group in before]
    scheduler = make(followed, **scheduled)
    for t in range(8):
        assert list(table["lr"][t]) == [group["lr"] for group in followed.param_groups]
        followed.step()
        scheduler.step()


def test_groups_and_a_schedule_together_train_as_pytorch_does():
    """Against PyTorch's own loop, on the same clipped sums: the whole table, without noise."""
    net, twin = mlp(), mlp()
    schedule = [(StepLR, {"step_size": 2, "gamma": 0.1}, True)]
    task = training(
        net, optimizer=in_groups, schedule=lambda optimizer: table_of(optimizer, schedule, 6, 1), sample_rate=1.0,
        expected_batch_size=60.0, max_grad_norm=1e6,
    )  # fmt: skip
    train(task, records(), max_physical_batch=100)
    inputs, labels = toys.table()
    optimizer = in_groups(twin)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        nn.functional.cross_entropy(twin(inputs), labels).backward()
        optimizer.step()
        scheduler.step()
    torch.testing.assert_close(flat(net), flat(twin), rtol=1e-4, atol=1e-6)


def test_a_schedule_that_waits_for_losses_has_no_table():
    optimizer = torch.optim.SGD(mlp().parameters(), lr=0.1)
    with pytest.raises(TypeError):
        table_of(optimizer, [(ReduceLROnPlateau, {}, True)], 3, 1)


class Rebinding(torch.optim.Optimizer):
    """Puts a new tensor in the place of each parameter instead of changing it."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data = parameter.data - group["lr"] * parameter.grad


def test_optimizers_that_put_new_tensors_in_place_of_parameters_train_too():
    def once(make):
        net = mlp()
        train(
            training(net, optimizer=lambda module: make(module.parameters(), lr=0.5)), records(), max_physical_batch=9
        )
        return flat(net)

    torch.testing.assert_close(once(Rebinding), once(torch.optim.SGD), rtol=1e-5, atol=1e-6)
