"""Modules of other precision, and modules that are not finished before they see records."""

from __future__ import annotations

import contextlib
import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("torch")
pytest.importorskip("skorch")
import torch
from torch import nn

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPNeuralNetClassifier, DPNeuralNetRegressor
from sklearn_dpsearch.nets.estimators.user_modules import array
from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import flat

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


class Lazy(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.first, self.last = nn.LazyLinear(width), nn.LazyLinear(2)

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs)))


class LazyParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(6, 3), nn.LazyLinear(2)

    def forward(self, values, words):
        return self.last(torch.cat([values, self.words(words).mean(1)], dim=1))


def stated():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def net(module, **changed):
    arguments = {"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 12, "classes": [0, 1], "lr": 0.5, **changed}
    return DPNeuralNetClassifier(module, **arguments)


LONG = {"noise_multiplier": 0.5, "sample_rate": 0.3, "max_steps": 150, "noise_seed": 0, "random_state": 0}


# --- precision ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16])
def test_modules_of_every_precision_are_trained_and_kept_in_single(kind, one_noise):
    given = stated().to(kind)
    before = copy.deepcopy(given)
    one = net(given, noise_seed=1).fit(X, y)
    other = net(copy.deepcopy(given).float(), noise_seed=1).fit(X, y)
    assert {p.dtype for p in one.module_.parameters()} == {torch.float32}
    torch.testing.assert_close(flat(one.module_), flat(other.module_))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert [p.dtype for p in given.parameters()] == [kind] * 4  # what was given is left as it was
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(given.parameters(), before.parameters()))
    assert one.partial_fit(X, y).n_steps_ == 12


def test_buffers_and_weights_of_criteria_follow():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2).double()
            self.register_buffer("scale", torch.full((4,), 0.5, dtype=torch.float64))

        def forward(self, inputs):
            return self.last(inputs * self.scale)

    one = net(Scaled, criterion__weight=torch.tensor([1.0, 2.0], dtype=torch.float64), **{**LONG, "max_steps": 60})
    assert one.fit(X, y).score(X, y) > 0.8


def test_parameters_that_are_no_real_numbers_are_refused():
    class Complex(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn = nn.Parameter(torch.ones(4, 2, dtype=torch.complex64))

        def forward(self, inputs):
            return (inputs.to(torch.complex64) @ self.turn).real

    with pytest.raises(ValueError, match="(?s)'turn' of dtype torch.complex64.*real numbers"):
        net(Complex).fit(X, y)


# --- lazy modules -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("module", [Lazy, nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.LazyLinear(2))])
def test_lazy_modules_train_as_others_do(module):
    one = net(module, **LONG).fit(X, y)
    assert one.score(X, y) > 0.85
    assert {type(layer) for layer in one.module_.modules()} >= {nn.Linear}
    assert not any(isinstance(layer, nn.LazyLinear) for layer in one.module_.modules())
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict_proba(X), one.predict_proba(X))
    clone(one).fit(X, y)


def test_lazy_modules_are_shown_made_up_records_alone():
    """Initial parameters of a lazy layer may depend on what goes through it first."""
    seen = []

    class Noting(Lazy):
        def forward(self, inputs):
            if nn.parameter.is_lazy(self.first.weight):
                seen.append(inputs.clone() if isinstance(inputs, torch.Tensor) else inputs)
            return super().forward(inputs)

    planted = np.full((120, 4), 777.0)
    net(Noting).fit(planted, y)
    assert seen
    assert not any(bool((rows == 777.0).any()) for rows in seen if isinstance(rows, torch.Tensor))


def test_what_a_lazy_module_starts_from_is_the_same_whatever_the_records_are():
    starts = [
        net(Lazy, random_state=0, noise_seed=0, lr=1e-12).fit(values, y).module_ for values in (X, 100 * X[::-1] + 3)
    ]
    torch.testing.assert_close(*map(flat, starts), rtol=0, atol=1e-9)
    assert not torch.equal(flat(starts[0]), flat(net(Lazy, random_state=1, lr=1e-12).fit(X, y).module_))


def test_lazy_layers_do_not_repeat_the_numbers_of_others():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.LazyLinear(4)

        def forward(self, inputs):
            return self.last(torch.relu(self.first(inputs)))

    one = net(Mixed, classes=range(4), random_state=0, lr=1e-12).fit(X, y)
    assert float((one.module_.first.weight - one.module_.last.weight).detach().abs().min()) > 1e-6


@pytest.mark.slow
def test_lazy_modules_take_inputs_by_name_and_searches():
    data = {"values": X, "words": rng.integers(0, 6, (120, 3))}
    assert net(LazyParts).fit(data, y).predict(data).shape == (120,)
    search = DPRandomSearchCV(
        net(Lazy, noise_multiplier=None), {"module__width": [3, 5]}, n_iter=3, epsilon=5.0, delta=1e-5, random_state=0
    )
    assert search.fit(X, y).best_estimator_.module_.first.out_features in (3, 5)


def test_lazy_modules_go_on_from_what_was_trained():
    one = net(Lazy, lr=1e-12).initialize()
    one.partial_fit(X, y)
    before = flat(one.module_)
    one.partial_fit(X, y)
    torch.testing.assert_close(flat(one.module_), before)
    assert len(one.privacy_spent_.components) == 2


def test_saved_parameters_are_loaded_into_a_lazy_module(tmp_path):
    one = net(Lazy).fit(X, y)
    one.save_params(f_params=tmp_path / "parameters.pt")
    other = net(Lazy, lr=1e-12, warm_start=True).initialize()
    other.load_params(f_params=tmp_path / "parameters.pt")
    other.partial_fit(X, y)
    torch.testing.assert_close(flat(other.module_), flat(one.module_))
    assert len(other.privacy_spent_.components) == 2


def test_a_lazy_module_that_takes_no_made_up_records_is_told_to_state_its_shapes():
    class Picky(Lazy):
        def forward(self, inputs):
            raise RuntimeError("never")

    with pytest.raises(ValueError, match="(?s)Picky has lazy layers.*State the shapes"):
        net(Picky).fit(X, y)


def test_lazy_convolutions_and_regressions_work():
    images = rng.normal(size=(60, 1, 6, 6))
    module = nn.Sequential(nn.LazyConv2d(2, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
    one = DPNeuralNetRegressor(module, noise_multiplier=1.0, sample_rate=0.1, max_steps=5)
    assert one.fit(images, images[:, 0, 0, 0]).predict(images).shape == (60,)


class LazyNorm(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.Linear(3, 2))


@pytest.mark.parametrize(
    ("module", "match"), [(LazyNorm, "statistics over the records of a batch"), (LazyNorm(), "cannot be copied")]
)
def test_lazy_batch_norm_is_refused_as_batch_norm_is(module, match):
    with pytest.raises((ValueError, LeakingEstimatorError), match=match):
        net(module).fit(X, y)


def test_a_list_is_read_number_by_number_and_no_type_tells_the_longest_text():
    for last in (1, 1.5, "2", None):
        with contextlib.suppress(ValueError):
            assert array("X", [[2**53 + 1], [last]]).dtype == np.float64
    with pytest.raises(ValueError, match="got an array of text.$"):
        array("X", np.array([["a"], ["the longest text"]]))
