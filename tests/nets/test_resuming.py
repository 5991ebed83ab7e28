"""A training that was cut off goes on as if nothing had happened, and costs what one training costs."""

from __future__ import annotations

import pickle
import re
import shutil

import pytest
from sklearn.base import clone

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch

from sklearn_dpsearch._disk.durable import START
from sklearn_dpsearch._disk.secret_folder import LOCK, README, RELEASE
from sklearn_dpsearch._disk.store import KeyedFile, Store
from sklearn_dpsearch.nets import DPMLPClassifier, resuming
from sklearn_dpsearch.nets.estimators import base as estimators_base
from sklearn_dpsearch.nets.fingerprint import text_of
from sklearn_dpsearch.nets.resuming import TRAINING
from sklearn_dpsearch.nets.training import train
from sklearn_dpsearch.privacy import PrivacyError

from .crashes import (
    NETS,
    SEEDED,
    STATE,
    STEPS,
    X,
    cut_off,
    parameters,
    power_cut,
    skorch_net,
    table_net,
    y,
)


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


def test_nets_that_train_together_have_no_checkpoint(tmp_path):
    with pytest.raises(PrivacyError, match="(?s)trained together.*checkpoint=None"):
        DPMLPClassifier.fit_together([table_net(), table_net(checkpoint=tmp_path / "c")], X, y)
    assert not (tmp_path / "c").exists()
