"""What scripts for scikit-learn's searches ask for and a private search cannot do: each error names
the remedy."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.errors import PrivacyError, UnknownGuaranteeError

X, Y = np.linspace(0, 1, 40).reshape(20, 2), np.arange(20) % 2
MODEL = DPGradientBoostingClassifier({"a": (0.0, 1.0), "b": (0.0, 1.0)}, classes=[0, 1])


def search_with(estimator=MODEL, space=None, **arguments):
    given = {"n_iter": 3, "epsilon": 1.0, "delta": 1e-6, **arguments}
    return DPRandomSearchCV(estimator, "auto" if space is None else space, **given)


@pytest.mark.parametrize(("arguments", "remedy"), [
    ({"scoring": ["roc_auc", "accuracy"]}, "scoring='roc_auc'"),
    ({"scoring": {"area": "roc_auc"}}, "scoring='roc_auc'"),
    ({"refit": "roc_auc"}, "scoring='roc_auc' and leave refit='winner'"),
    ({"refit": lambda results: 0}, "make_private_scorer"),
    (
        {"scoring": ["roc_auc"], "refit": "roc_auc"},
        "scoring='roc_auc', and compute.*leave refit='winner'",
    ),
])  # fmt: skip
def test_one_score_decides(arguments, remedy):
    with pytest.raises(PrivacyError, match=remedy):
        search_with(**arguments).fit(X, Y)


@pytest.mark.parametrize(("argument", "remedy"), [
    ("return_train_score", "leave it out"), ("factor", "DPSubsetSearchCV"),
    ("resource", "DPSubsetSearchCV"),
])  # fmt: skip
def test_arguments_of_searches_without_privacy_name_what_is_there_instead(argument, remedy):
    with pytest.raises(TypeError, match=remedy):
        search_with(**{argument: 3})
    assert clone(search_with()).n_iter == 3  # arguments of our own go on


def test_all_arguments_that_a_grid_search_lacks_are_told_at_once():
    match = r"cv: which records train.*refit: one training.*return_train_score: .*leave"
    with pytest.raises(TypeError, match=match):
        DPGridSearchCV(MODEL, "auto", cv=5, refit=True, return_train_score=True)


def test_no_budget_at_all_shows_one():
    match = r"target_epsilon=1.0, target_delta=1e-6.*learn/budget.html"
    with pytest.raises(PrivacyError, match=match):
        MODEL.fit(X, Y)


class ConstantImputer(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_an_unknown_step_is_not_said_to_learn():
    with pytest.raises(UnknownGuaranteeError, match="is not known to learn nothing"):
        search_with(make_pipeline(ConstantImputer(), MODEL), {}).fit(X, Y)


def test_the_pipeline_of_imbalanced_learn_is_told_what_to_take():
    foreign = type("Pipeline", (Pipeline,), {"__module__": "imblearn.pipeline"})
    with pytest.raises(UnknownGuaranteeError, match="scikit-learn's Pipeline is needed"):
        search_with(foreign([("model", MODEL)]), {}).fit(X, Y)


def test_the_text_of_a_search_with_a_long_schema_stays_short():
    schema = {f"column number {place}": ["a", "b", "c"] for place in range(60)}
    text = repr(search_with(DPGradientBoostingClassifier(schema, classes=[0, 1])))
    assert len(text.splitlines()) < 20
    assert text.startswith("DPRandomSearchCV(")
    assert text.endswith(")")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_value_is_no_class(missing):
    model = DPGradientBoostingClassifier({"a": (0.0, 1.0)}, classes=[0, missing], target_mu=1.0)
    with pytest.raises(ValueError, match="a missing value is no class.*Leave it out"):
        model.fit(X[:, :1], Y)
