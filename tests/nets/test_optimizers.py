"""Stacked optimizers are PyTorch's, for every net of a stack with hyperparameters of its own."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import Freezer, LRScheduler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.nets._engines.base import ParameterLayout
from sklearn_dpsearch.nets._optimizers import (
    StackedAdam,
    StackedSGD,
    UpdateRule,
    check_optimizer,
    lr_table,
    stepper_for,
)

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
    layout = ParameterLayout(modules[0])
    tables = [{}] * len(settings) if tables is None else tables
    stepper = stepper_for([rule(kind, **one) for one in settings], tables, CPU)
    weights = layout.read(modules, CPU, True)
    slopes = torch.randn(steps, *weights.shape, generator=torch.Generator().manual_seed(0))
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
    falling = [0.9 - 0.05 * t for t in range(steps)]
    momenta = [{"lr": [0.5 / (t + 1) for t in range(steps)], "momentum": falling}, {}]
    settings = [{"lr": 0.5, "momentum": 0.9}, {"lr": 0.2, "momentum": 0.3}]
    agree(*both(torch.optim.SGD, settings, steps, momenta)[1:])
    agree(*both(torch.optim.SGD, settings, steps, momenta[::-1], drop=(5, [1]))[1:])
    betas = {"betas": [(0.95 - 0.01 * t, 0.99) for t in range(steps)]}
    tables = [betas, {"lr": [0.1] * 6 + [0.01] * 6}]
    agree(*both(torch.optim.Adam, [{"lr": 0.1}, {"lr": 0.1}], steps, tables)[1:])


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
    for kind in (
        torch.optim.LBFGS,
        torch.optim.RMSprop,
        Own,
        lambda parameters: torch.optim.SGD(parameters),
    ):
        with pytest.raises(ValueError, match="(?s)given gradients.*torch.optim.SGD, Adam or AdamW"):
            check_optimizer(kind, {})
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        check_optimizer(kind, {"lr": 1.0, "maximize": False})
        for name in ("amsgrad", "maximize", "param_groups"):
            with pytest.raises(ValueError, match=f"optimizer__{name}"):
                check_optimizer(kind, {name: True})


# --- schedules ------------------------------------------------------------------------------------


def followed(kind, arguments, make, scheduled, steps, per_epoch, every_batch):
    """What PyTorch's scheduler does during training, step by step."""
    optimizer = kind(mlp().parameters(), **arguments)
    scheduler = make(optimizer, **scheduled)
    seen = []
    for t in range(steps):
        seen.append(
            {name: optimizer.param_groups[0].get(name) for name in ("lr", "momentum", "betas")}
        )
        optimizer.step()
        if every_batch or (t + 1) % per_epoch == 0:
            scheduler.step()
    return seen


@pytest.mark.parametrize("every_batch", [False, True])
@pytest.mark.parametrize(("make", "scheduled"), [
    (StepLR, {"step_size": 2, "gamma": 0.5}),
    (CosineAnnealingLR, {"T_max": 7}),
    (OneCycleLR, {"max_lr": 1.0, "total_steps": 30}),
])  # fmt: skip
@pytest.mark.parametrize(("kind", "arguments"), [
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}), (torch.optim.Adam, {"lr": 0.1}),
])  # fmt: skip
def test_tables_are_what_pytorchs_schedulers_do(make, scheduled, kind, arguments, every_batch):
    optimizer = kind(mlp().parameters(), **arguments)
    before = copy.deepcopy(optimizer.state_dict())
    schedule = LRScheduler(make, step_every="batch" if every_batch else "epoch", **scheduled)
    table = lr_table(optimizer, [schedule], 20, 3)
    assert optimizer.state_dict()["param_groups"][0].items() >= before["param_groups"][0].items()
    expected = followed(kind, arguments, make, scheduled, 20, 3, every_batch)
    assert "lr" in table
    for name in ("lr", "momentum", "betas"):
        constant = [expected[0][name]] * 20
        assert list(table.get(name, constant)) == [one[name] for one in expected]


# --- memory from training to training -------------------------------------------------------------


rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
#: Whole batches, and no noise to speak of: steps that can be counted.
EXACT = {"noise_multiplier": 1e-12, "sample_rate": 1.0, "random_state": 0}
OPTIMIZERS = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {}),
    (torch.optim.AdamW, {"weight_decay": 0.1}),
]


def module():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


def net(optimizer=torch.optim.SGD, options=None, **changed):
    entries = ({"momentum": 0.9} if options is None else options).items()
    own = {f"optimizer__{name}": value for name, value in entries}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = module()
    return DPNeuralNetClassifier(
        made,
        optimizer=optimizer,
        **{**EXACT, "max_steps": 6, "classes": [0, 1], "lr": 0.05, **own, **changed},
    )


def table_net(**changed):
    arguments = {
        "solver": "adam", "learning_rate_init": 0.05, "learning_rate": "constant", "max_steps": 6,
        "max_grad_norm": 1.0,  # by rule it depends on the number of steps
    }  # fmt: skip
    return DPMLPClassifier((5,), **{**EXACT, **arguments, **changed})


def partly(one, first=2, last=4):
    """Two trainings, of so many steps."""
    one.set_params(max_steps=first).partial_fit(X, y)
    return one.set_params(max_steps=last).partial_fit(X, y)


@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS)
def test_two_trainings_take_the_steps_of_one(optimizer, options):
    whole, parts = net(optimizer, options).fit(X, y), partly(net(optimizer, options))
    torch.testing.assert_close(flat(parts.module_), flat(whole.module_), rtol=1e-4, atol=1e-6)
    assert len(parts.privacy_spent_.components) == 2


def test_without_what_it_kept_the_steps_would_be_others():
    """The test above can fail."""
    whole, parts = net().fit(X, y), net()
    parts.set_params(max_steps=2).partial_fit(X, y)
    del parts.optimizer_memory_
    parts.set_params(max_steps=4).partial_fit(X, y)
    assert float((flat(parts.module_) - flat(whole.module_)).abs().max()) > 1e-3


@pytest.mark.parametrize(
    "changed", [{}, {"solver": "sgd", "momentum": 0.9}, {"solver": "adamw", "alpha": 0.1}]
)
def test_ready_made_nets_go_on_in_the_same_way(changed):
    whole = table_net(**changed).fit(X, y)
    parts = table_net(**changed, classes=[0, 1])
    torch.testing.assert_close(
        flat(partly(parts).module_), flat(whole.module_), rtol=1e-4, atol=1e-6
    )


def test_warm_starts_go_on_and_new_fits_do_not():
    warm = net(warm_start=True, max_steps=2).fit(X, y).set_params(max_steps=4).fit(X, y)
    whole = net().fit(X, y)
    torch.testing.assert_close(flat(warm.module_), flat(whole.module_), rtol=1e-4, atol=1e-6)
    again = warm.set_params(warm_start=False, max_steps=6).fit(X, y)
    torch.testing.assert_close(flat(again.module_), flat(whole.module_), rtol=1e-4, atol=1e-6)
    assert not hasattr(clone(whole), "optimizer_memory_")


@pytest.mark.slow
def test_what_belongs_to_other_parameters_or_another_optimizer_is_not_used(tmp_path):
    def fresh_start(one):
        other = net(one.optimizer)
        other.initialize()
        other.module_.load_state_dict(one.module_.state_dict())
        return other.set_params(lr=one.lr, max_steps=one.max_steps).partial_fit(X, y)

    trained = net(max_steps=3).fit(X, y)
    trained.save_params(f_params=tmp_path / "parameters.pt")

    loaded = net().fit(X, y)
    loaded.load_params(f_params=tmp_path / "parameters.pt")
    expected = fresh_start(copy.deepcopy(loaded))
    torch.testing.assert_close(flat(loaded.partial_fit(X, y).module_), flat(expected.module_))

    other = net().fit(X, y)
    with torch.no_grad():
        other.module_[0].weight.add_(1.0)
    expected = fresh_start(copy.deepcopy(other))
    torch.testing.assert_close(flat(other.partial_fit(X, y).module_), flat(expected.module_))

    for optimizer in (torch.optim.Adam, torch.optim.AdamW):
        changed = net(options={}).fit(X, y)
        changed.optimizer = optimizer  # skorch's set_params cannot, once a net is initialised
        assert bool(flat(changed.partial_fit(X, y).module_).isfinite().all())
    frozen = net().fit(X, y).set_params(callbacks=[Freezer("0.*")])
    assert bool(flat(frozen.partial_fit(X, y).module_).isfinite().all())


MARK = 1.2345678e-3


def test_nothing_is_kept_but_functions_of_noisy_gradients():
    """A record that is planted shows nowhere; the sizes are those of the parameters."""
    planted = X.copy()
    planted[:, 2] = MARK
    for optimizer, options in OPTIMIZERS:
        one = net(optimizer, options, noise_multiplier=1.0, noise_seed=987654321).fit(planted, y)
        held = pickle.dumps(one.optimizer_memory_)
        assert np.float32(MARK).tobytes() not in held
        assert (987654321).to_bytes(4, "little") not in held
        assert len(held) < 4 * 2 * 4 * flat(one.module_).numel() + 4000


@pytest.mark.slow
def test_the_winner_of_a_search_goes_on_and_nothing_of_the_others_is_kept():
    one = net(noise_multiplier=None, random_state=None, sample_rate=0.2)
    search = DPRandomSearchCV(
        one, {"lr": [0.05, 0.1]}, n_iter=4, epsilon=5.0, delta=1e-5, random_state=0
    ).fit(X, y)
    best = search.best_estimator_
    kept = best.optimizer_memory_["kept"]["state"][0]
    # of one net, not a view of a stack of several
    assert kept.numel() == flat(best.module_).numel()
    assert kept.untyped_storage().nbytes() == 4 * kept.numel()
