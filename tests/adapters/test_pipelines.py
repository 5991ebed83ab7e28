"""Pipelines, unions and column transformers: what composes, what is refused, and what is trained
together."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters import adapter_for, training_run
from sklearn_dpsearch.adapters._adapter import ProtocolAdapter
from sklearn_dpsearch.adapters._pipelines import CompositeAdapter
from sklearn_dpsearch.privacy import (
    LeakingEstimatorError,
    MixedNeighborsError,
    PureDP,
    UnknownGuaranteeError,
    UnknownSensitivityError,
)

from ..search.toys import NoisyCentroids, two_blobs
from .toys import NoisyShift, chain, promise, refused

X, y = two_blobs(120)


# --- what composes --------------------------------------------------------------------------------


COLUMNS = [("a", NoisyShift(0.25), [0]), ("b", "passthrough", [1]), ("c", "drop", [2])]
INNER = make_union(NoisyShift(0.25), make_pipeline(Normalizer(), NoisyShift(0.5)))
FREE = [Normalizer(), FunctionTransformer(np.abs), "passthrough", None]
COMPOSED = [
    (chain(), 0.75),
    (make_union(NoisyShift(0.25), NoisyShift(0.5)), 0.75),  # its parts see the same records
    (ColumnTransformer(COLUMNS), 0.25),
    (ColumnTransformer(COLUMNS, remainder=NoisyShift(0.5)), 0.75),
    (make_pipeline(INNER, NoisyCentroids(epsilon=0.25)), 1.0),
    *((Pipeline([("free", free), ("model", NoisyCentroids(epsilon=0.5))]), 0.5) for free in FREE),
]


def test_an_adapter_is_looked_up_once_for_parts_of_a_kind_and_not_kept_in_a_pickle():
    looked_up = []
    adapter = CompositeAdapter(lambda part: looked_up.append(type(part)) or adapter_for(part))
    for _ in range(3):
        adapter.training_run(chain(), 100)
        adapter.scaled_privacy(chain(), 2.0)
    assert len(looked_up) == len(set(looked_up)) > 0
    composite = adapter_for(chain())
    composite.training_run(chain(), 100)
    again = pickle.loads(pickle.dumps(composite))
    assert composite._adapters
    assert not again._adapters
    assert again.training_run(chain(), 100) == composite.training_run(chain(), 100)


@pytest.mark.parametrize(("estimator", "epsilon"), COMPOSED)
def test_private_steps_compose(estimator, epsilon):
    expected = (epsilon, "replace_one")
    assert (promise(estimator).pure_epsilon, promise(estimator).neighboring) == expected


def test_a_function_is_assumed_to_treat_each_record_on_its_own():
    run = training_run(
        Pipeline([("free", FunctionTransformer(np.abs)), ("model", NoisyCentroids())])
    )
    assert any("'free' treats each record on its own" in text for text in run.assumptions)


def test_a_composite_without_private_parts_costs_nothing():
    assert promise(make_pipeline(Normalizer())) == PureDP(epsilon=0.0)


def test_a_part_that_reveals_nothing_keeps_its_relation():
    """Under replace-one it may still tell the number of records."""
    silent = make_pipeline(FunctionTransformer(np.abs), NoisyCentroids(epsilon=0.0))
    assert promise(silent) == PureDP(epsilon=0.0, neighboring="replace_one")


def test_parts_under_different_relations_are_an_error():
    mixed = make_pipeline(NoisyShift(neighboring="add_remove"), NoisyCentroids())
    with pytest.raises(MixedNeighborsError):
        training_run(mixed)


# --- what is refused ------------------------------------------------------------------------------


def test_a_step_that_learns_without_privacy_is_named_with_a_remedy():
    words = ("'standardscaler'", "StandardScaler", "without privacy", "TableEncoder", "guarantee=")
    refused(UnknownGuaranteeError, make_pipeline(StandardScaler(), NoisyCentroids()), *words)


def usual(**search):
    """The script that people bring along."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([("numbers", numbers, [0]), ("words", OneHotEncoder(), [1])])
    steps = Pipeline([("columns", columns), ("model", LogisticRegression())])
    return DPRandomSearchCV(steps, {"model__C": [0.1, 1.0]}, cv=5, refit=True, **search)


@pytest.mark.parametrize("budget", [{}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}])
def test_all_that_stands_in_the_way_is_said_at_once_with_the_private_model_that_replaces_it(budget):
    X = np.array([[1.0, 0.0], [2.0, 1.0]] * 50)
    with pytest.raises(UnknownGuaranteeError, match="^5 things stand in the way") as found:
        usual(scoring="roc_auc", **budget).fit(X, np.array(["no", "yes"] * 50))
    lines = str(found.value).splitlines()
    named = (
        "columns__numbers__simpleimputer", "columns__numbers__standardscaler", "columns__words",
        "model", "roc_auc",
    )  # fmt: skip
    assert [name in line for name, line in zip(named, lines[1:6], strict=True)] == [True] * 5
    remedies = (
        "TableEncoder(schema)", "TableEncoder(schema)", "categories=", "DPLogisticRegression(",
        "classes=[...]",
    )  # fmt: skip
    assert [remedy in line for remedy, line in zip(remedies, lines[1:6], strict=True)] == [True] * 5
    assert "DPTabularClassifier of sklearn_dpsearch.nets" in str(found.value)
    assert found.value.listed[3].startswith("Step 'model' (LogisticRegression)")


def test_one_reason_alone_is_an_error_of_its_own_kind():
    match = "^LogisticRegression has no known training guarantee.*DPLogistic"
    with pytest.raises(UnknownGuaranteeError, match=match):
        DPRandomSearchCV(LogisticRegression(), {"C": [1.0]}).fit(np.ones((4, 1)), [0, 1, 0, 1])
    private = DPRandomSearchCV(NoisyCentroids(), {}, scoring="roc_auc")
    message = r"^scoring='roc_auc'.*states classes=\[...\]"
    with pytest.raises(UnknownSensitivityError, match=message):
        private.fit(np.ones((4, 1)), [0, 1, 0, 1])


def test_a_subclass_of_a_search_does_not_inherit_its_promise():
    class Changed(DPRandomSearchCV):
        def fit(self, X, y=None):
            return self

    refused(UnknownGuaranteeError, Changed(NoisyCentroids(), {}), "Changed", "may have changed fit")


def test_a_remainder_that_learns_is_refused():
    columns = ColumnTransformer([("a", NoisyShift(), [0])], remainder=StandardScaler())
    refused(UnknownGuaranteeError, columns, "'remainder'", "StandardScaler")


def test_a_cache_is_refused_at_any_depth(tmp_path):
    cached = chain(memory=str(tmp_path))
    refused(LeakingEstimatorError, cached, "memory=", "same noise", "memory=None")
    nested = make_pipeline(cached)
    refused(LeakingEstimatorError, nested, "In step 'pipeline'", "memory=None")


@pytest.mark.parametrize("base", [Pipeline, FeatureUnion, ColumnTransformer])
def test_subclasses_of_composites_are_not_recognised(base):
    changed = type("Changed", (base,), {})
    parts = (
        [("shift", NoisyShift(), [0])] if base is ColumnTransformer else [("shift", NoisyShift())]
    )
    refused(UnknownGuaranteeError, changed(parts), "Changed", "subclass")


def test_columns_chosen_by_the_data_are_refused_and_by_dtype_are_not():
    seen = ColumnTransformer([("a", NoisyShift(), lambda X: [0])])
    refused(LeakingEstimatorError, seen, "'a'", "by name or position")
    promise(ColumnTransformer([("a", NoisyShift(), make_column_selector(dtype_include=float))]))


# --- parameters -----------------------------------------------------------------------------------


def test_scaling_a_pipeline_scales_every_private_step():
    settings = adapter_for(chain()).scaled_privacy(chain(), 2.0)
    assert settings == {"shift__epsilon": 0.5, "model__epsilon": 1.0}
    assert promise(chain().set_params(**settings)).pure_epsilon == 1.5


def test_a_search_over_steps_prices_the_worst_of_them():
    space = {"shift": [NoisyShift(0.25), NoisyShift(0.5), "passthrough"]}
    for one in space["shift"]:
        training_run(chain().set_params(shift=one))
    search = DPRandomSearchCV(chain(), space, n_iter=3)
    assert search.privacy_cost(120).epsilon >= promise(chain()).pure_epsilon
    with pytest.raises(UnknownGuaranteeError, match="without privacy"):
        DPRandomSearchCV(chain(), {"shift": [StandardScaler()]}, n_iter=3).privacy_cost(120)


def test_scrubbing_reaches_the_fitted_parts(monkeypatch):
    seen = []
    monkeypatch.setattr(
        ProtocolAdapter, "scrub", lambda self, model: seen.append(model), raising=False
    )
    fitted = make_pipeline(
        ColumnTransformer([("a", NoisyShift(), [0])], remainder=NoisyShift()), NoisyCentroids()
    ).fit(X, y)
    adapter_for(fitted).scrub(fitted)
    assert [type(one).__name__ for one in seen] == ["NoisyShift", "NoisyShift", "NoisyCentroids"]
    assert all(hasattr(one, "mean_") or hasattr(one, "centroids_") for one in seen)


# --- candidates trained together ------------------------------------------------------------------


def nets_below(*steps):
    """Pipelines that end in nets with learning rates and seeds of their own."""
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPMLPClassifier

    return [
        make_pipeline(
            *[clone(step) if hasattr(step, "get_params") else step for step in steps],
            DPMLPClassifier(
                (3,), noise_multiplier=1.0, max_steps=5, learning_rate_init=0.1 * (i + 1),
                noise_seed=i, random_state=i,
            ),
        )
        for i in range(4)
    ]  # fmt: skip


def sizes_of_stacks(monkeypatch):
    """Filled with the number of nets in each call of their ``fit_together``."""
    from sklearn_dpsearch.nets import DPMLPClassifier

    sizes, honest = [], DPMLPClassifier.fit_together
    counted = staticmethod(lambda nets, X, y: (sizes.append(len(nets)), honest(nets, X, y))[1])
    monkeypatch.setattr(DPMLPClassifier, "fit_together", counted)
    return sizes


def scramble(X):
    """Randomness of its own: no two calls give the same."""
    return X + np.random.default_rng().normal(size=X.shape)


TOGETHER = {
    "net alone": (),
    "steps that learn nothing": (
        FunctionTransformer(np.tanh), "passthrough", PolynomialFeatures(2),
    ),
    "columns": (
        ColumnTransformer([("wide", PolynomialFeatures(2), [0]), ("rest", "passthrough", [1])]),
        Normalizer(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("steps", TOGETHER.values(), ids=TOGETHER)
def test_nets_below_steps_that_learn_nothing_are_trained_together(steps, monkeypatch):
    models, alone = nets_below(*steps), nets_below(*steps)
    sizes = sizes_of_stacks(monkeypatch)
    adapter = adapter_for(models[0])
    assert adapter.trains_together(models[0])
    assert adapter.fit_together(models, X, y) == models
    assert sizes == [4]
    for one, other in zip(models, alone):
        np.testing.assert_allclose(
            one.predict_proba(X), other.fit(X, y).predict_proba(X), rtol=1e-4, atol=1e-6
        )


def test_models_that_see_different_records_are_trained_apart(monkeypatch):
    models = nets_below(FunctionTransformer(np.tanh))
    for i, one in enumerate(models[2:]):
        one.set_params(functiontransformer__func=[np.sin, np.cos][i])
    sizes = sizes_of_stacks(monkeypatch)
    assert adapter_for(models[0]).fit_together(models, X, y) == models
    assert sizes == [2, 1, 1]


def test_a_random_function_is_drawn_anew_for_each_model(monkeypatch):
    """One draw for all would make runs depend on each other."""
    models = nets_below(FunctionTransformer(scramble))
    sizes = sizes_of_stacks(monkeypatch)
    assert adapter_for(models[0]).fit_together(models, X, y) == models
    assert sizes == [1, 1, 1, 1]


def test_a_model_that_fails_leaves_the_others_alone():
    def fails(X):
        raise ValueError("no")

    models = nets_below(FunctionTransformer(np.tanh))
    models[1].set_params(functiontransformer__func=fails)
    models[2].set_params(dpmlpclassifier__solver="none such")
    models[3].set_params(dpmlpclassifier=NoisyCentroids(epsilon=1.0))
    assert adapter_for(models[0]).fit_together(models, X, y) == [models[0], None, None, models[3]]
    assert models[3].predict(X).shape == y.shape


def test_a_step_that_learns_and_a_model_of_its_own_are_not_trained_together():
    (below,) = nets_below(NoisyShift())[:1]
    assert not adapter_for(below).trains_together(below)
    assert not CompositeAdapter(adapter_for).trains_together(
        make_pipeline(StandardScaler(), NoisyCentroids())
    )
    assert not CompositeAdapter(adapter_for).trains_together(
        make_pipeline(Normalizer(), NoisyCentroids())
    )
