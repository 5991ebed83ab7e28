"""First mistakes of a newcomer are told in his own words, when they are made."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.privacy import PrivacyError

nets = pytest.importorskip("sklearn_dpsearch.nets")
from torch import nn

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, (80, 4)).astype(np.float32), RNG.integers(0, 2, 80)


def net(module=None, **given):
    settings = {
        "classes": [0, 1], "sample_rate": 0.2, "max_epochs": 1, "noise_multiplier": 1.0, **given,
    }  # fmt: skip
    return nets.DPNeuralNetClassifier(nn.Linear(4, 2) if module is None else module, **settings)


@pytest.mark.parametrize(("make", "wrong", "meant"), [
    (net, "epsilon", "target_epsilon"),
    (nets.DPLogisticRegression, "epsilon", "target_epsilon"),
    (nets.DPTabularClassifier, "epsilon", "target_epsilon"),
    (DPGradientBoostingClassifier, "epsilon", "target_epsilon"),
    (DPGradientBoostingRegressor, "n_estimators", "max_iter"),
])  # fmt: skip
def test_arguments_of_other_libraries_are_refused_when_the_model_is_made(make, wrong, meant):
    with pytest.raises(TypeError, match=rf"does not have\. .*Unknown: {wrong}; {meant} is meant\."):
        make(**{wrong: 1})


def test_all_unknown_arguments_are_named_at_once():
    match = r"epsilon; target_epsilon .*delta; target_delta .*epochs; max_epochs"
    with pytest.raises(TypeError, match=match):
        net(epsilon=3.0, delta=1e-5, epochs=5)
    with pytest.raises(TypeError, match=r"Unknown: itself\.$"):  # self is no argument
        DPGradientBoostingClassifier(itself=3)


def test_arguments_of_parts_and_of_subclasses_are_taken():
    class Own(nets.DPNeuralNetClassifier):
        def __init__(self, module, own=1, **kwargs):
            super().__init__(module, **kwargs)
            self.own = own

    options = {"classes": [0, 1], "noise_multiplier": 1.0}
    made = Own(nn.Linear, module__in_features=4, module__out_features=2, own=3, **options)
    assert clone(made).own == 3
    assert clone(made.set_params(module__bias=False)).get_params()["module__bias"] is False


@pytest.mark.parametrize(("make", "entry"), [
    (nets.DPTabularClassifier, r"\[0, 1\]"),
    (DPGradientBoostingClassifier, r"\[0, 1\]"),
    (DPGradientBoostingRegressor, r"\(0, 100\)"),
])  # fmt: skip
def test_a_target_that_the_schema_lacks_is_to_be_added_to_it(make, entry):
    with pytest.raises(KeyError, match=rf"Add 'target': {entry}") as caught:
        make({"age": (18, 90)}, target="target", target_mu=1.0).fit(X[:, :1], Y)
    assert "Did you mean" not in str(caught.value)


def tokens_net(**given):
    return net(nn.Sequential(nn.Embedding(30, 3), nn.Flatten(), nn.Linear(12, 2)), **given)


def test_tokens_that_are_not_whole_are_told_so():
    with pytest.raises(PrivacyError, match="embeddings need whole numbers"):
        tokens_net().fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_a_search_over_an_embedding_is_rehearsed_with_tokens_that_it_knows(dtype):
    """Made-up tokens of -1, 0 and 1 were refused before the first record."""
    tokens = RNG.integers(0, 30, (80, 4)).astype(dtype)
    options = {"n_iter": 2, "epsilon": 5.0, "delta": 1e-4}
    search = DPRandomSearchCV(tokens_net(noise_multiplier=None), {"lr": [0.1, 0.5]}, **options)
    assert search.fit(tokens, Y).predict(tokens).shape == (80,)


@pytest.mark.parametrize(("module", "name", "instead"), [
    ("nets", "DPTabularEnsembleClassifier", "Average the predictions of two released models"),
    ("report", "CostPartsDisplay", "examples/guides/pictures.py"),
    ("report", "nothing", "has no attribute 'nothing'$"),
    ("nets", "nothing", "has no attribute 'nothing'$"),
])  # fmt: skip
def test_a_name_that_is_gone_says_what_serves_instead(module, name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(importlib.import_module(f"sklearn_dpsearch.{module}"), name)
