"""Records that stay in a file: the training is the same, bit for bit, and no row but those that
train is looked at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sklearn_dpsearch.data._rows import ChosenRows
from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
)
from sklearn_dpsearch.nets import _records as training_records
from sklearn_dpsearch.nets._stacked_training import Stack

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (3000, 5))
CHOSEN = np.sort(RNG.permutation(3000)[:2500]).astype(np.int32)
CLASSES, NUMBERS = (X[:, 0] > 0).astype(int), np.clip(X[:, 1], -1, 1)
SOME = {
    "noise_multiplier": 1.0, "sample_rate": 0.02, "max_steps": 15, "noise_seed": 3,
    "random_state": 1,
}  # fmt: skip
MODULE = {"module__in_features": 5, "lr": 0.1}
NETS = {
    "logistic": (DPLogisticRegression(classes=[0, 1], bounds_X=(-1, 1), **SOME), CLASSES),
    "each feature": (
        DPLogisticRegression(classes=[0, 1], bounds_X=([-1] * 5, [1, 2, 1, 2, 1]), **SOME), CLASSES,
    ),
    "no bounds": (DPLogisticRegression(classes=[0, 1], **SOME), CLASSES),
    "hidden": (
        DPMLPClassifier(classes=[0, 1], bounds_X=(-1, 1), hidden_layer_sizes=(8,), **SOME), CLASSES,
    ),
    "linear": (DPLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), **SOME), NUMBERS),
    "skorch": (
        DPNeuralNetClassifier(
            torch.nn.Linear, module__out_features=2, classes=[0, 1], **MODULE, **SOME,
        ),
        CLASSES,
    ),
    "skorch numbers": (
        DPNeuralNetRegressor(torch.nn.Linear, module__out_features=1, **MODULE, **SOME), NUMBERS,
    ),
}  # fmt: skip
KINDS = pytest.mark.parametrize("name", NETS)
TWO = pytest.mark.parametrize("name", ["logistic", "skorch"])


@pytest.fixture
def in_file(tmp_path, monkeypatch):
    """An array, in a file, and every such array large enough to stay there."""
    monkeypatch.setitem(training_records.MAPPED_BYTES, "cpu", 0)

    def written(values):
        np.save(tmp_path / "x.npy", values)
        return np.load(tmp_path / "x.npy", mmap_mode="r")

    return written


def fresh(name):
    net, y = NETS[name]
    return type(net)(**net.get_params()), y


def parameters(net):
    return [value.numpy().copy() for value in net.module_.state_dict().values()]


def same(one, other):
    pairs = zip(parameters(one), parameters(other), strict=True)
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def trained(name, X, y):
    return fresh(name)[0].fit(X, y)


@KINDS
def test_the_training_is_that_of_a_copy_bit_for_bit(name, in_file):
    _, y = fresh(name)
    expected, stays = trained(name, X[CHOSEN], y[CHOSEN]), in_file(X)
    assert same(trained(name, ChosenRows(X, CHOSEN), ChosenRows(y, CHOSEN)), expected)
    assert same(trained(name, ChosenRows(stays, CHOSEN), y[CHOSEN]), expected)
    assert same(trained(name, stays, y), trained(name, X, y))


@TWO
def test_nets_that_are_trained_together_are_too(name, in_file):
    net, y = fresh(name)
    stays = in_file(X)

    def together(records):
        nets = [type(net)(**{**net.get_params(), "noise_seed": seed}) for seed in range(5)]
        return type(net).fit_together(nets, records, y[CHOSEN])

    for records in (ChosenRows(X, CHOSEN), ChosenRows(stays, CHOSEN)):
        assert all(map(same, together(records), together(X[CHOSEN])))


def test_of_a_large_file_no_copy_is_made(in_file, monkeypatch):
    stays, read = in_file(X.astype(np.float32)), []
    taken = ChosenRows.__getitem__
    monkeypatch.setattr(
        ChosenRows, "__getitem__", lambda rows, places: read.append(rows) or taken(rows, places)
    )
    trained("logistic", stays, CLASSES)
    assert read
    assert not any(rows.converted for rows in read)


@TWO
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_rows_that_do_not_train_are_not_looked_at(name, kind, in_file):
    """Records with gaps that validate are no part of the training of others."""
    _, y = fresh(name)
    spoilt, others = X.copy(), np.setdiff1d(np.arange(len(X)), CHOSEN)
    spoilt[others] = np.nan
    data = in_file(spoilt) if kind == "file" else spoilt
    assert same(
        trained(name, ChosenRows(data, CHOSEN), y[CHOSEN]), trained(name, X[CHOSEN], y[CHOSEN])
    )


def test_a_record_that_changes_in_its_file_is_clipped_as_it_is_read(in_file, tmp_path, monkeypatch):
    stays, step, sums = in_file(np.full((500, 5), 1e-3, np.float32)), Stack._step, []

    def changed(stack, parts, t):
        if sums:  # others have been read before
            np.load(tmp_path / "x.npy", mmap_mode="r+")[0] = 1e6
        step(stack, parts, t)
        sums.append(float(stack.sums.abs().max()))

    monkeypatch.setattr(Stack, "_step", changed)
    few = {
        **SOME, "noise_multiplier": 1e-6, "sample_rate": 1.0, "max_steps": 2, "max_grad_norm": 1.0,
    }  # fmt: skip
    DPLogisticRegression(classes=[0, 1], **few).fit(stays, np.arange(500) % 2)
    assert 0.3 < sums[1] < 500  # records of length 1 at most
