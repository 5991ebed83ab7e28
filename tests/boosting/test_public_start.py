"""A public start: no record costs more with it, predictions begin at it, and what could leak is
refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch.audit import replay
from sklearn_dpsearch.boosting import _base as base
from sklearn_dpsearch.boosting._losses import LEAST_PROBABILITY
from sklearn_dpsearch.boosting._noise import squared_distance
from sklearn_dpsearch.boosting._public_start import columns_of_init, logits_from_probabilities
from sklearn_dpsearch.boosting._rounds import STEP_ROUNDS
from sklearn_dpsearch.privacy import GaussianDP

from .models import MODELS, STARTS, TABLE, ByAge, PriceByAge


class WrongByAge(ByAge):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


class WrongPriceByAge(PriceByAge):
    def predict(self, X):
        return 100.0 - super().predict(X)


WRONG = {"two classes": WrongByAge().fit(), "numbers": WrongPriceByAge().fit()}


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.mark.parametrize("place", [0, 299, 599])
def test_a_record_moves_no_sum_by_more_than_without_a_start(kind, place):
    """Given the same noisy answers: those of the start too, and also of a record on which ``init``
    fails."""
    make = lambda: MODELS[kind](init=STARTS[kind], random_state=0, noise_seed=0, max_iter=20)  # noqa: E731
    for age in (TABLE["age"][place], 1000.0):
        records = TABLE.copy()
        records.loc[place, "age"] = age
        target = make().target
        blank = records.assign(**{target: records[target].where(records.index != place)})
        found = replay(make(), records, records[target], neighbour=(blank, blank[target]))
        bound = squared_distance(
            make()._loss_and_targets(records[target].to_numpy())[0], "zero_out"
        )
        assert {one.squared_sensitivity for one in found.releases} == {bound * base.UNIT**2}
        assert len(found.releases) == 27
        assert found.passed
        assert found.largest > 0


def test_both_starts_and_all_rounds_are_paid_for(kind, monkeypatch):
    scales, true = [], base.NoisySums
    monkeypatch.setattr(base, "NoisySums", lambda *given: scales.append(given[:2]) or true(*given))
    model = MODELS[kind](init=STARTS[kind], target_mu=0.7)
    model.fit(TABLE, TABLE[model.target])
    expected = GaussianDP(mu=0.7, neighboring="zero_out")
    assert model.privacy_spent_.guarantee == model.privacy_guarantee() == expected
    (loss, start), (_, each) = scales
    rounds = Fraction(5, start**2) + Fraction(model.n_iter_ + model.n_iter_ // STEP_ROUNDS, each**2)
    spent = squared_distance(loss, "zero_out") * base.UNIT**2 * rounds
    assert 0.9999 * 0.7**2 < spent <= Fraction(0.7) ** 2


@pytest.mark.parametrize(("mu", "rounds"), [(0.1, 5), (10.0, 25)])
def test_predictions_are_the_outputs_of_training(kind, mu, rounds, monkeypatch):
    """So that a model predicts from where it was trained from, however much of the start was
    taken."""
    seen, true = [], base.TrainingRecords
    monkeypatch.setattr(
        base, "TrainingRecords", lambda *given: seen.append(true(*given)) or seen[-1]
    )
    options = {"max_iter": rounds, "random_state": 0, "noise_seed": 0}
    model = MODELS[kind](init=STARTS[kind], target_mu=mu, **options)
    model.fit(TABLE, TABLE[model.target])
    before_the_last, _ = [one.copy() for one in model._staged_outputs(TABLE)][-2:]
    np.testing.assert_allclose(before_the_last, seen[0].outputs, atol=1e-12)
    assert 0.0 <= model.init_weights_[1] <= 1.5


@pytest.mark.parametrize("kind", WRONG)
def test_a_good_start_is_taken_and_a_bad_one_is_not(kind):
    def way(init):
        model = MODELS[kind](init=init, target_mu=10.0, max_iter=1, random_state=0, noise_seed=0)
        return model.fit(TABLE, TABLE[model.target]).init_weights_[1]

    assert way(STARTS[kind]) > 0.6
    assert way(WRONG[kind]) < 0.2


def test_a_start_is_improved_and_stages_begin_behind_it(kind):
    model = MODELS[kind](init=STARTS[kind], target_mu=30.0, random_state=0, noise_seed=0)
    truth = TABLE[model.target]
    model.fit(TABLE, truth)
    *_, last = model.staged_predict(TABLE)
    np.testing.assert_array_equal(last, model.predict(TABLE))
    alone = STARTS[kind].predict(TABLE) if kind == "numbers" else None
    if kind == "numbers":
        assert np.mean((last - truth) ** 2) < 0.2 * np.mean((alone - truth) ** 2)
    else:
        told = STARTS[kind].classes_[STARTS[kind].predict_proba(TABLE).argmax(axis=1)]
        assert np.mean(last == truth) > np.mean(told == truth) + 0.02


def test_a_class_that_the_start_does_not_know_has_the_smallest_chance():
    outputs = logits_from_probabilities(np.array(["a", "b", "c"]), np.array(["c", "a"]))(
        np.array([[0.3, 0.7]])
    )
    chances = np.exp(outputs - np.log(np.exp(outputs).sum()))
    np.testing.assert_allclose(
        chances, np.array([[0.7, LEAST_PROBABILITY, 0.3]]) / (1 + LEAST_PROBABILITY)
    )


def test_labels_of_another_kind_are_refused():
    match = r"classes \['0', '1'\], of which none is declared: \[0, 1\]. Fit it on"
    with pytest.raises(ValueError, match=match):
        logits_from_probabilities(np.array([0, 1]), np.array(["0", "1"]))


def test_the_statement_names_the_start_and_the_cost_of_an_earlier_release(kind):
    def said(init):
        (text,) = [text for text in MODELS[kind](init=init).privacy_assumptions() if "init" in text]
        return text

    assert "saw no private record" in said(FrozenEstimator(STARTS[kind]))
    assert "epsilon" not in said(FrozenEstimator(STARTS[kind]))
    assert type(STARTS[kind]).__name__ in said(FrozenEstimator(STARTS[kind]))
    earlier = MODELS[kind]().fit(TABLE, TABLE[MODELS[kind]().target])
    for one in (earlier, FrozenEstimator(earlier)):
        assert "earlier release" in said(one)
        assert "epsilon = " in said(one)
        assert "\n" not in said(one)


def test_what_could_leak_or_is_not_fitted_is_refused_before_records_are_read(kind):
    for init, neighboring, error, text in (
        (clone(STARTS[kind]), "zero_out", NotFittedError, "FrozenEstimator"),
        (STARTS[kind], "add_remove", ValueError, "add_remove"),
        (object(), "zero_out", ValueError, "predict"),
    ):
        with pytest.raises(error, match=text):
            MODELS[kind](init=init, neighboring=neighboring).fit("no table", None)


def test_a_start_gets_the_columns_that_it_was_fitted_on():
    """Tables have the target and other columns, which models of scikit-learn refuse."""
    table_of_start = TABLE[["age"]].fillna(50.0)
    start = LogisticRegression().fit(table_of_start, TABLE["pay"])
    records = TABLE.assign(age=TABLE["age"].fillna(50.0))
    one = MODELS["two classes"](init=start, max_iter=2, random_state=0, noise_seed=0).fit(
        records, records["pay"]
    )
    outputs = one._init_outputs(records, len(records), fitting=True)
    np.testing.assert_allclose(outputs[0], start.decision_function(table_of_start), atol=1e-6)
    with pytest.raises(ValueError, match="no column.*'age'"):
        columns_of_init(start, records.drop(columns="age"))
