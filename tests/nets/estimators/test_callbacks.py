"""Callbacks that see no batch: schedules, frozen parameters, files at the end. No candidate of a search writes any."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from skorch.callbacks import Checkpoint, Freezer, Initializer, LoadInitState, ProgressBar, TrainEndCheckpoint, Unfreezer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import stack
from sklearn_dpsearch.privacy import LeakingEstimatorError, PrivacyError

from ..toys import Untouchable, flat
from ..user_nets import X, net, y

# --- Freezer ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        Freezer("first.*"),
        Freezer(["first.weight", "first.bias"]),
        ("freeze", Freezer(lambda name: name.startswith("first"))),
    ],
)
def test_frozen_parameters_stay_and_the_others_train_as_without_them(given, one_noise):
    one = net(callbacks=[given], random_state=0, noise_seed=0).fit(X, y)
    start = net(random_state=0).initialize().module_
    assert torch.equal(one.module_.first.weight, start.first.weight)
    assert not torch.equal(one.module_.last.weight, start.last.weight)
    by_hand = copy.deepcopy(start)
    by_hand.first.requires_grad_(False)
    other = net(by_hand, noise_seed=0).fit(X, y)
    assert torch.equal(flat(one.module_), flat(other.module_))
    again = one.set_params(noise_seed=None).fit(X, y)  # initialised by skorch once already
    assert torch.equal(again.module_.first.weight, start.first.weight)
    assert clone(one).fit(X, y).n_steps_ == 12


@pytest.mark.parametrize(
    ("given", "match"),
    [(Freezer("nothing*"), "(?s)matches none of.*first.weight"), (Freezer("*"), "nothing is left to train")],
)
def test_freezers_that_freeze_nothing_or_all_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        net(callbacks=[given]).fit(X, y)


# --- TrainEndCheckpoint -----------------------------------------------------------------------------------------------


def test_what_was_trained_is_written_at_the_end_with_what_it_cost(tmp_path):
    given = TrainEndCheckpoint(dirname=str(tmp_path), f_pickle="net.pkl")
    one = net(callbacks=[("end", given)]).fit(X, y)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["train_end_criterion.pt", "train_end_net.pkl", "train_end_optimizer.pt", "train_end_params.pt"]
    other = net().initialize()
    other.load_params(f_params=tmp_path / "train_end_params.pt")
    assert torch.equal(flat(other.module_), flat(one.module_))
    assert other.privacy_spent_.epsilon == one.privacy_spent_.epsilon
    with open(tmp_path / "train_end_net.pkl", "rb") as file:
        again = pickle.load(file)
    np.testing.assert_array_equal(again.predict(X), one.predict(X))
    assert again.privacy_spent_.epsilon == one.privacy_spent_.epsilon


MARK = 1.2345678e-3


def test_no_record_seed_or_history_is_in_the_files(tmp_path):
    planted = X.copy()
    planted[:, 2] = MARK
    given = TrainEndCheckpoint(dirname=str(tmp_path), f_pickle="net.pkl")
    net(callbacks=[given], sample_rate=1.0, noise_seed=987654321).fit(planted, y)
    for path in tmp_path.iterdir():
        held = path.read_bytes()
        assert np.float32(MARK).tobytes() not in held
        assert np.float64(MARK).tobytes() not in held
        assert (987654321).to_bytes(4, "little") not in held
        assert b"train_loss" not in held


def test_a_training_that_fails_writes_nothing(tmp_path, monkeypatch):
    def interrupted(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(stack.Stack, "_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        net(callbacks=[TrainEndCheckpoint(dirname=str(tmp_path))]).fit(X, y)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["the estimator", "a pipeline", "the space"])
def test_candidates_of_a_search_write_no_files(where, tmp_path):
    callbacks = [("end", TrainEndCheckpoint(dirname=str(tmp_path)))]
    one, space = net(noise_multiplier=None), {"lr": [0.1, 0.5]}
    if where == "the space":
        space = {"callbacks": [None, callbacks]}
    else:
        one.set_params(callbacks=callbacks)
    if where == "a pipeline":
        one, space = make_pipeline(FunctionTransformer(), one), {"dpneuralnetclassifier__lr": [0.1, 0.5]}
    search = DPRandomSearchCV(one, space, n_iter=5, epsilon=5.0, delta=1e-5, random_state=0)
    with pytest.raises(PrivacyError, match="(?s)TrainEndCheckpoint.*every candidate.*best_estimator_"):
        search.fit(X, y)
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(search, "privacy_spent_")


# --- all others ---------------------------------------------------------------------------------------------------


class MyFreezer(Freezer):
    def on_batch_end(self, net, X, y, **kwargs):
        raise AssertionError("never called")


class MyCheckpoint(TrainEndCheckpoint):
    def on_train_end(self, net, X, y, **kwargs):
        raise AssertionError("never called")


@pytest.mark.parametrize(
    "callback",
    [
        MyFreezer("first.*"),
        MyCheckpoint(),
        Freezer("first.*", at=2),
        Freezer("first.*", at=lambda net: net.history[-1, "train_loss"] < 0.1),
        Freezer("first.*", fn=print),
        Freezer("first.*", schedule=lambda net: print),
        Unfreezer("first.*"),
        Initializer("first.*"),
        Checkpoint(),
        LoadInitState(TrainEndCheckpoint()),
        TrainEndCheckpoint(f_params="{last_epoch[train_loss]}.pt"),
        TrainEndCheckpoint(f_generator="generator.pt"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_could_see_a_batch_is_refused_before_data_is_read(callback):
    for given in ([callback], [("mine", callback)]):
        with pytest.raises(LeakingEstimatorError):
            net(callbacks=given).fit(Untouchable(), Untouchable())


def test_a_progress_bar_shows_the_steps_of_a_public_number_and_nothing_else(capsys):
    """skorch's own would count the batches of the data, and show losses; it never runs."""
    net(callbacks=[ProgressBar(batches_per_epoch="count", postfix_keys=["train_loss"])]).fit(X, y)
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(r"(\[DPNeuralNetClassifier\] training: \d+ of 12\n)+", told.err)
    net(verbose=0).fit(X, y)
    assert capsys.readouterr().err == ""
