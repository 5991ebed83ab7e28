"""Audits of estimators and searches: true statements stand, false ones fall."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.audit import audit
from sklearn_dpsearch.audit._stated_guarantees import Claim, smallest_stated_epsilon
from sklearn_dpsearch.privacy._spent import PrivacySpent

from ..search.toys import NoisyCentroids, RandomizedResponse
from .toys import LABELS, PAIR, PUBLIC, QUIET, answer_low


class Counter(BaseEstimator):
    """Counts its records with Laplace noise for one ε and states another."""

    def __init__(self, states=1.0, noise=1.0, relation="add_remove", random_state=None):
        self.states = states
        self.noise = noise
        self.relation = relation
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return dp.PureDP(epsilon=self.states, neighboring=self.relation)

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.count_ = float(np.sum(np.asarray(X)[:, 0] > 0) + rng.laplace(scale=1 / self.noise))
        return self


def search(**kwargs):
    return DPRandomSearchCV(
        RandomizedResponse(1.0), {"label": [0, 1]}, n_iter=3, scoring=answer_low, **kwargs
    )


@pytest.mark.slow
def test_a_true_statement_stands_and_most_of_it_is_found() -> None:
    found = audit(RandomizedResponse(2.0), **PAIR, n_runs=800, random_state=0)
    assert found.consistent
    assert 1.4 < found.epsilon_lower <= 2.0 == found.stated_epsilon
    expected = (800, "replace_one", 0.0, 0.95)
    assert (found.n_runs, found.neighboring, found.delta, found.confidence) == expected


@pytest.mark.slow
def test_a_false_statement_falls() -> None:
    found = audit(Counter(states=1.0, noise=6.0), np.ones((5, 1)), n_runs=300, random_state=0)
    assert not found.consistent
    assert found.epsilon_lower > 2
    assert "REFUTED" in str(found)


@pytest.mark.slow
def test_a_search_is_audited_with_its_validation_data_and_its_own_statement() -> None:
    found = audit(search(), **PAIR, n_runs=60, fit_params=PUBLIC, random_state=0)
    assert found.stated_epsilon == search().privacy_cost(8, public=True).epsilon
    assert found.consistent


@pytest.mark.slow
def test_what_the_fitted_model_states_counts_where_it_is_less() -> None:
    class Boasting(Counter):
        def fit(self, X, y=None):
            super().fit(X)
            self.privacy_spent_ = PrivacySpent(guarantee=dp.PureDP(epsilon=0.1), delta=0.0)
            return self

    found = audit(Boasting(states=5.0, noise=3.0), np.ones((5, 1)), n_runs=200, random_state=0)
    assert found.stated_epsilon == pytest.approx(0.1)
    assert not found.consistent


def test_a_failing_fit_is_an_outcome() -> None:
    class Picky(Counter):
        def fit(self, X, y=None):
            if np.asarray(X)[:, 0].max() > 0.5:
                raise RuntimeError("a record is above 0.5")
            return super().fit(X)

    other = np.vstack([QUIET, [[1.0]]])
    found = audit(Picky(), QUIET, other=(other, None), n_runs=60, random_state=0)
    assert not found.consistent
    assert "failed" in found.event


@pytest.mark.slow
def test_a_search_that_finds_nothing_is_an_outcome() -> None:
    options = {"n_iter": 2, "scoring": lambda e, X, y: float(e.answer_)}
    one = DPThresholdSearchCV(RandomizedResponse(4.0), {"label": [0]}, threshold=0.5, **options)
    found = audit(one, **PAIR, n_runs=80, fit_params=PUBLIC, random_state=0)
    assert found.epsilon_lower > 0.3
    assert found.consistent


def test_fits_that_all_fail_are_an_error_with_the_first_of_them() -> None:
    with pytest.raises(ValueError, match="Every fit of RandomizedResponse failed .* IndexError"):
        audit(RandomizedResponse(), [1.0, 2.0], other=([1.0, 3.0], None), n_runs=10)


def test_a_refusal_is_no_outcome() -> None:
    """It depends on what the caller wrote, not on the records: it would look like a leak where
    there is none."""
    fit_params = {"X_public": QUIET, "y_public": LABELS.copy()}
    with pytest.raises(dp.PrivacyError, match="shares its memory"):
        audit(search(), **PAIR, n_runs=10, fit_params=fit_params)


@pytest.mark.slow
def test_a_fixed_seed_is_taken_away_and_said() -> None:
    one = make_pipeline(FunctionTransformer(), RandomizedResponse(1.0, random_state=7))
    found = audit(one, **PAIR, n_runs=200, statistic=lambda model: model[-1].answer_)
    assert found.notes[0].startswith("randomizedresponse__random_state=7 was set to None: ")
    assert 0 < found.counts[0] < found.counts[1]  # the fits differ
    assert one[-1].random_state == 7
    assert "note: randomized" in str(found)


def test_fits_without_a_seed_differ_even_where_workers_are_forked() -> None:
    class Global(Counter):
        def fit(self, X, y=None):
            self.count_ = float(np.random.rand())
            return self

    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    seen = []
    options = {"n_runs": 60, "statistic": lambda model: seen.append(model.count_) or model.count_}
    audit(Global(), np.ones((5, 1)), **options)
    assert len(set(seen)) == 120
    assert np.array_equal(before, np.random.get_state()[1])


def test_the_default_attack_reads_inside_pipelines_and_searches() -> None:
    from sklearn_dpsearch.audit._distinguishing_events import Everything

    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    y = (X[:, 0] > 0).astype(int)
    one = make_pipeline(FunctionTransformer(), NoisyCentroids())
    fitted = DPRandomSearchCV(one, {"noisycentroids__shrink": [0.0, 0.5]}, n_iter=2).fit(X, y)
    read = Everything(X[:1])(fitted)
    assert {"best_score_", "best_params_[noisycentroids__shrink]", "predict(canary)"} <= set(read)
    assert read["best_estimator_.noisycentroids.centroids_"].shape == (4,)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one", "zero_out"])
def test_without_a_neighbour_one_is_built_for_the_stated_relation(relation) -> None:
    options = {"n_runs": 40, "random_state": 0}
    found = audit(Counter(relation=relation, noise=1.0), np.linspace(-1, 1, 9)[:, None], **options)
    assert found.neighboring == relation
    assert (found.steps, found.stated_epsilon) == ((2, 2.0) if relation == "zero_out" else (1, 1.0))


def test_the_callers_word_that_zeros_count_for_nothing_makes_one_step() -> None:
    one = Counter(relation="zero_out")
    found = audit(one, np.linspace(-1, 1, 9)[:, None], n_runs=40, random_state=0, absent=True)
    assert (found.steps, found.stated_epsilon) == (1, 1.0)


STEPS = {"noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 3}


def across_two_steps(guarantee: dp.Guarantee, delta: float) -> float:
    return smallest_stated_epsilon(Claim(guarantee, delta, "zero_out"), [], 2)


@pytest.mark.parametrize(("guarantee", "twice"), [
    (dp.PureDP(epsilon=0.7), dp.PureDP(epsilon=1.4).epsilon_at(1e-6)),
    (dp.GaussianDP(mu=0.5), dp.GaussianDP(mu=1.0).epsilon_at(1e-6)),
    (dp.ZCDP(rho=0.1), dp.ZCDP(rho=0.4).epsilon_at(1e-6)),
    (dp.DPSGD(**STEPS), dp.DPSGD(**STEPS, neighboring="replace_one").epsilon_at(1e-6)),
])  # fmt: skip
def test_two_steps_cost_what_the_kind_of_guarantee_says(guarantee, twice) -> None:
    assert across_two_steps(guarantee, 1e-6) == pytest.approx(twice)


def test_two_steps_of_any_guarantee_cost_no_less_than_the_worst_case() -> None:
    """A Gaussian hidden in a composition: twice as far apart is a Gaussian with 2μ."""
    hidden = dp.compose(dp.GaussianDP(mu=0.5), dp.PureDP(epsilon=1e-9))
    assert across_two_steps(hidden, 1e-6) >= dp.GaussianDP(mu=1.0).epsilon_at(1e-6)
    both = dp.compose(dp.PureDP(epsilon=1.0), dp.PureDP(epsilon=0.5))
    assert across_two_steps(both, 0.0) == 3.0
    assert across_two_steps(dp.ApproxDP(epsilon=1.0, delta=1e-6), 1e-7) == np.inf
    assert 1.99 < across_two_steps(dp.ApproxDP(epsilon=1.0, delta=1e-6), 1e-5) < 2.2


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"n_runs": 3}, ValueError, "Found 3 runs"),
    ({"confidence": 2}, ValueError, "confidence=2"), ({"n_runs": 99.5}, ValueError, "n_runs=99.5"),
    ({"random_state": -1}, ValueError, "integer random_state >= 0"),
    ({"other": (QUIET, LABELS)}, dp.PrivacyError, "not neighbours"),
    ({"neighboring": "add_remove"}, dp.PrivacyError, "stated for 'replace_one'"),
    ({"stated": 1.0}, TypeError, "Found 1.0 .float. as stated"),
    (
        {"stated": dp.GaussianDP(mu=1.0, neighboring="replace_one")}, dp.MissingDeltaError,
        "Give delta",
    ),
    ({"estimator": BaseEstimator()}, dp.PrivacyError, "Found neither a stated guarantee"),
])  # fmt: skip
def test_audits_that_could_say_nothing_are_refused_before_the_first_fit(change, error, message):
    with pytest.raises(error, match=message):
        audit(**{"estimator": RandomizedResponse(), **PAIR, "n_runs": 10, **change})


def test_a_statement_for_records_is_not_refuted_by_a_person() -> None:
    class Grouped(Counter):
        def fit(self, X, y=None, groups=None):
            return super().fit(X, y)

    options = {"n_runs": 20, "random_state": 0}
    with pytest.raises(dp.PrivacyError, match="states nothing for persons"):
        audit(Grouped(noise=3.0, states=3.0), np.ones((5, 1)), groups=np.zeros(5), **options)
