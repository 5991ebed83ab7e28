"""Searches over private nets: the total is met, candidates are trained together, and only the
release leaves."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

pytest.importorskip("torch")
pytest.importorskip("skorch")
pytest.importorskip("opacus")
import torch

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters._adapter import ProtocolAdapter
from sklearn_dpsearch.nets import DPLogisticRegression, DPMLPClassifier, DPNeuralNetClassifier
from sklearn_dpsearch.privacy import DPSGD, Fixed, UnknownGuaranteeError, best_of
from sklearn_dpsearch.privacy._calibration import gaussian_target

from ..nets.user_nets import Small, parameters
from .toys import refuses_to_fit

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed")

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 4))
y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
TOTAL = {"epsilon": 4.0, "delta": 1e-5}


def mlp(**changed):
    return DPMLPClassifier(
        **{
            "hidden_layer_sizes": (6,), "classes": [0, 1], "sample_rate": 0.1, "max_steps": 30,
            **changed,
        },
    )  # fmt: skip


def skorch_net(**changed):
    given = {"classes": [0, 1], "sample_rate": 0.1, "max_steps": 30, "lr": 0.3, **changed}
    return DPNeuralNetClassifier(Small, **given)


RATES, NORMS = loguniform(0.05, 1.0), [0.3, 1.0]
SIZES = {"hidden_layer_sizes": [(6,), (9,)]}
SPACES = {
    "mlp": (mlp, {"learning_rate_init": RATES, "max_grad_norm": NORMS, **SIZES}),
    "skorch": (skorch_net, {"lr": RATES, "max_grad_norm": NORMS, "module__width": [4, 7]}),
}


def search(kind="mlp", **changed):
    make, space = SPACES[kind]
    given = {"param_distributions": space, "n_iter": 4, "delta": 1e-5, **changed}
    return DPRandomSearchCV(make(noise_multiplier=None if "epsilon" in given else 2.0), **given)


# --- the total ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPACES)
def test_a_total_is_met_from_below_and_nearly_reached(kind):
    one = search(kind, **TOTAL).fit(X, y)
    assert 3.95 < one.privacy_spent_.epsilon <= 4.0
    won = one.best_estimator_
    assert won.noise_multiplier_ == won.noise_multiplier > 0.5
    assert won.privacy_spent_.epsilon < 4.0
    assert one.predict(X).shape == y.shape


@pytest.mark.parametrize("kind", SPACES)
def test_without_a_total_the_noise_as_configured_is_accounted(kind):
    make, space = SPACES[kind]
    one = DPRandomSearchCV(make(noise_multiplier=2.0), space, n_iter=3, delta=1e-5)
    base = DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=30, neighboring="zero_out")
    expected = pytest.approx(float(best_of(base, 3).epsilon_at(1e-5)), rel=1e-6)
    assert one.privacy_cost(public=True).epsilon == expected


CONTINUOUS = {"sample_rate": uniform(0.05, 0.1), "max_steps": randint(10, 40)}
LISTED = {"sample_rate": [0.1, 0.2], "max_steps": [10, 20]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "varied"), [("skorch", CONTINUOUS), ("mlp", LISTED)], ids=["continuous", "listed"]
)
def test_rates_and_steps_may_vary_under_one_gaussian_target(kind, varied):
    make, space = SPACES[kind]
    one = DPRandomSearchCV(
        make(), {**space, **varied}, n_iter=Fixed(5), random_state=0, **TOTAL
    ).fit(X, y)
    assert 3.9 < one.privacy_spent_.epsilon <= 4.0
    won = one.best_estimator_
    noise_multiplier = won.noise_multiplier_
    run = DPSGD(noise_multiplier=noise_multiplier, sample_rate=won.sample_rate, steps=won.n_steps_)
    target = gaussian_target(won.target_mu)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert run.delta_at(epsilon) <= target.delta_at(epsilon)
    assert won.max_steps == one.best_params_["max_steps"] == won.n_steps_


def test_a_gaussian_target_of_the_users_own_is_accounted_as_one_run():
    one = DPRandomSearchCV(mlp(target_mu=0.5), CONTINUOUS, n_iter=Fixed(2), delta=1e-5)
    expected = best_of(gaussian_target(0.5, "zero_out"), Fixed(2)).epsilon_at(1e-5)
    assert one.privacy_cost(public=True).epsilon == pytest.approx(float(expected), rel=1e-6)


# --- the same results, however they are computed --------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("cv", [None, 2])
def test_training_together_gives_what_training_one_by_one_gives(kind, cv, monkeypatch):
    def outcome():
        return search(kind, n_iter=Fixed(6), random_state=5, cv=cv).fit(X, y)

    together = outcome()
    monkeypatch.setattr(ProtocolAdapter, "trains_together", lambda self, estimator: False)
    alone = outcome()
    assert together.best_params_ == alone.best_params_
    assert together.best_score_ == alone.best_score_
    trained = [parameters(search.best_estimator_) for search in (together, alone)]
    torch.testing.assert_close(*trained, rtol=1e-5, atol=2e-6)


@pytest.mark.slow
def test_candidates_really_are_trained_together(monkeypatch):
    sizes = []
    honest = DPMLPClassifier.fit_together
    monkeypatch.setattr(
        DPMLPClassifier,
        "fit_together",
        staticmethod(lambda nets, X, y: (sizes.append(len(nets)), honest(nets, X, y))[1]),
    )
    search(n_iter=Fixed(7)).fit(X, y)
    assert sizes == [7]


# --- failures -------------------------------------------------------------------------------------


# --- nothing but the release ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPACES)
def test_neither_records_nor_losers_are_in_the_pickle(kind):
    planted = X.copy()
    planted[:, 2] = 1.2345678e-3
    one = search(kind, n_iter=Fixed(10), refit="winner").fit(planted, y)
    shown = pickle.dumps(one)
    assert np.float32(1.2345678e-3).tobytes() not in shown
    assert np.float64(1.2345678e-3).tobytes() not in shown
    few = search(kind, n_iter=Fixed(1)).fit(planted, y)
    assert abs(len(shown) - len(pickle.dumps(few))) < 2000
    won = one.best_estimator_
    assert (won.noise_seed, won.random_state) == (None, None)
    storages = [p.untyped_storage().nbytes() for p in won.module_.parameters()]
    assert storages == [4 * p.numel() for p in won.module_.parameters()]
    np.testing.assert_array_equal(pickle.loads(shown).predict(X), one.predict(X))


# --- other surroundings ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_released_net_states_what_the_search_cost_not_its_own_training():
    base = DPMLPClassifier((4,), max_steps=5, sample_rate=0.2)
    one = DPRandomSearchCV(base, {"learning_rate_init": [0.1]}, epsilon=3.0, delta=1e-5)
    one.fit(X, y)
    net = one.best_estimator_
    actual = net.privacy_guarantee().epsilon_at(1e-5)
    assert net.privacy_spent_.epsilon == one.privacy_spent_.epsilon > actual
    net.partial_fit(X, y)
    assert net.privacy_spent_.epsilon > one.privacy_spent_.epsilon
    assert set(one.privacy_spent_.assumptions) <= set(net.privacy_spent_.assumptions)


@pytest.mark.slow
def test_a_net_in_a_released_pipeline_states_what_the_search_cost():
    model = make_pipeline(FunctionTransformer(), DPMLPClassifier((4,), max_steps=5))
    one = DPRandomSearchCV(
        model, {"dpmlpclassifier__learning_rate_init": [0.1]}, epsilon=3.0, delta=1e-5
    ).fit(X, y)
    assert one.best_estimator_[-1].privacy_spent_ is one.privacy_spent_


class Centring(DPLogisticRegression):
    """Changes ``fit``: subtracts exact means, and keeps them."""

    def fit(self, X, y):
        self.mean_ = X.mean(axis=0)
        return super().fit(X - self.mean_, y)


def test_a_subclass_of_a_net_does_not_inherit_the_promise():
    search = DPRandomSearchCV(Centring(classes=[0, 1], noise_multiplier=1.0), {}, delta=1e-5)
    message = "Centring has no known.*privacy_guarantee.*may have changed fit"
    refuses_to_fit(search, UnknownGuaranteeError, message, X, y)


def test_a_batch_size_states_the_rate_of_all_records_also_beside_a_hold_out():
    options = {"noise_multiplier": 1.0, "classes": [0, 1], "max_epochs": 3}
    by_size, by_rate = (
        DPRandomSearchCV(DPMLPClassifier(**options, **rate), {"alpha": [0.0, 0.1]}, delta=1e-5)
        for rate in ({"sample_rate": None, "batch_size": 50}, {"sample_rate": 0.05})
    )
    assert by_size.privacy_cost(1000).epsilon == by_rate.privacy_cost(1000).epsilon
