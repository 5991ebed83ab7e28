"""A training that was cut off goes on as if nothing had happened, and costs what one training costs."""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")

import torch
from skorch.callbacks import LRScheduler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from sklearn_dpsearch._disk.durable import START
from sklearn_dpsearch._disk.secret_folder import LOCK, README, RELEASE
from sklearn_dpsearch._disk.store import KeyedFile, Store, opened
from sklearn_dpsearch.nets import DPMLPClassifier, resuming
from sklearn_dpsearch.nets.estimators import base as estimators_base
from sklearn_dpsearch.nets.resuming import TRAINING, marks, text_of
from sklearn_dpsearch.nets.stack import Stack
from sklearn_dpsearch.nets.training import train
from sklearn_dpsearch.privacy import PrivacyError

from .crashes import (
    NETS,
    SEEDED,
    STATE,
    STEPS,
    WithDropout,
    X,
    cut_off,
    parameters,
    power_cut,
    skorch_net,
    table_net,
    y,
)
from .toys import training


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETS)
def test_a_resumed_training_releases_bit_for_bit_what_an_uninterrupted_one_does(kind, tmp_path):
    make = lambda **more: NETS[kind](**SEEDED, **more)  # noqa: E731
    expected = parameters(make().fit(X, y))
    folder = tmp_path / "checkpoint"
    cut_off(make, folder, after=4)
    cut_off(make, folder, after=13)
    found = make(checkpoint=folder).fit(X, y)
    assert torch.equal(parameters(found), expected)
    assert holds_a_release_alone(folder)
    assert torch.equal(parameters(make(checkpoint=folder).fit(X, y)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETS)
def test_the_net_whose_training_failed_goes_on_itself(kind, tmp_path):
    """What skorch and scikit-learn leave on it from the first attempt is no other argument."""
    one = cut_off(lambda **more: NETS[kind](**SEEDED, **more), tmp_path / "c")
    assert torch.equal(parameters(one.fit(X, y)), parameters(NETS[kind](**SEEDED).fit(X, y)))


@pytest.mark.slow
def test_unseeded_attempts_from_one_checkpoint_release_the_same_and_new_trainings_do_not(tmp_path):
    """Initial parameters, batches and noise come from the operating system once, and then from the folder."""
    found = []
    for place in ("a", "b"):
        cut_off(skorch_net, tmp_path / place)
        shutil.copytree(tmp_path / place, tmp_path / f"copy of {place}")
        found += [parameters(skorch_net(checkpoint=tmp_path / name).fit(X, y)) for name in (place, f"copy of {place}")]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])
    assert not torch.allclose(found[0], found[2], atol=1e-2)


# --- what it costs, and where it goes ---------------------------------------------------------------------------------


def test_that_nobody_has_read_the_folder_is_an_assumption(tmp_path):
    found = table_net(checkpoint=tmp_path / "c").fit(X, y)
    assert [text for text in found.privacy_spent_.assumptions if "checkpoint" in text]
    assert not [text for text in table_net().fit(X, y).privacy_spent_.assumptions if "checkpoint" in text]


def holds_a_release_alone(folder):
    """Neither generators nor seeds, from which noise follows."""
    found = Store(folder, TRAINING)
    release = resuming.loaded(KeyedFile(folder / RELEASE, bytes.fromhex(found._header["key"])).read())
    return (
        {path.name for path in folder.iterdir()} - {LOCK} == {README, STATE, RELEASE}
        and set(found._header) == {"key", "marks", "ended"}
        and found.secrets == b""
        and set(release) == {"module", "memory", "notes"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["adam", "dropout", "regressor", "nesterov"])
def test_the_same_fit_once_more_gets_its_release_back_and_another_one_trains(kind, tmp_path, monkeypatch):
    """A process may die before its user has saved the net, and its script is started again."""
    make, folder = (lambda **more: NETS[kind](checkpoint=tmp_path / "c", **more)), tmp_path / "c"
    first, trained = make().fit(X, y), []
    monkeypatch.setattr(estimators_base, "train", lambda *given, **named: (trained.append(1), train(*given, **named)))
    again = make(verbose=0).fit(X.copy(), y.copy())
    assert not trained
    assert torch.equal(parameters(again), parameters(first))
    assert repr(again.privacy_spent_) == repr(first.privacy_spent_)
    assert again.privacy_spent_.assumptions == first.privacy_spent_.assumptions
    assert {*vars(again)} == {*vars(first)}
    assert text_of(again.optimizer_memory_) == text_of(first.optimizer_memory_)
    assert holds_a_release_alone(folder)
    changed = X.copy()
    changed[0, 0] += 1e-6
    for number, other in enumerate([lambda: make().fit(changed, y), lambda: make(max_steps=3).fit(X, y)], start=1):
        other()
        assert len(trained) == number
        assert holds_a_release_alone(folder)


def test_a_release_that_cannot_be_kept_is_released_all_the_same(tmp_path, monkeypatch):
    def full(file, payload):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(KeyedFile, "write", full)
    assert table_net(checkpoint=tmp_path / "c").fit(X, y).n_steps_ == STEPS
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_training_on_goes_on_from_the_same_net_alone(tmp_path):
    def warm():
        return table_net(classes=[0, 1], **SEEDED).fit(X, y)

    stored = pickle.dumps(warm())

    def loaded(**more):
        return pickle.loads(stored).set_params(noise_seed=7, **more)

    whole = loaded().partial_fit(X, y)
    for _ in range(2):
        one = loaded(checkpoint=tmp_path / "c")
        with power_cut(5):
            one.partial_fit(X, y)
        assert torch.equal(parameters(one), parameters(loaded()))  # as they were before
    for other in (warm(), table_net(classes=[0, 1], **SEEDED)):  # of another history: it would state another cost
        with pytest.raises(PrivacyError, match="other initial parameters|module="):
            other.set_params(noise_seed=7, checkpoint=tmp_path / "c").partial_fit(X, y)
    moved = loaded(checkpoint=tmp_path / "c")
    with torch.no_grad():
        moved.module_[0].weight[0, 0] += 1e-6
    with pytest.raises(PrivacyError, match="other initial parameters"):
        moved.partial_fit(X, y)
    again = loaded(checkpoint=tmp_path / "c").partial_fit(X, y)
    assert torch.equal(parameters(again), parameters(whole))
    assert again.privacy_spent_.epsilon == whole.privacy_spent_.epsilon
    assert len(again.privacy_spent_.components) == 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [table_net, skorch_net])
def test_clones_copies_and_pickles_carry_the_name_of_the_folder_and_nothing_of_it(make, tmp_path):
    one = cut_off(make, tmp_path / "c")
    key, *_ = re.findall(rb'"key": "([0-9a-f]{64})"', (tmp_path / "c" / STATE).read_bytes()[START:])
    for other in (one, clone(one), make(checkpoint=tmp_path / "c").fit(X, y)):
        pickled = pickle.dumps(other)
        assert key not in pickled
        assert bytes.fromhex(key.decode()) not in pickled
        assert pickle.loads(pickled).checkpoint == tmp_path / "c"
    assert {name for name in vars(other) if "checkpoint" in name} == {"checkpoint"}


# --- the same training, and no other ----------------------------------------------------------------------------------


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
