"""A comparison of searches says what those searches will say of themselves, and recommends by the
written rules."""

from __future__ import annotations

import math
import time as clock

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, PrivacyError, plan
from sklearn_dpsearch.privacy import Geometric, Logarithmic, PureDP
from sklearn_dpsearch.report import Comparison
from sklearn_dpsearch.report._planning import expected_work, planned

from ..search.toys import NoisyCentroids

NAMES = {
    one.__name__: one
    for one in (DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, NoisyCentroids, Geometric)
} | {"Logarithmic": Logarithmic}
SPACE = {"shrink": [0.0, 0.1, 0.2]}


class Calibrated(NoisyCentroids):
    """Its noise can be set."""

    privacy_parameters = ("epsilon",)

    def scaled_privacy(self, factor, varying=frozenset()):
        return {"epsilon": factor * self.epsilon}


class Counting(Calibrated):
    """Tells how often it was trained, and on how many records."""

    sizes: list[int] = []
    seconds = 0.0

    def fit(self, X, y):
        Counting.sizes.append(len(X))
        clock.sleep(self.seconds)
        return super().fit(X, y)


def compared(n=40_000, epsilon=1.0, delta=None, estimator=None, **given):
    given = {"param_distributions": SPACE, **given}
    return plan(Calibrated() if estimator is None else estimator, n, epsilon, delta, **given)


def search_of(row):
    return eval(row.call, {**NAMES, "estimator": Calibrated(), "space": SPACE})


@pytest.mark.slow
def test_the_call_of_every_row_is_a_search_that_meets_the_total():
    for row in compared(
        n_iter=Logarithmic(mean=4.0), subset_fraction=[0.1, 0.3], tuning_share=[None, 0.5]
    ).rows:
        assert search_of(row).privacy_cost(40_000).epsilon <= 1.0


@pytest.mark.slow
def test_a_row_says_what_the_search_itself_says_and_never_more_epsilon():
    for row in compared(n_iter=[5, 20]).rows:
        strategy, exact = planned(search_of(row), 40_000)
        assert row.epsilon_final <= exact.final.worst.epsilon_at(0.0) * (1 + 1e-9)
        assert row.epsilon_final >= exact.final.worst.epsilon_at(0.0) * 0.95
        assert row.work == expected_work(strategy, exact)


@pytest.mark.slow
@pytest.mark.parametrize("off", [0.01, 0.9, 1.0, 1.02, 1.5, 300.0])
def test_a_rough_plan_from_any_guess_stays_below_the_total_and_near_it(off):
    for row in compared(n_iter=5).rows:
        _, exact = planned(search_of(row), 40_000)
        _, rough = planned(search_of(row), 40_000, off * exact.factor)
        assert 0.97 <= rough.spent.epsilon <= 1.0


def test_the_quantile_and_the_chance_of_one_alone_are_those_of_the_distribution():
    rows = {row.search: row for row in compared(n_iter=[5, Logarithmic(mean=4.0)]).rows}
    cases = (("5", Geometric(5)), ("Logarithmic(mean=4.0)", Logarithmic(mean=4.0)))
    for name, distribution in cases:
        row = rows[f"random, n_iter={name}"]
        assert row.quantile == pytest.approx(distribution.expected_quantile())
        assert row.alone == pytest.approx(distribution.pmf(1))
    assert math.isnan(rows["one fit"].quantile)
    assert rows["one fit"].alone == 1.0


@pytest.mark.slow
def test_work_is_the_number_of_records_that_searches_go_through(monkeypatch):
    """The mean over real fits, in units of all records."""
    rng, n = np.random.default_rng(0), 300
    X, y = rng.uniform(-1, 1, (n, 2)), rng.integers(0, 2, n)
    rows = compared(n, n_iter=3, subset_fraction=0.3, estimator=Counting()).rows
    assert [row.search.partition(",")[0] for row in rows] == ["one fit", "random", "subset", "grid"]
    for row in rows:
        fits = 1 if "Grid" in row.call else 12
        Counting.sizes.clear()
        for seed in range(fits):
            search = search_of(row).set_params(estimator=Counting(), rehearse=False)
            search.set_params(random_state=seed).fit(X, y)
        expected = pytest.approx(row.work, rel=0.25 if fits > 1 else 0.08)
        assert sum(Counting.sizes) / (fits * n) == expected


@pytest.mark.parametrize(("n", "epsilon", "kind"), [
    (30_000, 1.0, "subset"), (29_999, 1.0, "random"), (3000, 1.0, "one fit"), (3000, 2.0, "random"),
])  # fmt: skip
def test_the_recommendation_follows_the_page(n, epsilon, kind):
    found = compared(n, epsilon)
    assert found.recommended.search.startswith(kind)
    assert found.recommended in found.rows
    assert "which_search.md" in found.why


def test_a_search_that_cannot_be_planned_is_left_out_with_its_reason():
    from scipy.stats import uniform

    found = compared(param_distributions={"shrink": uniform()})
    assert "a list of values" in found.left_out["grid"]
    assert "left out: grid" in str(found)
    with pytest.raises(PrivacyError, match="No search can be planned"):
        compared(estimator=NoisyCentroids(), guarantee=PureDP(epsilon=1.0))


def test_made_up_records_decide_about_time_alone(monkeypatch):
    Counting.sizes.clear()
    plain = compared(500, estimator=Counting())
    assert Counting.sizes == []
    monkeypatch.setattr(Counting, "seconds", 0.02)
    timed = compared(500, estimator=Counting(), time=True)
    assert Counting.sizes == [500]
    for before, after in zip(plain.rows, timed.rows):
        assert math.isnan(before.seconds)
        assert after.seconds >= 0.02 * after.work
        assert repr(after).partition(", seconds")[0] == repr(before).partition(", seconds")[0]


@pytest.mark.parametrize("n_iter", [[2, 4], (2, 4), range(2, 6, 2), np.array([2, 4])], ids=repr)
def test_a_sequence_of_any_type_has_a_row_for_each_value(n_iter):
    names = [row.search for row in compared(n_iter=n_iter).rows]
    assert names[1:3] == ["random, n_iter=2", "random, n_iter=4"]


def test_no_runs_are_not_the_usual_number_of_runs():
    found = compared(n_iter=0, subset_fraction=0.1)
    assert [row.search for row in found.rows] == ["one fit", "grid"]
    assert all("n_iter" in reason for reason in found.left_out.values())


@pytest.mark.parametrize(("change", "match"), [
    ({"n": -5}, "integer n_samples >= 1, got n_samples=-5"), ({"n": 3000.5}, "n_samples=3000.5"),
    ({"n": None}, "n_samples=None"), ({"epsilon": None}, "epsilon=None .*; a number is needed"),
    ({"epsilon": 0.0}, "Expected 0 < epsilon < inf, got epsilon=0.0"),
])  # fmt: skip
def test_numbers_are_checked_before_the_first_plan(change, match):
    with pytest.raises((TypeError, ValueError), match=match):
        compared(**change)


def test_an_error_of_a_measured_fit_leaves_the_comparison():
    class Failing(Calibrated):
        def fit(self, X, y):
            raise RuntimeError("no memory")

    assert all(math.isnan(row.seconds) for row in compared(estimator=Failing(), time=True).rows)


def test_markup_in_names_does_not_reach_the_page():
    odd = Comparison(**{**vars(compared()), "left_out": {"<b>": "<script>"}})
    assert "<script>" not in odd._repr_html_()


def test_an_estimator_is_left_as_it_was():
    estimator = Calibrated()
    before = repr(clone(estimator).get_params())
    compared(estimator=estimator, time=True, n=100, epsilon=5.0)
    assert repr(estimator.get_params()) == before
    assert not hasattr(estimator, "classes_")
