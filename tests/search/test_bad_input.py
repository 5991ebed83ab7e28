"""Bad input: what was found, what is needed, the remedy; and nothing is spent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, NoModelError

from .toys import NoisyCentroids, Untouchable, doubling, two_blobs

X, y = two_blobs(60)
SPACE = {"shrink": [0.0, 0.5]}


def fit(estimator=None, space=None, X=X, y=y, **kwargs):
    fit_params = kwargs.pop("fit_params", {})
    estimator = NoisyCentroids() if estimator is None else estimator
    search = DPRandomSearchCV(
        estimator, SPACE if space is None else space, **{"n_iter": 3, **kwargs}
    )
    return search.fit(X, y, **fit_params)


def refused(error, match, **kwargs):
    """The error comes before any data is read."""
    with pytest.raises(error, match=match):
        fit(X=Untouchable(), **kwargs)


IMPURE = {
    "estimator": LogisticRegression(), "space": {"C": [1.0]}, "guarantee": dp.GaussianDP(mu=1.0),
}  # fmt: skip
#: Two uses of a record by one model are worse than one use by each of two: 2μ instead of √2·μ for
#: Gaussian noise.
TWICE = [(np.array([0, 0, 1]), np.array([2, 3])), (np.array([0, 1]), np.array([2, 3, 3]))]
WATCHED = NoisyCentroids()
WATCHED._skl_callbacks = [object()]
REFUSED = [
    (
        dp.UnknownGuaranteeError, "SVC has no known.*guarantee=PureDP",
        {"estimator": SVC(), "space": {"C": [1.0]}},
    ),
    (dp.MissingDeltaError, "delta > 0.*[Gg]ive delta", {**IMPURE, "delta": None}),
    (dp.MissingDeltaError, "delta > 0.*[Gg]ive delta", {**IMPURE, "delta": 0.0}),
    (ValueError, "Invalid parameter 'shrunk'.*Did you mean 'shrink'", {"space": {"shrunk": [0.1]}}),
    (dp.PrivacyError, "more than once.*at most once", {"cv": TWICE[:1]}),
    (dp.PrivacyError, "more than once.*at most once", {"cv": TWICE[1:]}),
    (ValueError, "'n_iter'.*Got 0.5", {"n_iter": 0.5}),
    (ValueError, "fixed number of runs.*integer", {"release": "all", "n_iter": 2.5}),
    (
        dp.PrivacyError, "vary.*epsilon.*calibration",
        {"epsilon": 1.0, "space": {"epsilon": [0.1, 1.0]}},
    ),
    (
        dp.PrivacyError, "depends on the number of",
        {"guarantee": lambda model, n: dp.PureDP(epsilon=1.0 + 1 / n)},
    ),
    (dp.PrivacyError, "callbacks", {"estimator": WATCHED}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "match", "given"), REFUSED)
def test_what_no_search_could_answer_for_is_refused_with_the_remedies(error, match, given):
    refused(error, match, **given)


@pytest.mark.parametrize("space", [{}, {"inner__memory": [None, "somewhere"]}])
def test_a_declared_guarantee_does_not_excuse_a_cache(tmp_path, space):
    memory = None if space else str(tmp_path)
    inner = make_pipeline(StandardScaler(), NoisyCentroids(), memory=memory)
    cached = Pipeline([("inner", inner)])
    options = {"guarantee": dp.PureDP(epsilon=1.0), "n_iter": dp.Fixed(40)}
    refused(dp.LeakingEstimatorError, "memory=", estimator=cached, space=space, **options)


@pytest.mark.slow
def test_an_unreachable_target_says_the_smallest_reachable_epsilon():
    noise = dp.PureDP(epsilon=1.0, neighboring="replace_one")
    match = r"smallest epsilon possible here is \d"
    with pytest.raises(dp.BudgetUnreachableError, match=match) as caught:
        fit(epsilon=0.1, delta=1e-3, score_noise=noise)
    assert float(str(caught.value).split("possible here is ")[1].split(". ")[0]) > 0.1


class NotTooNoisy(NoisyCentroids):
    """Cannot keep its promise below an epsilon of its own."""

    def privacy_guarantee(self, n_samples=None):
        if self.epsilon < 0.01:
            raise dp.LeakingEstimatorError("too much noise for me")
        return super().privacy_guarantee(n_samples)


def test_an_estimator_that_cannot_be_noisy_enough_says_how_far_it_can():
    def one(epsilon):
        return DPRandomSearchCV(
            NotTooNoisy(epsilon=1.0), {"shrink": [0.0]}, n_iter=dp.Fixed(1), epsilon=epsilon
        )

    with pytest.raises(dp.BudgetUnreachableError, match=r"smallest epsilon possible here is 0\.01"):
        one(0.005).fit(Untouchable(), y)
    assert one(0.0102).privacy_cost(100).epsilon == pytest.approx(0.0102, rel=1e-3)
    with pytest.raises(dp.LeakingEstimatorError, match="too much noise"):
        one(5.0).set_params(estimator__epsilon=0.001).privacy_cost(100)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_never_win(value):
    def score(estimator, X, y):
        return value if estimator.shrink > 0 else 0.5

    options = {"random_state": 0, "fit_params": {"X_public": X.copy(), "y_public": y.copy()}}
    assert fit(scoring=score, n_iter=40, **options).best_params_["shrink"] == 0.0
    fit_params = {"X_public": X.copy(), "y_public": y.copy()}
    with pytest.raises(NoModelError, match="not a finite number"):
        fit(scoring=score, space={"shrink": [0.5]}, fit_params=fit_params)


def test_when_every_candidate_fails_the_message_is_fixed_and_the_cost_is_kept():
    search = DPRandomSearchCV(NoisyCentroids(), SPACE, n_iter=3)
    with pytest.raises(NoModelError) as one_class:
        search.fit(X, np.zeros(len(X)))
    assert search.privacy_spent_.epsilon > 0
    assert not hasattr(search, "best_params_")
    with pytest.raises(NoModelError) as broken:
        fit(X=np.full_like(X, np.nan))
    assert str(one_class.value) == str(broken.value)
    assert "class" in str(one_class.value)
    assert one_class.value.__cause__ is None
    assert one_class.value.__context__ is None
    assert "secret" not in str(one_class.value)


def test_fewer_records_than_folds_is_refused():
    with pytest.raises(ValueError, match="5 folds of 4 records.*smaller cv"):
        fit(X=X[:4], y=y[:4], cv=5)


def test_public_data_and_cv_exclude_each_other():
    with pytest.raises(ValueError, match="cv=3 together with X_public"):
        fit(cv=3, fit_params={"X_public": X.copy(), "y_public": y.copy()})


@pytest.mark.parametrize(("public", "match"), [
    ({"X_public": X}, "X_public without y_public.*Give both"),
    ({"y_public": y}, "y_public without X_public.*Give both"),
    ({"X_public": X.copy(), "y_public": y[:5].copy()}, "inconsistent numbers of samples"),
    (
        {"X_public": X[:, :1].copy(), "y_public": y.copy()},
        r"\(2,\) in X and \(1,\) in X_public.*same features",
    ),
])  # fmt: skip
@pytest.mark.parametrize("rounds", [False, True])
def test_public_data_that_cannot_score_is_refused_before_anything_is_spent(public, match, rounds):
    one = doubling(NoisyCentroids(), SPACE, round_epsilon=0.1, n_parts=2)
    start = (lambda *data, **given: one.rounds(*data, [], **given)) if rounds else one.fit
    with pytest.raises(ValueError, match=match):
        start(Untouchable(), y, **public)
    assert not hasattr(one, "privacy_spent_")


def test_a_known_seed_works_and_is_recorded_as_voiding_the_guarantee():
    spent = fit(random_state=42).privacy_spent_
    assert any("random_state=42" in text and "voids" in text for text in spent.assumptions)
    assert not any("seed" in text for text in fit().privacy_spent_.assumptions)


def test_an_unbounded_distribution_of_the_noise_is_refused():
    tuned = pytest.importorskip("diffprivlib.models").GaussianNB(bounds=(0, 1))
    space = {"epsilon": norm()}
    refused(dp.PrivacyError, "without a known upper end", estimator=tuned, space=space)


def test_callbacks_on_a_step_that_is_searched_are_refused():
    if not hasattr(clone(WATCHED), "_skl_callbacks"):
        pytest.skip("copies have no callbacks before scikit-learn 1.9")
    model = Pipeline([("model", NoisyCentroids())])
    refused(dp.PrivacyError, "callbacks on model", estimator=model, space={"model": [WATCHED]})


@pytest.mark.slow
def test_a_nested_search_is_refused_if_only_its_small_parts_have_another_hold_out():
    """A tenth of 3,000 records validates more of its records than 3,000 or 1,500 do, and loses
    more."""
    declared, scored = (dp.GaussianDP(mu=mu, neighboring="zero_out") for mu in (0.5, 1.5))
    options = {"guarantee": declared, "score_noise": scored, "scoring": "accuracy", "delta": 1e-5}
    inner = DPRandomSearchCV(LogisticRegression(), {"C": [1.0]}, n_iter=2, **options)
    whole, half, tenth = (inner.privacy_cost(n).epsilon for n in (3000, 1500, 300))
    assert whole == half < tenth
    settings = {"subset_fraction": 0.1, "scoring": "accuracy", "delta": 1e-5}
    outer = DPSubsetSearchCV(inner, {"n_iter": [2]}, n_iter=2, **settings)
    with pytest.raises(dp.PrivacyError, match=r"depends on the number of records.*cv=0\.2"):
        outer.privacy_cost(3000)
    assert outer.set_params(estimator__cv=0.1).privacy_cost(3000).epsilon > whole
