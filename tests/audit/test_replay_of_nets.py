"""Replay of nets: each step's clipped sum moves by no more than is paid for, and all else follows
from noisy sums."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.audit import replay

torch = pytest.importorskip("torch")
pd = pytest.importorskip("pandas")

from sklearn_dpsearch.nets import DPLogisticRegression, DPNeuralNetClassifier, DPTabularClassifier
from sklearn_dpsearch.nets._stacked_training import Stack

BUDGET = {"target_epsilon": 1.0, "target_delta": 1e-4}
SCHEMA = {"age": (0, 100), "job": ["clerk", "nurse"]}


def numbers(n=200):
    X = np.random.default_rng(0).normal(0, 1, (n, 3))
    return X, (X[:, 0] > 0).astype(int)


def misjudged(X, y, place=3):
    """The same record with the other label: gradients of opposite directions."""
    other = y.copy()
    other[place] = 1 - y[place]
    return X, other


def regression(**changed):
    # so small a norm that both gradients are clipped, and differ by two norms
    given = {
        "classes": [0, 1], "max_grad_norm": 1e-3, "max_steps": 20, "noise_multiplier": 1.0,
        **changed,
    }  # fmt: skip
    return DPLogisticRegression(**given)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_a_replaced_record_moves_a_step_by_two_norms(relation):
    X, y = numbers()
    found = replay(regression(neighboring=relation), X, y, neighbour=misjudged(X, y))
    assert found.passed
    assert len(found.releases) == 20
    assert 0.99 < found.largest < 1.0  # all but the share for rounding
    assert found == replay(regression(neighboring=relation), X, y, neighbour=misjudged(X, y))


def test_a_norm_that_is_a_fiftieth_too_large_is_seen(monkeypatch):
    X, y = numbers()
    allocate = Stack._allocate

    def larger(self):
        allocate(self)
        self.norms *= 1.02

    monkeypatch.setattr(Stack, "_allocate", larger)
    found = replay(regression(), X, y, neighbour=misjudged(X, y))
    assert not found.passed
    assert found.different == ()
    assert 1.0 < found.largest < 1.02


def test_a_step_size_by_the_records_is_seen(monkeypatch):
    X, y = numbers()
    allocate = Stack._allocate

    def by_the_records(self):
        allocate(self)
        self.divisors *= 1.0 + 1e-6 * float(self.records.targets.double().sum())

    monkeypatch.setattr(Stack, "_allocate", by_the_records)
    found = replay(regression(), X, y, neighbour=misjudged(X, y))
    assert "module_" in found.different
    assert not found.passed


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def forward(self, X):
        return self.out(torch.tanh(self.hidden(X)))


@pytest.mark.parametrize("engine", ["auto", "opacus"])
def test_a_module_of_the_user(engine):
    if engine == "opacus":
        pytest.importorskip("opacus")
    X, y = numbers()
    net = DPNeuralNetClassifier(
        Perceptron, criterion=torch.nn.CrossEntropyLoss, classes=[0, 1], max_steps=10,
        batch_size=20, engine=engine, **BUDGET,
    )  # fmt: skip
    found = replay(net, X.astype(np.float32), y, neighbour=misjudged(X.astype(np.float32), y))
    assert found.passed
    assert len(found.releases) == 10


def table(n=200):
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"age": rng.uniform(0, 100, n), "job": rng.choice(["clerk", "nurse"], n)})
    return found, (found["age"] > 40).astype(int)


@pytest.mark.slow
def test_nets_for_tables():
    X, y = table()
    assert replay(
        DPTabularClassifier(SCHEMA, classes=[0, 1], **BUDGET), X, y, neighbour=misjudged(X, y)
    ).passed


def test_persons_with_several_records():
    """A person is drawn, by one record of his: a step moves by two norms, with as many of his
    records as may be."""
    X, y = numbers()
    persons = np.arange(200) // 10
    other = y.copy()
    other[persons == 4] = 1 - y[persons == 4]
    net = regression(batch_size=10, max_steps=5)
    found = replay(net, X, y, neighbour=(X, other), groups=persons, neighbour_groups=persons)
    assert found.passed
    assert found.largest > 0.99
    assert not replay(
        regression(batch_size=100, max_steps=5), X, y, neighbour=(X, other)
    ).passed  # ten records are no neighbour


@pytest.mark.slow
def test_both_trainings_of_a_subset_search():
    X, y = numbers()
    net = DPLogisticRegression(classes=[0, 1], max_steps=10)
    search = DPSubsetSearchCV(net, {"alpha": [0.0, 1e-4]}, epsilon=1.0, delta=1e-4)
    found = replay(search, X, y, neighbour=misjudged(X, y))
    assert found.passed
    expected = ["clipped gradients"] * 10 + ["private score"] + ["clipped gradients"] * 10
    assert [one.name for one in found.releases] == expected
