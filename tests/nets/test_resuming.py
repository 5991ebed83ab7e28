"""A training that was cut off goes on as if nothing had happened, and costs what one training costs."""

from __future__ import annotations

import copy
import pickle
import re
import shutil

import pytest
from sklearn.base import clone

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch
from torch import nn

from sklearn_dpsearch._disk.durable import START
from sklearn_dpsearch._disk.secret_folder import GOING, LOCK, README, RELEASE
from sklearn_dpsearch._disk.store import KeyedFile, Store
from sklearn_dpsearch.nets import DPMLPClassifier, resuming, training_progress
from sklearn_dpsearch.nets.digest import digest
from sklearn_dpsearch.nets.estimators import base as estimators_base
from sklearn_dpsearch.nets.resuming import TRAINING
from sklearn_dpsearch.nets.stack import Stack
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
from .toys import Residual, flat, mlp, records, rule, training


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETS)
def test_a_resumed_training_releases_bit_for_bit_what_an_uninterrupted_one_does(kind, tmp_path, at_every_step):
    make = lambda **more: NETS[kind](**SEEDED, **more)  # noqa: E731
    expected = parameters(make().fit(X, y))
    folder = tmp_path / "checkpoint"
    cut_off(make, folder, after=4)
    _cut_again(make, folder, 9)
    found = make(checkpoint=folder).fit(X, y)
    assert torch.equal(parameters(found), expected)
    assert holds_a_release_alone(folder)
    assert torch.equal(parameters(make(checkpoint=folder).fit(X, y)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETS)
def test_the_net_whose_training_failed_goes_on_itself(kind, tmp_path, at_every_step):
    """What skorch and scikit-learn leave on it from the first attempt is no other argument."""
    one = cut_off(lambda **more: NETS[kind](**SEEDED, **more), tmp_path / "c")
    assert torch.equal(parameters(one.fit(X, y)), parameters(NETS[kind](**SEEDED).fit(X, y)))


def _cut_again(make, folder, more):
    with power_cut(more) as written:
        make(checkpoint=str(folder)).fit(X, y)
    assert written == list(range(5, 5 + more))  # on from step 4, not from the start


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETS)
def test_whether_and_how_often_checkpoints_are_written_changes_nothing(kind, tmp_path, monkeypatch):
    expected = parameters(NETS[kind](**SEEDED).fit(X, y))
    for every, look in ((0.0, 0.0), (0.0, 0.001), (60.0, 0.5)):
        monkeypatch.setattr(resuming, "EVERY", every)
        monkeypatch.setattr(training_progress, "LOOK", look)
        found = NETS[kind](checkpoint=tmp_path / "checkpoint", **SEEDED).fit(X, y)
        assert torch.equal(parameters(found), expected)


@pytest.mark.slow
def test_unseeded_attempts_from_one_checkpoint_release_the_same_and_new_trainings_do_not(tmp_path, at_every_step):
    """Initial parameters, batches and noise come from the operating system once, and then from the folder."""
    found = []
    for place in ("a", "b"):
        cut_off(skorch_net, tmp_path / place)
        shutil.copytree(tmp_path / place, tmp_path / f"copy of {place}")
        found += [parameters(skorch_net(checkpoint=tmp_path / name).fit(X, y)) for name in (place, f"copy of {place}")]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])
    assert not torch.allclose(found[0], found[2], atol=1e-2)


OPTIMIZERS = {
    "sgd": training().optimizer,
    "adam": rule(torch.optim.Adam, lr=0.01),
    "momentum": rule(lr=0.1, momentum=0.9),
}


class Halfway:
    """Saves a training after step 4, or restores it there; notes all that it is after step 8."""

    def __init__(self, saved=None):
        self.saved, self.restores = saved, saved is not None

    def begin(self, stack):
        if self.restores:
            stack.restore(self.saved)

    def look(self, stack):
        if stack.done == 4:
            self.saved = resuming.stored(stack.state())
        elif stack.done == 8:
            stack.state()
            own = sorted(set(vars(stack)) - NOT_COMPARED)
            self.digests = {name: digest(vars(stack)[name]) for name in own}

    def close(self):
        pass


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [mlp, Residual, lambda: nn.Sequential(nn.Dropout(0.5), mlp())])
def test_a_restored_stack_is_in_everything_the_stack_that_was_saved(make, optimizer, monkeypatch):
    """Compared by all that can be reached from it: whoever adds a state to the stack adds it to the checkpoint."""
    monkeypatch.setattr(Stack, "_ahead", lambda self, t: 4 - t % 4)
    given, start = {"optimizer": OPTIMIZERS[optimizer], "noise_multiplier": 1.0, "steps": 10}, make()

    def trained(one):
        task, watching = training(copy.deepcopy(start), **given), training_progress.Watchers([one])
        watching.patience = 4
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_progress, "LOOK", 1e9)
            train(task, records(), max_physical_batch=30, watchers=watching)
        return flat(task.module)

    first = Halfway()
    whole = trained(first)
    second = Halfway(resuming.loaded(first.saved))
    assert torch.equal(trained(second), whole)
    assert first.digests == second.digests
    assert {"trained", "secrets", "batches", "done"} <= set(first.digests)


#: Written anew in every step, never changed, or (the stepper, which remembers rates) compared by what it does.
NOT_COMPARED = {"engine", "gradients", "sums", "records", "tasks", "stepper", "watchers"}


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
    assert digest(again.optimizer_memory_) == digest(first.optimizer_memory_)
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
@pytest.mark.parametrize("damage", ["cut short", "other bytes", "gone", "another machine"])
def test_a_saved_state_that_is_of_no_use_costs_time_and_nothing_else(damage, tmp_path, monkeypatch, at_every_step):
    """Batches and noise follow from the secrets, which are in another file."""
    folder, steps, step = tmp_path / "c", [], Stack._step
    cut_off(skorch_net, folder)
    shutil.copytree(folder, tmp_path / "copy")
    expected = parameters(skorch_net(checkpoint=tmp_path / "copy").fit(X, y))
    state = folder / GOING
    if damage == "gone":
        state.unlink()
    elif damage == "another machine":
        monkeypatch.setattr(resuming, "place_of", lambda device: {"processor": "ABACUS"})
    else:
        held = state.read_bytes()
        state.write_bytes(held[: len(held) // 2] if damage == "cut short" else held[:-9] + bytes(9))
    monkeypatch.setattr(Stack, "_step", lambda *given: (steps.append(1), step(*given))[1])
    assert torch.equal(parameters(skorch_net(checkpoint=folder).fit(X, y)), expected)
    assert len(steps) == STEPS


@pytest.mark.slow
def test_training_on_goes_on_from_the_same_net_alone(tmp_path, at_every_step):
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
def test_clones_copies_and_pickles_carry_the_name_of_the_folder_and_nothing_of_it(make, tmp_path, at_every_step):
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
