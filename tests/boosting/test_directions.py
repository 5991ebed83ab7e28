"""Directions of columns: kept exactly by predictions, used by the start, and paid for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sklearn_dpsearch.audit import replay
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting import _base as base
from sklearn_dpsearch.boosting._directions import RELEASES, _Effect, _masses, without_interactions
from sklearn_dpsearch.boosting._features import INDEX_SIZE, CodedColumns
from sklearn_dpsearch.boosting._random_cells import PartitionDraws
from sklearn_dpsearch.preprocessing import Schema

pd = pytest.importorskip("pandas")
SCHEMA = {
    "age": (0, 50), "income": (0.0, 1.0), "grade": ["low", "middle", "high"],
    "city": ["Ur", "Uruk"],
}  # fmt: skip
DIRECTIONS = {"age": 1, "income": -1, "grade": 1}
KINDS = {
    "classes": lambda **given: DPGradientBoostingClassifier(
        SCHEMA, **{"classes": [0, 1], "target_mu": 0.5, **given}
    ),
    "numbers": lambda **given: DPGradientBoostingRegressor(
        SCHEMA, **{"bounds_y": (0, 1), "target_mu": 0.5, **given}
    ),
}


def table(n, seed=0):
    draw = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "age": draw.integers(0, 51, n).astype(float),
            "income": draw.uniform(size=n),
            "grade": draw.choice(SCHEMA["grade"], n),
            "city": draw.choice(SCHEMA["city"], n),
        }
    )
    place = found["grade"].map({"low": 0, "middle": 1, "high": 2})
    logits = found["age"] / 20 - 3 * found["income"] + place - 1
    return found, (draw.uniform(size=n) < 1 / (1 + np.exp(-logits))).astype(int)


X, Y = table(400)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_predictions_never_go_against_a_direction(kind, seed):
    """Noise alone would: the budget is small, and the labels say nothing."""
    labels = np.random.default_rng(seed).permutation(Y)
    model = KINDS[kind](monotonic_cst=DIRECTIONS, random_state=seed, noise_seed=seed).fit(X, labels)
    predict = model.decision_function if kind == "classes" else model.predict
    grid, _ = table(60, seed=9)
    found = {}
    for name, values in {
        "age": np.arange(-2.0, 60.0),
        "income": np.linspace(-0.5, 2, 60),
        "grade": SCHEMA["grade"],
    }.items():
        curves = np.array([predict(grid.assign(**{name: value})) for value in values])
        steps = np.diff(curves, axis=0) * DIRECTIONS[name]
        assert steps.min() >= 0
        found[name] = steps.max()
    assert max(found.values()) > 0
    free = KINDS[kind](random_state=seed).fit(X, labels)
    predict = free.decision_function if kind == "classes" else free.predict
    assert np.diff([predict(grid.assign(age=value)) for value in np.arange(50.0)], axis=0).min() < 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_direction_says_more_than_a_few_records_do(kind):
    test, truth = table(2000, seed=1)
    scores = {True: [], False: []}
    for seed in range(6):
        for stated in scores:
            options = {"target_mu": 0.15, "random_state": seed, "noise_seed": seed}
            model = KINDS[kind](monotonic_cst=DIRECTIONS if stated else None, **options)
            answers = model.fit(*table(400, seed=10 + seed))
            order = (answers.decision_function if kind == "classes" else answers.predict)(test)
            scores[stated].append(np.corrcoef(np.argsort(np.argsort(order)), truth)[0, 1])
    assert np.mean(scores[True]) > np.mean(scores[False]) + 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighboring", ["add_remove", "replace_one"])
def test_no_record_moves_a_sum_farther_than_is_paid_for(kind, neighboring):
    model = KINDS[kind](monotonic_cst=DIRECTIONS, max_iter=15, neighboring=neighboring)
    other = (X.drop(index=3), np.delete(Y, 3))
    if neighboring == "replace_one":
        other = (
            X.assign(age=X["age"].where(X.index != 3, 50.0 - X["age"])),
            np.where(X.index == 3, 1 - Y, Y),
        )
    found = replay(model, X, Y, neighbour=other)
    assert found.passed
    assert found.largest > 0.3
    assert len(found.releases) == 1 + RELEASES + 15


def test_the_start_and_all_rounds_are_paid_for(monkeypatch):
    scales, true = [], base.NoisySums
    monkeypatch.setattr(base, "NoisySums", lambda *given: scales.append(given[1]) or true(*given))
    KINDS["classes"](monotonic_cst=DIRECTIONS, max_iter=25, target_mu=0.7).fit(X, Y)
    start, rounds = ((base.UNIT / scale) ** 2 * 17 / 16 for scale in scales)
    assert 0.99 * 0.7**2 < (1 + RELEASES) * start + 25 * rounds <= 0.7**2


def test_directions_of_the_schema_are_those_of_the_argument():
    directed = {
        "age": {"lower": 0, "upper": 50, "direction": "increasing"},
        "income": {"lower": 0.0, "upper": 1.0, "direction": "decreasing"},
        "grade": {"values": SCHEMA["grade"], "direction": "increasing"},
        "city": SCHEMA["city"],
    }
    models = [
        DPGradientBoostingClassifier(directed, classes=[0, 1], target_mu=0.5),
        KINDS["classes"](monotonic_cst=DIRECTIONS),
        KINDS["classes"](monotonic_cst=[1, -1, 1, 0]),
    ]
    for model in models:
        assert model._facts.features == Schema(directed)
        assert any(
            "age rising, income falling, grade rising" in one for one in model.privacy_assumptions()
        )
        assert any("the target is decreasing in it" in line for line in model.columns_read())
    schema = Schema(directed)
    assert Schema(dict(schema)) == schema
    assert Schema.from_yaml(schema.to_yaml()) == schema if pytest.importorskip("yaml") else True
    assert pickle.loads(pickle.dumps(schema)) == schema


@pytest.mark.parametrize(("given", "match"), [
    ({"monotonic_cst": {"age": 2}}, "-1, 0 or 1"),
    ({"monotonic_cst": [1, 0]}, "for each of"),
    ({"monotonic_cst": {"ages": 1}}, "ages"),
    ({"monotonic_cst": DIRECTIONS, "classes": [0, 1, 2]}, "two classes"),
    ({"schema": {**SCHEMA, "age": {"lower": 0, "upper": 50, "direction": "up"}}}, "increasing"),
    (
        {
            "schema": {**SCHEMA, "age": {"lower": 0, "upper": 50, "direction": "decreasing"}},
            "monotonic_cst": DIRECTIONS,
        },
        "opposite direction",
    ),
    (
        {"schema": {**SCHEMA, "city": {"buckets": 8}}, "monotonic_cst": {"city": 1}},
        "a list in order",
    ),
], ids=str)  # fmt: skip
def test_what_no_model_could_keep_is_an_error(given, match):
    model = KINDS["classes"]().set_params(**given)
    with pytest.raises((ValueError, KeyError), match=match):
        model.fit(X, Y)
    assert not hasattr(model, "privacy_spent_")


def test_a_public_start_and_directions_exclude_each_other():
    first = KINDS["classes"]().fit(X, Y)
    with pytest.raises(ValueError, match="init and directions"):
        KINDS["classes"](monotonic_cst=DIRECTIONS, init=first).fit(X, Y)


def test_only_the_whole_model_keeps_directions():
    model = KINDS["classes"](monotonic_cst=DIRECTIONS).fit(X, Y)
    with pytest.raises(ValueError, match="no predictions after each round"):
        next(model.staged_predict(X))
    assert set(model.shapes()) == set(SCHEMA)
    assert len(model.weight_noise_) == len(model.partitions_) - 1 == len(model.weights_) - 1


def test_the_index_rises_with_each_directed_column_and_with_no_other():
    columns = CodedColumns(Schema(SCHEMA).directed(DIRECTIONS), 16)
    codes = columns.codes(X)
    assert len(codes) == len(columns.features) + 1
    assert codes[-1].max() < INDEX_SIZE
    cases = (("age", 50.0, 1), ("income", 1.0, -1), ("grade", "high", 1), ("city", "Ur", 0))
    for name, value, way in cases:
        moved = columns.codes(X.assign(**{name: value}))[-1].astype(int) - codes[-1]
        assert (moved * way >= 0).all() if way else not moved.any()
        assert moved.any() == bool(way)
    assert len(CodedColumns(Schema(SCHEMA), 16).codes(X)) == len(columns.features)


def test_directed_columns_act_by_themselves_in_every_round():
    """The weights of a round are the nearest whose directed columns have no interactions: found by
    least squares."""
    features = CodedColumns(Schema(SCHEMA).directed({"age": 1, "income": -1}), 16).features
    draws = PartitionDraws(features, 20, {4: 3}, np.random.default_rng(0))
    for partition in draws:
        weights = np.random.default_rng(1).normal(size=(1, partition.n_cells))
        groups, stride = [], 1
        for lookup in partition.lookups:
            groups.append(np.unique(lookup // stride))
            stride *= len(groups[-1])
        cells = np.stack(np.meshgrid(*groups[::-1], indexing="ij"), -1).reshape(-1, len(groups))[
            :, ::-1
        ]
        alone = [
            number for number, place in enumerate(partition.features) if features[place].direction
        ]
        others = [number for number in range(len(groups)) if number not in alone]
        together = np.unique(cells[:, others], axis=0, return_inverse=True)[1].ravel()
        design = np.hstack(
            [np.eye(len(groups[number]))[cells[:, number]] for number in alone]
            + [np.eye(together.max() + 1)[together]]
        )
        nearest = design @ np.linalg.lstsq(design, weights[0], rcond=None)[0]
        np.testing.assert_allclose(
            without_interactions(features, partition, weights)[0], nearest, atol=1e-9
        )
        draws.see(0.0)


def test_codes_of_many_records_are_found_among_those_of_few():
    draw, truth = np.random.default_rng(0), np.ones(40)
    truth[7] = 1000.0
    effects = []
    for _ in range(60):
        groups = np.searchsorted(np.sort(draw.choice(39, 5, replace=False)), np.arange(40))
        masses = np.bincount(groups, truth) + draw.normal(0, 5.0, 6)
        effects.append(_Effect(0, groups, np.zeros(6), np.zeros(6), masses))
    found = _masses(effects)
    assert found[7] == pytest.approx(1000.0, rel=0.1)
    assert np.delete(found, 7).max() < 60
