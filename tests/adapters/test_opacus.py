"""skorch nets that Opacus makes private: what they state, what is checked, and what is released."""

from __future__ import annotations

import io
import pickle
import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")

import dp_accounting
import skorch
import torch
from opacus import PrivacyEngine
from scipy.stats import norm
from sklearn.base import clone
from skorch.callbacks import Checkpoint, EarlyStopping, LRScheduler
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch._process import rehearsing, reseed
from sklearn_dpsearch.adapters import _opacus as opacus
from sklearn_dpsearch.adapters import adapter_for, training_run
from sklearn_dpsearch.adapters._foreign_skorch_nets import SkorchAdapter
from sklearn_dpsearch.adapters._opacus import OpacusAdapter, OpacusPlan, history_of, plan_of
from sklearn_dpsearch.ledger import PrivacyLedger

from ..adapters import opacus_nets as nets
from ..search.toys import search_of
from .opacus_nets import blobs, net

pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus's own

X, y = blobs()
OPACUS = OpacusAdapter()


def trained(model, n=400, X=X, y=y):
    """A model as a search trains it, planned for n records."""
    OPACUS.for_records(model, n)
    OPACUS.prepare(model)
    return model.fit(X, y)


# --- the plan -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [nets.Mixed, nets.Own])
@pytest.mark.parametrize(
    ("size", "n", "batches"), [(100, 1000, 10), (100, 1001, 11), (-1, 1000, 1), (2000, 1000, 1)]
)
def test_the_guarantee_is_dp_sgd_with_the_rate_of_opacus(kind, size, n, batches):
    found = training_run(net(kind, noise_multiplier=2.0, batch_size=size), n).guarantee
    assert found == dp.DPSGD(
        noise_multiplier=2.0,
        sample_rate=min(1.0, 1 / batches + 2**-23),
        steps=3 * batches,
        neighboring="zero_out",
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nets.Mixed, nets.Own])
def test_the_stated_epsilon_is_that_of_dp_accounting_for_the_history_of_opacus(kind):
    model = trained(net(kind, noise_multiplier=1.5))
    (noise, rate, steps), *others = history_of(model.optimizer_)
    assert others == []
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(
        dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)), steps
    )
    stated = training_run(net(kind, noise_multiplier=1.5), len(X)).guarantee.epsilon_at(1e-5)
    assert stated == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 2, 49, 92, 93, 99, 211, 1000])
def test_the_plan_has_the_rate_and_the_steps_of_opacus(batches):
    data = torch.utils.data.TensorDataset(torch.zeros(batches, 2))
    planned = plan_of(net(noise_multiplier=1.0, batch_size=1, max_epochs=1), batches)
    module = nn.Linear(2, 1)
    _, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=opacus.of_batches(DataLoader(data, batch_size=1), planned.batches),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    noted = optimizer.step_hook.__closure__
    rates = [cell.cell_contents for cell in noted if isinstance(cell.cell_contents, float)]
    assert rates == [planned.sample_rate]
    assert len(loader) == planned.steps
    assert loader.sample_rate <= planned.guarantee.sample_rate


def test_a_record_is_drawn_no_more_often_than_planned():
    """``torch.rand`` has 24 bits, so more of its values than a share of q lie below q."""
    for batches in (3, 7, 93, 1000):
        rate = np.float32(1 / batches)
        below = np.ceil(np.float64(rate) * 2**24)
        bound = OpacusPlan(batches=batches, epochs=1, noise_multiplier=1.0).guarantee.sample_rate
        assert below / 2**24 <= bound


def test_a_plan_is_for_a_number_of_records_whatever_number_is_trained_on():
    model = net(noise_multiplier=1.0)
    OPACUS.for_records(model, 1000)
    assert plan_of(model, 10) == plan_of(net(noise_multiplier=1.0), 1000)
    OPACUS.for_records(model, 500)
    assert plan_of(model, None).batches == 10


def test_a_rehearsal_takes_few_batches_of_the_plan():
    with rehearsing():
        OPACUS.for_records(model := net(noise_multiplier=1.0), 10**6)
        assert plan_of(model, None).batches == 10**4
        OPACUS.prepare(model)
    assert plan_of(model, None).batches == 3


def test_nothing_is_promised_without_a_number_of_records():
    found = training_run(net(noise_multiplier=1.0), None).guarantee
    assert found.epsilon_at(0.5) == np.inf
    assert found.neighboring == "zero_out"
    with pytest.raises(dp.PrivacyError, match="Give n_samples"):
        net(noise_multiplier=1.0).privacy_guarantee()
    expected = training_run(net(noise_multiplier=1.0), 1000).guarantee
    assert net(noise_multiplier=1.0).privacy_guarantee(1000) == expected


def test_noise_is_scaled_by_the_parameter_that_states_it():
    assert OPACUS.scaled_privacy(net(noise_multiplier=3.0), 2.0) == {"noise_multiplier": 1.5}
    assert OPACUS.scaled_privacy(net(), 2.0) == {"noise_multiplier": 0.5}
    assert OPACUS.scaled_privacy(net(nets.ByEpsilon), 2.0) == {"target_epsilon": 6.0}


# --- who is recognised ----------------------------------------------------------------------------


class Stated(nets.Own):
    def privacy_guarantee(self, n_samples=None):
        return dp.DPSGD(noise_multiplier=9.0, sample_rate=0.1, steps=1)


class WithEvent(nets.Own):
    dp_event = dp_accounting.GaussianDpEvent(9.0)
    neighboring_relation = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


class Derived(nets.Own):
    pass


def test_nets_of_others_are_recognised_by_their_noise():
    for kind in (nets.Mixed, nets.Own, nets.ByEpsilon, Derived):
        assert type(adapter_for(net(kind))) is OpacusAdapter
    # their released models are stripped, as those of declared nets are
    for kind in (Stated, WithEvent):
        assert type(adapter_for(net(kind))) is SkorchAdapter
    with pytest.raises(dp.UnknownGuaranteeError):
        adapter_for(net(skorch.NeuralNetClassifier))


def test_a_subclass_of_a_net_of_ours_is_not_taken_for_one_of_opacus():
    from sklearn_dpsearch.nets import DPNeuralNetClassifier

    class Mine(DPNeuralNetClassifier):
        pass

    with pytest.raises(dp.UnknownGuaranteeError):
        adapter_for(Mine(nets.MLP, classes=[0, 1], noise_multiplier=1.0, sample_rate=0.1))


# --- wrong parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize(("changed", "text"), [
    ({"train_split": skorch.dataset.ValidSplit(5)}, "train_split=None"),
    ({"classes": None}, r"classes=\[\.\.\.\]"),
    ({"iterator_train__generator": torch.Generator()}, "its seed tells"),
    ({"callbacks": [EarlyStopping()]}, "EarlyStopping"),
    ({"callbacks": [("best", Checkpoint)]}, "Checkpoint"),
    ({"callbacks": [LRScheduler("ReduceLROnPlateau")]}, "ReduceLROnPlateau"),
    ({"callbacks": [LRScheduler(torch.optim.lr_scheduler.ReduceLROnPlateau)]}, "ReduceLROnPlateau"),
])  # fmt: skip
def test_looks_at_records_without_noise_are_refused(changed, text):
    with pytest.raises(dp.LeakingEstimatorError, match=text):
        training_run(net(noise_multiplier=1.0, **changed), 1000)


@pytest.mark.parametrize(("changed", "text"), [
    ({}, "no noise"),
    ({"noise_multiplier": 1.0, "target_epsilon": 1.0}, "is needed"),
    ({"target_epsilon": 1.0}, "target_delta"),
    ({"noise_multiplier": 0.0}, "noise_multiplier=0.0"),
    ({"noise_multiplier": np.nan}, "noise_multiplier=nan"),
    ({"noise_multiplier": True}, "noise_multiplier=True"),
    ({"noise_multiplier": 1.0, "max_epochs": 1.5}, "max_epochs=1.5"),
    ({"noise_multiplier": 1.0, "batch_size": 0}, "batch_size=0"),
    ({"noise_multiplier": 1.0, "iterator_train": list}, "iterator_train"),
])  # fmt: skip
def test_parameters_without_a_guarantee_are_refused(changed, text):
    with pytest.raises(dp.PrivacyError, match=text):
        training_run(net(**changed), 1000)


def test_callbacks_that_count_steps_are_allowed():
    for callbacks in (
        [LRScheduler("StepLR", step_size=2)],
        [("rate", LRScheduler("StepLR", step_size=2))],
        "disable",
    ):
        training_run(net(noise_multiplier=1.0, callbacks=callbacks), 1000)


# --- the history ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nets.Mixed, nets.Own])
def test_a_training_as_planned_passes(kind):
    OPACUS.finish(trained(net(kind, noise_multiplier=1.0)))
    # 93 batches, of which Opacus draws 92; of 400 records the first, at which Opacus fails if it is
    # empty, would be so once in 74 times
    OPACUS.finish(trained(net(kind, noise_multiplier=1.0), 9300, *blobs(9300)))


@pytest.mark.slow
@pytest.mark.parametrize("batches", [93, 211])
def test_a_net_whose_engine_calibrates_its_noise_has_at_least_the_planned_noise(batches):
    records = blobs(40 * batches)
    options = {"accountant": "prv", "batch_size": 40, "max_epochs": 1, "target_epsilon": 8.0}
    OPACUS.finish(trained(net(nets.ByEpsilon, **options), len(records[1]), *records))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "text"), [
    (nets.LessNoise, r"\(0\.5, 0\.25, 12\)"), (nets.Longer, r"\(1\.0, 0\.25, 16\)"),
    (nets.InTwoParts, r"\(1\.0, 0\.25, 4\)"), (nets.SmallerBatches, r"\(1\.0, 0\.025, 120\)"),
    (nets.Adaptive, "AdaClipDPOptimizer"), (nets.Seeded, "seed of PyTorch"),
    (nets.NotPrivate, r"torch\.optim\.sgd\.SGD"),
])  # fmt: skip
def test_another_training_than_the_planned_one_is_refused(kind, text):
    with pytest.raises(dp.LeakingEstimatorError, match=text):
        OPACUS.finish(trained(net(kind, noise_multiplier=1.0)))


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.ledger", epsilon=100.0, delta=1e-5)


@pytest.mark.parametrize(("kind", "module", "text"), [
    (nets.NotPrivate, nets.MLP, r"torch\.optim\.sgd\.SGD"),
    (nets.Own, nets.Counting, r"\['mean'\]"), (nets.LessNoise, nets.MLP, "planned was"),
])  # fmt: skip
def test_a_ledger_hands_out_no_net_that_was_not_trained_as_entered(ledger, kind, module, text):
    with pytest.raises(dp.LeakingEstimatorError, match=text):
        ledger.fit(net(kind, module, noise_multiplier=1.0), X, y)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("kind", [nets.Mixed, nets.Own])
def test_a_ledger_trains_a_net_as_planned_with_noise_that_no_seed_tells(ledger, kind, capsys):
    weights = []
    for _ in range(2):
        torch.manual_seed(0)
        model = ledger.fit(net(kind, noise_multiplier=1.0, verbose=1), X, y)
        weights.append(model.module_.last.bias.tolist())
    assert weights[0] != weights[1]
    assert torch.initial_seed() != 0  # a fit in another thread may draw
    expected = training_run(net(kind, noise_multiplier=1.0), len(X)).guarantee
    assert [entry.guarantee for entry in ledger.entries()] == [expected] * 2
    assert capsys.readouterr().out == ""  # skorch prints exact losses
    with pytest.raises(TypeError, match="Found X of type dict"):
        ledger.fit(net(kind, noise_multiplier=1.0), {"X": X}, y)


def test_a_net_of_opacus_is_not_trained_in_a_block_that_cannot_enter_it(ledger):
    model = net(noise_multiplier=1.0)
    with ledger, pytest.raises(dp.PrivacyError, match=r"Write ledger\.fit\(net, X, y\)"):
        model.fit(X, y)
    with ledger:
        sent = pickle.dumps(model)
    with pytest.raises(dp.PrivacyError, match=r"Write ledger\.fit\(net, X, y\)"):
        clone(pickle.loads(sent)).fit(X, y)  # as a worker does
    assert ledger.entries() == ()
    model.fit(X, y)


def test_a_module_that_sets_the_seed_of_pytorch_is_refused():
    reseed()  # as each run does: an earlier test may have set the same seed
    with pytest.raises(dp.LeakingEstimatorError, match="Set no seed"):
        OPACUS.finish(trained(net(nets.Own, nets.SeededModule, noise_multiplier=1.0)))


def test_batches_that_opacus_did_not_draw_are_refused():
    with pytest.raises(dp.LeakingEstimatorError, match="Poisson sampling is needed"):
        trained(net(nets.Shuffled, noise_multiplier=1.0))


def test_an_optimizer_without_an_accountant_is_refused():
    model = trained(net(nets.Own, noise_multiplier=1.0))
    model.optimizer_.attach_step_hook(lambda optimizer: None)
    with pytest.raises(dp.LeakingEstimatorError, match=r"\(0\.0, 1\.0, 0\)"):
        OPACUS.finish(model)


# --- the release ----------------------------------------------------------------------------------


def parts(thing, seen):
    """All objects that a pickle of something holds, by a pickler that notes them."""

    class Noting(pickle._Pickler):
        def save(self, obj, *more, **named):
            seen.append(obj)
            return super().save(obj, *more, **named)

    Noting(io.BytesIO()).dump(thing)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nets.Mixed, nets.Own])
def test_the_released_net_has_its_parameters_and_nothing_else_of_the_training(kind):
    model = trained(net(kind, noise_multiplier=1.0, optimizer=torch.optim.Adam))
    before, weights = model.predict_proba(X), model.module_._module.first.weight.detach().clone()
    OPACUS.finish(model)
    OPACUS.scrub(model)
    assert type(model.module_) is nets.MLP
    assert torch.equal(model.module_.first.weight, weights)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert list(model.history_) == []
    assert model.iterator_train is torch.utils.data.DataLoader
    assert type(model.optimizer_) is torch.optim.Adam
    assert not model.optimizer_.state
    for parameter in model.module_.parameters():
        assert parameter.grad is None
        assert vars(parameter) == {}
    assert vars(model).keys() == vars(net(kind, noise_multiplier=1.0).initialize()).keys()
    held = [
        one
        for one in parts(model, [])
        if isinstance(one, (np.ndarray, torch.Tensor, Dataset, DataLoader, Sampler))
    ]
    shapes = {tuple(parameter.shape) for parameter in model.module_.parameters()}
    assert {tuple(one.shape) for one in held if hasattr(one, "shape")} <= shapes
    assert not any(type(one).__module__.startswith("opacus") for one in parts(model, []))
    assert not any(isinstance(one, torch.Generator) for one in parts(model, []))
    assert clone(model).get_params().keys() == net(kind, noise_multiplier=1.0).get_params().keys()


@pytest.mark.parametrize(
    "kind", [nets.KeepsLoader, nets.KeepsRecords, nets.KeepsNumber, nets.KeepsLosses]
)
def test_what_a_fit_keeps_on_its_net_is_not_released(kind):
    model = trained(net(kind, noise_multiplier=1.0))
    before = model.predict_proba(X)
    OPACUS.scrub(model)
    assert vars(model).keys() == vars(net(kind, noise_multiplier=1.0).initialize()).keys()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    said = OPACUS.training_run(net(kind, noise_multiplier=1.0), 100).assumptions
    assert any("no other attribute that its fit sets" in one for one in said)


def test_a_net_that_cannot_predict_without_what_its_fit_kept_is_found_before_anything_is_spent():
    class Needy(nets.Mixed):
        def fit(self, X, y=None, **named):
            super().fit(X, y, **named)
            self.loader = object()
            return self

        def predict(self, X):
            return super().predict(X) if self.loader else None

    search = DPRandomSearchCV(net(Needy), {"lr": [0.1]}, n_iter=2, epsilon=8.0, delta=1e-5)
    with pytest.raises(AttributeError, match="loader"):
        search.fit(X, y)
    assert not hasattr(search, "privacy_spent_")


def test_the_cut_of_opacuss_normals_is_never_less_than_what_it_adds():
    """One step on two coordinates, by simulation of where the noise ends, at a cut that shows."""
    for noise in (0.3, 1.0, 4.0):
        plan = OpacusPlan(batches=1, epochs=1, noise_multiplier=noise)
        shifts = np.array([[1.0, 0.0], [0.5, 0.75**0.5], [0.1, 0.99**0.5]]) / noise
        c = opacus.LARGEST_NORMAL
        left = (norm.cdf(c) - norm.cdf(c - shifts)).sum(1) / (1 - 2 * norm.sf(c))
        assert left.max() <= opacus.delta_of_cut(plan, 2)
    many = OpacusPlan(batches=100, epochs=10, noise_multiplier=1.0)
    d = 10**6
    even = d * (norm.cdf(opacus.LARGEST_NORMAL) - norm.cdf(opacus.LARGEST_NORMAL - d**-0.5))
    assert 10 * even <= opacus.delta_of_cut(many, d) <= 1e-2


def test_the_statement_has_the_cut_as_a_number():
    parts = OPACUS.training_run(net(noise_multiplier=1.0), 1000).assumptions
    (said,) = [one for one in parts if "5.77" in one]
    assert re.search(r"adds at most \S+ (\(for a million|to delta)", said)


def test_a_buffer_that_changes_in_training_is_an_error_that_names_it():
    with pytest.raises(dp.LeakingEstimatorError, match=r"module_.*\['mean'\]"):
        OPACUS.scrub(trained(net(nets.Own, nets.Counting, noise_multiplier=1.0)))


def test_a_module_given_as_an_instance_is_released_without_what_the_training_left_on_it():
    module = nets.MLP()
    start = module.first.weight.detach().clone()
    model = trained(clone(net(nets.Mixed, module, noise_multiplier=1.0)))
    OPACUS.scrub(model)
    assert torch.equal(module.first.weight, start)
    assert not torch.equal(model.module_.first.weight, start)
    assert all(vars(parameter) == {} for parameter in model.module_.parameters())
    assert not any("hook" in name and value for name, value in vars(model.module_.first).items())


@pytest.mark.slow
def test_a_declared_net_is_stripped_too():
    """Also one that is no net of Opacus's, and whose callbacks tell its module how many inputs
    there are."""

    class Shape(skorch.callbacks.Callback):
        def on_train_begin(self, net, X=None, y=None, **named):
            net.set_params(module__width=X.shape[1] + 3)

    options = {
        "criterion": nn.CrossEntropyLoss, "verbose": 0, "max_epochs": 2, "callbacks": [Shape()],
    }  # fmt: skip
    search = DPRandomSearchCV(
        skorch.NeuralNetClassifier(nets.MLP, **options),
        {"lr": [0.1]},
        n_iter=2,
        delta=1e-5,
        guarantee=dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=10, neighboring="zero_out"),
    ).fit(X, y)
    model = search.best_estimator_
    assert list(model.history_) == []
    assert model.module_.first.out_features == 5
    assert list(model.classes_) == [0, 1]
    assert not model.optimizer_.state
    assert all(parameter.grad is None for parameter in model.module_.parameters())


# --- in searches ----------------------------------------------------------------------------------

SPACE = {"lr": [0.1, 0.5]}
#: With what each search ends with a model.
SETTINGS = {
    "random": {},
    "subset": {},
    "threshold": {"threshold": -5.0, "n_iter": 1000},
    "grid": {"n_parts": 4, "selection_epsilon": None},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nets.Mixed, nets.Own])
@pytest.mark.parametrize("search", SETTINGS)
def test_every_search_takes_a_net_of_opacus_and_meets_its_total(search, kind):
    made = search_of(search, net(kind), SPACE, epsilon=6.0, delta=1e-4, **SETTINGS[search])
    assert 5.9 < made.privacy_cost(n_samples=len(X)).epsilon <= 6.0
    made.fit(X, y)
    assert 5.9 < made.privacy_spent_.epsilon <= 6.0
    assert made.privacy_spent_.neighboring == "zero_out"
    assert type(made.best_estimator_.module_) is nets.MLP
    assert made.predict(X).shape == y.shape
    assert any("Opacus" in text for text in made.privacy_spent_.assumptions)
    assert training_run(made.best_estimator_, len(X)).guarantee.epsilon_at(1e-4) < 6.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [nets.LessNoise, nets.Longer, nets.Shuffled, nets.NotPrivate, nets.Seeded]
)
def test_another_training_than_the_planned_one_is_found_in_the_rehearsal_and_nothing_is_spent(kind):
    search = DPRandomSearchCV(net(kind), SPACE, n_iter=2, epsilon=6.0, delta=1e-4)
    with pytest.raises(dp.LeakingEstimatorError) as caught:
        search.fit(X, y)
    assert "nothing was spent" in str(caught.value.__notes__)
    assert not hasattr(search, "privacy_spent_")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nets.LessNoise, nets.Longer, nets.SmallerBatches])
def test_another_training_than_the_planned_one_is_never_released(kind):
    search = DPRandomSearchCV(net(kind), SPACE, n_iter=2, epsilon=6.0, delta=1e-4, rehearse=False)
    with pytest.raises(Exception, match="No candidate could be trained"):
        search.fit(X, y)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.slow
def test_every_candidate_has_its_own_noise():
    """Two candidates of one fit, from the same initial parameters, at a learning rate that keeps
    them close to it."""
    seen = []

    class Noted(nets.Own):
        def fit(self, X, y, **params):
            super().fit(X, y, **params)
            seen.append(self.module_._module.first.weight.detach().numpy().copy())
            return self

    module, total = nets.MLP(), {"epsilon": 6.0, "delta": 1e-4}
    for _ in range(2):
        one = net(Noted, module)
        DPRandomSearchCV(one, {"lr": [0.5]}, n_iter=dp.Fixed(3), rehearse=False, **total).fit(X, y)
    assert len({weights.tobytes() for weights in seen}) == len(seen) > 2
