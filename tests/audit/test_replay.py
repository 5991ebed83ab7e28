"""Replay: what is declared is kept, and broken builds that thousands of fits would not show are
seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.audit import replay
from sklearn_dpsearch.audit._replay import _steps_between
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting import _base as base
from sklearn_dpsearch.boosting import _noise as noise
from sklearn_dpsearch.privacy import GaussianDP, PrivacyError, PureDP
from sklearn_dpsearch.report import schema_report
from sklearn_dpsearch.scoring._counts import HistogramScorer

SCHEMA = {"age": (0, 100), "job": ["clerk", "nurse"]}
pd = pytest.importorskip("pandas")


def table(n=200):
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"age": rng.uniform(0, 100, n), "job": rng.choice(["clerk", "nurse"], n)})
    return found, (found["age"] > 40).astype(int)


def classifier(**changed):
    return DPGradientBoostingClassifier(
        SCHEMA, **{"classes": [0, 1], "target_mu": 1.0, "max_iter": 15, **changed}
    )


def regressor(**changed):
    return DPGradientBoostingRegressor(
        SCHEMA, **{"bounds_y": (0, 100), "target_mu": 1.0, "max_iter": 15, **changed}
    )


def without(place, X, y):
    return X.drop(index=place), y.drop(index=place)


def blank(place, X, y):
    """The record stays in its place, without a target: the number of records is public."""
    return X, y.where(y.index != place)


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("neighboring", ["zero_out", "add_remove", "replace_one"])
def test_boosting_keeps_what_it_declares(make, neighboring):
    X, y = table()
    other = without(3, X, y) if neighboring == "add_remove" else blank(3, X, y)
    if neighboring == "replace_one":
        other = (X.copy(), y.copy())
        other[1][3] = 1 - y[3]
        other[0].loc[3, "age"] = 5.0
    found = replay(make(neighboring=neighboring), X, y, neighbour=other)
    assert found.passed
    assert len(found.releases) == 16  # the start, and each round
    assert 0.3 < found.largest <= 1
    assert found == replay(make(neighboring=neighboring), X, y, neighbour=other)  # deterministic


@pytest.mark.parametrize("make", [classifier, regressor])
def test_only_a_model_that_is_told_an_expected_number_does_not_count_its_records(make):
    """As in a random subset, where a record that is not drawn and a blank one have to be the
    same."""
    X, y = table()
    assert not replay(make(), X, y, neighbour=without(3, X, y)).passed
    assert replay(make(**make().expecting(190.0)), X, y, neighbour=without(3, X, y)).passed


def test_a_person_is_replayed_as_a_whole():
    X, y = table()
    persons, others = np.arange(200) // 20, np.arange(200) // 20 != 4
    given = {
        "groups": persons, "neighbour": (X[others], y[others]), "neighbour_groups": persons[others],
    }  # fmt: skip
    found = replay(classifier(), X, y, **given)
    assert found.passed
    assert found.largest > 0.5
    # twenty records are no neighbour
    assert not replay(classifier(), X, y, neighbour=given["neighbour"]).passed


@pytest.mark.parametrize("neighboring", ["zero_out", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-5, marks=pytest.mark.slow)])
def test_a_schema_report_keeps_what_it_declares(neighboring, delta):
    X, _ = table()
    X.loc[3, "age"] = -5.0
    other = X.drop(index=3) if neighboring == "zero_out" else X.copy()
    if neighboring == "replace_one":
        other.loc[3] = [50.0, "pilot"]
    found = replay(
        lambda X, y: schema_report(X, SCHEMA, epsilon=1.0, delta=delta, neighboring=neighboring),
        X, neighbour=(other, None),
    )  # fmt: skip
    assert found.passed
    assert [one.ratio for one in found.releases] == [1.0, 1.0]


def test_hessians_for_free_are_seen(monkeypatch):
    """The model is as good, and only a bound on the sums tells: of numbers a Hessian is 1/16 of the
    square."""
    X, y = table()
    monkeypatch.setattr(noise, "squared_hessians", lambda loss: 0)
    monkeypatch.setattr(noise, "bounded_records", lambda values, loss: values)
    found = replay(regressor(), X, y * 100, neighbour=blank(3, X, y * 100))
    assert not found.passed
    assert found.different == ()
    assert 1.0 < found.largest < 1.2
    assert "sums over cells              16" in str(found)
    assert str(found).splitlines()[1].endswith("no")


def test_an_attribute_that_does_not_follow_from_noisy_sums_is_seen(monkeypatch):
    X, y = table()
    fit = base.GradientBoosting._train

    def leaking(self, records):
        fit(self, records)
        self.n_samples_ = records.n_units

    monkeypatch.setattr(base.GradientBoosting, "_train", leaking)
    found = replay(classifier(neighboring="add_remove"), X, y, neighbour=without(3, X, y))
    assert found.different == ("n_samples_",)
    assert not found.passed
    assert str(found).endswith("no: n_samples_")


def test_rounds_by_the_records_are_seen(monkeypatch):
    """A fit that asks for other sums goes on with noise of its own, and has failed."""
    X, y = table()
    for numbers in ((9, 11), (11, 9)):
        rounds = iter(numbers)
        monkeypatch.setattr(
            base.GradientBoosting, "_n_rounds", lambda self, *given, rounds=rounds: next(rounds)
        )
        found = replay(classifier(), X, y, neighbour=without(3, X, y))
        assert not found.passed
        assert found.largest == np.inf
        assert found.releases[-1].squared_distance is None


def test_a_sum_without_a_declared_sensitivity_never_passes(monkeypatch):
    X, y = table()
    monkeypatch.setattr(base, "squared_distance", lambda *given: 0)
    with pytest.raises(ZeroDivisionError):
        replay(classifier(), X, y, neighbour=without(3, X, y)).largest  # noqa: B018
    assert not replay(classifier(), X, y, neighbour=without(3, X, y)).passed


class Mean(BaseEstimator):
    def fit(self, X, y=None):
        self.mean_ = np.mean(y)
        return self


def test_what_cannot_be_listened_to_is_refused():
    X, y = table()
    with pytest.raises(PrivacyError, match="no sum that Mean releases"):
        replay(Mean(), X, y, neighbour=without(3, X, y))


def replaced(place, X, y):
    other = X.copy(), y.copy()
    other[0].loc[place, "age"] = 100 - X.loc[place, "age"]
    other[1][place] = 1 - y[place]
    return other


@pytest.mark.parametrize(("scoring", "relation"), [
    ("accuracy", "zero_out"),
    pytest.param("balanced_accuracy", "zero_out", marks=pytest.mark.slow),
    pytest.param("balanced_accuracy", "replace_one", marks=pytest.mark.slow),
])  # fmt: skip
def test_one_candidate_of_a_search_keeps_what_training_and_score_declare(scoring, relation):
    X, y = table()
    space = {"max_iter": [10, 15]}
    options = {"scoring": scoring, "epsilon": 1.0, "delta": 1e-6}
    search = DPRandomSearchCV(classifier(target_mu=None, neighboring=relation), space, **options)
    found = replay(search, X, y, neighbour=replaced(3, X, y))
    assert found.passed
    assert [one.name for one in found.releases][-2:] == ["sums over cells", "private score"]


@pytest.mark.parametrize("noisy", [
    pytest.param(GaussianDP(mu=1.0), marks=pytest.mark.slow),
    PureDP(epsilon=1.0),
], ids=["gaussian", "laplace"])  # fmt: skip
def test_a_score_that_counts_a_record_twice_is_seen(noisy, monkeypatch):
    X, y = table()
    options = {"scoring": "balanced_accuracy", "score_noise": noisy, "delta": 1e-6}
    search = DPRandomSearchCV(classifier(neighboring="replace_one"), {}, **options)
    assert replay(search, X, y, neighbour=replaced(3, X, y)).passed
    once = HistogramScorer.statistic
    monkeypatch.setattr(
        HistogramScorer, "statistic", lambda self, *given: [2 * one for one in once(self, *given)]
    )
    found = replay(search, X, y, neighbour=replaced(3, X, y))
    assert [one.name for one in found.releases if not one.passed] == ["private score"]
    assert found.largest == 2.0


def test_as_many_files_are_no_replaced_record():
    assert _steps_between(classifier(), table(), table()) == 2
    assert _steps_between(classifier(), (["a.csv"], None), (["b.csv"], None)) == 1


def test_a_record_blanked_in_its_place_is_one_step():
    X, y = table()
    blanked = y.astype(float).mask(y.index == 3)
    assert _steps_between(classifier(), (X, y), (X, blanked)) == 1
    assert replay(classifier(), X, y, neighbour=(X, blanked)).passed


def test_estimators_of_others_in_a_search_are_refused():
    X, y = table()
    search = DPRandomSearchCV(Mean(), {}, guarantee=PureDP(epsilon=1.0), scoring=lambda *given: 1.0)
    with pytest.raises(PrivacyError):
        replay(search, X, y, neighbour=replaced(3, X, y))


def test_groups_are_not_dropped_where_a_search_is_replayed():
    X, y = table()
    search, persons = DPRandomSearchCV(classifier(), {}, epsilon=1.0, delta=1e-5), np.arange(len(X))
    with pytest.raises(ValueError, match="Replay the estimator that it searches"):
        replay(search, X, y, neighbour=replaced(3, X, y), groups=persons)


def test_nothing_listens_after_a_replay():
    X, y = table()
    with pytest.raises(ValueError, match="bounds_y"):
        replay(regressor(bounds_y=None), X, y, neighbour=without(3, X, y))
    one, other = (classifier(noise_seed=1, random_state=0).fit(X, y) for _ in range(2))
    assert np.array_equal(one.weights_[0], other.weights_[0])
