"""``verbose=1`` shows the steps done, of a public number. Nothing of the records."""

from __future__ import annotations

import pytest
import torch

from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.nets._stacked_training import Stack

from .toys import flat, table

X, y = (one.numpy() for one in table(80, classes=2))
GIVEN = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": 40, "classes": [0, 1]}


def net(**changed):
    return DPLogisticRegression(**{**GIVEN, "verbose": 1, **changed})


def skorch_net(**changed):
    linear = {"module__in_features": 5, "module__out_features": 2}
    return DPNeuralNetClassifier(torch.nn.Linear, **linear, **{**GIVEN, "verbose": 1, **changed})


@pytest.mark.parametrize("make", [net, skorch_net])
def test_the_steps_done_are_shown_and_do_not_depend_on_the_records(make, capsys):
    for seed in (0, 1):
        inputs, labels = (one.numpy() for one in table(80, classes=2, seed=seed))
        make().fit(1e3 * inputs, labels)
        told = capsys.readouterr()
        name = f"[{type(make()).__name__}] training"
        assert told.out == ""
        assert told.err.splitlines() == [f"{name}: {done} of 40" for done in (1, *range(4, 41, 4))]


def test_nothing_is_shown_by_default(capfd):
    net(verbose=0).fit(X, y)
    assert all(
        DPMLPClassifier.fit_together([net(), net(sample_rate=0.1), net(solver="adam")], X, y)
    )
    assert capfd.readouterr() == ("", "")


def test_a_second_fit_with_skorch_says_nothing_else(capfd):
    """Its own ``verbose`` would say that the module is made anew."""
    one = skorch_net().fit(X, y)
    capfd.readouterr()
    told = one.set_params(module__bias=False).fit(X, y) and capfd.readouterr()
    assert "40 of 40" in told.err
    assert "module" not in told.err
    assert one.verbose == 1


def test_showing_progress_changes_nothing():
    found = [flat(net(verbose=verbose, noise_seed=0).fit(X, y).module_) for verbose in (0, 1, True)]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_an_error_ends_the_line(monkeypatch, capsys):
    monkeypatch.setattr(Stack, "_step", lambda *given: 1 / 0)
    with pytest.raises(RuntimeError, match="could quote a record"):
        net().fit(X, y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verbose", [2, -1, "yes", None, 0.5])
def test_verbose_is_0_or_1(verbose):
    for make in (net, skorch_net):
        with pytest.raises(ValueError, match="verbose"):
            make(verbose=verbose).fit(X, y)
