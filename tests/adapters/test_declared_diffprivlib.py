"""A declared guarantee replaces what is known about the guarantee, and nothing else that an adapter
does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.adapters import adapter_for
from sklearn_dpsearch.adapters._seeds import fitted_parts
from sklearn_dpsearch.privacy import LeakingEstimatorError, PureDP
from sklearn_dpsearch.scoring import private_scorer

pytest.importorskip("diffprivlib")
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.models import KMeans, LinearRegression, LogisticRegression

from .diffprivlib_toys import forest, linear, logistic

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 2)) / np.sqrt(2)
y = (X[:, 0] > 0).astype(int)
WORD = PureDP(epsilon=1.0, neighboring="replace_one")


#: With what each search ends with a model.
NEEDED = {
    DPRandomSearchCV: {"n_iter": 3},
    DPSubsetSearchCV: {"n_iter": 3, "subset_fraction": 0.5},
    DPGridSearchCV: {"selection_epsilon": 1.0, "n_parts": 3},
    DPThresholdSearchCV: {"threshold": -100.0, "n_iter": 50},
}


def declared(estimator, kind=DPRandomSearchCV, **parameters):
    search = kind(
        estimator, {}, guarantee=WORD, **{**NEEDED[kind], "random_state": 0, **parameters}
    )
    return search.fit(X, y)


MODELS = {
    "alone": lambda: logistic(),
    "in a pipeline": lambda: make_pipeline(FunctionTransformer(), logistic()),
    "in a nested pipeline": lambda: Pipeline([("outer", make_pipeline(logistic()))]),
    "in an ensemble that no adapter knows": lambda: VotingClassifier(
        [(name, logistic()) for name in "abc"]
    ),
}


def logistic_parts(model):
    parts = (part for part in fitted_parts(model) if isinstance(part, LogisticRegression))
    return [part for part in parts if hasattr(part, "coef_")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", NEEDED)
@pytest.mark.parametrize("name", MODELS)
def test_exact_iteration_counts_are_not_released(kind, name):
    parts = logistic_parts(declared(MODELS[name](), kind).best_estimator_)
    assert parts
    assert not any(hasattr(part, "n_iter_") for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_known_models_get_what_their_guarantee_needs(name):
    for part in logistic_parts(declared(MODELS[name]()).best_estimator_):
        assert (part.tol, part.max_iter) == (1e-12, 10_000)


@pytest.mark.parametrize("name", MODELS)
def test_the_default_ledger_does_not_count_the_runs(name):
    kept = BudgetAccountant.load_default(None)
    BudgetAccountant().set_default()  # other tests spend in it
    try:
        declared(MODELS[name](), random_state=None)
        assert BudgetAccountant.load_default(None).total() == (0, 0)
    finally:
        kept.set_default()


def test_mechanisms_draw_on_the_operating_system():
    """A seed on the estimator would be the same for all candidates, and a generator of ours is not
    a secure one."""
    cases = ((logistic(random_state=1), ["random_state"]), (MODELS["in a pipeline"](), []))
    for estimator, names in cases:
        fresh = adapter_for(estimator, WORD).fresh_randomness(estimator)
        assert all(fresh[name] is None for name in fresh if name.endswith("random_state"))
        assert set(names) <= set(fresh)
        assert any(name.endswith("accountant") for name in fresh)


def test_columns_are_always_joined_dense():
    estimator = make_pipeline(ColumnTransformer([("all", "passthrough", [0, 1])]), logistic())
    adapter_for(estimator, WORD).prepare(estimator)
    assert estimator[0].sparse_threshold == 0


def test_declared_clusters_keep_no_label_of_any_record():
    model = declared(
        KMeans(n_clusters=2, bounds=(-1, 1)), DPGridSearchCV, scoring=lambda model, X, y: 0.5
    ).best_estimator_
    assert model.cluster_centers_.shape == (2, 2)
    assert not {"labels_", "inertia_", "n_iter_"} & set(vars(model))


def test_trees_of_a_declared_forest_keep_no_seed():
    """Their seeds are integers below 2**31, from which the noise can be drawn again."""
    model = declared(forest(n_estimators=3, bounds=(-1, 1), max_depth=2)).best_estimator_
    assert len(model.estimators_) == 3
    assert all(getattr(part, "random_state", None) is None for part in fitted_parts(model))


@pytest.mark.slow
@pytest.mark.processes
def test_leaks_that_are_noticed_while_fitting_are_errors_all_the_same():
    with pytest.raises(LeakingEstimatorError, match="read something from the data without noise"):
        declared(LogisticRegression())


# --- predictions within public bounds -------------------------------------------------------------

TARGET = np.clip(X @ [0.5, -0.2], -0.5, 0.5)
SCORING = private_scorer("r2", y_range=(-0.5, 0.5))


def bounded(**parameters):
    return linear(bounds_y=(-0.5, 0.5), **parameters)


def searched(estimator, **parameters):
    options = {"n_iter": 3, "scoring": SCORING, "random_state": 0}
    return DPRandomSearchCV(estimator, {}, **options, **parameters).fit(X, TARGET)


@pytest.mark.parametrize("word", [None, WORD])
@pytest.mark.parametrize(
    "make", [bounded, lambda **p: make_pipeline(FunctionTransformer(), bounded(**p))]
)
def test_predictions_stay_within_the_public_bounds_of_the_target(make, word):
    far = 100.0 * RNG.normal(size=(50, 2))
    model = searched(make(epsilon=0.01), guarantee=word).best_estimator_
    assert np.abs(model.predict(far)).max() <= 0.5
    last = model[-1] if isinstance(model, Pipeline) else model
    assert np.abs(far @ np.ravel(last.coef_)).max() > 0.5  # which the model itself does not keep


def test_a_clipped_model_is_one_of_diffprivlibs():
    model = searched(bounded(epsilon=1.0)).best_estimator_
    assert isinstance(model, LinearRegression)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert np.abs(clone(model).fit(X, TARGET).predict(1e6 * X)).max() <= 0.5
    expected = adapter_for(bounded()).training_run(bounded(), 300)
    assert adapter_for(clone(model)).training_run(clone(model), 300) == expected
