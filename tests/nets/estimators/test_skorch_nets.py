"""Nets with a module of the user's own: scikit-learn's and skorch's customs, what they cost, what
they leave behind."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import skorch
import torch
from sklearn.base import clone
from skorch.callbacks import LRScheduler
from skorch.exceptions import NotInitializedError
from torch import nn
from torch.optim.lr_scheduler import StepLR

from sklearn_dpsearch.nets import DPNeuralNetClassifier, DPNeuralNetRegressor
from sklearn_dpsearch.nets import _stacked_training as stack
from sklearn_dpsearch.privacy import LeakingEstimatorError, PrivacyError

from ...search.toys import Untouchable, refuses_to_fit
from ..toys import flat
from ..user_nets import Centred, Small, X, net, parameters, y

rng = np.random.default_rng(0)


def regressor(module=None, **changed):
    arguments = {"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 12, **changed}
    if module is None:
        module, arguments = Small, {"module__outputs": 1, **arguments}
    return DPNeuralNetRegressor(module, **arguments)


# --- scikit-learn's customs -----------------------------------------------------------------------


def test_parameters_of_module_optimizer_and_criterion_arrive():
    options = {"optimizer__momentum": 0.7, "criterion__label_smoothing": 0.1}
    one = net(module__width=9, optimizer=torch.optim.SGD, **options)
    one.fit(X, y)
    assert one.module_.first.out_features == 9
    assert one.optimizer_.param_groups[0]["momentum"] == 0.7
    assert one.criterion_.label_smoothing == 0.1
    assert one.criterion_.reduction == "sum"
    one.set_params(module__width=3, lr=0.01, optimizer__momentum=0.0, max_steps=2)
    assert one.fit(X, y).module_.first.out_features == 3
    assert one.optimizer_.param_groups[0]["lr"] == 0.01
    assert one.n_steps_ == 2


def test_misspelt_parameters_are_errors_at_once():
    with pytest.raises(ValueError, match="Invalid parameter 'epsilonn'"):
        net().set_params(epsilonn=1.0)
    with pytest.raises(TypeError, match="Unknown: noise_mult; noise_multiplier is meant"):
        net(noise_mult=1.0)
    with pytest.raises(ValueError, match="module__widht.*it takes"):
        net(module__widht=3).fit(Untouchable(), Untouchable())


def test_a_module_given_as_an_instance_is_copied_never_trained_in_place():
    given = Small()
    before = flat(given)
    one = net(given, noise_seed=3).fit(X, y)
    assert torch.equal(flat(given), before)
    first = parameters(one)
    assert not torch.equal(first, before)
    # a second fit starts where the first one did
    assert torch.equal(parameters(one.fit(X, y)), first)
    assert torch.equal(flat(clone(one).initialize().module_), before)


def test_a_weighted_criterion_is_summed_and_stays_what_it_was():
    given = nn.CrossEntropyLoss(weight=torch.tensor([500.0, 1.0]))
    one = net(criterion=given).fit(X, y)
    assert (given.reduction, one.criterion_.reduction) == ("mean", "sum")


@pytest.mark.parametrize("convert", [
    lambda a: a.astype(np.float32), lambda a: a.astype(np.float64),
    lambda a: np.round(a * 5).astype(int), list,
])  # fmt: skip
def test_numbers_of_every_kind_are_taken(convert):
    given = convert(X)
    one = net().fit(given, y)
    assert one.predict(given).shape == y.shape
    assert next(one.module_.parameters()).dtype is torch.float32


IMAGES = nn.Sequential(
    nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
)
TOKENS = nn.Sequential(nn.Embedding(20, 6), nn.Flatten(), nn.Linear(30, 2))


@pytest.mark.parametrize(("module", "given"), [
    (IMAGES, rng.normal(size=(120, 1, 4, 4))), (TOKENS, rng.integers(0, 20, size=(120, 5))),
])  # fmt: skip
def test_images_are_taken_and_integers_stay_integers_for_a_module_that_takes_them(module, given):
    assert net(module).fit(given, y).predict_proba(given).shape == (120, 2)


def test_labels_are_in_the_declared_order_even_if_some_never_occur():
    names = np.where(y, "b", "a")
    one = net(classes=["c", "b", "a"], module__outputs=3, max_steps=60).fit(X, names)
    assert one.classes_.tolist() == ["c", "b", "a"]
    probabilities = one.predict_proba(X)
    assert probabilities.shape == (120, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(one.predict(X), one.classes_[probabilities.argmax(axis=1)])
    assert one.score(X, names) > 0.6


class Squares(nn.Module):
    """A criterion that takes outputs with and without a column."""

    def forward(self, outputs, targets):
        return (outputs.reshape(-1) - targets.reshape(-1)).square().sum()


def test_a_regressor_predicts_in_the_shape_it_was_given():
    assert regressor().fit(X, X[:, 0]).predict(X).shape == (120,)
    assert regressor(module__outputs=2).fit(X, X[:, :2]).predict(X).shape == (120, 2)
    assert regressor().fit(X, X[:, :1]).predict(X).shape == (120, 1)
    module = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
    loose = {"module": module, "criterion": Squares}
    assert regressor(**loose).fit(X, X[:, 0]).predict(X).shape == (120,)
    assert regressor(**loose).fit(X, X[:, :1]).predict(X).shape == (120, 1)


@pytest.mark.slow
def test_initial_parameters_are_public_and_the_noise_is_not():
    before = parameters(net(random_state=0).initialize())
    assert torch.equal(before, parameters(net(random_state=0).initialize()))
    assert not torch.equal(before, parameters(net(random_state=1).initialize()))
    assert not torch.equal(*[parameters(net(random_state=0).fit(X, y)) for _ in range(2)])
    assert torch.equal(*[parameters(net(random_state=0, noise_seed=0).fit(X, y)) for _ in range(2)])


# --- criteria -------------------------------------------------------------------------------------


class Probable(Small):
    def forward(self, inputs):
        return torch.softmax(super().forward(inputs), dim=-1)


class LogProbable(Small):
    def forward(self, inputs):
        return torch.log_softmax(super().forward(inputs), dim=-1)


def plain_steps(module, loss, steps=6):
    """Whole batches, without noise and clipping."""
    inputs, labels = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(y)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        (loss(module(inputs), labels) / len(X)).backward()
        optimizer.step()
    return flat(module)


def test_nllloss_is_trained_as_skorch_trains_it():
    """It takes the logarithm of what the module returns."""
    options = {"max_steps": 6, "max_grad_norm": 1e6}
    one = net(Probable, criterion=nn.NLLLoss, random_state=0, sample_rate=1.0, **options)
    one.set_params(noise_multiplier=1e-12)
    start = copy.deepcopy(one.initialize().module_)
    theirs = skorch.NeuralNetClassifier(
        Probable, criterion=nn.NLLLoss, criterion__reduction="sum"
    ).initialize()
    expected = plain_steps(start, theirs.get_loss)
    torch.testing.assert_close(parameters(one.fit(X, y)), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(one.predict_proba(X).sum(axis=1), 1.0, rtol=1e-5)
    assert one.score(X, y) > 0.6


@pytest.mark.parametrize("module", [Probable, nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1))])
def test_a_softmax_under_a_loss_that_has_one_is_refused_with_two_remedies(module):
    match = "(?s)softmax at its end.*CrossEntropyLoss.*Leave the softmax out.*NLLLoss"
    with pytest.raises(ValueError, match=match):
        net(module).fit(X, y)


@pytest.mark.parametrize("module", [Small, LogProbable])
def test_nllloss_of_anything_but_probabilities_is_refused(module):
    match = "(?s)NLLLoss.*as in skorch the logarithm.*CrossEntropyLoss"
    with pytest.raises(ValueError, match=match):
        net(module, criterion=nn.NLLLoss).fit(X, y)


@pytest.mark.parametrize("criterion", [nn.BCEWithLogitsLoss, nn.CrossEntropyLoss(), nn.NLLLoss])
def test_criteria_for_classes_are_refused_in_a_regressor(criterion):
    match = "(?s)in a regressor.*not predicted numbers.*MSELoss.*DPNeuralNetClassifier"
    with pytest.raises(ValueError, match=match):
        regressor(criterion=criterion).fit(Untouchable(), Untouchable())


# --- what is taken on trust -----------------------------------------------------------------------


class NoGraph(Small):
    def forward(self, inputs):
        return super().forward(inputs + torch.zeros(4))


@pytest.mark.slow
def test_trust_is_said_where_there_is_any_and_only_there():
    def trusted(one):
        parts = one.fit(X, y).privacy_spent_.assumptions
        return [text for text in parts if "run code of their own" in text]

    assert not trusted(net())
    assert not trusted(net(nn.Sequential(nn.Linear(4, 2))))
    assert not trusted(net(conv()))
    (said,) = trusted(net(NoGraph))
    assert said.startswith("NoGraph and CrossEntropyLoss")
    (said,) = trusted(net(criterion=MeanLoss))
    assert said.startswith("Small and MeanLoss")


def test_before_a_fit_trust_in_code_of_ones_own_is_said_in_advance():
    assert any("keeps nothing in files" in text for text in net().privacy_assumptions())
    assert not any(
        "keeps nothing in files" in text for text in net(nn.Linear(4, 2)).privacy_assumptions()
    )


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("told", [{}, {"batch_size": 20.0}])
def test_a_target_at_a_delta_that_promises_nobody_anything_is_refused_as_a_search_refuses_it(told):
    one = net(noise_multiplier=None, target_epsilon=2.0, target_delta=1.0 / 100, **told)
    refuses_to_fit(one, PrivacyError, r"Found target_delta=0.01 .* promises nothing", X, y)


def test_parameters_loaded_before_training_are_public_and_cost_nothing():
    one = net(max_grad_norm=1e-9).initialize()
    given = parameters(one)
    one.partial_fit(X, y)
    torch.testing.assert_close(parameters(one), given, rtol=0, atol=1e-6)
    assert len(one.privacy_spent_.components) == 1


# --- learning-rate schedules ----------------------------------------------------------------------


def test_a_rate_scheduled_to_zero_stops_the_training(one_noise):
    stop = LRScheduler(StepLR, step_every="batch", step_size=1, gamma=0.0)
    options = {"callbacks": [("rate", stop)], "noise_seed": 0, "random_state": 0}
    one, nine = (net(max_steps=steps, **options).fit(X, y) for steps in (1, 9))
    assert torch.equal(parameters(one), parameters(nine))


# --- nothing private leaves -----------------------------------------------------------------------

MARK = 1.2345678e-3  # a value that nothing but a record holds


def marked():
    """Records in which one value recurs, and every sequence of bytes that would betray it."""
    planted = X.copy()
    planted[:, 2] = MARK
    single, double = np.float32(MARK).tobytes(), np.float64(MARK).tobytes()
    return planted, (
        single * 2, double * 2, single, double, planted[0].tobytes(),
        planted[0].astype(np.float32).tobytes(),
    )  # fmt: skip


def everything(one):
    attributes = {key: value for key, value in vars(one).items() if key != "callbacks_"}
    return {
        "net": pickle.dumps(one),
        "module": pickle.dumps(one.module_),
        "copy": pickle.dumps(copy.deepcopy(one)),
        "attributes": pickle.dumps(attributes),
        "text": repr(one).encode() + str(one.privacy_spent_).encode(),
    }


def conv(outputs=2):
    return nn.Sequential(
        nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 2), nn.Flatten(), nn.LayerNorm(6),
        nn.Linear(6, outputs),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("module", [
    Small, nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), conv(),
], ids=["traced", "plain", "per sample"])  # fmt: skip
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_no_record_is_in_any_pickle_or_copy(module, optimizer):
    planted, forms = marked()
    assert forms[0] in pickle.dumps(np.full(4, MARK, np.float32))  # the search does find such bytes
    one = net(module, optimizer=optimizer, sample_rate=1.0, lr=1e-3).fit(planted, y)
    size = len(pickle.dumps(net(module, optimizer=optimizer).initialize()))
    for name, shown in everything(one).items():
        assert not [form for form in forms if form in shown], name
        assert len(shown) < size + 6000, name
    one.predict(planted)
    assert not [form for form in forms if form in pickle.dumps(one)]


@pytest.mark.parametrize("module", [Small, conv()], ids=["traced", "per sample"])
def test_the_trained_module_is_what_a_user_would_have_made(module):
    one = net(module).fit(X, y)
    made = module() if isinstance(module, type) else module
    assert type(one.module_) is type(made)
    assert list(one.module_.state_dict()) == list(made.state_dict())
    for layer in one.module_.modules():
        assert not any([layer._forward_hooks, layer._backward_hooks, layer._forward_pre_hooks])
        assert not hasattr(layer, "activations")
        assert not hasattr(layer, "autograd_grad_sample_hooks")
        assert "forward" not in vars(layer)
    for parameter in one.module_.parameters():
        assert parameter.grad is None
        assert not hasattr(parameter, "grad_sample")
        assert not parameter._backward_hooks
    assert one.optimizer_.state == {}


def test_no_history_is_kept_and_nothing_is_printed(capsys):
    one = net().fit(X, y)
    assert not one.history_
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
    assert [name for name, _ in one.callbacks_] == []


def test_pickles_and_copies_predict_the_same_and_go_on_training():
    one = net().fit(X, y)
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        np.testing.assert_array_equal(again.predict_proba(X), one.predict_proba(X))
        assert tuple(again.privacy_spent_) == tuple(one.privacy_spent_)
        again.partial_fit(X, y)
        assert again.privacy_spent_.epsilon > one.privacy_spent_.epsilon
    assert len(one.privacy_spent_.components) == 1


class Remembering(nn.CrossEntropyLoss):
    def forward(self, outputs, targets):
        self.last = super().forward(outputs, targets)
        return self.last


@pytest.mark.slow
def test_a_loss_that_remembers_holds_nothing_after_training():
    given = Remembering()
    for module in (Small, nn.Linear(4, 2)):
        one = net(module, criterion=given).fit(X, y)
        assert any("trusted not to leave" in text for text in one.privacy_spent_.assumptions)
        assert not hasattr(one.criterion_, "last")
        assert not hasattr(given, "last")


@pytest.mark.parametrize(("name", "given"), [("fit_loop", (X, y)), ("train_step", ((X, y),))])
def test_skorchs_own_steps_train_nothing(name, given):
    """Without noise they would change the net, and ``privacy_spent_`` would not."""
    one = net().initialize()
    before = parameters(one).clone()
    batch = [
        tuple(map(torch.as_tensor, part)) if isinstance(part, tuple) else part for part in given
    ]
    with pytest.raises(RuntimeError, match="does not require grad"):
        getattr(one, name)(*batch)
    assert torch.equal(parameters(one), before)


@pytest.fixture
def interrupt(monkeypatch):
    """The user interrupts the third step of every training from now on."""

    def from_now_on():
        honest, steps = stack.Stack._step, []

        def step(self, *args):
            steps.append(1)
            if len(steps) == 3:
                raise KeyboardInterrupt
            honest(self, *args)

        monkeypatch.setattr(stack.Stack, "_step", step)

    return from_now_on


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_interrupted_training_is_not_a_fitted_net(method, interrupt):
    one = net()
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        getattr(one, method)(X, y)
    assert not one.initialized_
    assert not hasattr(one, "privacy_spent_")
    with pytest.raises(NotInitializedError):
        one.predict(X)
    assert hasattr(one.fit(X, y), "privacy_spent_")  # and can be trained again


def test_an_interrupted_warm_start_keeps_what_it_had(interrupt):
    one = net().fit(X, y)
    before, spent = parameters(one), one.privacy_spent_
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        one.partial_fit(X, y)
    assert torch.equal(parameters(one), before)
    assert one.privacy_spent_ is spent


# --- bad input: found, needed, remedy; before any data is read where that is possible -------------

TARGET = {"noise_multiplier": None, "target_epsilon": 1.0}
UNREAD = [
    (
        "none of noise", {"noise_multiplier": None}, PrivacyError,
        "(?s)Found none of noise_multiplier.*one way.*needed",
    ),
    (
        "two kinds of noise", {"target_epsilon": 1.0, "target_delta": 1e-5}, PrivacyError,
        "one way to state the noise",
    ),
    ("a target without delta", TARGET, PrivacyError, "target_delta="),
    ("a rate of 0", {"sample_rate": 0.0}, ValueError, r"sample_rate.*\[1e-09, 1.0\].*Got 0.0"),
    ("a rate that is no number", {"sample_rate": math.nan}, ValueError, "sample_rate.*Got nan"),
    ("no rate", {"sample_rate": None}, ValueError, "neither sample_rate nor batch_size"),
    ("no steps", {"max_steps": 0}, ValueError, "max_steps.*whole number >= 1.*Got 0"),
    ("no epochs", {"max_steps": None, "max_epochs": 0}, ValueError, "max_epochs.*Got 0"),
    (
        "no memory", {"max_physical_batch": 0}, ValueError,
        r"max_physical_batch.*an int in the range \[1, inf\).*Got 0",
    ),
    ("no clipping", {"max_grad_norm": math.inf}, ValueError, "max_grad_norm.*Got inf"),
    ("delta of 1", {**TARGET, "target_delta": 1.0}, ValueError, "target_delta.*Got 1.0"),
    ("no classes", {"classes": None}, ValueError, "(?s)needs classes=.*which labels occur"),
    ("a text", {"classes": "ab"}, ValueError, "classes='ab'; a list of labels, or an array of"),
    ("a set", {"classes": {0, 1}}, ValueError, r"classes=\{0, 1\}; a list of labels"),
    ("one class twice", {"classes": ["no", "no"]}, ValueError, "'no' twice.*a name of its own"),
    (
        "no such device", {"device": "cuda:99"}, ValueError,
        "(?s)device='cuda:99'.*not available.*device='cpu'",
    ),
    (
        "a closure", {"optimizer": torch.optim.LBFGS}, ValueError,
        "(?s)LBFGS.*given gradients.*torch.optim.SGD",
    ),
    (
        "another optimizer", {"optimizer": torch.optim.RMSprop}, ValueError,
        "(?s)RMSprop.*torch.optim.SGD",
    ),
    (
        "groups", {"optimizer__param_groups": [("0.*", {"lr": 1.0})]}, ValueError,
        "(?s)optimizer__param_groups.*Freezer",
    ),
    ("uphill", {"optimizer__maximize": True}, ValueError, "optimizer__maximize"),
    (
        "a split", {"train_split": skorch.dataset.ValidSplit(5)}, LeakingEstimatorError,
        "only train_split=None",
    ),
    (
        "add_remove", {"neighboring": "add_remove"}, PrivacyError,
        "(?s)add_remove.*number of records is public",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "error", "match"), [one[1:] for one in UNREAD], ids=[one[0] for one in UNREAD]
)
def test_bad_arguments_are_refused_before_any_data_is_read(changed, error, match):
    for method in ("fit", "partial_fit"):
        with pytest.raises(error, match=match):
            getattr(net(**changed), method)(Untouchable(), Untouchable())


@pytest.mark.parametrize(("X", "y", "match"), [
    (X, y.astype(str), "labels in y that are text"), (X, y[:, None], "one label per record"),
    (X, y[:-1], "inconsistent numbers of samples"), (X.astype(str), y, "X as numbers"),
])  # fmt: skip
def test_bad_records_are_refused_before_any_training(X, y, match):
    one = net()
    with pytest.raises(ValueError, match=match):
        one.fit(X, y)
    assert not one.initialized_


def test_bad_targets_of_a_regression_are_refused():
    with pytest.raises(ValueError, match="(?s)as many outputs.*as y has columns"):
        regressor(module__outputs=3).fit(X, X[:, 0])


def test_a_module_with_fewer_outputs_than_classes_is_refused_whatever_labels_occur():
    for labels in (y, np.where(y, 2, 0)):
        with pytest.raises(ValueError, match=r"(?s)outputs of shape \(2,\).*3 classes"):
            net(classes=[0, 1, 2]).fit(X, labels)


class Buffered(Small):
    def __init__(self, outputs=2):
        super().__init__(outputs=outputs)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, inputs):
        self.mean = inputs.mean(0)
        return super().forward(inputs)


class MeanLoss(nn.Module):
    def forward(self, outputs, targets):
        return nn.functional.cross_entropy(outputs, targets)


@pytest.mark.slow
def test_a_buffer_that_forward_sets_is_released_as_it_was():
    assert torch.equal(net(Buffered).fit(X, y).module_.mean, torch.zeros(4))


def test_parameters_in_the_loss_are_refused():
    class Learned(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, outputs, targets):
            return self.scale * nn.functional.cross_entropy(outputs, targets, reduction="sum")

    match = "(?s)parameters in criterion Learned.*Put them into the module"
    with pytest.raises(ValueError, match=match):
        net(criterion=Learned).fit(X, y)


def test_weights_of_records_and_other_arguments_of_fit_are_refused():
    with pytest.raises(ValueError, match="(?s)sample_weight.*X and y alone"):
        net().fit(X, y, sample_weight=np.ones(120))


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_nets_that_fail_together_are_not_fitted_and_leave_the_others():
    nets = [
        net(), net(lr=-1.0), net(Centred), net(classes=[0]), net(noise_multiplier=None),
        net(Centred), net(),
    ]  # fmt: skip
    found = DPNeuralNetClassifier.fit_together(nets, X, y)
    assert [one is not None for one in found] == [True, False, False, False, False, False, True]
    assert [one.initialized_ for one in nets] == [one is not None for one in found]
    assert not any(hasattr(one, "privacy_spent_") for one in nets[1:6])
