"""The noise of a checkpoint is used for the training that it began with, and for no other."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch
from skorch.callbacks import LRScheduler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from sklearn_dpsearch._disk.durable import START
from sklearn_dpsearch._disk.store import opened
from sklearn_dpsearch.nets import DPMLPClassifier, resuming
from sklearn_dpsearch.nets.resuming import TRAINING, marks
from sklearn_dpsearch.nets.stack import Stack
from sklearn_dpsearch.privacy import PrivacyError

from .crashes import STATE, STEPS, WithDropout, X, cut_off, parameters, skorch_net, table_net, y
from .toys import training


def _one_cell(X):
    changed = X.copy()
    changed[17, 2] = np.nextafter(changed[17, 2], np.float32(9))
    return changed


OTHERS = {
    "one cell": (_one_cell(X), y),
    "one label": (X, np.where(np.arange(80) == 5, 1 - y, y)),
    "one record less": (X[:-1], y[:-1]),
    "one record more": (np.vstack([X, X[:1]]), np.append(y, y[0])),
    "another order": (X[::-1].copy(), y[::-1].copy()),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [table_net, skorch_net])
@pytest.mark.parametrize("other", OTHERS)
def test_noise_never_meets_other_records(make, other, tmp_path):
    cut_off(make, tmp_path / "c")
    before = (tmp_path / "c" / STATE).read_bytes()
    one = make(checkpoint=tmp_path / "c")
    with pytest.raises(PrivacyError, match="(?s)other records|expected_batch_size="):
        one.fit(*OTHERS[other])
    assert not hasattr(one, "privacy_spent_")
    assert (tmp_path / "c" / STATE).read_bytes() == before
    make(checkpoint=tmp_path / "c").fit(X, y)


class Difference(nn.Module):
    """Two inputs of one shape, by name."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 2)

    def forward(self, first, second):
        return self.layer(first - 2 * second)


@pytest.mark.slow
def test_the_names_of_inputs_count(tmp_path):
    """The same numbers in the same order, under each other's names, are other records."""
    make = lambda **more: skorch_net(Difference, **more)  # noqa: E731
    cut_off(make, tmp_path / "c", data=({"first": X, "second": -X}, y))
    for other in ({"second": X, "first": -X}, {"first": -X, "second": X}):
        with pytest.raises(PrivacyError, match="module=|other records"):
            make(checkpoint=tmp_path / "c").fit(other, y)
    make(checkpoint=tmp_path / "c").fit({"first": X, "second": -X}, y)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, number):
        return X[number], int(y[number])


def test_records_that_are_read_one_by_one_have_no_checkpoint(tmp_path):
    with pytest.raises(PrivacyError, match="(?s)together with a Dataset.*checkpoint=None"):
        skorch_net(checkpoint=tmp_path / "c").fit(Rows(), None)
    assert not (tmp_path / "c").exists()


CHANGED = [
    ({"learning_rate_init": 0.5}, "learning_rate_init=0.5.*learning_rate_init='auto'"),
    ({"learning_rate": "constant"}, "learning_rate='constant'.*learning_rate='linear'"),
    ({"noise_multiplier": 2.0}, "noise_multiplier=2.0.*noise_multiplier=1.0"),
    ({"max_grad_norm": 0.5}, "max_grad_norm=0.5.*max_grad_norm='rule'"),
    ({"max_steps": 25}, "max_steps=25.*max_steps=24"),
    ({"sample_rate": 0.1}, "sample_rate=0.1.*sample_rate=0.2"),
    ({"solver": "adam"}, "solver='adam'.*solver='sgd'"),
    ({"momentum": 0.9}, "momentum=0.9"),
    ({"hidden_layer_sizes": (8,)}, "hidden_layer_sizes"),
    ({"activation": "tanh"}, "activation='tanh'"),
    ({"alpha": 0.1}, "alpha=0.1"),
    ({"batch_size": 80}, "batch_size=80.*batch_size=None"),
    ({"max_physical_batch": 5}, "max_physical_batch=5"),
    ({"bounds_X": (-1, 1)}, "bounds_X"),
    ({"noise_seed": 4}, "noise_seed=int.*noise_seed=NoneType"),
    ({"random_state": 4}, "random_state=4"),
    ({"classes": [0, 1]}, "classes"),
]


@pytest.mark.parametrize(("changed", "match"), CHANGED, ids=[next(iter(one[0])) for one in CHANGED])
def test_other_arguments_are_refused_by_name(changed, match, tmp_path):
    cut_off(table_net, tmp_path / "c")
    with pytest.raises(PrivacyError, match=f"(?s){match}.*delete the folder.*first attempt"):
        table_net(checkpoint=tmp_path / "c", **changed).fit(X, y)


class Louder(DPMLPClassifier):
    """A user's class, which trains in another way."""

    def _update(self):
        return super()._update()


def test_another_class_with_the_same_arguments_is_refused(tmp_path):
    cut_off(table_net, tmp_path / "c")
    with pytest.raises(PrivacyError, match="class="):
        table_net(Louder, checkpoint=tmp_path / "c").fit(X, y)


def test_the_seed_of_the_noise_is_in_no_error(tmp_path):
    cut_off(lambda **more: table_net(noise_seed=123456789, **more), tmp_path / "c")
    with pytest.raises(PrivacyError) as error:
        table_net(noise_seed=987654321, checkpoint=tmp_path / "c").fit(X, y)
    assert "123456789" not in str(error.value)
    assert "987654321" not in str(error.value)


class Powers(nn.Module):
    """A module with a constant of its own."""

    def __init__(self, power):
        super().__init__()
        self.layer, self.power = nn.Linear(5, 2), power

    def forward(self, inputs):
        return self.layer(inputs**self.power)


@pytest.mark.slow
def test_a_module_with_another_constant_is_refused(tmp_path):
    cut_off(lambda **more: skorch_net(Powers(1), **more), tmp_path / "c")
    with pytest.raises(PrivacyError, match="(?s)module.*must be the same"):
        skorch_net(Powers(2), checkpoint=tmp_path / "c").fit(X, y)
    skorch_net(Powers(1), checkpoint=tmp_path / "c").fit(X, y)


@pytest.mark.parametrize(
    "changed",
    [
        {"optimizer": torch.optim.Adam},
        {"optimizer__momentum": 0.9},
        {"lr": 0.1},
        {"module__width": 7},
        {"criterion__label_smoothing": 0.1},
        {"criterion": nn.NLLLoss},
        {"callbacks": [("lr", LRScheduler(CosineAnnealingLR, T_max=STEPS))]},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_training_with_skorch_is_refused(changed, tmp_path):
    cut_off(skorch_net, tmp_path / "c")
    with pytest.raises(PrivacyError, match="(?s)must be the same"):
        skorch_net(checkpoint=tmp_path / "c", **changed).fit(X, y)


def test_other_parameters_that_are_not_trained_are_refused(tmp_path):
    cut_off(lambda **more: skorch_net(WithDropout(frozen=True), **more), tmp_path / "c")
    with pytest.raises(PrivacyError, match="choice of parameters="):
        skorch_net(WithDropout(frozen=False), checkpoint=tmp_path / "c").fit(X, y)


@pytest.mark.slow
def test_a_module_given_as_an_instance_may_start_from_other_random_numbers(tmp_path):
    """A script that runs again makes another instance: its parameters come from the checkpoint."""
    kept = WithDropout()
    expected = parameters(skorch_net(copy.deepcopy(kept), noise_seed=0).fit(X, y))
    cut_off(lambda **more: skorch_net(kept, noise_seed=0, **more), tmp_path / "c")
    found = skorch_net(WithDropout(), noise_seed=0, checkpoint=tmp_path / "c").fit(X, y)
    assert torch.equal(parameters(found), expected)


@pytest.mark.slow
def test_what_the_initial_parameters_cost_cannot_be_left_behind(tmp_path):
    trained = skorch_net().fit(X, y).module_
    cut_off(lambda **more: skorch_net(trained, **more), tmp_path / "c")
    with pytest.raises(PrivacyError, match="module="):
        skorch_net(WithDropout(), checkpoint=tmp_path / "c").fit(X, y)
    found = skorch_net(trained, checkpoint=tmp_path / "c").fit(X, y)
    assert len(found.privacy_spent_.components) == 2


@pytest.mark.parametrize("name", ["torch", "numpy", "sklearn_dpsearch", "processor", "Python"])
def test_another_version_or_processor_is_refused(name, tmp_path, monkeypatch):
    cut_off(table_net, tmp_path / "c")
    here = resuming.marks

    def elsewhere(*given):
        found = here(*given)
        return {**found, "place": {**found["place"], name: ("0.0.1", "'0.0.1'")}}

    monkeypatch.setattr(resuming, "marks", elsewhere)
    with pytest.raises(PrivacyError, match=f"(?s){name}='0.0.1'.*began with {name}.*Go on where it began"):
        table_net(checkpoint=tmp_path / "c").fit(X, y)


def test_a_training_goes_on_with_as_many_threads_as_it_began_with(tmp_path):
    cut_off(skorch_net, tmp_path / "c")
    seen, step = [], Stack._step

    def counting(self, *args):
        seen.append(torch.get_num_threads())
        return step(self, *args)

    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stack, "_step", counting)
            skorch_net(checkpoint=tmp_path / "c").fit(X, y)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {before}


def test_digests_tell_nothing_without_their_key(tmp_path):
    """Of the same training in two folders no two digests are equal, and no record's own digest is in a file."""
    found = marks(training(), {"lr": 0.1}, ["digest"], "")
    assert found == marks(training(), {"lr": 0.1}, ["digest"], "")
    headers = []
    for name in "ab":
        with opened(tmp_path / name, TRAINING) as store:
            store.bind(found)
            store.begin(b"")
            store.ended = True
            headers.append(json.loads((tmp_path / name / STATE).read_bytes()[START:])["marks"])
    for kind in found:
        plain, one, other = ({digest for digest, _ in marks[kind].values()} for marks in (found, *headers))
        assert len(one) == len(other) == len(plain)
        assert not (one & other) | (one & plain)
