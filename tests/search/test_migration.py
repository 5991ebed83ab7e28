"""What works with scikit-learn's searches works here, or is refused with the reason and a
remedy."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sklearn.model_selection
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PrivacyError, PureDP
from sklearn_dpsearch.scoring._validation import BLIND_SPLITTERS

from .toys import (
    SEARCHES,
    NoisyCentroids,
    Untouchable,
    refuses_to_fit,
    search_of,
    some_labels,
    two_blobs,
)

X, y = two_blobs(300)
SPACE = {"shrink": [0.0, 0.5]}
PUBLIC = {"X_public": X[:50].copy(), "y_public": y[:50].copy()}
#: scikit-learn's splitters that look at labels or groups.
LOOKING = [
    one
    for name, one in vars(sklearn.model_selection).items()
    if re.match("Strat|Repeated(?=Strat)|Group|.*Groups?Out", name)
]


# --- keywords of the constructor ------------------------------------------------------------------


def splitters():
    named = vars(sklearn.model_selection)
    return {
        one
        for name, one in named.items()
        if isinstance(one, type) and hasattr(one, "get_n_splits") and not name.startswith("Base")
    }


def test_every_splitter_of_scikit_learn_is_known():
    """One of a newer scikit-learn is noticed here; it would be asked for folds without labels or
    groups."""
    assert splitters() - {PredefinedSplit} == {*LOOKING, *BLIND_SPLITTERS}


@pytest.mark.parametrize("kind", ["random", "threshold"])
@pytest.mark.parametrize("splitter", LOOKING, ids=lambda one: one.__name__)
def test_splitters_that_look_at_labels_or_groups_are_refused(kind, splitter):
    given = {"n_groups": 2} if "LeaveP" in splitter.__name__ else {}
    for relation in ("add_remove", "zero_out", "replace_one"):
        declared = PureDP(epsilon=1.0, neighboring=relation)
        cv = splitter(**given)
        search = search_of(kind, LogisticRegression(), {"C": [1.0]}, cv=cv, guarantee=declared)
        match = r"(?s)looks at.*depend on the data.*cv=5.*KFold, ShuffleSplit"
        with pytest.raises(PrivacyError, match=match):
            search.fit(Untouchable(300), some_labels(300))


class Sorted(KFold):
    """Folds by the sorted labels."""

    def split(self, X, y=None, groups=None):
        order = np.argsort(y)
        return ((order[train], order[test]) for train, test in super().split(order))


class LooksAtY(KFold):
    def split(self, X, y=None, groups=None):
        if y is None:
            raise ValueError("the labels, please")
        return super().split(X)


def test_a_splitter_of_ones_own_never_sees_a_label():
    for cv in (LooksAtY(3), Sorted(3)):
        with pytest.raises(PrivacyError, match="looks at the labels or at groups.*KFold"):
            DPRandomSearchCV(NoisyCentroids(), SPACE, cv=cv).fit(Untouchable(300), some_labels(300))


@pytest.mark.parametrize(("cv", "trusted"), [
    (list(StratifiedKFold(3).split(X, y)), True), (PredefinedSplit(y), True), (KFold(3), False),
    (3, False), (0.2, False), (None, False),
], ids=str)  # fmt: skip
def test_folds_that_only_the_caller_can_vouch_for_are_said_to_be_taken_on_trust(cv, trusted):
    spent = DPRandomSearchCV(NoisyCentroids(), SPACE, cv=cv).privacy_cost(300)
    assert any("(cv) was fixed without a look" in text for text in spent.assumptions) == trusted


def test_a_generator_of_folds_that_is_used_up_is_said_to_be():
    search = DPRandomSearchCV(NoisyCentroids(), SPACE, cv=KFold(3).split(X))
    search.privacy_cost(300)
    with pytest.raises(ValueError, match=r"read only once.*cv=list\(\.\.\.\)"):
        search.fit(Untouchable(300), some_labels(300))


# --- keywords of fit ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("declared", [None, PureDP(epsilon=1.0, neighboring="zero_out")])
def test_groups_are_refused_before_any_record_is_read(kind, declared):
    search = search_of(kind, NoisyCentroids(), SPACE, guarantee=declared)
    refuses_to_fit(
        search, PrivacyError, r"Found groups in fit.*single records.*GroupKFold.*Nothing was spent",
        Untouchable(300), some_labels(300), groups=np.arange(300) % 5,
    )  # fmt: skip


class Weighed(NoisyCentroids):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


@pytest.mark.parametrize("weights", [
    2.0, np.ones(300), [1.0] * 300, iter([1.0] * 300),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_weights_of_whatever_kind_need_a_declared_guarantee(weights):
    with pytest.raises(PrivacyError, match="sample_weight.*declare guarantee.*class_weight"):
        DPRandomSearchCV(Weighed(), SPACE, n_iter=2).fit(
            Untouchable(300), some_labels(300), sample_weight=weights
        )
    with pytest.raises(PrivacyError, match="weighed__sample_weight.*declare guarantee"):
        DPRandomSearchCV(make_pipeline(Weighed()), {}).fit(
            Untouchable(300), some_labels(300), weighed__sample_weight=weights
        )


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("searched", [False, True])
def test_weights_that_count_the_labels_are_refused_before_any_record_is_read(kind, searched):
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPLogisticRegression

    given, space = (
        ({}, {"class_weight": ["balanced"]}) if searched else ({"class_weight": "balanced"}, {})
    )
    search = search_of(
        kind, DPLogisticRegression(classes=[0, 1], noise_multiplier=1.0, **given), space, delta=1e-6
    )
    with pytest.raises(PrivacyError, match="class_weight='balanced', which counts the labels"):
        search.fit(Untouchable(300), some_labels(300))


# --- what scikit-learn's transformers have --------------------------------------------------------


class Shift(TransformerMixin, BaseEstimator):
    """A transformer that is stated to be private."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=1.0, neighboring="replace_one")

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.asarray(X) + self.shift

    def get_feature_names_out(self, input_features=None):
        return np.array(["left", "right"], dtype=object)

    def score(self, X, y=None):
        return 0.5


def transformer(kind, **given):
    extra = {
        "threshold": {"threshold": -5.0, "n_iter": 100},
        "doubling": {"round_epsilon": 100.0},
    }.get(kind, {})
    return search_of(kind, Shift(), {"shift": [1.0]}, random_state=0, **{**extra, **given})


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_over_transformers_transforms_and_names_what_it_returns(kind):
    pandas = pytest.importorskip("pandas")
    search = transformer(kind).set_output(transform="pandas")
    made = search.fit_transform(X, y, **PUBLIC)
    assert isinstance(made, pandas.DataFrame)
    assert list(made.columns) == list(search.get_feature_names_out()) == ["left", "right"]
    assert np.array_equal(made, X + 1.0)
    assert isinstance(search.set_output(transform="default").transform(X), np.ndarray)
    assert isinstance(search.set_output().transform(X), np.ndarray)
    assert isinstance(
        clone(search.set_output(transform="pandas")).fit(X, y, **PUBLIC).transform(X),
        pandas.DataFrame,
    )


def test_fit_transform_without_a_model_is_refused_before_any_record_is_read():
    search = transformer("random", refit=False)
    match = "refit=False in fit_transform.*refit='winner'.*Nothing was spent"
    with pytest.raises(ValueError, match=match):
        search.fit_transform(Untouchable(300), some_labels(300), **PUBLIC)
    assert not hasattr(search, "privacy_spent_")


def first_column(frame):
    return frame[["normalizer__x0"]] if "normalizer__x0" in frame else frame[["x0"]]


@pytest.mark.processes
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_run_under_the_callers_configuration(backend):
    """Pipelines that hand on data frames worked in this thread, and lost the whole budget in
    others."""
    pandas = pytest.importorskip("pandas")
    model = make_pipeline(Normalizer(), FunctionTransformer(first_column), NoisyCentroids())
    search = DPRandomSearchCV(model, {}, n_iter=5, n_jobs=2, random_state=0)
    with config_context(transform_output="pandas"), parallel_config(backend=backend):
        fitted = search.fit(pandas.DataFrame(X, columns=["x0", "x1"]), y)
        assert set(fitted.predict(pandas.DataFrame(X, columns=["x0", "x1"]))) <= {0, 1}


# --- names of labels, inside of ensembles ---------------------------------------------------------
