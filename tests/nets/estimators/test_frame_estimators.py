"""Nets for data frames: a schema encodes the columns, a linear part and a perceptron are added
up."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

pd = pytest.importorskip("pandas")
import torch

from sklearn_dpsearch.nets import DPTabularClassifier, DPTabularRegressor
from sklearn_dpsearch.nets._estimators import layers
from sklearn_dpsearch.preprocessing import Schema, TableEncoder

from ..toys import flat

SCHEMA = Schema(
    {"age": (20, 80), "job": ["clerk", "nurse"], "pay": ["low", "high"], "price": (0, 100)}
)
rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": rng.uniform(10, 90, 400), "job": rng.choice(["clerk", "nurse", "?"], 400), "note": "x"}
)
TABLE["pay"] = np.where((TABLE["age"] > 40) & (TABLE["age"] < 60), "high", "low")
TABLE["price"] = np.where(TABLE["pay"] == "high", 80.0, 20.0) + (TABLE["job"] == "nurse")
TABLE.loc[::17, "age"] = np.nan
SHORT = {"noise_multiplier": 0.5, "sample_rate": 0.1, "max_epochs": 20}


def classifier(**changed):
    return DPTabularClassifier(SCHEMA.without("price"), **{"target": "pay", **SHORT, **changed})


def regressor(**changed):
    return DPTabularRegressor(SCHEMA.without("pay"), **{"target": "price", **SHORT, **changed})


# --- records --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [(), (8,), (8, 8), "auto"])
def test_a_data_frame_goes_in_and_labels_come_out(hidden):
    one = classifier(hidden_layer_sizes=hidden).fit(TABLE, TABLE["pay"])
    assert set(one.predict(TABLE)) == {"low", "high"}
    assert one.score(TABLE, TABLE["pay"]) > 0.8
    assert one.predict_proba(TABLE).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [(), (8,)])
def test_a_regressor_predicts_inside_the_bounds_of_the_schema(hidden):
    one = regressor(hidden_layer_sizes=hidden, noise_multiplier=0.1, max_epochs=60).fit(
        TABLE, TABLE["price"]
    )
    assert one.score(TABLE, TABLE["price"]) > 0.5
    one.module_[0].bias.data.fill_(50.0) if not hidden else one.module_.wide.bias.data.fill_(50.0)
    assert one.predict(TABLE) == pytest.approx(100.0)


@pytest.mark.slow
def test_the_records_are_those_of_the_encoder_with_bins_last():
    one = classifier(hidden_layer_sizes=(32,)).fit(TABLE, TABLE["pay"])
    encoder = TableEncoder(SCHEMA.without("pay", "price"), bins="auto")
    names = encoder.get_feature_names_out()[one.records_of(one).order]
    plain = ["age", "age_missing", "job_clerk", "job_nurse", "job_unknown"]
    assert list(names[: len(plain)]) == plain
    assert all("_to_" in name for name in names[len(plain) :])
    assert one.module_.deep[0].in_features == len(plain)
    found = torch.cat(list(one.records_of(one).blocks(TABLE))).numpy()
    np.testing.assert_array_equal(
        found, encoder.fit_transform(TABLE)[:, one.records_of(one).order].astype(np.float32)
    )


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changed", "message"), [
    ({"target": "salary"}, "no column 'salary'"),
    ({"target": "age"}, "a list of values has classes"),
    ({"classes": ["low", "high"]}, "the schema states"),
    ({"schema": 3}, "schema"),
    ({"bins": 1}, "bins"),
    ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes"),
])  # fmt: skip
def test_wrong_arguments_are_errors_before_any_record_is_read(changed, message):
    one = classifier().set_params(**changed)
    cases = (lambda: one.fit(None, None), *([one.privacy_guarantee] if message in changed else []))
    for act in cases:
        with pytest.raises((ValueError, KeyError), match=message):
            act()


def test_targets_of_another_kind_or_number_are_refused():
    with pytest.raises(ValueError, match="labels in y that are numbers"):
        classifier().fit(TABLE, np.zeros(len(TABLE)))
    with pytest.raises(ValueError, match="inconsistent"):
        classifier().fit(TABLE, TABLE["pay"][:-1])
    with pytest.raises(NotFittedError):
        classifier().predict(TABLE)


# --- targets --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_classes_and_bounds_may_be_given_as_for_the_other_nets(one_noise):
    features = SCHEMA.without("pay", "price")
    options = {"classes": ["low", "high"], "noise_seed": 0, "random_state": 0}
    one = DPTabularClassifier(features, **options, **SHORT)
    other = classifier(noise_seed=0, random_state=0)
    for net in (one, other):
        net.fit(TABLE, TABLE["pay"])
        assert list(net.classes_) == ["high", "low"]
        assert not any("labels that occur" in text for text in net.privacy_assumptions())
    assert torch.equal(flat(one.module_), flat(other.module_))
    silent = DPTabularClassifier(features, **SHORT)
    assert any("labels that occur" in text for text in silent.privacy_assumptions())
    third = DPTabularRegressor(features, bounds_y=(0, 100), **SHORT).fit(TABLE, TABLE["price"])
    assert third.predict(TABLE).min() >= 0


@pytest.mark.parametrize(("make", "n", "noise", "widths"), [
    (classifier, 4000, 1.0, ()), (classifier, 4000, 0.1, (32,)), (classifier, 50_000, 1.0, (32,)),
    (regressor, 400, 1.0, ()), (regressor, 4000, 1.0, (32,)),
    (regressor, 10_000, 1.0, (128, 64, 32)),
])  # fmt: skip
def test_hidden_layers_follow_the_public_number_of_records(make, n, noise, widths):
    one = make(batch_size=0.5 * n, max_steps=1, sample_rate=0.5, noise_multiplier=noise)
    assert one.fit(TABLE, TABLE[one.target]).hidden_layer_sizes_ == widths


# --- shapes ---------------------------------------------------------------------------------------


def test_shapes_of_an_additive_classifier_are_its_log_odds():
    one = classifier(hidden_layer_sizes=(), noise_seed=0).fit(TABLE, TABLE["pay"])
    shapes = one.shapes()
    assert list(shapes) == ["age", "job"]
    odds = one.decision_function(pd.DataFrame({"age": shapes["age"].values, "job": "clerk"}))
    np.testing.assert_allclose(
        shapes["age"].effects[0] - shapes["age"].effects[0, 0], odds - odds[0], rtol=1e-4, atol=1e-4
    )
    expected = pytest.approx(one.weight_noise_ * np.sqrt(2) * np.hypot(0.5, 0.5))
    assert shapes["job"].noise[0, 0] == expected


def test_shapes_of_a_regressor_are_in_the_unit_of_the_target():
    one = regressor(hidden_layer_sizes=(), noise_multiplier=0.1).fit(TABLE, TABLE["price"])
    shape = one.shapes(["age"])["age"]
    predicted = one.predict(pd.DataFrame({"age": shape.values, "job": "clerk"}))
    inside = (predicted > 0) & (predicted < 100)
    assert inside.sum() > 50
    np.testing.assert_allclose(np.ptp((shape.effects[0] - predicted)[inside]), 0.0, atol=0.01)
    assert shape.noise[0, 0] > 0


@pytest.mark.slow
def test_shapes_of_a_net_with_hidden_layers_are_those_of_its_linear_part():
    one = classifier(hidden_layer_sizes=(8,)).fit(TABLE, TABLE["pay"])
    before = one.shapes()
    one.module_.deep[-1].weight.data.fill_(7.0)
    after = one.shapes()
    for name in before:
        np.testing.assert_array_equal(before[name].effects, after[name].effects)


def test_shapes_need_a_fitted_net_and_no_noise_that_is_not_known():
    with pytest.raises(NotFittedError):
        classifier().shapes()
    one = classifier(hidden_layer_sizes=(), solver="adam").fit(TABLE, TABLE["pay"])
    assert all(shape.noise is None for shape in one.shapes().values())


# --- what the records must not decide -------------------------------------------------------------


def test_classes_that_no_record_has_are_those_of_the_schema():
    low = TABLE[TABLE["pay"] == "low"]
    one = classifier().fit(low, low["pay"])
    assert list(one.classes_) == ["high", "low"]
    assert one.predict_proba(low).shape == (len(low), 2)


@pytest.mark.slow
def test_targets_are_scaled_by_the_schema_and_not_by_the_records():
    one = regressor().fit(TABLE, TABLE["price"])
    expected = pytest.approx([-0.6, 0.0, 0.6])
    assert one._targets(np.array([20.0, 50.0, 80.0]), fresh=False).ravel().tolist() == expected


def test_a_record_is_encoded_as_if_it_were_alone():
    encoder = TableEncoder(SCHEMA.without("pay"), bins="auto").fit(TABLE)
    together = encoder.transform(TABLE[:40])
    alone = [encoder.transform(TABLE[i : i + 1]) for i in range(40)]
    np.testing.assert_array_equal(together, np.concatenate(alone))


# --- privacy --------------------------------------------------------------------------------------


def test_the_net_is_trained_as_a_graph_in_stacks():
    """Known to act on each record alone: neither own code nor one net at a time."""

    from sklearn_dpsearch.nets._engines.engine_choice import choose_engine

    made = layers.wide_and_deep(
        [7, 2], [4, 5, 2], torch.nn.ReLU, torch.Generator().manual_seed(0), from_linear=True
    )
    criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    choice = choose_engine(made, criterion, torch.randn(3, 7), torch.tensor([0, 1, 0]))
    assert choice.stack_key is not None
    assert choice.assumptions == ()
