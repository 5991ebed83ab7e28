"""A record without a declared label, a target or an input that is a number adds nothing, in every
net."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn
from torch.utils.data import Dataset

from sklearn_dpsearch.audit import replay
from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetMultiLabelClassifier,
    DPNeuralNetRegressor,
    DPTabularClassifier,
    DPTabularRegressor,
)
from sklearn_dpsearch.nets._records import TrainingData

pd = pytest.importorskip("pandas")

N, PLACES = 40, (0, 17, 39)
#: A replay of as many records allows for two steps, of which a blank record takes one.
ONE_STEP = 0.5 + 1e-6
SCHEMA = {"a": (-3.0, 3.0), "b": (-3.0, 3.0), "job": ["x", "y"]}
SHARED = {"noise_multiplier": 1.0, "sample_rate": 0.5, "max_steps": 4}


class Centred(nn.Module):
    """Neither layers alone nor a graph of known operations: it trains by vmap."""

    def __init__(self, n_outputs):
        super().__init__()
        self.layer = nn.Linear(2, n_outputs)

    def forward(self, X):
        return self.layer(torch.special.i1(X))


class Pairs(Dataset):
    def __init__(self, X, y):
        self.X, self.y = torch.tensor(X).float(), y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, number):
        return self.X[number], int(self.y[number])


def module(kind, outputs, inside=nn.Linear, **more):
    sizes = {"module__n_outputs": outputs}
    if inside is nn.Linear:
        sizes = {"module__in_features": 2, "module__out_features": outputs}
    return kind(inside, **sizes, **SHARED, **more)


NETS = {
    "logistic": DPLogisticRegression(classes=[0, 1, 2], **SHARED),
    "perceptron": DPMLPClassifier((3,), classes=[0, 1, 2], bounds_X=(-3, 3), **SHARED),
    "linear regression": DPLinearRegression(bounds_y=(-1, 1), **SHARED),
    "perceptron of numbers": DPMLPRegressor((3,), **SHARED),
    "table": DPTabularClassifier(SCHEMA, classes=[0, 1, 2], **SHARED),
    "table of numbers": DPTabularRegressor(SCHEMA, bounds_y=(-1, 1), **SHARED),
    "module": module(DPNeuralNetClassifier, 3, classes=[0, 1, 2]),
    "module by vmap": module(DPNeuralNetClassifier, 3, Centred, classes=[0, 1, 2]),
    "module by Opacus": module(DPNeuralNetClassifier, 3, classes=[0, 1, 2], engine="opacus"),
    "one logit": module(DPNeuralNetBinaryClassifier, 1, classes=[0, 1]),
    "several labels": module(DPNeuralNetMultiLabelClassifier, 2),
    "numbers": module(DPNeuralNetRegressor, 1),
}
OF_NUMBERS = ("linear regression", "perceptron of numbers", "table of numbers", "numbers")


def records(name):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(N, 2)), rng.integers(0, 2 if name == "one logit" else 3, N)
    if name.startswith("table"):
        X = pd.DataFrame(X, columns=["a", "b"]).assign(job=rng.choice(["x", "y"], N))
    y = rng.uniform(-1, 1, N) if name in OF_NUMBERS else labels
    return X, (rng.integers(0, 2, (N, 2)).astype(float) if name == "several labels" else y)


def with_target(name, y, place, odd):
    dtype = float if name in ("several labels", *OF_NUMBERS) else object
    changed = np.array(y, dtype=dtype, copy=True)
    changed[place] = np.nan if changed.dtype == float else odd
    return changed


def distances(net, one, other):
    """Distance ÷ clipping norm of each step's sum; all else is the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = replay(net, *one, neighbour=other)
    assert not found.different
    return [release.ratio for release in found.releases]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NETS)
def test_a_record_without_a_target_is_one_step_away_and_all_such_are_the_same(name, place):
    X, y = records(name)
    there, blank = (X, y), (X, with_target(name, y, place, 7))
    moved = distances(NETS[name], there, blank)
    # of labels none is missing
    assert 0.0 < max(moved) <= (ONE_STEP if blank[1].dtype == object else 2 * ONE_STEP)
    for odd in ("a label of nobody else", None, np.nan, -1):
        assert max(distances(NETS[name], blank, (X, with_target(name, y, place, odd)))) == 0.0


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "name", [name for name in NETS if not name.startswith(("table", "perceptron"))]
)
def test_a_record_with_an_input_that_is_no_number_adds_nothing(name, odd):
    X, y = records(name)
    blank = with_target(name, y, 17, 7)
    changed = X.copy()
    changed[17, 1] = odd
    assert max(distances(NETS[name], (X, blank), (changed, y))) == 0.0


@pytest.mark.parametrize("name", OF_NUMBERS[:2])
def test_nets_train_together_whether_or_not_a_target_is_missing(name):
    X, y = records(name)
    for targets in (y, with_target(name, y, 17, None)):
        first, second = (TrainingData.of(torch.tensor(X), torch.tensor(targets)) for _ in range(2))
        assert first.are(second)


def test_a_data_set_may_lack_labels_too():
    """Its records are read as batches need them."""
    X, y = records("module")
    sets = [Pairs(X, np.where(np.arange(N) == 17, label, y)) for label in (y[17], 7, -1)]
    there, blank, other = ((one, None) for one in sets)
    net = clone(NETS["module"]).set_params(example_input=torch.zeros(2))
    assert 0.0 < max(distances(net, there, blank)) <= ONE_STEP
    assert max(distances(net, blank, other)) == 0.0
