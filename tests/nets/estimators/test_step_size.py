"""Derived step sizes: what the noise does to a weight until the end is what they say, and is
public."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPNeuralNetClassifier,
    DPTabularClassifier,
)
from sklearn_dpsearch.nets._estimators import layers, step_size

from ..toys import flat

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(400, 50))
y = (X[:, 0] > 0).astype(int)


def model(kind=DPLogisticRegression, **changed):
    plain = {
        "noise_multiplier": 30.0, "sample_rate": 0.1, "max_steps": 300, "random_state": 0,
        "max_grad_norm": 1.0,
    }  # fmt: skip
    return kind(**{**plain, **changed})


def wanted(features=50):
    return step_size.CLASS_RULE.noise / features**0.25


@pytest.mark.slow
@pytest.mark.parametrize("decay", ["linear", "constant"])
@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("norm", [0.1, 1.0, "rule"])
def test_noise_in_each_weight_at_the_end_is_what_the_step_size_follows_from(decay, momentum, norm):
    # So much noise that the records hardly matter: what is left in the weights is noise.
    one = model(learning_rate=decay, momentum=momentum, max_grad_norm=norm, noise_seed=0).fit(X, y)
    weights = flat(one.module_).numpy()
    assert weights.std() == pytest.approx(wanted(), rel=5 / np.sqrt(2 * len(weights)) + 0.05)
    assert one.weight_noise_ == pytest.approx(wanted())


@pytest.mark.slow
def test_noise_of_several_trainings_adds_up_and_that_of_adam_is_not_known():
    one = model(warm_start=True).fit(X, y)
    once = one.weight_noise_
    assert one.fit(X, y).weight_noise_ == pytest.approx(once * np.sqrt(2))
    assert one.set_params(warm_start=False).fit(X, y).weight_noise_ == once
    adam = model(solver="adam").fit(X, y)
    assert adam.weight_noise_ is adam.coef_noise_ is None
    assert adam.set_params(solver="sgd").partial_fit(X, y).weight_noise_ is None


@pytest.mark.slow
def test_noise_of_coefficients_has_their_units():
    one = model(bounds_X=(-1, 3)).fit(X, y)
    assert one.coef_noise_ == pytest.approx(np.full((1, 50), one.weight_noise_ * np.sqrt(2) / 2))
    three = model(classes=[0, 1, 2]).fit(X, y)
    assert three.coef_noise_ == pytest.approx(np.full((3, 50), three.weight_noise_))
    numbers = model(DPLinearRegression, bounds_y=(0, 10)).fit(X, y)
    assert numbers.coef_noise_ == pytest.approx(np.full(50, 5 * numbers.weight_noise_))


@pytest.mark.slow
def test_the_step_size_follows_from_what_is_public_alone():
    found = model(batch_size=40).fit(X, y).learning_rate_init_
    # other records, fewer
    assert model(batch_size=40).fit(X[:150] * 1e-3, 1 - y[:150]).learning_rate_init_ == found
    assert model().fit(X, y).learning_rate_init_ == found  # their number is public
    assert model().fit(X[:200], y[:200]).learning_rate_init_ == pytest.approx(found / 2)


# --- skorch ---------------------------------------------------------------------------------------


def net(**changed):
    return DPNeuralNetClassifier(
        **{
            "module": nn.Linear, "module__in_features": 50, "module__out_features": 2,
            "classes": [0, 1], "noise_multiplier": 30.0, "sample_rate": 0.1, "max_steps": 300,
            "noise_seed": 0, "random_state": 0, **changed,
        },
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_skorch_nets_derive_the_same_step_size(optimizer):
    solver = optimizer.__name__.lower()
    mine = net(optimizer=optimizer).fit(X.astype(np.float32), y)
    assert mine.learning_rate_init_ == model(solver=solver).fit(X, y).learning_rate_init_
    assert mine.lr == "auto"


@pytest.mark.slow
def test_a_schedule_of_the_user_takes_the_place_of_the_fall(one_noise):
    from skorch.callbacks import LRScheduler

    data = X.astype(np.float32), y
    plan = [("plan", LRScheduler(policy="StepLR", step_size=100, gamma=0.1, step_every="batch"))]
    derived = net(callbacks=plan).fit(*data)
    expected = pytest.approx(model(learning_rate="constant").fit(X, y).learning_rate_init_)
    assert derived.learning_rate_init_ == expected
    same = net(callbacks=plan, lr=derived.learning_rate_init_).fit(*data)
    torch.testing.assert_close(flat(derived.module_), flat(same.module_))


# --- the clipping norm by rule --------------------------------------------------------------------


def test_by_rule_gradients_are_clipped_where_the_own_class_has_less_than_15_percent():
    """Of a linear model, on the longest record."""
    schema = {f"x{i}": (-1, 1) for i in range(3)} | {"job": ["clerk", "nurse"]}
    options = {"hidden_layer_sizes": (), "noise_multiplier": 1e-2, "max_steps": 300}
    one = DPTabularClassifier(schema, classes=[0, 1], **options)
    table = [[1.0, 1.0, 1.0, "clerk"]]
    one.fit(np.array(table * 50, dtype=object), [0, 1] * 25)
    record = torch.cat(list(one.records_of(one).blocks(np.array(table, dtype=object))))
    layer = nn.Linear(record.shape[1], 2)
    nn.init.constant_(layer.weight, 0.0)
    layer.bias.data = torch.log(torch.tensor([0.85, 0.15]))
    nn.CrossEntropyLoss()(layer(record), torch.tensor([1])).backward()
    longest = torch.hypot(layer.weight.grad.norm(), layer.bias.grad.norm())
    assert one.max_grad_norm_ == pytest.approx(float(longest), rel=0.01)


@pytest.mark.slow
def test_the_rule_follows_from_public_facts_alone():
    by_rule = {"max_grad_norm": "rule", "noise_multiplier": 0.1}
    found = model(**by_rule).fit(X, y).max_grad_norm_
    assert found == pytest.approx(1.2 * np.hypot(50**0.25, 1))
    assert model(**by_rule, batch_size=40).fit(X[:90] * 1e-3, 1 - y[:90]).max_grad_norm_ == found
    # the norm also depends on noise
    noisy = {"max_grad_norm": "rule", "noise_multiplier": 3, "batch_size": 40}
    many, few = (model(**noisy).fit(X[:n], y[:n]) for n in (400, 90))
    assert 1.0 < many.max_grad_norm_ == few.max_grad_norm_ < found
    # a subset search tells an expected number, not the true
    assert many.learning_rate_init_ == few.learning_rate_init_
    numbers = model(DPLinearRegression, **by_rule).fit(X, y)
    assert numbers.max_grad_norm_ == pytest.approx(0.5 * np.hypot(50**0.25, 1))


@pytest.mark.slow
@pytest.mark.parametrize("from_linear", [True, False])
@pytest.mark.parametrize("deep", [[1, 32, 2], [40, 64, 32, 16, 1]])
def test_the_gradient_of_hidden_layers_at_the_start_is_as_long_as_expected(deep, from_linear):
    """Mean of the square over many initial weights, as autograd has it."""
    squares, record = [], torch.nn.functional.normalize(torch.arange(1.0, deep[0] + 1), dim=0) * 3.0
    residual = nn.functional.normalize(torch.arange(1.0, deep[-1] + 1), dim=0)
    for seed in range(400):
        made = layers.wide_and_deep(
            [99, deep[-1]], deep, nn.ReLU, torch.Generator().manual_seed(seed),
            from_linear=from_linear,
        )  # fmt: skip
        made.deep(record).backward(residual)
        squares.append(float(sum(one.grad.square().sum() for one in made.deep.parameters())))
    expected = layers.squared_gradient_of_perceptron(deep, 9.0, from_linear=from_linear)
    assert np.mean(squares) == pytest.approx(expected, rel=0.1)


@pytest.mark.slow
def test_the_norm_by_rule_is_larger_with_a_hidden_part():
    """By less than a tenth beside a long linear part, by a fifth where one column is all there
    is."""
    norms = []
    for columns, hidden in ((1, ()), (1, "auto"), (30, ()), (30, "auto")):
        schema = {f"x{i}": (-1, 1) for i in range(columns)}
        options = {"hidden_layer_sizes": hidden, "noise_multiplier": 1e-3, "max_steps": 300}
        one = DPTabularClassifier(schema, classes=[0, 1], **options)
        norms.append(one.fit(np.zeros((50, columns)), [0, 1] * 25).max_grad_norm_)
    assert norms[0] == pytest.approx(1.2 * np.sqrt(3))
    assert norms[1] == pytest.approx(1.2 * np.sqrt(3 + 1 + 32 / 34 / 3))
    assert norms[1] > 1.15 * norms[0]
    assert norms[2] < norms[3] < 1.1 * norms[2]


def test_a_module_of_ones_own_has_no_rule():
    with pytest.raises(ValueError, match="max_grad_norm='rule'.*no known bound"):
        net(max_grad_norm="rule").fit(X.astype(np.float32), y)
