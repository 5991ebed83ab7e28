"""What an optimizer keeps goes on in the next ``partial_fit``: two trainings are one long one, and nothing leaks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("torch")
pytest.importorskip("skorch")
import torch
from skorch.callbacks import Freezer
from torch import nn

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier

from .toys import flat

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
#: Whole batches, and no noise to speak of: steps that can be counted.
EXACT = {"noise_multiplier": 1e-12, "sample_rate": 1.0, "random_state": 0}
OPTIMIZERS = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {}),
    (torch.optim.AdamW, {"weight_decay": 0.1}),
]


def module():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


def net(optimizer=torch.optim.SGD, options=None, **changed):
    own = {f"optimizer__{name}": value for name, value in ({"momentum": 0.9} if options is None else options).items()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = module()
    return DPNeuralNetClassifier(
        made, optimizer=optimizer, **{**EXACT, "max_steps": 6, "classes": [0, 1], "lr": 0.05, **own, **changed}
    )


def table_net(**changed):
    arguments = {"solver": "adam", "learning_rate_init": 0.05, "learning_rate": "constant", "max_steps": 6}
    arguments["max_grad_norm"] = 1.0  # by rule it depends on the number of steps
    return DPMLPClassifier((5,), **{**EXACT, **arguments, **changed})


def partly(one, first=2, last=4):
    """Two trainings, of so many steps."""
    one.set_params(max_steps=first).partial_fit(X, y)
    return one.set_params(max_steps=last).partial_fit(X, y)


@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS)
def test_two_trainings_take_the_steps_of_one(optimizer, options):
    whole, parts = net(optimizer, options).fit(X, y), partly(net(optimizer, options))
    torch.testing.assert_close(flat(parts.module_), flat(whole.module_), rtol=1e-4, atol=1e-6)
    assert len(parts.privacy_spent_.components) == 2


def test_without_what_it_kept_the_steps_would_be_others():
    """The test above can fail."""
    whole, parts = net().fit(X, y), net()
    parts.set_params(max_steps=2).partial_fit(X, y)
    del parts.optimizer_memory_
    parts.set_params(max_steps=4).partial_fit(X, y)
    assert float((flat(parts.module_) - flat(whole.module_)).abs().max()) > 1e-3


@pytest.mark.parametrize("changed", [{}, {"solver": "sgd", "momentum": 0.9}, {"solver": "adamw", "alpha": 0.1}])
def test_ready_made_nets_go_on_in_the_same_way(changed):
    whole = table_net(**changed).fit(X, y)
    parts = table_net(**changed, classes=[0, 1])
    torch.testing.assert_close(flat(partly(parts).module_), flat(whole.module_), rtol=1e-4, atol=1e-6)


def test_warm_starts_go_on_and_new_fits_do_not():
    warm = net(warm_start=True, max_steps=2).fit(X, y).set_params(max_steps=4).fit(X, y)
    whole = net().fit(X, y)
    torch.testing.assert_close(flat(warm.module_), flat(whole.module_), rtol=1e-4, atol=1e-6)
    again = warm.set_params(warm_start=False, max_steps=6).fit(X, y)
    torch.testing.assert_close(flat(again.module_), flat(whole.module_), rtol=1e-4, atol=1e-6)
    assert not hasattr(clone(whole), "optimizer_memory_")


@pytest.mark.slow
def test_what_belongs_to_other_parameters_or_another_optimizer_is_not_used(tmp_path):
    def fresh_start(one):
        other = net(one.optimizer)
        other.initialize()
        other.module_.load_state_dict(one.module_.state_dict())
        return other.set_params(lr=one.lr, max_steps=one.max_steps).partial_fit(X, y)

    trained = net(max_steps=3).fit(X, y)
    trained.save_params(f_params=tmp_path / "parameters.pt")

    loaded = net().fit(X, y)
    loaded.load_params(f_params=tmp_path / "parameters.pt")
    expected = fresh_start(copy.deepcopy(loaded))
    torch.testing.assert_close(flat(loaded.partial_fit(X, y).module_), flat(expected.module_))

    other = net().fit(X, y)
    with torch.no_grad():
        other.module_[0].weight.add_(1.0)
    expected = fresh_start(copy.deepcopy(other))
    torch.testing.assert_close(flat(other.partial_fit(X, y).module_), flat(expected.module_))

    for optimizer in (torch.optim.Adam, torch.optim.AdamW):
        changed = net(options={}).fit(X, y)
        changed.optimizer = optimizer  # skorch's set_params cannot, once a net is initialised
        assert bool(flat(changed.partial_fit(X, y).module_).isfinite().all())
    frozen = net().fit(X, y).set_params(callbacks=[Freezer("0.*")])
    assert bool(flat(frozen.partial_fit(X, y).module_).isfinite().all())


MARK = 1.2345678e-3


def test_nothing_is_kept_but_functions_of_noisy_gradients():
    """A record that is planted shows nowhere; the sizes are those of the parameters."""
    planted = X.copy()
    planted[:, 2] = MARK
    for optimizer, options in OPTIMIZERS:
        one = net(optimizer, options, noise_multiplier=1.0, noise_seed=987654321).fit(planted, y)
        held = pickle.dumps(one.optimizer_memory_)
        assert np.float32(MARK).tobytes() not in held
        assert (987654321).to_bytes(4, "little") not in held
        assert len(held) < 4 * 2 * 4 * flat(one.module_).numel() + 4000


@pytest.mark.slow
def test_the_winner_of_a_search_goes_on_and_nothing_of_the_others_is_kept():
    one = net(noise_multiplier=None, random_state=None, sample_rate=0.2)
    search = DPRandomSearchCV(one, {"lr": [0.05, 0.1]}, n_iter=4, epsilon=5.0, delta=1e-5, random_state=0).fit(X, y)
    best = search.best_estimator_
    kept = best.optimizer_memory_["kept"]["state"][0]
    assert kept.numel() == flat(best.module_).numel()  # of one net, not a view of a stack of several
    assert kept.untyped_storage().nbytes() == 4 * kept.numel()
