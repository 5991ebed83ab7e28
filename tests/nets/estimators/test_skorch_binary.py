"""One logit for each yes or no: two classes, and several labels of one record."""

from __future__ import annotations

import numpy as np
import pytest
import skorch
import torch
from sklearn.metrics import f1_score
from sklearn.neural_network import MLPClassifier
from sklearn.utils import get_tags
from torch import nn

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import (
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetMultiLabelClassifier,
)
from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.scoring import private_scorer

from ...search.toys import refuses_to_fit
from ..toys import flat

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 4)).astype(np.float32)
y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
many = np.stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0, X[:, 3] > 1.0], axis=1).astype(int)


class Small(nn.Module):
    def __init__(self, outputs=1, width=6):
        super().__init__()
        self.first, self.last = nn.Linear(4, width), nn.Linear(width, outputs)

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs)))


class Flat(Small):
    """One number for each record, not a column."""

    def forward(self, inputs):
        return super().forward(inputs).squeeze(-1)


class NoGraph(Flat):
    def forward(self, inputs):
        return super().forward(inputs + torch.zeros(4))


def binary(module=Small, **changed):
    return DPNeuralNetBinaryClassifier(module, **SHORT | changed)


def labelled(module=Small, **changed):
    return DPNeuralNetMultiLabelClassifier(module, **SHORT | {"module__outputs": 3} | changed)


SHORT = {"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 12, "lr": 0.5}
LONG = {
    "noise_multiplier": 0.5, "sample_rate": 0.3, "max_steps": 200, "noise_seed": 0,
    "random_state": 0,
}  # fmt: skip


# --- two classes ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("module", [Small, Flat, NoGraph, nn.Linear(4, 1)])
def test_a_logit_may_be_a_column_or_a_number(module):
    one = binary(module, **LONG).fit(X, y)
    assert one.score(X, y) > 0.85
    probabilities = one.predict_proba(X)
    assert probabilities.shape == (160, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(one.predict(X), (probabilities[:, 1] > 0.5).astype(int))
    assert one.classes_.tolist() == [0, 1]


def test_it_trains_what_skorchs_own_net_trains():
    """The same start, whole batches, hardly any noise, no clipping."""
    start = binary(random_state=0).initialize().module_
    whole = {"batch_size": -1, "train_split": None, "iterator_train__shuffle": False}
    theirs = skorch.NeuralNetBinaryClassifier(start, max_epochs=6, lr=0.5, verbose=0, **whole)
    theirs.fit(X, y.astype(np.float32))
    mine = binary(
        random_state=0, sample_rate=1.0, max_steps=6, max_grad_norm=1e6, noise_multiplier=1e-12
    ).fit(X, y)
    torch.testing.assert_close(flat(mine.module_), flat(theirs.module_), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_labels_are_any_two_and_the_logit_is_that_of_the_second():
    names = np.where(y, "yes", "no")
    one = binary(classes=["no", "yes"], **LONG).fit(X, names)
    assert set(one.predict(X)) <= {"no", "yes"}
    assert one.score(X, names) > 0.85
    other = binary(classes=["yes", "no"], **LONG).fit(X, names)
    assert other.score(X, names) > 0.85
    assert np.corrcoef(one.predict_proba(X)[:, 1], other.predict_proba(X)[:, 1])[0, 1] < -0.5


def test_a_threshold_moves_labels_and_no_probability():
    one = binary(**LONG).fit(X, y)
    shares = one.predict_proba(X)
    assert one.set_params(threshold=0.9).predict(X).sum() < (shares[:, 1] > 0.5).sum()
    np.testing.assert_array_equal(one.predict_proba(X), shares)


def test_a_weight_of_the_positive_label_is_a_constant():
    """It moves the probabilities, and no record's gradient beyond the clipping norm."""
    exact = {"noise_multiplier": 1e-9, "sample_rate": 1.0, "random_state": 0}
    nets = [
        binary(criterion__pos_weight=torch.tensor(weight), **exact).fit(X, y)
        for weight in (0.1, 1.0, 10.0)
    ]
    found = [one.predict_proba(X)[:, 1].mean() for one in nets]
    assert found == sorted(found)
    options = {"sample_rate": 1.0, "max_steps": 1}
    one = binary(nn.Linear(4, 1), criterion__pos_weight=torch.tensor(1e6), lr=1.0, **options)
    one.set_params(noise_multiplier=1e-9, max_grad_norm=0.5)
    moved = flat(one.fit(X, y).module_) - flat(one.module)
    assert float(moved.norm()) <= 0.5001  # the mean of clipped gradients


@pytest.mark.parametrize(("changed", "match"), [
    ({"classes": [0, 1, 2]}, "(?s)classes=.*two labels.*DPNeuralNetClassifier"),
    ({"classes": ["a", "a"]}, "'a' twice.*a name of its own"),
    ({"criterion": nn.CrossEntropyLoss}, "(?s)one output per class.*BCEWithLogitsLoss"),
    *[
        ({"threshold": value}, rf"threshold.*\[0.0, 1.0\].*Got {value!r}")
        for value in (2.0, "x", None, True, float("nan"))
    ],
    ({"module__outputs": 2}, r"(?s)outputs of shape \(2,\).*one logit"),
])  # fmt: skip
def test_bad_arguments_of_binary_nets_are_refused(changed, match):
    one = binary(**changed)
    with pytest.raises(ValueError, match=match):
        one.fit(X, y)
    assert not one.initialized_


def test_a_binary_net_takes_its_two_labels_alone():
    for labels in (y.astype(str), many):
        with pytest.raises(ValueError, match="(?s)labels in y that are text|one label per record"):
            binary().fit(X, labels)


# --- several labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, bool, np.float64])
def test_labels_are_predicted_in_the_shape_that_scikit_learn_has(kind):
    one = labelled(**LONG).fit(X, many.astype(kind))
    theirs = MLPClassifier(random_state=0).partial_fit(X, many, classes=[0, 1, 2])
    assert one.predict(X).shape == theirs.predict(X).shape
    assert one.predict_proba(X).shape == theirs.predict_proba(X).shape
    assert one.predict(X).dtype.kind == "i"
    assert one.classes_.tolist() == theirs.classes_.tolist()
    assert f1_score(many, one.predict(X), average="macro", zero_division=0) > 0.7
    assert one.score(X, many) > 0.5  # all labels of a record right
    assert get_tags(one).classifier_tags.multi_label


@pytest.mark.parametrize(("changed", "targets", "match"), [
    ({}, y, "a column for each label"),
    ({}, many.astype(str), "y of text.*0 and 1"),
    ({}, many[:, :2], "(?s)2 columns in y.*one logit for each"),
    ({"classes": ["a", "b"]}, many, "(?s)3 columns in y and 2 classes"),
    ({"classes": ["a", "a", "b"]}, many, "'a' twice.*a name of its own"),
])  # fmt: skip
def test_bad_labels_are_refused(changed, targets, match):
    one = labelled(**changed)
    with pytest.raises(ValueError, match=match):
        one.fit(X, targets)
    assert not one.initialized_


def test_one_output_for_two_classes_is_sent_to_the_net_for_it():
    options = {"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 2}
    net = DPNeuralNetClassifier(nn.Linear(4, 1), classes=[0, 1], **options)
    with pytest.raises(ValueError, match="(?s)one output per class.*DPNeuralNetBinaryClassifier"):
        net.fit(X, y)
    net.set_params(criterion=nn.BCEWithLogitsLoss)
    with pytest.raises(ValueError, match="(?s)DPNeuralNetBinaryClassifier"):
        net.fit(X, y)


# --- in searches ----------------------------------------------------------------------------------


def search(one, **changed):
    arguments = {"n_iter": 3, "epsilon": 30.0, "delta": 1e-5, "random_state": 0, **changed}
    return DPRandomSearchCV(one.set_params(noise_multiplier=None), {"lr": [0.2, 0.5]}, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("scoring", [
    None, "accuracy", "neg_log_loss", private_scorer("f1", pos_label=1),
    private_scorer("balanced_accuracy", classes=[0, 1]),
])  # fmt: skip
def test_scorers_of_two_classes_work_in_searches(scoring):
    found = search(binary(), scoring=scoring).fit(X, y)
    assert found.predict(X).shape == (160,)
    assert found.privacy_spent_.epsilon <= 30.0


@pytest.mark.parametrize("scoring", [
    "neg_log_loss", private_scorer("f1", pos_label=1),
    private_scorer("balanced_accuracy", classes=[0, 1]),
])  # fmt: skip
def test_scorers_of_one_label_are_refused_for_several_before_anything_is_spent(scoring):
    one = search(labelled(), scoring=scoring)
    message = "(?s)for one target of a record.*3 columns.*accuracy.*Nothing was spent"
    refuses_to_fit(one, PrivacyError, message, X, many)
