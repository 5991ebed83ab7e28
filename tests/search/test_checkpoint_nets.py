"""Trainings of nets inside of a search that is killed: finished ones stay, others begin again with
the same result."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

torch = pytest.importorskip("torch")
pytest.importorskip("skorch")

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.nets import _training as together
from sklearn_dpsearch.nets._stacked_training import Stack
from sklearn_dpsearch.privacy import Fixed
from sklearn_dpsearch.search._checkpoint import digest

from .toys import holds_a_release_alone

#: Trainings are counted here.
pytestmark = [
    pytest.mark.usefixtures("unrehearsed"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = (X[:, 0] > 0).astype(int)
SPACE = {"learning_rate_init": [0.1, 0.3, 0.5]}


def net(**changed):
    given = {
        "classes": [0, 1], "sample_rate": 0.1, "max_steps": 9, "noise_multiplier": 2.0, **changed,
    }  # fmt: skip
    return DPMLPClassifier((4,), **given)


class Dropping(torch.nn.Module):
    """Its masks come from PyTorch's global generator."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, 5), torch.nn.Dropout(0.3), torch.nn.Linear(5, 2)
        )

    def forward(self, inputs):
        return self.layers(inputs)


def dropping():
    options = {"sample_rate": 0.1, "max_steps": 9, "noise_multiplier": 2.0}
    return DPNeuralNetClassifier(Dropping, classes=[0, 1], **options)


def test_modules_are_told_apart_by_the_values_of_their_parameters():
    """PyTorch pickles a tensor with its address: the same script would be another search in each
    process."""

    def digest_of(seed, **given):
        torch.manual_seed(seed)
        module = torch.nn.Sequential(
            torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 2).bfloat16()
        )
        return digest("estimator", DPNeuralNetClassifier(module, classes=[0, 1], **given))

    first, weighted = digest_of(0), digest_of(0, criterion__weight=torch.ones(2))
    assert first == digest_of(0)
    assert weighted == digest_of(0, criterion__weight=torch.ones(2))
    assert len({first, weighted, digest_of(1), digest_of(0, criterion__weight=torch.zeros(2))}) == 4


def random_search(model=None, space=SPACE, n_iter=4, **more):
    return DPRandomSearchCV(model or net(), space, n_iter=Fixed(n_iter), delta=1e-5, **more)


def subset_search(**more):
    options = {"n_iter": Fixed(3), "subset_fraction": 0.5, "delta": 1e-5}
    return DPSubsetSearchCV(net(), SPACE, **options, **more)


def grid_search(**more):
    options = {"n_parts": 3, "selection_epsilon": 1.0, "delta": 1e-5}
    return DPGridSearchCV(net(), SPACE, **options, **more)


PIPE = make_pipeline(FunctionTransformer(), net())
PIPED = {"dpmlpclassifier__learning_rate_init": [0.1, 0.3]}
BY_ADAM = {"lr": [0.1, 0.3], "optimizer": [torch.optim.Adam]}
SEARCHES = {
    "random": random_search,
    "one by one": random_search,
    "refit": partial(random_search, n_iter=1, refit=True),
    "subset": subset_search,
    "grid": grid_search,
    "dropout": partial(random_search, dropping(), BY_ADAM, n_iter=2),
    "pipeline": partial(random_search, PIPE, PIPED, n_iter=3),
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """A child that is forked while PyTorch has threads may wait for them for ever."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _stacked(monkeypatch, request):
    # as where a net of the stack would not fit into the caches
    if "one by one" in request.node.name:
        monkeypatch.setattr(together, "_stack_key", lambda *given: None)


def released(search):
    model = search.best_estimator_
    model = model[-1] if hasattr(model, "steps") else model
    parameters = [value.tolist() for value in model.module_.state_dict().values()]
    return json.dumps(
        [parameters, repr(search.best_params_), repr(getattr(search, "best_score_", None))]
    )


def counted(monkeypatch, dies_at=None):
    """Counts the steps of all trainings in this process, which may die before one of them."""
    steps, honest = [], Stack._step

    def step(stack, parts, t):
        if len(steps) == dies_at:
            os._exit(9)
        steps.append(t)
        return honest(stack, parts, t)

    monkeypatch.setattr(Stack, "_step", step)
    return steps


def killed(make, folder, dies_at):
    """The same in another process, which is dead after so many steps."""

    def fit():
        with pytest.MonkeyPatch.context() as patched:
            counted(patched, dies_at)
            make(checkpoint=folder).fit(X, y)

    process = multiprocessing.get_context("fork").Process(target=fit)
    process.start()
    process.join()
    assert process.exitcode == 9


def uninterrupted(make):
    with pytest.MonkeyPatch.context() as patched:
        steps = counted(patched)
        return released(make().fit(X, y)), len(steps)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_that_was_cut_off_in_a_training_releases_the_same(name, tmp_path, monkeypatch):
    make, folder = (lambda **more: SEARCHES[name](random_state=5, **more)), tmp_path / "checkpoint"
    expected, total = uninterrupted(make)
    dies_at = random.Random(name).randrange(1, total)
    killed(make, folder, dies_at)
    steps = counted(monkeypatch)
    again = make(checkpoint=folder).fit(X, y)
    assert released(again) == expected
    assert len(steps) <= total
    assert holds_a_release_alone(folder)
