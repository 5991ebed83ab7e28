"""Callbacks that see no batch: schedules and frozen parameters."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    Freezer,
    GradientNormClipping,
    Initializer,
    LoadInitState,
    LRScheduler,
    PrintLog,
    ProgressBar,
    TrainEndCheckpoint,
    Unfreezer,
)
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from sklearn_dpsearch.privacy import LeakingEstimatorError

from ...search.toys import Untouchable
from ..toys import flat
from ..user_nets import X, net, y

# --- Freezer --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [
    Freezer("first.*"),
    Freezer(["first.weight", "first.bias"]),
    ("freeze", Freezer(lambda name: name.startswith("first"))),
])  # fmt: skip
def test_frozen_parameters_stay_and_the_others_train_as_without_them(given, one_noise):
    one = net(callbacks=[given], random_state=0, noise_seed=0).fit(X, y)
    start = net(random_state=0).initialize().module_
    assert torch.equal(one.module_.first.weight, start.first.weight)
    assert not torch.equal(one.module_.last.weight, start.last.weight)
    by_hand = copy.deepcopy(start)
    by_hand.first.requires_grad_(False)
    assert torch.equal(flat(one.module_), flat(net(by_hand, noise_seed=0).fit(X, y).module_))
    again = one.set_params(noise_seed=None).fit(X, y)  # initialised by skorch once already
    assert torch.equal(again.module_.first.weight, start.first.weight)
    assert clone(one).fit(X, y).n_steps_ == 12


@pytest.mark.parametrize(("given", "match"), [
    (Freezer("nothing*"), "(?s)matches none of.*first.weight"),
    (Freezer("*"), "nothing is left to train"),
])  # fmt: skip
def test_freezers_that_freeze_nothing_or_all_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        net(callbacks=[given]).fit(X, y)


# --- all others -----------------------------------------------------------------------------------


class MyFreezer(Freezer):
    def on_batch_end(self, net, X, y, **kwargs):
        raise AssertionError("never called")


class MyScheduler(LRScheduler):
    on_batch_end = MyFreezer.on_batch_end


@pytest.mark.parametrize("callback", [
    MyFreezer("first.*"), MyScheduler(StepLR, step_size=1), EarlyStopping, EarlyStopping(),
    EpochScoring("accuracy"), PrintLog(), GradientNormClipping(1.0), Callback(),
    LRScheduler(ReduceLROnPlateau), LRScheduler("ReduceLROnPlateau"), Freezer("first.*", at=2),
    Freezer("first.*", at=lambda net: net.history[-1, "train_loss"] < 0.1),
    Freezer("first.*", fn=print), Freezer("first.*", schedule=lambda net: print),
    Unfreezer("first.*"), Initializer("first.*"), Checkpoint(), LoadInitState(TrainEndCheckpoint()),
    TrainEndCheckpoint(),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_what_could_see_a_batch_is_refused_before_data_is_read(callback):
    for given in ([callback], [("mine", callback)]):
        match = "(?s)callback.*without noise.*LRScheduler|Freezer"
        with pytest.raises(LeakingEstimatorError, match=match):
            net(callbacks=given).fit(Untouchable(), Untouchable())


def test_a_progress_bar_shows_the_steps_of_a_public_number_and_nothing_else(capsys):
    """skorch's own would count the batches of the data, and show losses; it never runs."""
    net(callbacks=[ProgressBar(batches_per_epoch="count", postfix_keys=["train_loss"])]).fit(X, y)
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(r"(\[DPNeuralNetClassifier\] training: \d+ of 12\n)+", told.err)
    net(verbose=0).fit(X, y)
    assert capsys.readouterr().err == ""
    net(verbose=1).fit(X, y).fit(X, y)
    assert capsys.readouterr().out == ""
