"""What diffprivlib's models promise, what is refused, and what their candidates get."""

from __future__ import annotations

import math
import secrets
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters import adapter_for, training_run
from sklearn_dpsearch.adapters._diffprivlib import MODELS, SystemRandomState
from sklearn_dpsearch.ledger import PrivacyLedger

pytest.importorskip("diffprivlib")
from diffprivlib import models
from diffprivlib.models import PCA, DecisionTreeClassifier, GaussianNB, KMeans, StandardScaler

from .diffprivlib_toys import bayes, forest, linear, logistic, scaler, tree
from .toys import promise, refused

UNDERSTOOD = [tree, bayes, logistic, linear, scaler]


@pytest.fixture(scope="module")
def cancer():
    """Thirty features in [-1, 1]."""
    X, y = load_breast_cancer(return_X_y=True)
    return (2 * X / X.max(axis=0) - 1)[:300], y[:300]


# --- promises -------------------------------------------------------------------------------------


def test_every_model_of_the_library_has_a_row():
    entries = vars(models).items()
    public = {name for name, kind in entries if isinstance(kind, type) and hasattr(kind, "fit")}
    assert public == set(MODELS)


@pytest.mark.parametrize(("estimator", "factor"), [
    (tree(), 2.0),
    (bayes(), 2 * (2 + 1 / 2) / 3),
    (bayes(bounds=(0, 1)), 2.0),
    (bayes(bounds=([0, -1], [1, 1])), 2 * (2 + 3 / 4) / 3),
    (logistic(), 1.0),
    (logistic(data_norm=2), 1.0),
    (linear(), 1.0),
    (scaler(), 1.0),
    (scaler(with_std=False), 1.0),
], ids=lambda one: type(one).__name__ if hasattr(one, "fit") else f"{one:.3g}")  # fmt: skip
def test_promise_is_the_proved_multiple_of_epsilon_under_replace_one(estimator, factor):
    estimator.set_params(epsilon=0.7)
    found = promise(estimator)
    assert isinstance(found, dp.PureDP)
    assert found.neighboring == "replace_one"
    assert 0.7 * factor - 1e-15 <= found.epsilon <= 0.7 * factor * (1 + 1e-14)


@pytest.mark.parametrize("make", UNDERSTOOD)
def test_scaling_multiplies_the_promise(make):
    estimator = make(epsilon=0.5)
    settings = adapter_for(estimator).scaled_privacy(estimator, 3.0)
    assert settings == {"epsilon": 1.5}
    expected = pytest.approx(3 * promise(make(epsilon=0.5)).epsilon)
    assert promise(estimator.set_params(**settings)).epsilon == expected


# --- refusals: found, needed, remedy --------------------------------------------------------------


@pytest.mark.parametrize(("estimator", "words"), [
    (GaussianNB(), ("bounds=None", "read it from the data", "public constants")),
    (StandardScaler(), ("bounds=None", "read it from the data", "public constants")),
    (tree(bounds=None), ("bounds=None", "public constants")),
    (tree(classes=None), ("classes=None", "public constants")),
    (logistic(data_norm=None), ("data_norm=None", "public constants")),
    (linear(bounds_X=None), ("bounds_X=None", "public constants")),
    (linear(bounds_y=None), ("bounds_y=None", "public constants")),
    (logistic(fit_intercept=True), ("fit_intercept=True", "not penalise", "constant column")),
    (logistic(data_norm=2.5), ("data_norm=2.5", "at most 2", "Divide the features")),
    (logistic(n_jobs=2), ("n_jobs=2", "same noise", "n_jobs=None")),
    (logistic(verbose=1), ("verbose=1", "prints", "verbose=0")),
    (linear(fit_intercept=True), ("fit_intercept=True", "no finite epsilon", "public constants")),
    (linear(bounds_X=(-1, 2)), ("bounds_X", "lower bounds alone", "symmetric")),
    (linear(bounds_y=(1, 1)), ("bounds_y=(1, 1)", "lower < upper")),
    (bayes(bounds=(1, 1)), ("bounds=(1, 1)", "lower < upper")),
    (bayes(bounds=(0, math.inf)), ("finite public bounds",)),
    (bayes(bounds=3), ("bounds=3", "finite public bounds")),
    (scaler(bounds=(0, math.nan)), ("finite public bounds",)),
    (bayes(bounds=([0, 0], [1e-9, 1e-10])), ("np.allclose", "rescale")),
    (bayes(epsilon=1e-5), ("epsilon=1e-05", "too large an error", "Raise epsilon")),
    (scaler(epsilon=1e-5), ("epsilon=1e-05", "Raise epsilon")),
    (forest(), ("31-bit", "recomputed", "DecisionTreeClassifier")),
    (KMeans(bounds=(0, 1)), ("inertia_", "no finite epsilon", "another clusterer")),
    (PCA(data_norm=1, centered=True), ("rejection sampler", "number of features", "public matrix")),
], ids=lambda one: type(one).__name__ if hasattr(one, "fit") else one[0][:20])  # fmt: skip
def test_a_leak_is_refused_before_any_data_is_read(estimator, words):
    refused(dp.LeakingEstimatorError, estimator, *words)
    with pytest.raises(dp.LeakingEstimatorError):
        DPRandomSearchCV(
            estimator, {"epsilon": [1.0]} if "epsilon=1e" not in words[0] else {}, n_iter=2
        ).privacy_cost()


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, None, True, "1"])
def test_epsilon_must_be_a_positive_number(epsilon):
    refused(dp.PrivacyError, tree(epsilon=epsilon), "epsilon=", "between 0 and inf")


def test_a_subclass_must_be_declared():
    class MyTree(DecisionTreeClassifier):
        pass

    refused(dp.UnknownGuaranteeError, MyTree(bounds=(0, 1), classes=[0, 1]), "MyTree", "subclass")
    assert training_run(MyTree(), declared=dp.PureDP(epsilon=2.0)).guarantee.epsilon == 2.0


def test_a_release_that_was_not_read_is_refused(monkeypatch):
    monkeypatch.setattr("diffprivlib.__version__", "0.7.0")
    refused(dp.UnknownGuaranteeError, tree(), "diffprivlib 0.7.0", "0.6.6", "declare")


def test_a_candidate_outside_the_guarantee_is_found_before_the_data():
    search = DPRandomSearchCV(logistic(), {"data_norm": [1.0, 3.0]}, n_iter=2)
    with pytest.raises(dp.LeakingEstimatorError, match="at most 2"):
        search.privacy_cost(100)


@pytest.mark.slow
@pytest.mark.processes
def test_what_a_declared_estimator_reads_from_the_data_stops_the_search(cancer):
    search = DPRandomSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9]}, n_iter=2, guarantee=dp.PureDP(epsilon=1.0)
    )
    with pytest.raises(dp.LeakingEstimatorError, match="PrivacyLeakWarning") as caught:
        search.fit(*cancer)
    assert caught.value.__context__ is None
    assert not hasattr(search, "best_score_")


# --- randomness and ledgers -----------------------------------------------------------------------


@pytest.mark.parametrize("make", UNDERSTOOD)
def test_two_unseeded_fits_differ(make):
    X, y = np.random.default_rng(0).uniform(-1, 1, (60, 2)), np.arange(60) % 2

    def fitted():
        np.random.seed(0)  # the global generator is no source of noise
        estimator = make(epsilon=0.3)
        estimator.set_params(**adapter_for(estimator).fresh_randomness(estimator))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
        learned = {k: v for k, v in vars(estimator).items() if k in ("coef_", "theta_", "mean_")}
        return str(learned or estimator.tree_.__getstate__())

    assert fitted() != fitted()


def test_a_tree_draws_from_the_operating_system_even_when_copied():
    from copy import deepcopy

    source = adapter_for(tree()).fresh_randomness(tree())["random_state"]
    copy = deepcopy(source)
    for one in (source, copy):
        assert isinstance(one, SystemRandomState)
        one.seed(0)
    assert source.random() != copy.random()
    assert 2.0 <= source.uniform(2.0, 3.0) <= 3.0
    assert {source.randint(3) for _ in range(100)} == {0, 1, 2}
    assert isinstance(source._source, secrets.SystemRandom)


def fitted_search(estimator, space, X, y, **kwargs):
    return DPRandomSearchCV(estimator, space, n_iter=3, **kwargs).fit(X, y)


def test_exact_iteration_counts_are_not_released(cancer):
    assert not hasattr(fitted_search(logistic(), {"C": [1.0]}, *cancer).best_estimator_, "n_iter_")
    chain = fitted_search(make_pipeline(logistic()), {"logisticregression__C": [1.0]}, *cancer)
    assert not hasattr(chain.best_estimator_[-1], "n_iter_")


def test_candidates_reach_the_minimum_whatever_the_tolerance_given(cancer):
    search = fitted_search(logistic(tol=0.1, max_iter=2), {"C": [1.0]}, *cancer)
    assert search.best_estimator_.tol == 1e-12
    assert search.best_estimator_.max_iter == 10_000


def test_fitted_attributes_are_the_ones_that_were_read():
    """Every other attribute is a constant of scikit-learn, public, or made from noisy numbers."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (60, 2)), np.arange(60) % 2
    known = {
        tree: {"classes_", "n_classes_", "n_features_in_", "n_outputs_", "tree_"},
        bayes: {
            "class_count_", "class_prior_", "classes_", "epsilon_", "n_features_in_", "theta_",
            "var_",
        },
        logistic: {"classes_", "coef_", "intercept_", "n_features_in_", "n_iter_"},
        linear: {"coef_", "intercept_", "n_features_in_", "_obj_coefs"},
        scaler: {"mean_", "n_features_in_", "n_samples_seen_", "scale_", "var_"},
    }  # fmt: skip
    for make, names in known.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before, after = vars(make()), vars(make().fit(X, y))
        assert {name for name in after if name not in before or name.endswith("_")} == names, (
            make.__name__
        )


def test_the_nodes_of_a_tree_hold_no_counts():
    rng = np.random.default_rng(0)
    state = (
        tree(max_depth=3).fit(rng.uniform(0, 1, (50, 2)), np.arange(50) % 2).tree_.__getstate__()
    )
    assert not state["nodes"]["n_node_samples"].any()
    assert not state["nodes"]["weighted_n_node_samples"].any()
    assert not state["nodes"]["impurity"].any()
    assert set(np.unique(state["values"])) == {0.0, 1.0}


# --- composites -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("estimator", "released"), [
    (GaussianNB(bounds=([0.9, 0.0], [1.1, 1.0])), GaussianNB),
    (
        DecisionTreeClassifier(bounds=([0.9, 0.0], [1.1, 1.0]), classes=[0, 1]),
        DecisionTreeClassifier,
    ),
    (
        models.LinearRegression(bounds_X=(-1, 1), bounds_y=(0, 1), fit_intercept=False),
        models.LinearRegression,
    ),
])  # fmt: skip
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint16, np.float32, bool, object, "table"])
def test_candidates_train_in_double_precision(estimator, released, piped, kind, monkeypatch):
    """Of integers diffprivlib truncates the bounds, or the clipped values, to integers."""
    seen = []
    monkeypatch.setattr(
        released, "fit", lambda self, X, y, sample_weight=None: seen.append(X) or self
    )
    X, y = np.array([[0, 1], [1, 0], [2, 1], [1, 1]]), np.array([0, 1, 0, 1])
    given = pytest.importorskip("pandas").DataFrame(X) if isinstance(kind, str) else X.astype(kind)
    model = make_pipeline(FunctionTransformer(), estimator) if piped else estimator
    adapter = adapter_for(model)
    adapter.prepare(model)
    expected = training_run(estimator, 4).guarantee
    assert adapter_for(model).training_run(model, 4).guarantee == expected
    model.fit(given, y)
    adapter.finish(model)
    assert np.asarray(seen[0]).dtype == np.float64
    assert isinstance(estimator, released)
    assert not type(estimator).__name__.endswith("InDoubles")


# --- in a ledger ----------------------------------------------------------------------------------


def test_a_ledger_fits_with_fresh_noise_and_the_settings_that_the_promise_needs(cancer, tmp_path):
    X, y = cancer
    ledger = PrivacyLedger(tmp_path / "l", epsilon=9.0, delta=0.0, neighboring="replace_one")
    first, second = (ledger.fit(bayes(random_state=0), X, y) for _ in range(2))
    assert not np.array_equal(first.theta_, second.theta_)
    model = ledger.fit(logistic(), X / np.sqrt(30), y)
    assert model.tol == MODELS["LogisticRegression"].settings["tol"]
    assert not hasattr(model, "n_iter_")
    with pytest.raises(dp.PrivacyError, match="sample_weight with one value per record"):
        ledger.fit(bayes(), X, y, sample_weight=np.ones(len(y)))
    assert [entry.name for entry in ledger.entries()] == ["GaussianNB"] * 2 + ["LogisticRegression"]
