"""Pictures show what the guarantees say, need matplotlib only to be drawn, and say so."""

from __future__ import annotations

import sys
from datetime import date

import numpy as np
import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import (
    ApproxDP,
    GaussianDP,
    Geometric,
    NonPrivate,
    Poisson,
    PureDP,
    RenyiDP,
    best_of,
    compose,
    mixture,
    subset_then_train,
)
from sklearn_dpsearch.privacy.spent import Component, PrivacySpent
from sklearn_dpsearch.report import (
    CostPartsDisplay,
    CountDistributionDisplay,
    PrivacyProfileDisplay,
    ShapeDisplay,
    TradeOffDisplay,
)

from ..search.toys import NoisyCentroids, two_blobs

RUN = ApproxDP(epsilon=0.5, delta=1e-7)
SEARCH = best_of(RUN, Geometric(5))
SPENT = PrivacySpent(
    guarantee=compose(SEARCH, RUN),
    delta=1e-5,
    components=(Component(name="search", guarantee=SEARCH), Component(name="refit", guarantee=RUN)),
)


@pytest.fixture
def ax():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    return Figure().add_subplot()


# --- what is computed -----------------------------------------------------------------------------------------------


def test_a_profile_is_that_of_the_guarantee_its_run_and_its_published_bounds():
    at = np.linspace(0.0, 3.0, 7)
    found = PrivacyProfileDisplay.from_guarantee(SEARCH, epsilons=at, certificate=False).curves
    assert np.array_equal(found.pop("everything released"), SEARCH.delta_at(at))
    assert np.array_equal(found.pop("one run"), RUN.delta_at(at))
    assert set(found) == {"PS22 Lemma 20"}
    for name, values in found.items():
        assert np.array_equal(values, SEARCH.bounds[name].delta_at(at))
        assert np.all(values >= SEARCH.delta_at(at) * (1 - 1e-12))


@pytest.mark.slow
def test_a_certificate_lies_below_the_total_and_not_far():
    found = PrivacyProfileDisplay.from_guarantee(best_of(PureDP(epsilon=0.5), 10), published=False)
    places, losses = found.certificate
    total = found.curves["everything released"]
    assert places.size > 0
    assert np.all(losses <= np.interp(places, found.epsilons, total) * (1 + 1e-6))
    assert np.all(losses > 0)


@pytest.mark.slow
def test_no_certificate_is_drawn_where_no_worst_mechanism_is_known():
    one = best_of(RenyiDP(orders=[2, 8, 32], epsilons=[0.1, 0.4, 1.6]), 5)
    places, losses = PrivacyProfileDisplay.from_guarantee(one, published=False, n_points=5).certificate
    assert (places.size, losses.size) == (0, 0)
    assert PrivacyProfileDisplay.from_guarantee(RUN).certificate is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "total", [compose(SEARCH, RUN), subset_then_train(SEARCH, RUN, 0.2), best_of(SEARCH, Geometric(2))]
)
def test_the_run_inside_of_a_search_is_found(total):
    at = np.array([0.0, 0.4])
    found = PrivacyProfileDisplay.from_guarantee(total, epsilons=at, published=False, certificate=False)
    assert np.array_equal(found.curves["one run"], RUN.delta_at(at))


def test_a_search_that_validates_by_coins_has_a_run_and_bounds_of_both_parts():
    other = PureDP(epsilon=0.3)
    total = mixture([SEARCH, best_of(other, Geometric(5))], [0.8, 0.2])
    at = np.array([0.0, 0.2, 1.0])
    found = PrivacyProfileDisplay.from_guarantee(total, epsilons=at).curves
    assert np.array_equal(found["one run"], mixture([RUN, other], [0.8, 0.2]).delta_at(at))
    shared = [name for name in SEARCH.bounds if name in total.parts[1].bounds and name[:4] in ("PS22", "KRW2")]
    assert shared == [name for name in found if name not in ("everything released", "one run")]
    assert all(np.all(found[name] >= found["everything released"] * (1 - 1e-12)) for name in shared)


@pytest.mark.parametrize("one", [PureDP(epsilon=1.0), GaussianDP(mu=0.7), NonPrivate(), PureDP(epsilon=0.0)])
def test_a_trade_off_curve_is_that_of_the_guarantee(one):
    found = TradeOffDisplay.from_guarantee(one, rates=(0.001, 0.01))
    assert found.true_positive_rates == pytest.approx(1 - one.trade_off(found.false_positive_rates), abs=1e-9)
    assert found.advantage == one.advantage()
    assert found.readings == {rate: one.bayes_risk(rate) for rate in (0.001, 0.01)}  # 1 − f, with all digits


def test_a_distribution_is_drawn_given_that_there_is_a_run():
    found = CountDistributionDisplay.from_distribution([Poisson(3), 4])
    distribution = Poisson(3).at_least_one()
    assert found.probabilities["Poisson(mean=3)"] == pytest.approx(distribution.pmf(np.arange(1, found.runs.size + 1)))
    assert found.quantiles["Geometric(mean=4.0)"] == Geometric(4).expected_quantile()
    chances = found.success["Poisson(mean=3)"]
    assert chances[0] == distribution.success_probability(float(found.shares[0]))
    assert np.all(np.diff(chances) > 0)
    assert list(CountDistributionDisplay.from_distribution(Geometric(2)).success) == ["Geometric(mean=2)"]


def test_parts_are_alone_and_together_what_the_statement_says():
    found = CostPartsDisplay.from_statement(SPENT)
    assert found.parts == {"search": SEARCH.epsilon_at(1e-5), "refit": RUN.epsilon_at(1e-5)}
    assert (found.total, found.delta) == (SPENT.epsilon, 1e-5)
    assert (found.sum, found.delta_of_sum) == (sum(found.parts.values()), 2e-5)
    assert SPENT.epsilon_at(2e-5) <= found.sum * 1.002  # a composition draws the step of this profile a little late


def test_pictures_of_a_search_are_those_of_its_cost_and_then_of_what_it_spent():
    X, y = two_blobs(60)
    search = DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=2, refit=True)
    for one in (search, search.fit(X, y)):
        assert CostPartsDisplay.from_estimator(one).total == one.privacy_cost().epsilon
        assert TradeOffDisplay.from_estimator(one).advantage == one.privacy_cost().advantage()
        profile = PrivacyProfileDisplay.from_estimator(one, epsilons=[0.0, 1.0], certificate=False)
        assert profile.curves["everything released"][1] == one.privacy_cost().delta_at(1.0)


# --- what is drawn --------------------------------------------------------------------------------------------------


def test_parts_are_drawn_with_numbers_that_are_never_too_small(ax):
    display = CostPartsDisplay.from_statement(SPENT).plot(ax)
    assert [bar.get_width() for bar in display.bars_] == [*display.parts.values(), display.sum, display.total]
    labels = [float(text.get_text()) for text in ax.texts]
    assert all(label >= bar.get_width() for label, bar in zip(labels, display.bars_))


# --- shapes of a model ------------------------------------------------------------------------------------------------

COLUMNS = {"age": (20, 80), "job": ["clerk", "nurse"], "since": (date(2020, 1, 1), date(2021, 1, 1))}


def people(n=300):
    rng = np.random.default_rng(0)
    since = np.datetime64("2020-01-01") + rng.integers(0, 365, n)
    return np.column_stack(
        [rng.integers(20, 80, n).astype(object), rng.choice(["clerk", "nurse"], n), since.astype(object)]
    )


def tabular(**changed):
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPTabularClassifier

    return DPTabularClassifier(
        COLUMNS, **{"classes": ["no", "yes"], "noise_multiplier": 1.0, "max_steps": 20, **changed}
    )


def boosting(most):
    given = {"classes": ["no", "yes"], "target_mu": 1.0, "max_iter": 20, "max_features_per_cell": most}
    return DPGradientBoostingClassifier(COLUMNS, **given)


@pytest.mark.parametrize(
    ("make", "partial"),
    [(lambda: tabular(hidden_layer_sizes=()), False), (lambda: boosting(1), False), (lambda: boosting(4), True)],
)
def test_shapes_are_computed_without_a_record_drawn_with_their_band_and_say_where_they_are_not_all(make, partial, ax):
    model = make().fit(people(), ["no", "yes"] * 150)
    display = ShapeDisplay.from_estimator(model, ["age"]).plot(ax)
    shape = model.shapes(["age"])["age"]
    assert list(display.shapes) == ["age"]
    assert display.curves == ["log odds of yes"] == [ax.get_ylabel()]
    x, y = ax.lines[-1].get_data()
    assert np.array_equal(x, shape.values)
    assert np.array_equal(y, shape.effects[0])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx((shape.effects[0] - shape.noise[0]).min())
    assert band.max() == pytest.approx((shape.effects[0] + shape.noise[0]).max())
    assert display.partial == partial == bool(ax.get_title(loc="left"))


def test_without_matplotlib_a_picture_is_computed_and_drawing_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"] + ["matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    display = TradeOffDisplay.from_guarantee(PureDP(epsilon=1.0))
    remedy = r"TradeOffDisplay.plot needs matplotlib. Install it: pip install matplotlib"
    with pytest.raises(ImportError, match=remedy):
        display.plot()
