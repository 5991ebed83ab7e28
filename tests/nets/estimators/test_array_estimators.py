"""Ready-made nets are scikit-learn estimators that state what they cost."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.nets import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralNetClassifier,
)
from sklearn_dpsearch.nets._estimators import table_records
from sklearn_dpsearch.nets._estimators.settings import settings_of
from sklearn_dpsearch.nets._estimators.table_records import Bounds, scaled_rows

from ...search.toys import Untouchable
from ..toys import flat

ESTIMATORS = [DPLogisticRegression, DPMLPClassifier, DPMLPRegressor, DPLinearRegression]
REGRESSORS = ESTIMATORS[2:]
CLASSIFIERS = ESTIMATORS[:2]

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
y = (X[:, 0] > 0).astype(int)
three = np.array(["low", "middle", "top"])[np.digitize(X[:, 0], [-0.5, 0.5])]


#: Checks that want an error in fit for a record without an input, or a target, that is a number.
TOLD = ("check_estimators_nan_inf", "check_supervised_y_no_nan")
ALONE = "such a record adds nothing, as an error would tell of it"
BY_TYPE = {
    "check_dtype_object": "objects are refused by their type, not by an entry that is no number",
    **dict.fromkeys(
        ("check_classifier_data_not_an_array", "check_regressor_data_not_an_array"),
        "containers are known by type: another may read one record by what others hold",
    ),
}


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks bring their own
@parametrize_with_checks(
    [kind(noise_multiplier=1.0, max_steps=20, noise_seed=0) for kind in ESTIMATORS],
    expected_failed_checks=lambda net: (
        BY_TYPE | dict.fromkeys(TOLD if type(net) in REGRESSORS else TOLD[:1], ALONE)
    ),
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def model(kind=DPLogisticRegression, **changed):
    return kind(**{"noise_multiplier": 1.0, "sample_rate": 0.1, "max_steps": 15, **changed})


def parameters(one):
    return flat(one.module_)


@pytest.mark.parametrize("one", [model(), model(DPMLPRegressor, hidden_layer_sizes=())])
def test_without_hidden_layers_training_starts_at_zero(one):
    """The loss is convex: whatever the rate, the first model depends on the data and the noise
    alone."""
    one.set_params(learning_rate_init=1e-12).fit(X, y)
    assert 0 < parameters(one).abs().max() < 1e-9
    assert (
        model(DPMLPClassifier, learning_rate_init=1e-12).fit(X, y).module_[0].weight.abs().max()
        > 0.1
    )


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_guarantee_follows_from_the_arguments_alone(kind):
    one = model(kind)
    expected = dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=15, neighboring="zero_out")
    assert one.privacy_guarantee() == one.privacy_guarantee(7) == expected
    one.fit(X, y)
    assert one.privacy_spent_.epsilon == expected.epsilon_at(1e-5)
    assert (one.n_steps_, one.noise_multiplier_) == (15, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_target_is_met_from_below_and_nearly_reached(kind, epsilon):
    one = model(kind, noise_multiplier=None, target_epsilon=epsilon, target_delta=1e-6).fit(X, y)
    assert 0.99 * epsilon < one.privacy_spent_.epsilon <= epsilon
    assert one.privacy_spent_.delta == 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "steps"), [(0.05, 60), (0.3, 10), (1.0, 1)])
def test_a_gaussian_target_is_kept_whatever_the_rate_and_the_steps(rate, steps):
    one = model(noise_multiplier=None, target_mu=0.7, sample_rate=rate, max_steps=steps).fit(X, y)
    target = dp.GaussianDP(mu=0.7)
    run = dp.DPSGD(noise_multiplier=one.noise_multiplier_, sample_rate=rate, steps=steps)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert run.delta_at(epsilon) <= target.delta_at(epsilon) + 1e-9
    assert one.privacy_spent_.epsilon >= run.epsilon_at(1e-5)
    assert one.privacy_spent_.epsilon == pytest.approx(float(target.epsilon_at(1e-5)), rel=1e-3)


@pytest.mark.parametrize("norm", [1e-13, 1e-40, 1e-300])
def test_a_norm_so_small_that_factors_lose_their_digits_is_refused(norm):
    with pytest.raises(dp.PrivacyError, match=r"max_grad_norm=.*at least 1e-12 is needed"):
        DPLogisticRegression(noise_multiplier=1.0, max_grad_norm=norm).privacy_guarantee()
    DPLogisticRegression(noise_multiplier=1.0, max_grad_norm=1e-12).privacy_guarantee()


def test_a_batch_size_alone_is_divided_by_the_number_of_records():
    one = model(sample_rate=None, batch_size=10.5).fit(X, y)
    assert one.privacy_spent_.neighboring == "zero_out"
    assert one.privacy_spent_.guarantee == one.privacy_guarantee(len(X))
    assert one.privacy_guarantee(150).sample_rate == 10.5 / 150
    assert any("number of records is public" in text for text in one.privacy_spent_.assumptions)
    with pytest.raises(dp.PrivacyError, match="no number of records"):
        one.privacy_guarantee()


@pytest.mark.slow
def test_a_net_states_and_keeps_its_promise_for_changed_records():
    changed = {"neighboring": "replace_one"}
    plain = dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=15, **changed)
    expected = model(batch_size=15.0, **changed).privacy_guarantee()
    assert model(**changed).privacy_guarantee() == expected == plain
    for way in ({"target_epsilon": 3.0, "target_delta": 1e-6}, {"target_mu": 1.5}):
        one = model(noise_multiplier=None, **way, **changed).fit(X, y)
        run = dp.DPSGD(noise_multiplier=one.noise_multiplier_, sample_rate=0.1, steps=15, **changed)
        assert one.privacy_spent_.neighboring == "replace_one"
        assert run.epsilon_at(1e-6) <= one.privacy_spent_.epsilon_at(1e-6) * (1 + 1e-9)
        bound = 1.01 * model(noise_multiplier=None, **way).fit(X, y).noise_multiplier_
        assert one.noise_multiplier_ > bound
        assert any("number of records is public" in text for text in one.privacy_spent_.assumptions)
    told = model(**changed).set_params(**model(**changed).expecting(80))
    assert told.privacy_guarantee() == plain


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_partial_fit_and_warm_start_add_to_the_cost(kind):
    one = model(kind)
    first = {} if kind in REGRESSORS else {"classes": [0, 1]}
    once = one.privacy_guarantee()
    assert one.partial_fit(X, y, **first).privacy_spent_.epsilon == once.epsilon_at(1e-5)
    expected = dp.compose(once, once).epsilon_at(1e-5)
    assert one.partial_fit(X[:20], y[:20]).privacy_spent_.epsilon == expected
    one.set_params(warm_start=True).fit(X, y)
    assert one.privacy_spent_.epsilon == dp.compose(once, once, once).epsilon_at(1e-5)
    actual = [part.name for part in one.privacy_spent_.components]
    assert actual == ["training 1", "training 2", "training 3"]
    actual = one.set_params(warm_start=False).fit(X, y).privacy_spent_.epsilon
    assert actual == once.epsilon_at(1e-5)


def test_warm_starts_go_on_from_the_parameters_they_find():
    one = model(DPMLPClassifier, warm_start=True, max_grad_norm=1e-9, learning_rate_init=0.25).fit(
        X, y
    )
    before = parameters(one)
    torch.testing.assert_close(parameters(one.fit(X, y)), before, rtol=0, atol=1e-7)
    fresh = model(DPMLPClassifier, max_grad_norm=1e-9, random_state=1).fit(X, y)
    assert float((parameters(fresh) - before).abs().max()) > 0.01


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_declared_classes_are_known_even_if_they_never_occur(kind):
    one = model(kind, classes=["top", "low", "middle", "never"]).fit(X, three)
    assert one.classes_.tolist() == ["low", "middle", "never", "top"]
    assert one.predict_proba(X).shape == (150, 4)
    assert not any("labels that occur" in text for text in one.privacy_spent_.assumptions)
    assert any(
        "labels that occur" in text for text in model(kind).fit(X, three).privacy_spent_.assumptions
    )


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_probabilities_decisions_and_predictions_belong_together(kind):
    for labels in (y, three):
        one = model(kind).fit(X, labels)
        probabilities, decisions = one.predict_proba(X), one.decision_function(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.exp(one.predict_log_proba(X)), probabilities)
        np.testing.assert_array_equal(one.predict(X), one.classes_[probabilities.argmax(axis=1)])
        if len(one.classes_) == 2:
            np.testing.assert_allclose(1 / (1 + np.exp(-decisions)), probabilities[:, 1], rtol=1e-6)
        else:
            np.testing.assert_array_equal(decisions.argmax(axis=1), probabilities.argmax(axis=1))


@pytest.mark.parametrize("bounds_X", [None, (-1, 2), ([-3, -2, -1, -4], [1, 2, 4, 3])])
@pytest.mark.parametrize("labels", [y, three], ids=["two classes", "three classes"])
def test_coefficients_are_in_the_units_of_the_features(labels, bounds_X):
    inside = np.clip(X, -1, 1)  # where nothing is clipped
    one = model(bounds_X=bounds_X).fit(inside, labels)
    found = inside @ one.coef_.T + one.intercept_
    np.testing.assert_allclose(found.squeeze(), one.decision_function(inside), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bounds_X", [None, (-1, 2), ([-3, -2, -1, -4], [1, 2, 4, 3])])
@pytest.mark.parametrize("bounds_y", [None, (-50, 200)])
def test_coefficients_of_a_linear_regression_reproduce_its_predictions(bounds_X, bounds_y):
    inside = np.clip(X, -1, 1)
    one = model(DPLinearRegression, bounds_X=bounds_X, bounds_y=bounds_y).fit(inside, inside[:, 0])
    found = inside @ one.coef_ + one.intercept_
    assert one.coef_.shape == (4,)
    wanted = found if bounds_y is None else np.clip(found, *bounds_y)
    np.testing.assert_allclose(one.predict(inside), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_partial_fit_wants_the_classes_first_and_no_others_later(kind):
    with pytest.raises(ValueError, match="first call of partial_fit"):
        model(kind).partial_fit(Untouchable(), Untouchable())
    one = model(kind).partial_fit(X, three, classes=["low", "middle", "top"])
    with pytest.raises(ValueError, match="classes of the first call"):
        one.partial_fit(X, three, classes=["low", "top"])
    declared = model(kind, classes=["low", "middle", "top"])
    assert declared.partial_fit(X[:5], three[:5]).classes_.tolist() == ["low", "middle", "top"]


# --- bounds ---------------------------------------------------------------------------------------


def test_public_bounds_clip_and_scale_the_features(one_noise):
    given = {"noise_seed": 0, "random_state": 0}
    scaled = model(bounds_X=(-2.0, 2.0), **given).fit(X, y)
    by_hand = model(**given).fit(np.clip(X, -2, 2) / 2, y)
    assert torch.equal(parameters(scaled), parameters(by_hand))
    np.testing.assert_array_equal(
        scaled.predict_proba(X), by_hand.predict_proba(np.clip(X, -2, 2) / 2)
    )
    each = model(bounds_X=([-2.0] * 4, [2.0] * 4), **given).fit(X, y)
    assert torch.equal(parameters(scaled), parameters(each))


def test_public_bounds_clip_and_scale_the_targets_and_predictions_come_back():
    values = 100 + 50 * X[:, 0]
    options = {"max_steps": 200, "momentum": 0.5}
    one = model(DPMLPRegressor, bounds_y=(0, 200), noise_multiplier=0.5, sample_rate=0.3, **options)
    predicted = one.fit(X, values).predict(X)
    assert np.corrcoef(predicted, values)[0, 1] > 0.8
    assert abs(predicted.mean() - 100) < 25
    low = model(DPMLPRegressor, bounds_y=(0, 200), noise_seed=0, random_state=0)
    clipped = np.clip(values, 0, 200)
    assert torch.equal(
        parameters(clone(low).fit(X, values)), parameters(clone(low).fit(X, clipped))
    )


def test_no_prediction_lies_beyond_the_bounds_that_were_declared():
    """Free: predictions are computed from the released parameters."""
    wild = model(DPMLPRegressor, noise_multiplier=20.0, noise_seed=0).fit(X, X[:, 0])
    assert abs(wild.predict(10 * X)).max() > 1.0
    options = {"learning_rate_init": 5.0, "noise_seed": 0}
    wild = model(DPMLPRegressor, bounds_y=(0.1, 0.7), noise_multiplier=20.0, **options)
    predicted = wild.fit(X, X[:, 0]).predict(10 * X)
    assert predicted.min() == 0.1
    assert predicted.max() == 0.7


@pytest.mark.parametrize(
    "bounds", [(1, 0), (0, 0), (0,), (0, np.inf), (0, np.nan), ([0, 0], [1]), ("a", "b")]
)
def test_bounds_that_are_none_are_refused_before_data_is_read(bounds):
    with pytest.raises(ValueError, match="bounds_X"):
        model(bounds_X=bounds).fit(Untouchable(), Untouchable())
    with pytest.raises(ValueError, match="bounds_y"):
        model(DPMLPRegressor, bounds_y=bounds).fit(Untouchable(), Untouchable())


# --- records that are not sensible ----------------------------------------------------------------


@pytest.mark.parametrize("bounds", [None, (-0.1, 0.1)])
@pytest.mark.parametrize("value", [3e38, 1e300, 1.79e308])
def test_extreme_targets_do_not_destroy_a_regression_nor_make_it_warn(bounds, value):
    values, spoiled = X[:, 0].copy(), X.copy()
    values[0] = spoiled[1, 0] = value
    one = model(DPMLPRegressor, sample_rate=1.0, bounds_y=bounds, bounds_X=bounds)
    assert parameters(one.fit(spoiled, values)).isfinite().all()


# --- bad input ------------------------------------------------------------------------------------

#: Beyond what all nets share, which ``test_skorch_nets`` has.
UNREAD = [{"solver": "lbfgs"}, {"momentum": 1.0}, {"learning_rate_init": 0}]


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("changed", UNREAD, ids=str)
def test_bad_arguments_are_refused_before_any_data_is_read(kind, changed):
    with pytest.raises(ValueError, match=next(iter(changed))):
        model(kind, **changed).fit(Untouchable(), Untouchable())


@pytest.mark.slow
def test_an_unreachable_target_says_what_can_be_reached():
    one = model(noise_multiplier=None, target_epsilon=1e-9, target_delta=1e-12, sample_rate=1.0)
    with pytest.raises(dp.BudgetUnreachableError, match="smallest epsilon possible"):
        one.fit(Untouchable(), Untouchable())


def test_labels_of_another_kind_than_the_declared_ones_are_refused_without_naming_them():
    match = "labels in y that are text: none of them is declared"
    with pytest.raises(ValueError, match=match) as caught:
        model(classes=[0, 1]).fit(X, three)
    assert "middle" not in str(caught.value)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_failed_fit_is_no_fit(kind):
    one = model(kind).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        one.fit(X, y[1:])
    with pytest.raises(NotFittedError):
        one.predict(X)
    assert not hasattr(one, "privacy_spent_")


# --- everything else ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_nothing_but_parameters_is_in_the_pickle(kind):
    planted = X.copy()
    planted[:, 1] = 1.2345678e-3
    one = model(kind, sample_rate=1.0, solver="adam", learning_rate_init=0.01).fit(planted, y)
    for shown in (pickle.dumps(one), pickle.dumps(one.module_), pickle.dumps(copy.deepcopy(one))):
        assert np.float32(1.2345678e-3).tobytes() not in shown
        assert np.float64(1.2345678e-3).tobytes() not in shown
        # and what Adam keeps: two moments of each
        assert len(shown) < 6100 + 3 * 4 * parameters(one).numel()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))


@pytest.mark.parametrize(("n", "widths"), [(24_999, (64,)), (25_000, (64, 64))])
def test_the_number_of_records_that_is_told_decides_on_layers_and_not_the_real_one(n, widths):
    one = DPMLPClassifier(noise_multiplier=2.0, sample_rate=0.1, max_steps=2, batch_size=0.1 * n)
    one.fit(X, y)
    assert one.hidden_layer_sizes == "auto"
    parts = one.module_[:-1:2]
    assert one.hidden_layer_sizes_ == tuple(layer.out_features for layer in parts) == widths


def test_without_a_public_number_the_records_are_counted():
    many = np.zeros((25_000, 1), dtype=np.float32)
    one = DPMLPRegressor(noise_multiplier=2.0, sample_rate=1e-3, max_steps=1).fit(many, many[:, 0])
    assert one.hidden_layer_sizes_ == (64, 64)


def test_a_plain_rate_is_carried_over_in_proportion_up_to_a_long_step():
    rule = DPLinearRegression(noise_multiplier=1.0, max_grad_norm=0.5).extrapolation()[
        "learning_rate_init"
    ]
    assert [rule(rate, 100, 900) for rate in (0.1, 0.5, 3.0)] == pytest.approx([0.9, 2.0, 3.0])
    assert rule(3.0, 900, 100) == pytest.approx(1 / 3)
    rule = DPLogisticRegression(noise_multiplier=1.0, max_grad_norm=0.5).extrapolation()[
        "learning_rate_init"
    ]
    assert [rule(rate, 100, 900) for rate in (0.1, 5.0, 30.0)] == pytest.approx([0.9, 20.0, 30.0])
    assert DPLinearRegression(noise_multiplier=1.0, solver="adam").extrapolation() == {}


# --- lists, and errors that say nothing about a record --------------------------------------------


def trained(kind=DPLogisticRegression, **given):
    return kind(noise_multiplier=1.0, max_steps=2, noise_seed=0, random_state=0, **given)


@pytest.mark.parametrize(("given", "kind", "match"), [
    (np.array([["SECRET", 1.0]] * 4, dtype=object), ValueError, "X of objects; numbers are needed"),
    (pd.DataFrame({"a": ["SECRET"] * 4, "b": 1.0}), ValueError, r"do not hold numbers: \['a'\]"),
    (np.array([["SECRET", "1.0"]] * 4), ValueError, "not compatible with arrays of bytes/strings"),
    (np.full((4, 2), 1234.5 + 1j), ValueError, "Complex data not supported"),
    (np.full(4, 1234.5), ValueError, r"1D array instead: X has shape \(4,\). Reshape your data"),
    (np.array(1234.5), ValueError, "scalar array instead"),
], ids=["objects", "a column of text", "text", "complex", "one dimension", "none"])  # fmt: skip
def test_errors_say_nothing_about_a_record(given, kind, match):
    net = trained(classes=[0, 1]).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    cases = (lambda: trained(classes=[0, 1]).fit(given, [0, 1, 0, 1]), lambda: net.predict(given))
    for act in cases:
        with pytest.raises(kind, match=match) as found:
            act()
        assert not any(secret in str(found.value) for secret in ("SECRET", "1234"))
        assert found.value.__context__ is None


# --- public bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [1.0, 1e6, np.inf])
def test_values_beyond_the_bounds_are_clipped_both_ways(beyond):
    bounds = Bounds.of("bounds", (0.1, 0.7))
    assert bounds.scaled(np.array([-beyond, beyond])).tolist() == [-1.0, 1.0]
    expected = pytest.approx([0.1, 0.7], rel=1e-12)
    assert bounds.restored(np.array([-beyond, beyond])).tolist() == expected
    restored = bounds.restored(np.linspace(-2, 2, 1001))
    assert (restored >= 0.1).all()
    assert (restored <= 0.7).all()


@pytest.mark.parametrize(("given", "values", "wanted"), [
    # amounts: a quarter of the way up
    ((0, 200), [-5, 0, 50, 100, 200, 300], [-0.5, -0.5, 0, 0.5, 1.5, 1.5]),
    ((10, 30), [0, 10, 15, 20, 99], [-0.5, -0.5, 0, 0.5, 1.5]),
    ((-8, 8), [-10, -8, 0, 4], [-1, -1, 0, 0.5]),
    ((-4, 0), [-5, -1, 0, 3], [-1, 0.5, 1, 1]),
])  # fmt: skip
def test_bounds_of_amounts_map_a_quarter_to_zero_and_others_the_middle(given, values, wanted):
    bounds = Bounds.of_features("bounds_X", given)
    np.testing.assert_allclose(bounds.scaled(np.array(values, float)), wanted)
    rows = scaled_rows(np.array(values, float)[:, None], bounds)
    np.testing.assert_allclose(rows[:, 0].numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.int64])
@pytest.mark.parametrize(
    "given", [None, (-3, 5), (10, 20), ([-3.0, 0.0, 1e6], [5.0, 1e-3, 1e6 + 2])]
)
def test_rows_are_scaled_block_by_block_as_all_at_once(kind, given):
    values = (np.random.default_rng(0).uniform(size=(3 * table_records.BLOCK + 7, 3)) * 100).astype(
        kind
    )
    values[:, 2] = 10**6 + 1 if kind is not np.uint8 else 255
    bounds = None if given is None else Bounds.of_features("bounds", given)
    expected = values.astype(float) if bounds is None else bounds.scaled(values.astype(float))
    rows = scaled_rows(values, bounds)
    np.testing.assert_allclose(rows.numpy(), expected, rtol=2e-7, atol=2e-7)
    assert rows.dtype == torch.float32


def test_rows_at_the_bounds_and_beyond_are_exactly_one():
    values = np.array([[0.1], [0.7], [-1e300], [1e300]])
    expected = [-1.0, 1.0, -1.0, 1.0]
    assert scaled_rows(values, Bounds.of("bounds", (0.1, 0.7))).squeeze(1).tolist() == expected


# --- arguments to settings ------------------------------------------------------------------------


def test_the_number_of_records_is_public():
    """Gradients are divided by the number of records that is expected: taken from the data, it is
    told."""
    one = DPMLPClassifier(noise_multiplier=1.0, sample_rate=0.1, max_steps=3)
    assert one.privacy_guarantee().neighboring == "zero_out"
    with pytest.raises(dp.PrivacyError, match="number of records is public"):
        one.set_params(neighboring="add_remove").privacy_guarantee()


def test_records_are_counted_unless_their_expected_number_is_told():
    """A part of the records, drawn in secret, must train as if its size were the expected one."""
    one = DPMLPClassifier(noise_multiplier=1.0, max_steps=3)
    assert one.expected_number(500) == 500
    assert one.set_params(**one.expecting(400)).expected_number(500) == pytest.approx(400)
    expected = dp.DPSGD(noise_multiplier=1.0, sample_rate=0.02, steps=3, neighboring="zero_out")
    assert one.privacy_guarantee() == expected


def test_a_rate_that_follows_the_number_of_records_can_be_fixed():
    one = DPMLPClassifier(noise_multiplier=1.0, batch_size=50, max_epochs=2)
    assert one.expecting(100) is None  # on a part of the records another rate would follow
    whole = one.privacy_guarantee(500)
    fixed = one.set_params(**one.sized(500))
    assert fixed.privacy_guarantee() == whole
    assert fixed.sized(100) == {}


@pytest.mark.parametrize("n", [93, 99, 105, 147, 1797])
@pytest.mark.parametrize("rate", [{"batch_size": 3}, {"batch_size": 3.5, "sample_rate": 0.1}])
def test_rate_steps_and_batch_size_are_arithmetic_on_arguments_and_the_number_of_records(n, rate):
    """Whole numbers of batches or of records would round some of them."""
    given = {"classes": [0, 1], "noise_multiplier": 1.0, "lr": 0.1, "max_epochs": 1, **rate}
    one = DPNeuralNetClassifier(
        torch.nn.Linear, module__in_features=5, module__out_features=2, **given
    )
    settings = settings_of(one, n)
    expected = rate.get("sample_rate", 3 / n)
    assert settings.sample_rate == one.privacy_guarantee(n).sample_rate == expected
    assert settings.steps == round(1 / expected)
    one.initialize().n_features_in_ = 5  # as a fit notes it
    task = one._task(settings, SimpleNamespace(units=n), ())
    assert isinstance(task.expected_batch_size, float)
    assert task.expected_batch_size == pytest.approx(rate["batch_size"], rel=1e-12)
    assert (task.steps, task.sample_rate) == (settings.steps, settings.sample_rate)
