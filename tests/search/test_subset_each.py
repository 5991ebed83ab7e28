"""DPSubsetSearchCV(n_iter="each"): each candidate of a list runs once, and all of them are paid
for."""

from __future__ import annotations

from collections import Counter

import pytest
from joblib import parallel_config
from scipy.stats import loguniform
from sklearn.linear_model import LogisticRegression

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.search._random_subset import each_is_cheap

from .subset_toys import HITS, IDS, SEEN, Told, Watching, search, watched, y

#: Trainings are counted here.
pytestmark = pytest.mark.usefixtures("unrehearsed")


@pytest.fixture(autouse=True)
def _forget():
    SEEN.clear()


def each(estimator=None, space=None, **kwargs):
    space = {"rate": [0.5, 1.0]} if space is None else space
    return search(
        Watching() if estimator is None else estimator, space, **{"n_iter": "each", **kwargs}
    )


# --- what runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 2])
def test_each_candidate_runs_once_in_every_fit(workers):
    space = [{"rate": [0.5, 1.0, 2.0], "solver": ["sgd", "adam"]}, {"rate": [4.0]}]
    for seed in range(3):
        SEEN.clear()
        with parallel_config("threading"):
            options = {"extrapolate": kept, "random_state": seed, "n_jobs": workers}
            one, tuning, _ = watched(space=space, n_iter="each", **options)
        ran = Counter((run["rate"], run["solver"]) for run in tuning)
        expected = {(rate, solver) for rate in (0.5, 1.0, 2.0) for solver in ("sgd", "adam")} | {
            (4.0, "sgd")
        }
        assert ran == Counter(dict.fromkeys(expected, 1))
        assert one.best_params_ == {"rate": 4.0}  # the score is the rate


def kept(value, n_tune, n_final):
    return value


def test_without_a_list_there_is_nothing_to_run_once():
    with pytest.raises(ValueError, match=r"n_iter='each'.*distribution.*n_iter=10"):
        each(space={"rate": loguniform(0.1, 1.0)}).fit(IDS, y)
    assert not SEEN


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", ["rest", "all"])
def test_the_total_is_that_of_all_candidates_together(train_on):
    """Different promises, some of them shared by several candidates: 0.5 twice, 2 twice, and 1
    once."""
    space = [{"epsilon": [0.5, 2.0], "rate": [0.5, 1.0]}, {"epsilon": [1.0]}]
    promises = [dp.PureDP(epsilon=value) for value in (0.5, 0.5, 2.0, 2.0, 1.0)]
    one = each(space=space, train_on=train_on)
    expected = dp.subset_then_train(dp.compose(*promises), dp.PureDP(epsilon=2.0), 0.3, train_on)
    actual = one.privacy_cost(public=True).epsilon
    assert actual == pytest.approx(expected.epsilon_at(0.0), rel=1e-9)


def test_candidates_that_differ_in_nothing_that_matters_to_privacy_are_all_paid_for():
    base = dp.GaussianDP(mu=0.3)
    one = each(LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, guarantee=base, delta=1e-5)
    expected = dp.subset_then_train(dp.compose(base, base, base), base, 0.3).epsilon_at(1e-5)
    assert one.privacy_cost(public=True).epsilon == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("validate_on", ["subset", "rest"])
def test_the_scores_of_all_candidates_are_paid_for(validate_on):
    """The noise of a score is as private as asked for, whatever the training promises."""
    scoring, noise = HITS, dp.PureDP(epsilon=3.0)
    options = {"score_noise": noise, "validate_on": validate_on, "cv": None}
    one = each(Told(epsilon=0.1, neighboring="zero_out"), scoring=scoring, **options)
    base = dp.PureDP(epsilon=0.1, neighboring="zero_out")
    scored = dp.PureDP(epsilon=6.0, neighboring="zero_out")
    tune = dp.compose(base, base)
    stated = one.privacy_cost(400).epsilon
    if validate_on == "rest":
        expected = dp.subset_then_train(tune, base, 0.3, validate=scored)
        assert stated == pytest.approx(expected.epsilon_at(0.0), rel=1e-6)
    else:  # a record of the subset trains with probability 0.8, or enters both scores
        assert stated > dp.subset_then_train(tune, base, 0.3).epsilon_at(0.0) + 1.0


@pytest.mark.slow
def test_a_target_is_met():
    one, tuning, final = watched(Watching(), {"rate": [0.5, 1.0]}, n_iter="each", epsilon=3.0)
    assert 2.99 < one.privacy_spent_.epsilon <= 3.0
    assert {run["epsilon"] for run in tuning} == {final["epsilon"]}
    together = dp.subset_then_train(
        dp.PureDP(epsilon=2 * final["epsilon"]), dp.PureDP(epsilon=final["epsilon"]), 0.3
    )
    assert one.privacy_spent_.epsilon == pytest.approx(together.epsilon_at(0.0), rel=1e-9)


# --- when it is the default -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("train_on", ["rest", "all"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_it_is_the_default_for_a_list_that_costs_no_more_than_random_runs(epsilon, train_on):
    one_runs = (dp.GaussianDP(mu=mu / 100) for mu in range(1, 200))
    one_run = next(one_run for one_run in one_runs if one_run.epsilon_at(1e-5) >= epsilon)
    for number in (2, 4, 6, 10, 11):
        cheap = each_is_cheap(number, epsilon, 1e-5, 0.2, train_on, "add_remove", True)
        if number <= 10:
            costs = [
                dp.subset_then_train(tune, one_run, 0.2, train_on).epsilon_at(1e-5)
                for tune in (dp.compose(*[one_run] * number), dp.best_of(one_run, dp.Geometric(10)))
            ]
            assert cheap == (costs[0] <= 1.02 * costs[1]) or abs(costs[0] / costs[1] - 1.02) < 0.005
        else:
            assert not cheap
    assert each_is_cheap(2, epsilon, 1e-5, 0.2, train_on, "add_remove", True)
