"""What ``verbose=1`` shows: the steps done, of a public number, and the time left. Nothing of the records."""

from __future__ import annotations

import io
import sys
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
import torch

from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.nets.stack import Stack

from .toys import table

X, y = (one.numpy() for one in table(80, classes=2))


def net(**changed):
    given = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": 40, "verbose": 1, "classes": [0, 1]}
    return DPLogisticRegression(**{**given, **changed})


def skorch_net(**changed):
    given = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": 40, "verbose": 1, "classes": [0, 1], **changed}
    return DPNeuralNetClassifier(torch.nn.Linear, module__in_features=5, module__out_features=2, **given)


@pytest.fixture
def steady(monkeypatch):
    """A clock by which every step takes a quarter of a second, whatever its batch."""
    now, step = [0.0], Stack._step

    def quarter(self, *args):
        now[0] += 0.25
        return step(self, *args)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Stack, "_step", quarter)


@pytest.mark.parametrize("make", [net, skorch_net])
def test_the_steps_done_and_the_time_left_are_shown_on_standard_error(make, steady, capsys):
    make().fit(X, y)
    told = capsys.readouterr()
    lines = told.err.strip("\r\n").split("\r")
    name = type(make()).__name__
    assert told.out == ""
    assert lines[0].rstrip() == f"{name}: 0 of 40 steps"
    assert lines[1].rstrip() == f"{name}: 1 of 40 steps, 0:10 left"
    assert lines[-1].rstrip() == f"{name}: 40 of 40 steps, 0:00 left"
    assert told.err.endswith("\n")


@pytest.mark.parametrize("make", [net, skorch_net])
def test_what_is_shown_does_not_depend_on_the_records(make, steady, capsys):
    """Real times would differ, and are not covered."""
    shown = []
    for n, seed in ((80, 0), (80, 1), (80, 2), (80, 3)):
        inputs, labels = (one.numpy() for one in table(n, classes=2, seed=seed))
        make().fit(1e3 * inputs, labels)
        shown.append(capsys.readouterr())
    assert len(set(shown)) == 1


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, Broken()])
def test_a_line_that_cannot_be_written_ends_no_training(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    assert net().fit(X, y).n_steps_ == 40


def test_nets_that_train_together_show_nothing(capfd):
    assert all(DPMLPClassifier.fit_together([net(), net(sample_rate=0.1), net(solver="adam")], X, y))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [2, -1, "yes", None, 0.5])
def test_verbose_is_0_or_1(verbose):
    for make in (net, skorch_net):
        with pytest.raises(ValueError, match="verbose"):
            make(verbose=verbose).fit(X, y)
