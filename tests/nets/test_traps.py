"""Nineteen ways to train a private net wrongly, each met elsewhere, and that none of them is possible here."""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import cross_validate

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.validators import ModuleValidator
from torch import nn

from sklearn_dpsearch.nets import DPMLPClassifier, DPNeuralNetClassifier, DPNeuralNetRegressor
from sklearn_dpsearch.nets.estimators.settings import settings_of
from sklearn_dpsearch.privacy import DPSGD, LeakingEstimatorError

from .toys import ADVERSARIAL, CPU, clipped_sums, flat, table, traced

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")

X, y = (one.numpy() for one in table(80, classes=2))
#: Of the released parameters, and so different for each training.
DIGEST = "_known_parameters_"


class Normed(nn.Module):
    """A net that goes through Opacus's gradients per record."""

    def __init__(self, width=6, outputs=2):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outputs))

    def forward(self, inputs):
        return self.layers(inputs)


def net(module=Normed, kind=DPNeuralNetClassifier, **changed):
    given = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": 6, "lr": 0.5}
    classes = {"classes": [0, 1]} if kind is DPNeuralNetClassifier else {}
    return kind(module, **{**classes, **given, **changed})


# --- privacy ----------------------------------------------------------------------------------------------------


def test_01_pickles_of_a_trained_module_hold_no_gradient_of_any_record():
    trap = GradSampleModule(Normed(), loss_reduction="sum")
    nn.CrossEntropyLoss(reduction="sum")(trap(torch.from_numpy(X)), torch.from_numpy(y)).backward()
    fresh = len(pickle.dumps(Normed()))
    assert len(pickle.dumps(trap._module.layers[0].weight.grad_sample)) > 2 * fresh
    one = net(sample_rate=1.0).fit(X, y)
    assert len(pickle.dumps(one.module_)) < fresh + 1500  # and what it cost
    assert not any(hasattr(p, "grad_sample") for p in one.module_.parameters())
    assert not any(hasattr(p, "summed_grad") for p in one.module_.parameters())


def test_02_weighted_losses_do_not_let_one_record_weigh_the_others():
    weights = torch.tensor([500.0, 1.0])
    one = net(criterion=nn.CrossEntropyLoss, criterion__weight=weights, criterion__reduction="mean").fit(X, y)
    assert one.criterion_.reduction == "sum"


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(6), nn.BatchNorm1d(6, affine=False)])
def test_03_batch_norm_is_refused_with_and_without_parameters(layer):
    module = nn.Sequential(nn.Linear(5, 6), layer, nn.Linear(6, 2))
    if not layer.affine:
        assert ModuleValidator.validate(module, strict=False) == []  # Opacus's own check does not see it
    with pytest.raises(LeakingEstimatorError, match="statistics over the records"):
        net(module).fit(X, y)


@pytest.mark.parametrize("module", [Normed, nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))])
def test_04_one_extreme_record_does_not_destroy_the_model(module):
    spoiled = X.astype(np.float64)
    spoiled[: len(ADVERSARIAL)] = np.array(ADVERSARIAL)[:, None]
    assert flat(net(module, sample_rate=1.0).fit(spoiled, y).module_).isfinite().all()


def test_05_noise_does_not_come_from_pytorchs_constant_generator():
    found = {flat(net(random_state=0).fit(X, y).module_).numpy().tobytes() for _ in range(3)}
    assert len(found) == 3


def _one_fit(_):
    return flat(DPMLPClassifier(noise_multiplier=1.0, max_steps=2, random_state=0).fit(X, y).module_).tolist()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_06_forked_workers_and_seeded_users_do_not_repeat_the_noise():
    torch.manual_seed(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(_one_fit, range(4), chunksize=1)
    torch.manual_seed(0)
    found.append(_one_fit(0))
    torch.manual_seed(0)
    found.append(_one_fit(0))
    assert len({tuple(one) for one in found}) == 6


def test_07_noise_needs_no_library_that_cannot_be_installed():
    net().fit(X, y)
    assert "torchcsprng" not in sys.modules


def test_08_small_rates_are_exact():
    from sklearn_dpsearch.nets.randomness import Secrets
    from sklearn_dpsearch.nets.sampling import PoissonBatches

    own = Secrets(0)
    found = len(PoissonBatches(own.coins, own.rows, 1e-7, 10**6)._draw_all(10**6)[0])
    assert abs(found - 100_000) < 5 * np.sqrt(100_000)  # by single-precision uniforms: 119 000


def test_09_no_validation_split_no_history_no_print_no_callback(capsys):
    one = net().fit(X, y)
    assert one.train_split is None
    assert not one.history_
    assert not one.callbacks_
    assert capsys.readouterr().out == ""
    assert one.classes_.tolist() == [0, 1]  # declared
    with pytest.raises(ValueError, match="needs classes="):
        net(classes=None).fit(X, y)


CALLS = itertools.count()


class Interrupted(Normed):
    def forward(self, inputs):
        if next(CALLS) > 16:  # in training
            raise KeyboardInterrupt
        return super().forward(inputs * torch.ones(inputs.shape[1:]))  # no graph


def test_10_an_interrupt_is_a_failed_fit_not_a_fitted_net():
    one = net(Interrupted, sample_rate=1.0)
    with pytest.raises(KeyboardInterrupt):
        one.fit(X, y)
    assert not one.initialized_
    assert not hasattr(one, "privacy_spent_")


def test_11_whether_a_label_occurs_is_not_told_by_an_error_in_training():
    for labels in (y, np.where(np.arange(80) == 7, 2, y)):
        with pytest.raises(ValueError, match="outputs of shape"):
            net(classes=[0, 1, 2]).fit(X, labels)
    assert net(classes=[0, 1, 2], module__outputs=3).fit(X, y).predict_proba(X).shape == (80, 3)


# --- accounting -------------------------------------------------------------------------------------------------


def test_12_rate_steps_and_batch_size_are_arithmetic_on_arguments_and_the_number_of_records():
    for n in (93, 99, 105, 147, 1797):
        one = net(sample_rate=None, batch_size=3, max_steps=None, max_epochs=1)
        settings = settings_of(one, n)
        assert settings.sample_rate == one.privacy_guarantee(n).sample_rate == 3 / n
        assert settings.steps == round(n / 3)
        task = _task(one, settings, n)
        assert task.expected_batch_size == pytest.approx(3.0, rel=1e-12)
        assert isinstance(task.expected_batch_size, float)
        assert (task.steps, task.sample_rate) == (settings.steps, settings.sample_rate)


def test_12_a_stated_batch_size_divides_the_sums_whatever_the_number_of_records():
    one = net(sample_rate=0.1, batch_size=3.5)
    for n in (0, 80, 10**6):
        assert one.privacy_guarantee(n).sample_rate == 0.1
        assert _task(one, settings_of(one, n), n).expected_batch_size == 3.5


def _task(one, settings, n):
    return copy.deepcopy(one).initialize()._task(settings, SimpleNamespace(units=n), ())


@pytest.mark.slow
def test_13_nothing_tells_the_number_of_records_of_a_secret_subset():
    """As in a subset search, which tells the expected number."""
    one = net(sample_rate=0.165, batch_size=16.5, random_state=0).fit(X, y)
    other = net(sample_rate=0.165, batch_size=16.5, random_state=0).fit(X[:-7], y[:-7])
    assert one.privacy_spent_.to_dict() == other.privacy_spent_.to_dict()
    mine, theirs = (
        {key: value for key, value in vars(each).items() if isinstance(value, (int, float, str)) and key != DIGEST}
        for each in (one, other)
    )
    assert mine == theirs
    assert len(pickle.dumps(one)) == len(pickle.dumps(other))
    assert _task(one, settings_of(one), 80).expected_batch_size == _task(one, settings_of(one), 73).expected_batch_size


# --- breakage ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_14_no_optimizer_of_opacus_is_left_to_break_pickling():
    one = net().fit(X, y)
    assert not any(isinstance(value, DPOptimizer) for value in vars(one).values())
    again = pickle.loads(pickle.dumps(copy.deepcopy(one)))
    again.partial_fit(X, y)
    done = cross_validate(net(), X, y, cv=2, return_estimator=True)
    assert all(each.partial_fit(X, y).initialized_ for each in done["estimator"])


def test_15_parameters_keep_their_names():
    one = net().fit(X, y)
    assert list(one.module_.state_dict()) == list(Normed().state_dict())
    Normed().load_state_dict(one.module_.state_dict())
    assert type(one.module_) is Normed


def test_16_predicting_does_not_prevent_the_next_warm_start():
    one = net(warm_start=True).fit(X, y)
    one.predict(X)
    assert not one.module_.training
    assert one.fit(X, y).n_steps_ == 6
    with_dropout = net(nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.5), nn.Linear(6, 2)), warm_start=True).fit(X, y)
    with_dropout.predict(X)
    assert len(with_dropout.fit(X, y).privacy_spent_.components) == 2


@pytest.mark.slow
@pytest.mark.parametrize("module", [Normed, nn.Linear(5, 2)])
def test_17_empty_batches_are_steps_of_noise_and_nothing_is_nan(module):
    one = net(module, sample_rate=0.01, max_steps=60).fit(X, y)
    assert one.privacy_spent_.epsilon == DPSGD(
        noise_multiplier=1.0, sample_rate=0.01, steps=60, neighboring="zero_out"
    ).epsilon_at(1e-5)
    assert flat(one.module_).isfinite().all()


def test_18_closures_are_refused_and_the_default_loss_takes_what_the_module_gives():
    with pytest.raises(ValueError, match=r"(?s)LBFGS.*given gradients"):
        net(optimizer=torch.optim.LBFGS).fit(X, y)
    assert net().criterion is nn.CrossEntropyLoss
    np.testing.assert_allclose(net().fit(X, y).predict_proba(X).sum(axis=1), 1.0, rtol=1e-5)
    assert net(kind=DPNeuralNetRegressor, module__outputs=1).fit(X, X[:, 0]).predict(X).shape == (80,)


def test_19_ghost_clipping_needs_nothing_of_opacus():
    from sklearn_dpsearch.nets.engines.linear import LinearEngine

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.only = nn.Linear(5, 2)

        def forward(self, inputs):
            return self.only(inputs)

    made = Own()
    inputs, targets = table(30, classes=2)
    criterion = nn.CrossEntropyLoss(reduction="sum")
    found = clipped_sums(traced(made, criterion), made, inputs, targets)
    sums = clipped_sums(LinearEngine(made.only, criterion, CPU), made.only, inputs, targets)
    torch.testing.assert_close(found, sums, rtol=1e-5, atol=1e-6)


def test_a_fit_warns_of_nothing():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        net().fit(X, y)
        net(nn.Linear(5, 2), optimizer=torch.optim.Adam).fit(X, y)
    assert [str(one.message) for one in told] == []
