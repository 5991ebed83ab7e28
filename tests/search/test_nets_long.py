"""Progress of single nets, which no candidate of a search shows."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config

pytest.importorskip("torch")
pytest.importorskip("skorch")
import torch

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.privacy import Fixed

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = (X[:, 0] > 0).astype(int)
GIVEN = {"classes": [0, 1], "noise_multiplier": 2.0, "sample_rate": 0.1, "max_steps": 12}


def mlp(**changed):
    return DPMLPClassifier((4,), **{**GIVEN, **changed})


class Normed(torch.nn.Sequential):
    """Of layers that are not all linear: each candidate is trained alone."""

    def __init__(self):
        super().__init__(torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))


def own(**changed):
    return DPNeuralNetClassifier(Normed, **{"lr": 0.05, **GIVEN, **changed})


NETS = {"stacks": mlp, "alone": own}
SEARCHES = {
    "random": lambda net, space: DPRandomSearchCV(net, space, n_iter=Fixed(3), delta=1e-5),
    "refit": lambda net, space: DPRandomSearchCV(net, space, n_iter=2, delta=1e-5, refit=True),
    "one run": lambda net, space: DPRandomSearchCV(net, space, n_iter=Fixed(1), delta=1e-5),
    "grid": lambda net, space: DPGridSearchCV(net, space, selection_epsilon=1.0, n_parts=2, delta=1e-5),
    "subset": lambda net, space: DPSubsetSearchCV(net, space, n_iter=2, subset_fraction=0.5, delta=1e-5),
    "threshold": lambda net, space: DPThresholdSearchCV(net, space, threshold=0.1, n_iter=2, delta=1e-5),
}


@pytest.mark.parametrize("make", NETS)
def test_a_net_alone_shows_its_steps(make, capfd):
    """What the searches below do not show."""
    NETS[make](verbose=1).fit(X, y)
    assert "12 of 12" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("make", NETS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_step_of_a_candidate_is_shown(kind, make, n_jobs, capfd):
    """How many lines there were would tell how many candidates there were."""
    one = SEARCHES[kind](NETS[make](verbose=1), {"max_grad_norm": [0.5, 1.0]})
    with parallel_config(backend="threading", n_jobs=n_jobs):
        one.fit(X, y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
@pytest.mark.parametrize("make", NETS)
def test_no_step_of_a_candidate_is_shown_by_worker_processes(make, backend, capfd):
    with parallel_config(backend=backend, n_jobs=2):
        SEARCHES["random"](NETS[make](verbose=1), {"max_grad_norm": [0.5, 1.0]}).fit(X, y)
    assert capfd.readouterr() == ("", "")
