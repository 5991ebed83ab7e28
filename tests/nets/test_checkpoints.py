"""Parameters carry what they cost: in copies, pickles, saved parameters, and into every net that
starts from them."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.nets._estimators import cost
from sklearn_dpsearch.privacy._calibration import gaussian_target
from sklearn_dpsearch.privacy._spent import Component, PrivacySpent

from .user_nets import Small, X, y


def net(module=Small, **changed):
    given = {
        "noise_multiplier": None, "target_epsilon": 3.0, "target_delta": 1e-5, "sample_rate": 0.1,
        "max_steps": 12,
    }  # fmt: skip
    return DPNeuralNetClassifier(module, classes=[0, 1], **{**given, **changed})


def fresh_cost():
    return net().privacy_guarantee()


def twice():
    once = fresh_cost()
    return float(dp.compose(once, once).epsilon_at(1e-5))


class Backbone(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first, self.last = first, nn.Linear(6, 2)

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs)))


WAYS = {
    "the module itself": lambda one: one.module_,
    "a copy": lambda one: copy.deepcopy(one.module_),
    "a pickle": lambda one: pickle.loads(pickle.dumps(one.module_)),
    "a pickle of the net": lambda one: pickle.loads(pickle.dumps(one)).module_,
    "a file": lambda one: through_a_file(one.module_),
    "a copy of the net": lambda one: copy.deepcopy(one).module_,
    "the same module moved": lambda one: one.module_.to("cpu").float(),
    "a layer of it": lambda one: Backbone(one.module_.first),
    "a copy of a layer": lambda one: Backbone(copy.deepcopy(one.module_).first),
}


def through_a_file(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_net_that_starts_from_trained_parameters_adds_to_what_they_cost(way):
    first = net().fit(X, y)
    assert 2.9 < first.privacy_spent_.epsilon <= 3.0
    second = net(way(first)).fit(X, y)
    assert second.privacy_spent_.epsilon == pytest.approx(twice(), rel=1e-9)
    assert second.privacy_spent_.epsilon > 3.5
    assert len(second.privacy_spent_.components) == 2
    third = net(second.module_).fit(X, y)
    assert len(third.privacy_spent_.components) == 3
    assert not any("hold nothing" in text for text in third.privacy_spent_.assumptions)
    assert any(
        "as a private training has left them" in text for text in third.privacy_spent_.assumptions
    )


@pytest.mark.slow
def test_a_clone_starts_from_the_same_parameters_at_the_same_cost():
    second = net(net().fit(X, y).module_)
    for one in (second, clone(second), clone(second.fit(X, y))):
        assert one.fit(X, y).privacy_spent_.epsilon == pytest.approx(twice(), rel=1e-9)
        # it starts there again
        assert one.fit(X, y).privacy_spent_.epsilon == pytest.approx(twice(), rel=1e-9)
    assert len(second.partial_fit(X, y).privacy_spent_.components) == 3


def test_a_new_module_costs_its_own_training_alone():
    one = net().fit(X, y)
    assert one.fit(X, y).privacy_spent_.epsilon == one.privacy_guarantee().epsilon_at(1e-5)


@pytest.mark.slow
def test_relations_that_cannot_be_composed_fail_before_training():
    first = net().fit(X, y)  # zero_out
    second = net(first.module_, neighboring="replace_one")
    with pytest.raises(dp.MixedNeighborsError):
        second.fit(X, y)
    assert not hasattr(second, "privacy_spent_")


# --- files of parameters --------------------------------------------------------------------------


def test_saved_parameters_say_what_they_cost(tmp_path):
    path = tmp_path / "parameters.pt"
    first = net().fit(X, y)
    first.save_params(f_params=path)
    assert list(torch.load(path, weights_only=True)) == list(Small().state_dict())
    second = net().initialize()
    second.load_params(f_params=path)
    assert second.privacy_spent_.epsilon == first.privacy_spent_.epsilon
    assert second.privacy_spent_.guarantee == first.privacy_spent_.guarantee
    assert second.partial_fit(X, y).privacy_spent_.epsilon == pytest.approx(twice(), rel=1e-9)
    with open(path, "rb") as file:  # and as an object like a file
        third = net().initialize()
        third.load_params(file)
    assert net(third.module_).fit(X, y).privacy_spent_.epsilon == pytest.approx(twice(), rel=1e-9)
    assert not first.module_._state_dict_hooks
    assert not third.module_._load_state_dict_pre_hooks


def test_a_file_that_does_not_say_what_it_cost_is_an_assumption_that_is_said(tmp_path):
    torch.save(Small().state_dict(), tmp_path / "plain.pt")
    one = net().initialize()
    one.load_params(f_params=tmp_path / "plain.pt")
    one.partial_fit(X, y)
    assert any("put into module_ from elsewhere" in text for text in one.privacy_spent_.assumptions)
    assert len(one.privacy_spent_.components) == 1
    parts = one.partial_fit(X, y).privacy_spent_.assumptions
    assert any("put into module_ from elsewhere" in text for text in parts)
    assert not any("elsewhere" in text for text in net().fit(X, y).privacy_spent_.assumptions)
    members = net().initialize().partial_fit(X, y).privacy_spent_.assumptions
    assert not any("elsewhere" in text for text in members)


def test_parameters_put_into_a_trained_net_are_noticed():
    one = net().fit(X, y)
    parts = copy.deepcopy(one).partial_fit(X, y).privacy_spent_.assumptions
    assert not any("elsewhere" in text for text in parts)
    again = pickle.loads(pickle.dumps(one)).partial_fit(X, y)
    assert not any("elsewhere" in text for text in again.privacy_spent_.assumptions)
    one.module_.load_state_dict(Small().state_dict())
    one.partial_fit(X, y)
    assert any("put into module_ from elsewhere" in text for text in one.privacy_spent_.assumptions)
    assert len(one.privacy_spent_.components) == 2


def test_a_plain_file_in_a_trained_net_never_makes_it_cheaper(tmp_path):
    torch.save(Small().state_dict(), tmp_path / "plain.pt")
    one = net().fit(X, y)
    one.load_params(f_params=tmp_path / "plain.pt")
    assert len(one.partial_fit(X, y).privacy_spent_.components) == 2


def test_files_of_tensors_alone_are_refused(tmp_path):
    one = net().fit(X, y)
    match = "(?s)use_safetensors=True.*would not say.*pickle the net"
    with pytest.raises(dp.PrivacyError, match=match):
        one.save_params(f_params=tmp_path / "parameters.safetensors", use_safetensors=True)


def test_a_module_given_as_an_instance_is_an_assumption_that_is_said():
    parts = net(Small()).fit(X, y).privacy_spent_.assumptions
    assert any("given as a module instance, hold nothing" in text for text in parts)
    assert not any("module instance" in text for text in net().fit(X, y).privacy_spent_.assumptions)


# --- searches -------------------------------------------------------------------------------------


def search(module=Small):
    one = net(module, noise_multiplier=2.0, target_epsilon=None, target_delta=None)
    return DPRandomSearchCV(one, {"lr": [0.1, 0.5]}, n_iter=2, delta=1e-5)


@pytest.mark.slow
def test_the_winner_of_a_search_carries_the_cost_of_the_whole_search():
    done = search().fit(X, y)
    released = done.best_estimator_
    assert released.privacy_spent_.epsilon == done.privacy_spent_.epsilon
    after = net(released.module_).fit(X, y).privacy_spent_
    expected = dp.compose(done.privacy_spent_.guarantee, fresh_cost()).epsilon_at(1e-5)
    assert after.epsilon == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.slow
def test_a_search_that_starts_from_trained_parameters_says_what_it_leaves_out():
    first = net().fit(X, y)
    done = search(first.module_).fit(X, y)
    assert any("given as a trained module" in text for text in done.privacy_spent_.assumptions)
    after = net(done.best_estimator_.module_).fit(X, y).privacy_spent_
    whole = dp.compose(done.privacy_spent_.guarantee, first.privacy_spent_.guarantee, fresh_cost())
    assert after.epsilon == pytest.approx(float(whole.epsilon_at(1e-5)), rel=1e-9)


# --- notes ----------------------------------------------------------------------------------------

GUARANTEES = [
    dp.PureDP(epsilon=0.1),
    dp.ApproxDP(epsilon=1 / 3, delta=1e-7, neighboring="zero_out"),
    dp.DPSGD(noise_multiplier=1.1, sample_rate=0.1, steps=77),
    dp.RenyiDP(orders=np.array([2.0, 3.0]), epsilons=np.array([0.1, 0.7])),
    gaussian_target(0.5),
    dp.mixture([dp.PureDP(epsilon=1.0), dp.PureDP(epsilon=2.0)], [0.25, 0.75]),
    dp.best_of(dp.DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=10), dp.Geometric(5)),
    dp.best_of(dp.PureDP(epsilon=1.0), dp.Poisson(3.0)),
    dp.compose(dp.PureDP(epsilon=1.0), dp.DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=10)),
]


def statement(guarantee):
    options = {"components": (Component(name="a", guarantee=guarantee),), "assumptions": ("ü", "b")}
    return PrivacySpent(guarantee=guarantee, delta=1e-5, **options)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda one: type(one).__name__)
def test_notes_are_text_and_lose_nothing(guarantee):
    module, spent = Small(), statement(guarantee)
    cost.write_notes(module, [spent])
    assert all(type(note) is str for note in vars(module)[cost.NOTE])
    (found,) = cost.costs_on_module(pickle.loads(pickle.dumps(module)))
    assert found.guarantee == guarantee
    assert tuple(found) == tuple(spent)
    for epsilon in (0.0, 0.3, 2.0):
        assert found.delta_at(epsilon) == spent.delta_at(epsilon)
    assert (found.assumptions, found.components[0].name) == (spent.assumptions, "a")


def profile(epsilon):
    return np.exp(-epsilon) * 0.1


def test_guarantees_that_are_not_text_stay_objects_and_are_not_saved_without_their_cost(tmp_path):
    one = net().fit(X, y)
    one.privacy_spent_ = statement(dp.ProfileDP(profile=profile))
    (found,) = cost.costs_on_module(copy.deepcopy(one.module_))
    assert found.guarantee == dp.ProfileDP(profile=profile)
    with pytest.raises(dp.PrivacyError, match="(?s)cannot be written into a file.*Pickle"):
        one.save_params(f_params=tmp_path / "parameters.pt")


def test_a_note_makes_nothing_but_statements():
    spent = {
        "guarantee": {"version": 1, "kind": "PrivacyError"}, "delta": 0.0, "components": [],
        "assumptions": [],
    }  # fmt: skip
    module = Small()
    vars(module)[cost.NOTE] = (
        json.dumps({"token": "a", "spent": {"unit": "record", "release": None, **spent}}),
    )
    with pytest.raises(dp.PrivacyError):
        cost.costs_on_module(module)


def test_notes_hold_no_module_of_the_library():
    module = Small()
    cost.write_notes(module, [statement(guarantee) for guarantee in GUARANTEES])
    assert not any(
        "values." in note or "sklearn_dpsearch" in note for note in vars(module)[cost.NOTE]
    )


def test_copies_of_one_training_count_once_and_two_trainings_twice():
    one, other = net().fit(X, y).module_, net().fit(X, y).module_
    both = nn.ModuleList([copy.deepcopy(one), pickle.loads(pickle.dumps(one))])
    assert len(cost.costs_on_module(both)) == 1
    assert len(cost.costs_on_module(nn.ModuleList([one, other]))) == 2
    merged = Small()
    merged.first, merged.last = copy.deepcopy(one.first), copy.deepcopy(other.last)
    assert len(net(merged).fit(X, y).privacy_spent_.components) == 3


@pytest.mark.slow
def test_a_pickled_module_is_loaded_without_this_library(tmp_path):
    torch.save(nn.Sequential(nn.Linear(4, 2)), tmp_path / "before.pt")
    one = net(nn.Sequential(nn.Linear(4, 2))).fit(X, y)
    torch.save(one.module_, tmp_path / "module.pt")
    code = (
        "import sys, torch; sys.modules['sklearn_dpsearch'] = None\n"
        f"print(torch.load({str(tmp_path / 'module.pt')!r}, weights_only=False)(torch.zeros(1, "
        f"4)).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "[1, 2]" in done.stdout, done.stderr


def test_ready_made_nets_carry_their_cost_too():
    one = DPMLPClassifier(classes=[0, 1], noise_multiplier=2.0, max_steps=10).fit(X, y)
    assert len(net(one.module_).fit(X, y).privacy_spent_.components) == 2
    assert len(one.partial_fit(X, y).privacy_spent_.components) == 2


# --- the seed of the noise ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("make", [
    lambda: net(noise_seed=7),
    lambda: DPMLPClassifier(classes=[0, 1], noise_multiplier=2.0, max_steps=5, noise_seed=7),
])  # fmt: skip
def test_the_seed_of_the_noise_stays_behind(make):
    one = make()
    assert pickle.loads(pickle.dumps(one)).noise_seed == 7  # not yet fitted: a worker needs it
    one.fit(X, y)
    for released in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert released.get_params()["noise_seed"] is None
        np.testing.assert_array_equal(released.predict(X), one.predict(X))
    assert any(
        "noise_seed was given, which voids the guarantee for everybody" in text
        for text in one.privacy_spent_.assumptions
    )
    assert "void" in str(one.privacy_spent_)
    assert "void" in one.privacy_spent_._repr_html_()
