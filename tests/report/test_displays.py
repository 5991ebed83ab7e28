"""Pictures show what the guarantees say, need matplotlib only to be drawn, and say so."""

from __future__ import annotations

import sys
from datetime import date

import numpy as np
import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import GaussianDP, NonPrivate, PureDP
from sklearn_dpsearch.report import ShapeDisplay, TradeOffDisplay

from ..search.toys import NoisyCentroids, two_blobs


@pytest.fixture
def ax():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    return Figure().add_subplot()


# --- what is computed -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one", [PureDP(epsilon=1.0), GaussianDP(mu=0.7), NonPrivate(), PureDP(epsilon=0.0)]
)
def test_a_trade_off_curve_is_that_of_the_guarantee(one):
    found = TradeOffDisplay.from_guarantee(one, rates=(0.001, 0.01))
    expected = pytest.approx(1 - one.trade_off(found.false_positive_rates), abs=1e-9)
    assert found.true_positive_rates == expected
    assert found.advantage == one.advantage()
    # 1 − f, with all digits
    assert found.readings == {rate: one.bayes_risk(rate) for rate in (0.001, 0.01)}


def test_a_curve_of_a_search_is_that_of_its_cost_and_then_of_what_it_spent():
    X, y = two_blobs(60)
    search = DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=2, refit=True)
    for one in (search, search.fit(X, y)):
        assert TradeOffDisplay.from_estimator(one).advantage == one.privacy_cost().advantage()


# --- shapes of a model ----------------------------------------------------------------------------

COLUMNS = {
    "age": (20, 80),
    "job": ["clerk", "nurse"],
    "since": (date(2020, 1, 1), date(2021, 1, 1)),
}


def people(n=300):
    rng = np.random.default_rng(0)
    since = np.datetime64("2020-01-01") + rng.integers(0, 365, n)
    ages, jobs = rng.integers(20, 80, n), rng.choice(["clerk", "nurse"], n)
    return np.column_stack([ages.astype(object), jobs, since.astype(object)])


def tabular(**changed):
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPTabularClassifier

    return DPTabularClassifier(
        COLUMNS, **{"classes": ["no", "yes"], "noise_multiplier": 1.0, "max_steps": 20, **changed}
    )


def boosting(most):
    given = {
        "classes": ["no", "yes"], "target_mu": 1.0, "max_iter": 20, "max_features_per_cell": most,
    }  # fmt: skip
    return DPGradientBoostingClassifier(COLUMNS, **given)


@pytest.mark.parametrize(("make", "partial"), [
    (lambda: tabular(hidden_layer_sizes=()), False),
    (lambda: boosting(1), False),
    (lambda: boosting(4), True),
])  # fmt: skip
def test_shapes_are_computed_without_a_record_and_drawn_with_their_band(make, partial, ax):
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
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"] + [
        "matplotlib"
    ]:
        monkeypatch.setitem(sys.modules, name, None)
    display = TradeOffDisplay.from_guarantee(PureDP(epsilon=1.0))
    remedy = r"TradeOffDisplay.plot needs matplotlib. Install it: pip install matplotlib"
    with pytest.raises(ImportError, match=remedy):
        display.plot()
