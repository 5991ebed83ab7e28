"""What diffprivlib's models promise, what is refused, and the defects of 0.6.6 that make the difference."""

from __future__ import annotations

import itertools
import math
import os
import secrets
import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import StandardScaler as PlainScaler

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters import adapter_for, training_run
from sklearn_dpsearch.adapters.diffprivlib import SystemRandomState
from sklearn_dpsearch.adapters.diffprivlib_models import MODELS, SMALLEST_EPSILON
from sklearn_dpsearch.audit import audit
from sklearn_dpsearch.privacy import LeakingEstimatorError, PrivacyError, PureDP, UnknownGuaranteeError

pytest.importorskip("diffprivlib")
from diffprivlib import models
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.mechanisms import Bingham, GeometricTruncated, LaplaceBoundedDomain, PermuteAndFlip
from diffprivlib.mechanisms.vector import Vector
from diffprivlib.models import (
    PCA,
    DecisionTreeClassifier,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
    StandardScaler,
)
from diffprivlib.validation import clip_to_bounds

RUNS = 20_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 1_500


def tree(**kwargs):
    return DecisionTreeClassifier(**{"bounds": (0, 1), "classes": [0, 1], **kwargs})


def forest(**kwargs):
    return RandomForestClassifier(**{"n_estimators": 2, "bounds": (0, 1), "classes": [0, 1], **kwargs})


def bayes(**kwargs):
    return GaussianNB(**{"bounds": (-1, 1), **kwargs})


def logistic(**kwargs):
    return LogisticRegression(**{"data_norm": 1.0, "fit_intercept": False, **kwargs})


def linear(**kwargs):
    return LinearRegression(**{"bounds_X": (-1, 1), "bounds_y": (-1, 1), "fit_intercept": False, **kwargs})


def scaler(**kwargs):
    return StandardScaler(**{"bounds": (-1, 1), **kwargs})


UNDERSTOOD = [tree, bayes, logistic, linear, scaler]


def promise(estimator):
    return training_run(estimator).guarantee


def refused(estimator, *words, kind=LeakingEstimatorError):
    with pytest.raises(kind) as caught:
        training_run(estimator)
    for word in words:
        assert word in str(caught.value)


@pytest.fixture(scope="module")
def cancer():
    """Thirty features in [-1, 1]."""
    X, y = load_breast_cancer(return_X_y=True)
    return (2 * X / X.max(axis=0) - 1)[:300], y[:300]


# --- promises --------------------------------------------------------------------------------------------------------


def test_every_model_of_the_library_has_a_row():
    public = {name for name, kind in vars(models).items() if isinstance(kind, type) and hasattr(kind, "fit")}
    assert public == set(MODELS)


@pytest.mark.parametrize(
    ("estimator", "factor"),
    [
        (tree(), 2.0),
        (bayes(), 2 * (2 + 1 / 2) / 3),
        (bayes(bounds=(0, 1)), 2.0),
        (bayes(bounds=([0, -1], [1, 1])), 2 * (2 + 3 / 4) / 3),
        (logistic(), 1.0),
        (logistic(data_norm=2), 1.0),
        (linear(), 1.0),
        (scaler(), 1.0),
        (scaler(with_std=False), 1.0),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else f"{one:.3g}",
)
def test_promise_is_the_proved_multiple_of_epsilon_under_replace_one(estimator, factor):
    estimator.set_params(epsilon=0.7)
    found = promise(estimator)
    assert isinstance(found, PureDP)
    assert found.neighboring == "replace_one"
    assert 0.7 * factor - 1e-15 <= found.epsilon <= 0.7 * factor * (1 + 1e-14)


@pytest.mark.parametrize("make", UNDERSTOOD)
def test_scaling_multiplies_the_promise(make):
    estimator = make(epsilon=0.5)
    settings = adapter_for(estimator).scaled(estimator, 3.0)
    assert settings == {"epsilon": 1.5}
    assert promise(estimator.set_params(**settings)).epsilon == pytest.approx(3 * promise(make(epsilon=0.5)).epsilon)


@pytest.mark.parametrize("make", UNDERSTOOD)
def test_parameters_the_guarantee_depends_on_exist(make):
    estimator = make()
    names = adapter_for(estimator).privacy_parameters(estimator)
    assert "epsilon" in names
    assert set(names) <= set(estimator.get_params())


def test_parameters_without_influence_on_the_guarantee_are_not_listed():
    assert "max_depth" not in adapter_for(tree()).privacy_parameters(tree())
    assert "C" not in adapter_for(logistic()).privacy_parameters(logistic())


@pytest.mark.parametrize("make", [bayes, logistic, scaler])
def test_assumptions_say_that_the_number_of_records_is_public(make):
    assert any("number of records is public" in text for text in training_run(make()).assumptions)


# --- refusals: found, needed, remedy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
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
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else one[0][:20],
)
def test_a_leak_is_refused_before_any_data_is_read(estimator, words):
    refused(estimator, *words)
    with pytest.raises(LeakingEstimatorError):
        DPRandomSearchCV(estimator, {"epsilon": [1.0]} if "epsilon=1e" not in words[0] else {}, n_iter=2).privacy_cost()


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, None, True, "1"])
def test_epsilon_must_be_a_positive_number(epsilon):
    refused(tree(epsilon=epsilon), "epsilon=", "0 < epsilon < inf", kind=PrivacyError)


def test_a_subclass_must_be_declared():
    class MyTree(DecisionTreeClassifier):
        pass

    refused(MyTree(bounds=(0, 1), classes=[0, 1]), "MyTree", "subclass", kind=UnknownGuaranteeError)
    assert training_run(MyTree(), declared=PureDP(epsilon=2.0)).guarantee.epsilon == 2.0


def test_a_release_that_was_not_read_is_refused(monkeypatch):
    monkeypatch.setattr("diffprivlib.__version__", "0.7.0")
    refused(tree(), "diffprivlib 0.7.0", "0.6.6", "declare", kind=UnknownGuaranteeError)


def test_a_candidate_outside_the_guarantee_is_found_before_the_data():
    search = DPRandomSearchCV(logistic(), {"data_norm": [1.0, 3.0]}, n_iter=2)
    with pytest.raises(LeakingEstimatorError, match="at most 2"):
        search.privacy_cost(100)


def test_what_a_declared_estimator_reads_from_the_data_stops_the_search(cancer):
    search = DPRandomSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, n_iter=2, guarantee=PureDP(epsilon=1.0))
    with pytest.raises(LeakingEstimatorError, match="PrivacyLeakWarning") as caught:
        search.fit(*cancer)
    assert caught.value.__context__ is None
    assert not hasattr(search, "best_score_")


# --- randomness and ledgers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", UNDERSTOOD)
def test_each_candidate_gets_a_ledger_of_its_own(make):
    one, other = (adapter_for(make()).fresh_randomness(make())["accountant"] for _ in range(2))
    assert one is not other
    assert one is not BudgetAccountant.load_default(None)
    assert one.total() == (0, 0)


@pytest.mark.parametrize("make", UNDERSTOOD)
def test_two_unseeded_fits_differ(make):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 2)), np.arange(60) % 2

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


@pytest.mark.parametrize(
    ("estimator", "space"),
    [
        (tree(bounds=(-1, 1)), {"max_depth": [1, 3]}),
        (bayes(), {"var_smoothing": [1e-9, 1e-3]}),
        (logistic(), {"C": [0.1, 1.0]}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_search_runs_and_leaves_the_default_ledger_alone(estimator, space, cancer):
    default = BudgetAccountant.load_default(None)
    before = len(default)
    search = fitted_search(estimator, space, *cancer, epsilon=6.0)
    assert len(default) == before
    assert search.privacy_spent_.epsilon <= 6.0
    assert search.privacy_spent_.neighboring == "replace_one"
    assert set(search.predict(cancer[0])) <= {0, 1}
    assert search.best_estimator_.random_state is None
    assert search.best_estimator_.accountant.total()[0] == pytest.approx(search.best_estimator_.epsilon)
    assert len(search.best_estimator_.accountant) == 1


def test_the_default_ledger_stays_empty(cancer):
    try:
        kept = BudgetAccountant.pop_default()
        search = DPRandomSearchCV(GaussianNB(bounds=(-1, 1)), {"var_smoothing": [1e-9]}, n_iter=3)
        search.fit(*cancer)
        assert BudgetAccountant.load_default(None).total() == (0, 0)
    finally:
        kept.set_default()


def test_exact_iteration_counts_are_not_released(cancer):
    search = fitted_search(logistic(), {"C": [1.0]}, *cancer)
    assert not hasattr(search.best_estimator_, "n_iter_")
    chain = fitted_search(make_pipeline(logistic()), {"logisticregression__C": [1.0]}, *cancer)
    assert not hasattr(chain.best_estimator_[-1], "n_iter_")


def test_candidates_reach_the_minimum_whatever_the_tolerance_given(cancer):
    search = fitted_search(logistic(tol=0.1, max_iter=2), {"C": [1.0]}, *cancer)
    assert search.best_estimator_.tol == 1e-12
    assert search.best_estimator_.max_iter == 10_000


def test_fitted_attributes_are_the_ones_that_were_read():
    """Every other attribute is a constant of scikit-learn, public, or made from noisy numbers."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 2)), np.arange(60) % 2
    known = {
        tree: {"classes_", "n_classes_", "n_features_in_", "n_outputs_", "tree_"},
        bayes: {"class_count_", "class_prior_", "classes_", "epsilon_", "n_features_in_", "theta_", "var_"},
        logistic: {"classes_", "coef_", "intercept_", "n_features_in_", "n_iter_"},
        linear: {"coef_", "intercept_", "n_features_in_", "_obj_coefs"},
        scaler: {"mean_", "n_features_in_", "n_samples_seen_", "scale_", "var_"},
    }
    for make, names in known.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before, after = vars(make()), vars(make().fit(X, y))
        assert {name for name in after if name not in before or name.endswith("_")} == names, make.__name__


def test_the_nodes_of_a_tree_hold_no_counts():
    rng = np.random.default_rng(0)
    state = tree(max_depth=3).fit(rng.uniform(0, 1, (50, 2)), np.arange(50) % 2).tree_.__getstate__()
    assert not state["nodes"]["n_node_samples"].any()
    assert not state["nodes"]["weighted_n_node_samples"].any()
    assert not state["nodes"]["impurity"].any()
    assert set(np.unique(state["values"])) == {0.0, 1.0}


# --- composites ------------------------------------------------------------------------------------------------------


def halve(X):
    return X / np.sqrt(X.shape[1]) / 2


def test_a_pipeline_of_private_steps_composes(cancer):
    chain = make_pipeline(scaler(epsilon=0.5), FunctionTransformer(halve), logistic(epsilon=1.0))
    assert promise(chain).pure_epsilon == 1.5
    assert promise(chain).neighboring == "replace_one"
    search = fitted_search(chain, {"logisticregression__C": [0.1, 1.0]}, *cancer, epsilon=5.0)
    assert search.privacy_spent_.epsilon <= 5.0
    assert search.best_estimator_[0].epsilon == pytest.approx(search.best_estimator_[-1].epsilon / 2)


def test_unions_and_column_transformers_compose():
    both = FeatureUnion([("wide", scaler(epsilon=0.25)), ("narrow", scaler(epsilon=0.5))])
    assert promise(both).pure_epsilon == 0.75
    columns = ColumnTransformer([("a", scaler(epsilon=0.25), [0]), ("b", "passthrough", [1])], remainder=scaler())
    assert promise(columns).pure_epsilon == 1.25
    everything = promise(make_pipeline(both, columns, bayes(epsilon=1.5)))
    assert everything.pure_epsilon == pytest.approx(0.75 + 1.25 + 2.5)


def test_plain_scikit_learn_steps_are_refused_by_name():
    chain = make_pipeline(PlainScaler(), logistic())
    refused(chain, "'standardscaler'", "StandardScaler", "without privacy", kind=UnknownGuaranteeError)


def test_a_leaking_step_is_refused_by_name():
    refused(make_pipeline(scaler(), PCA(2, data_norm=1, centered=True), logistic()), "In step 'pca'", "sampler")


# --- proofs, checked -------------------------------------------------------------------------------------------------


def permute_and_flip(counts, epsilon):
    """Exact law of the label of a leaf."""
    heads = np.exp(epsilon * (np.array(counts) - max(counts)))
    law = np.zeros(len(counts))
    orders = list(itertools.permutations(range(len(counts))))
    for order in orders:
        left = 1.0
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law / len(orders)


def moved(counts, source, target):
    changed = list(counts)
    changed[source] -= 1
    changed[target] += 1
    return changed


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_changed_record_costs_a_tree_up_to_twice_its_epsilon(epsilon, classes):
    one_more, changed = [], []
    for counts in itertools.product(range(4), repeat=classes):
        law = permute_and_flip(counts, epsilon)
        for i in range(classes):
            one_more.append(np.abs(np.log(law / permute_and_flip(np.add(counts, np.eye(classes)[i]), epsilon))).max())
            changed += [
                np.abs(np.log(law / permute_and_flip(moved(counts, j, i), epsilon))).max()
                for j in range(classes)
                if j != i and counts[j]
            ]
    assert max(one_more) == pytest.approx(epsilon)
    assert 1.5 * epsilon < max(changed) <= 2 * epsilon * (1 + 1e-12)
    if classes == 2:
        assert max(changed) == pytest.approx(2 * epsilon)


def test_the_exact_law_of_a_leaf_is_the_one_sampled():
    mechanism = PermuteAndFlip(epsilon=1.0, sensitivity=1, monotonic=True, utility=[2, 1, 0])
    drawn = np.bincount([mechanism.randomise() for _ in range(4000)], minlength=3) / 4000
    assert np.abs(drawn - permute_and_flip([2, 1, 0], 1.0)).max() < 0.04


def log_bounded(x, value, scale, upper):
    """Log-density of Laplace noise conditioned on [0, upper]."""
    mass = -(np.expm1(-value / scale) + np.expm1(-(upper - value) / scale)) / 2
    return -np.abs(x - value) / scale - np.log(2 * scale * mass)


@pytest.mark.parametrize("upper", [1.0, 1.3, 2.0, 10.0, 1000.0])
@pytest.mark.parametrize("epsilon", [1e-5, 0.01, 0.3, 1.0, 5.0])
def test_bounded_laplace_noise_keeps_its_epsilon_for_a_shift_of_any_size(upper, epsilon):
    scale = LaplaceBoundedDomain(epsilon=epsilon, sensitivity=1.0, lower=0.0, upper=upper)._find_scale()
    worst = 0.0
    for shift in np.linspace(0.05, 1.0, 20):
        values = np.linspace(0, upper - shift, 200)
        for x in (0.0, upper):
            loss = log_bounded(x, values, scale, upper) - log_bounded(x, values + shift, scale, upper)
            worst = max(worst, np.abs(loss).max())
    assert worst <= epsilon * (1 + 1e-5)
    assert worst >= 0.99 * epsilon


def test_bounded_laplace_noise_is_too_small_at_tiny_epsilons():
    scale = LaplaceBoundedDomain(epsilon=1e-8, sensitivity=1.0, lower=0.0, upper=1.3)._find_scale()
    loss = log_bounded(0.0, 0.0, scale, 1.3) - log_bounded(0.0, 1.0, scale, 1.3)
    assert loss > 1.2e-8
    assert SMALLEST_EPSILON > 1e4 * 1e-8


def log_geometric(k, value, epsilon, top):
    """Log-probability of a truncated geometric count on 1..top."""
    p = math.exp(-epsilon)
    distance = abs(k - value)
    return -epsilon * distance - math.log(1 + p) + (0 if k in (1, top) else math.log(1 - p))


def log_tail(distance, rate):
    """Log-probability that Laplace noise of this rate carries a sum beyond a bound at this distance."""
    return math.log(0.5) - rate * distance if distance >= 0 else math.log1p(-0.5 * math.exp(rate * distance))


def log_mean(mu, n, total, rate, low, high):
    """Log-density of a class's mean, cut off at the bounds; there, log-probability."""
    if mu == low:
        return log_tail(total - n * low, rate)
    return log_tail(n * high - total, rate) if mu == high else -rate * abs(n * mu - total)


def bayes_class_losses(records, others, epsilon, low, high):
    """Losses of one class's count, mean and variance over a grid of outcomes, for one feature."""
    share, top = epsilon / 3, 20
    for n, mu in itertools.product((1, 3, 20), np.linspace(low, high, 21)):
        upper = max(mu - low, high - mu) ** 2 * n
        mechanism = LaplaceBoundedDomain(epsilon=share, sensitivity=upper / n, lower=0.0, upper=upper)
        scale, loss = mechanism._find_scale(), 0.0
        for sign, rows in ((1, np.array(records)), (-1, np.array(others))):
            loss += sign * log_geometric(n, len(rows), share, top)
            loss += sign * log_mean(mu, n, rows.sum(), share / (high - low), low, high)
            square = min(float(((rows - mu) ** 2).sum()), upper)
            loss = loss + sign * log_bounded(np.linspace(0, upper, 50), square, scale, upper)
        yield from loss


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (2.0, 3.0)])
def test_a_record_that_changes_its_class_costs_naive_bayes_more_than_its_epsilon(bounds):
    """The class that it leaves and the class that it enters, each at its worst (their other records are arbitrary)."""
    epsilon, (low, high) = 1.5, bounds
    leaving = entering = 0.0
    for rest in ([low], [high], [low, high], [low] * 4, [high] * 4):
        for x in (low, (low + high) / 2, high):
            losses = list(bayes_class_losses([*rest, x], rest, epsilon, low, high))
            leaving, entering = max(leaving, *losses), max(entering, -min(losses))
    stated = promise(bayes(epsilon=epsilon, bounds=bounds)).epsilon
    assert epsilon < leaving + entering <= stated * (1 + 1e-6)


def test_the_count_law_of_naive_bayes_is_the_one_assumed():
    mechanism = GeometricTruncated(epsilon=0.5, sensitivity=1, lower=1, upper=20)
    drawn = np.array([mechanism.randomise(3) for _ in range(4000)])
    for k in (1, 3, 5):
        assert np.mean(drawn == k) == pytest.approx(math.exp(log_geometric(k, 3, 0.5, 20)), abs=0.04)


def log_density_logistic(w, records, epsilon, C, norm):
    """Log-density of the minimiser for one feature, no intercept, up to a constant that no record changes."""
    x, y = np.array(records).T
    noise, penalty = epsilon - 2 * math.log(1 + norm * C / 4), 1 / C
    if noise <= 0:
        noise, penalty = epsilon / 2, norm / 4 / math.expm1(epsilon / 4)
    s = 1 / (1 + np.exp(-np.outer(w, x)))
    gradient = ((s - y) * x).sum(axis=1) + penalty * w
    return -np.abs(gradient) * noise / (2 * norm) + np.log((s * (1 - s) * x**2).sum(axis=1) + penalty)


def logistic_loss(epsilon, C, norm):
    w, worst = np.linspace(-40, 40, 8001), 0.0
    for base in ([], [(norm, 1)], [(norm, 1), (norm, 0)]):
        laws = [log_density_logistic(w, [*base, (x, y)], epsilon, C, norm) for x in (norm, norm / 2, 0) for y in (0, 1)]
        worst = max(worst, *(np.abs(a - b).max() for a, b in itertools.combinations(laws, 2)))
    return worst


@pytest.mark.parametrize("norm", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_logistic_regression_keeps_its_epsilon_for_norms_up_to_two(norm, C, epsilon):
    assert logistic_loss(epsilon, C, norm) <= epsilon


def test_logistic_regression_breaks_its_epsilon_for_large_norms():
    assert logistic_loss(0.3, 0.1, 6.0) > 1.5 * 0.3


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 100.0])
def test_the_two_branches_of_the_proof_hold_up_to_norm_two(epsilon, C):
    for norm in np.linspace(0.01, 2, 50):
        noise, penalty = epsilon - 2 * math.log(1 + norm * C / 4), 1 / C
        if noise <= 0:
            noise, penalty = epsilon / 2, norm / 4 / math.expm1(epsilon / 4)
        assert noise + math.log(1 + norm**2 / 4 / penalty) <= epsilon * (1 + 1e-12)


def test_the_mechanism_of_logistic_regression_is_the_one_in_the_proof():
    mechanism = Vector(epsilon=1.0, dimension=2, alpha=2.0, function_sensitivity=0.25, data_sensitivity=1.0, n=10)
    noisy = [mechanism.randomise(lambda w: (0.0, np.zeros(2)))(np.zeros(2))[1] * 10 for _ in range(3000)]
    expected = 2 * 2 / (1 - 2 * math.log(1 + 0.25 / 2))  # norm of the noise: Gamma(dimension, 2 R / epsilon')
    assert np.linalg.norm(noisy, axis=1).mean() == pytest.approx(expected, rel=0.1)


# --- defects that are refused, shown ---------------------------------------------------------------------------------


def test_an_unpenalised_intercept_has_no_bound():
    """Far out, the others' curvature vanishes and the Jacobian's ratio grows without end."""

    def log_density(theta, records, epsilon=1.0, C=1.0, norm=1.0):
        X, y = np.array([[x, 1.0] for x, _ in records]), np.array([label for _, label in records])
        s = 1 / (1 + np.exp(-(X @ theta)))
        gradient = X.T @ (s - y) + np.array([theta[0] / C, 0.0])
        hessian = (X * (s * (1 - s))[:, None]).T @ X + np.diag([1 / C, 0.0])
        radius = math.hypot(norm, 1)
        noise = epsilon - 2 * math.log(1 + radius * C / 4)
        return -np.linalg.norm(gradient) * noise / (2 * radius) + np.linalg.slogdet(hessian)[1]

    others = [(-1.0, 0)] * 5
    losses = []
    for far in (5.0, 10.0, 20.0, 40.0):
        theta = np.array([far, -far])  # the record at x = 1 is on the border, those at -1 are far from it
        losses.append(log_density(theta, [*others, (1.0, 1)]) - log_density(theta, [*others, (-1.0, 0)]))
    assert all(b > a + 4 for a, b in itertools.pairwise(losses))
    assert losses[-1] > 30


def test_linear_regression_with_an_intercept_or_one_sided_bounds_adds_no_noise_to_a_square():
    X, y = np.array([[0.0], [1.0], [1.0]]), np.array([0.0, 1.0, 1.0])
    one_sided = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False).fit(X, y)
    assert one_sided._obj_coefs[2][0, 0] == (X**2).sum()
    fits = [
        LinearRegression(epsilon=2.0, bounds_X=(0, 1), bounds_y=(0, 1), random_state=i).fit(X, y) for i in range(60)
    ]
    without_noise = [one for one in fits if one._obj_coefs[2][0, 0] == (X**2).sum()]
    assert without_noise  # whenever the noisy mean is cut off at the lower bound


def test_linear_regression_spends_more_than_epsilon_on_its_means():
    spent = []

    def watch(array, epsilon=None, **kwargs):
        spent.append(epsilon)
        return np.mean(array, axis=0)

    module = __import__("diffprivlib.models.linear_regression", fromlist=["mean"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "mean", watch)
        X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
        LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, X[:, 0])
    assert sum(spent) + (1 - 1 / 3) == pytest.approx(1 + 1 / 3)


def test_k_means_leaves_a_centre_without_records_where_it_was():
    start = KMeans(n_clusters=2, random_state=0)
    start.bounds = start._check_bounds((0, 1), 1)
    centres = start._init_centers(1, np.random.RandomState(0)).ravel()
    near, far = centres.min(), centres.max()
    alone, visited = np.full((50, 1), near / 2), np.full((50, 1), near / 2)
    visited[0] = 1.0  # one record changed

    def untouched(X):
        model = KMeans(n_clusters=2, bounds=(0, 1), epsilon=0.1, random_state=0).fit(X)
        return far in _update_once(model, X)

    def _update_once(model, X):
        _, labels = model._distances_labels(X, centres[:, None].copy())
        return model._update_centers(
            X, centres[:, None].copy(), labels, dims=1, total_iters=2, random_state=np.random.RandomState(1)
        ).ravel()

    assert untouched(alone)
    assert not untouched(visited)


def test_k_means_keeps_an_exact_sum_of_squares():
    X = np.random.default_rng(0).uniform(0, 1, (50, 1))
    model = KMeans(n_clusters=2, bounds=(0, 1), epsilon=0.1).fit(X)
    assert model.inertia_ == pytest.approx(((X - model.cluster_centers_[model.labels_]) ** 2).sum(), rel=1e-12)


def leaf_values(fitted):
    return fitted.tree_.__getstate__()["values"]


def test_the_noise_of_a_forest_can_be_recomputed_from_the_model():
    """Whoever knows all but one record replays the seed for each value of it; a wrong value gives another tree."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (40, 1)), np.arange(40) % 2
    released, recognised = forest(max_depth=2, epsilon=0.5, random_state=0).fit(X, y), 0
    for part, rows in zip(released.estimators_, (slice(0, 20), slice(20, 40))):
        assert isinstance(part.random_state, int)

        def replayed(labels, part=part, rows=rows):
            replay = tree(max_depth=2, epsilon=0.5, random_state=part.random_state)
            return leaf_values(replay.fit(X[rows], labels))

        assert np.array_equal(replayed(y[rows]), leaf_values(part))
        for j in range(20):
            guess = y[rows].copy()
            guess[j] = 1 - guess[j]
            recognised += not np.array_equal(replayed(guess), leaf_values(part))
    assert recognised


def test_numpys_generator_would_tell_which_leaves_are_empty():
    """Hence the operating system's: enough thresholds give NumPy's state, and with it the labels of empty leaves."""
    X, y = np.zeros((5, 1)), np.zeros(5)
    np.random.seed(3)
    released = tree(max_depth=4).fit(X, y)
    np.random.seed(3)
    nodes = released.tree_.__getstate__()["nodes"]
    for _ in nodes[nodes["left_child"] != -1]:
        np.random.randint(1)
        np.random.uniform()
    occupied = released.apply(X)[0]
    empty = [i for i, node in enumerate(nodes) if node["left_child"] == -1 and i != occupied]
    assert [leaf_values(released)[i, 0].argmax() for i in empty] == [np.random.randint(2) for _ in empty]


def test_nearly_equal_bounds_are_clipped_to_the_widest():
    lower, upper = np.array([1000.0, 1000.0]), np.array([1000.005, 1000.01])
    clipped = clip_to_bounds(np.array([[1000.01, 1000.01]]), (lower, upper))
    assert clipped[0, 0] > upper[0] + 0.004
    refused(bayes(bounds=(lower, upper)), "np.allclose")
    assert promise(bayes(bounds=([0.0, 0.0], [1.0, 2.0]))).epsilon == pytest.approx(2.0)


def bingham_constant(values):
    low, high = 1.0, float(len(values))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if np.sum(1 / (middle + 2 * values)) <= 1 else (middle, high)
    return high


def test_components_of_a_pca_are_not_drawn_from_binghams_law():
    mechanism = Bingham(epsilon=2.0, random_state=np.random.RandomState(0))
    drawn = np.mean([mechanism.randomise(np.diag([8.0, 0.0]))[1] ** 2 for _ in range(4000)])
    t = np.linspace(0, 2 * np.pi, 20_001)
    values = np.array([0.0, 2.0 * 8 / 4])
    s = values[1] * np.sin(t) ** 2
    right = np.exp(-s)
    divided = right / (1 + 2 * s / bingham_constant(values)) ** 2
    proper, found = (np.average(np.sin(t) ** 2, weights=law) for law in (right, divided))
    assert drawn == pytest.approx(found, abs=0.005)
    assert proper > 3 * found


@pytest.mark.parametrize(("divided", "low", "high"), [(False, 0.2, 0.5), (True, 8.0, math.inf)])
def test_one_record_changes_a_component_far_beyond_its_epsilon(divided, low, high):
    """Two tied directions, one record moved from one to the other; densities integrated over the sphere."""
    features, epsilon, size = 30, 1.0, 4000
    nodes, weights = np.polynomial.legendre.leggauss(200)
    nodes, weights = (nodes + 1) / 2, weights / 2
    outside, jacobian = nodes**4, 4 * nodes**3  # outside: squared length outside the plane, mostly near 0
    t = np.linspace(0, 2 * np.pi, 401)[:-1]

    def law(first, second):
        top = max(first, second)
        values = epsilon / 4 * np.array([top - first, top - second, *[top] * (features - 2)])
        constant = bingham_constant(values)

        def log_density(r, t):
            s = r * (values[0] * np.cos(t) ** 2 + values[1] * np.sin(t) ** 2) + (1 - r) * values[2]
            return -s - (features * np.log1p(2 * s / constant) if divided else 0)

        grid, angle = np.meshgrid(outside, t, indexing="ij")
        inside = log_density(1 - grid, angle) + (features - 4) / 2 * np.log(grid)
        mass = (np.exp(inside - inside.max()) * (weights * jacobian)[:, None]).mean(axis=1).sum()
        return lambda r, t: log_density(r, t) - math.log(mass) - inside.max()

    one, other = law(size, size), law(size + 1, size - 1)
    t = np.linspace(0, np.pi / 2, 20)
    worst = max(np.abs(one(r, t) - other(r, t)).max() for r in np.linspace(0, 1, 11))
    assert low * epsilon <= worst <= high * epsilon


# --- audits ----------------------------------------------------------------------------------------------------------


def audited(estimator, event, one, other, runs):
    """The promise of the adapter against an event known in advance; seeded."""
    return audit(
        estimator,
        *one,
        other=other,
        n_runs=runs,
        statistic=lambda model: bool(event(model)),
        delta=0.0,
        confidence=0.999,
        random_state=0,
    )


@pytest.mark.slow
def test_audit_of_a_tree_finds_more_than_its_epsilon_and_no_more_than_the_promise():
    """Two records in one leaf: permute-and-flip on the counts (2, 0) and (1, 1)."""
    X, model = np.full((2, 1), 0.5), tree(max_depth=1, epsilon=1.0)
    one, other = (X, np.array([0, 0])), (X, np.array([1, 0]))
    found = audited(model, lambda m: m.predict(X[:1])[0] == 1, one, other, 2 * RUNS)
    assert model.epsilon < found.epsilon_lower <= found.stated_epsilon == promise(model).epsilon


@pytest.mark.slow
def test_audit_of_naive_bayes_stays_below_the_promise():
    model = bayes(epsilon=4.0, bounds=(0, 1))
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    one, other = (X, np.array([0, 0, 0, 1])), (X, np.array([0, 0, 1, 1]))
    found = audited(model, lambda m: m.theta_[0, 0] == 0 and m.theta_[1, 0] == 1, one, other, RUNS)
    assert 0.2 < found.epsilon_lower <= found.stated_epsilon == promise(model).epsilon


@pytest.mark.slow
def test_audit_of_logistic_regression_stays_below_the_promise():
    model = logistic(epsilon=2.0)
    X = np.array([[1.0], [1.0], [1.0]])
    one, other = (X, np.array([0, 1, 1])), (X * [[1], [1], [-1]], np.array([0, 1, 1]))
    found = audited(model, lambda m: m.coef_[0, 0] > 0.3, one, other, RUNS // 2)
    assert 0.2 < found.epsilon_lower <= found.stated_epsilon == promise(model).epsilon


@pytest.mark.slow
def test_audit_of_the_scaler_stays_below_the_promise():
    model = scaler(epsilon=2.0)
    one, other = (np.array([[1.0], [1.0], [1.0]]), None), (np.array([[1.0], [1.0], [-1.0]]), None)
    found = audited(model, lambda m: m.mean_[0] == 1 and m.var_[0] < 0.4, one, other, RUNS)
    assert 0.5 < found.epsilon_lower <= found.stated_epsilon == promise(model).epsilon


@pytest.mark.slow
def test_audit_of_linear_regression_stays_below_the_promise():
    model = linear(epsilon=3.0)
    X = np.array([[1.0], [1.0]])
    one, other = (X, np.array([1.0, 1.0])), (X, np.array([1.0, -1.0]))
    found = audited(model, lambda m: m._obj_coefs[1][0, 0] > 1.0, one, other, RUNS)
    assert 0.4 < found.epsilon_lower <= found.stated_epsilon == promise(model).epsilon
