"""Stacked optimizers are PyTorch's, for every net of a stack with hyperparameters of its own."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("torch")
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

from sklearn_dpsearch.nets.engines.base import Layout
from sklearn_dpsearch.nets.optimizers import StackedAdam, StackedSGD, UpdateRule, check_known, stepper_for, table_of

from .toys import CPU, flat, mlp, rule

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
}


def both(kind, settings, steps=12, tables=None, drop=None):
    """Parameters after the same made-up gradients: stacked, and by PyTorch one net at a time.

    ``drop`` is (after which step, which nets go on).
    """
    modules = [mlp(seed=i) for i in range(len(settings))]
    layout = Layout(modules[0])
    tables = [{}] * len(settings) if tables is None else tables
    stepper = stepper_for([rule(kind, **one) for one in settings], tables, CPU)
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
        optimizer = kind(module.parameters(), **one)
        for t in range(last):
            for name, values in tables[i].items():
                optimizer.param_groups[0][name] = values[t]
            for name, parameter in module.named_parameters():
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


@pytest.mark.parametrize("name", ["sgd", "nesterov", "adam", "adamw"])
def test_nets_that_go_on_alone_take_their_state_with_them(name):
    kind, settings, _ = KINDS[name]
    last = len(settings) - 1
    _, found, expected = both(kind, settings, drop=(4, [last]))
    agree(found, expected)
    _, found, expected = both(kind, settings, drop=(0, list(range(1, last + 1))))
    agree(found, expected)


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


def test_rules_without_an_optimizer_object_are_the_same_rules():
    decay = {"lr": 0.3, "weight_decay": 0.1}
    pairs = [
        (UpdateRule.sgd(**decay, momentum=0.5), rule(**decay, momentum=0.5)),
        (UpdateRule.adam(**decay), rule(torch.optim.Adam, **decay)),
        (UpdateRule.adam(**decay, decoupled=True), rule(torch.optim.AdamW, **decay)),
    ]
    for mine, built in pairs:
        assert mine.structure == built.structure
        assert {name: built.group[name] for name in mine.group} == dict(mine.group)
    assert len({mine.structure for mine, _ in pairs}) == 3


class Own(torch.optim.SGD):
    """May do anything."""


def test_optimizers_whose_steps_are_not_known_are_refused_with_what_to_use_instead():
    for kind in (torch.optim.LBFGS, torch.optim.RMSprop, Own, lambda parameters: torch.optim.SGD(parameters)):
        with pytest.raises(ValueError, match="(?s)given gradients.*torch.optim.SGD, Adam or AdamW"):
            check_known(kind, {})
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        check_known(kind, {"lr": 1.0, "maximize": False})
        for name in ("amsgrad", "maximize", "param_groups"):
            with pytest.raises(ValueError, match=f"optimizer__{name}"):
                check_known(kind, {name: True})


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
