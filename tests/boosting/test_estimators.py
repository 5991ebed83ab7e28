"""Boosting of tables as scikit-learn estimators: records in, predictions out, and the guarantee
that is stated."""

from __future__ import annotations

import inspect
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_dpsearch import PrivacyError
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting import _base as base
from sklearn_dpsearch.boosting import _rounds as rounds
from sklearn_dpsearch.boosting._noise import squared_distance
from sklearn_dpsearch.boosting._random_cells import EXPLORATION, SINGLE_CELL
from sklearn_dpsearch.data._rows import ChosenRows
from sklearn_dpsearch.privacy import GaussianDP, as_replace_one

from ..search.toys import refuses_to_fit
from .models import MODELS, STARTS, TABLE
from .tables import SCHEMA, table

#: One fitted model of each kind, which no test changes.
FITTED = {
    name: make(random_state=0, noise_seed=0).fit(TABLE, TABLE[make().target])
    for name, make in MODELS.items()
}


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


# --- predictions ----------------------------------------------------------------------------------


def test_a_table_goes_in_and_good_predictions_come_out(kind):
    assert FITTED[kind].score(TABLE, TABLE[FITTED[kind].target]) > 0.8


def test_probabilities_logits_and_labels_agree():
    for name in ("two classes", "three classes"):
        model = FITTED[name]
        chances, logits = model.predict_proba(TABLE), model.decision_function(TABLE)
        assert chances.sum(axis=1) == pytest.approx(1.0)
        assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(TABLE))
        assert logits.shape == ((600,) if name == "two classes" else (600, 3))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(TABLE)), chances)
    two = FITTED["two classes"]
    expected = pytest.approx(two.predict_proba(TABLE)[:, 1])
    assert 1 / (1 + np.exp(-two.decision_function(TABLE))) == expected


def test_the_last_stage_is_the_prediction(kind):
    model = FITTED[kind]
    stages = list(model.staged_predict(TABLE))
    assert len(stages) == model.n_iter_ == model.max_iter
    assert np.array_equal(stages[-1], model.predict(TABLE))
    truth = TABLE[model.target].to_numpy()
    if kind == "numbers":
        assert np.mean((stages[-1] - truth) ** 2) < np.mean((stages[0] - truth) ** 2)
    else:
        *_, last = model.staged_predict_proba(TABLE)
        np.testing.assert_array_equal(last, model.predict_proba(TABLE))
        assert np.mean(stages[-1] == truth) > np.mean(stages[0] == truth)


@pytest.mark.slow
def test_the_answer_about_a_record_is_the_same_bits_in_every_call(kind):
    model = FITTED[kind]
    methods = [name for name in ("predict", "decision_function") if hasattr(model, name)]
    assert "predict" in methods
    for name in methods:
        answer = getattr(model, name)
        whole = answer(TABLE)
        assert np.array_equal(answer(TABLE[::-1])[::-1], whole)
        for size in (1, 7, 256):
            parts = [answer(TABLE[start : start + size]) for start in range(0, len(TABLE), size)]
            assert np.array_equal(np.concatenate(parts), whole)


def test_chosen_rows_train_like_a_copy_of_them():
    X = np.random.default_rng(0).uniform(0, 1, (400, 2))
    y, chosen = (X[:, 0] > 0.5).astype(int), np.arange(399, 0, -2)

    def weights(X, y):
        model = DPGradientBoostingClassifier(
            {"a": (0.0, 1.0), "b": (0.0, 1.0)}, classes=[0, 1], target_mu=1.0, max_iter=20,
            random_state=0, noise_seed=0,
        )  # fmt: skip
        return model.fit(X, y).weights_

    for one, other in zip(
        weights(ChosenRows(X, chosen), ChosenRows(y, chosen)), weights(X[chosen], y[chosen])
    ):
        assert np.array_equal(one, other)


def test_numbers_stay_inside_of_the_bounds():
    wild = MODELS["numbers"]().fit(TABLE, TABLE["price"])
    for start, expected in ((1e3, 100.0), (-1e3, 0.0)):
        wild.weights_[0][:] = start
        assert set(wild.predict(TABLE)) == {expected}


def test_class_weights_move_the_logits_and_nothing_else():
    plain = FITTED["two classes"]
    weighted = clone(FITTED["two classes"]).set_params(class_weight={"low": 3.0})
    weighted.set_params(random_state=0, noise_seed=0).fit(TABLE, TABLE["pay"])
    expected = pytest.approx(np.log(3.0))
    assert weighted.decision_function(TABLE) - plain.decision_function(TABLE) == expected
    options = {"class_weight": {"b": 2.0}, "random_state": 0, "noise_seed": 0}
    several = clone(FITTED["three classes"]).set_params(**options)
    moved = several.fit(TABLE, TABLE["grade"]).decision_function(TABLE)
    shift = (moved - FITTED["three classes"].decision_function(TABLE)).mean(axis=0)
    assert shift == pytest.approx([0.0, np.log(2.0), 0.0])


def test_missing_and_unknown_values_are_predicted(kind):
    found = FITTED[kind].predict(
        TABLE.assign(age=None, job="never seen", since=None, shop=None, wealth=np.inf)
    )
    assert len(found) == 600
    assert len(FITTED[kind].predict(TABLE[:0])) == 0


# --- the guarantee --------------------------------------------------------------------------------


@pytest.mark.parametrize("neighboring", ["add_remove", "zero_out", "replace_one"])
def test_the_guarantee_is_the_target_and_the_noise_reaches_it(kind, neighboring, monkeypatch):
    scales = []
    true = base.NoisySums
    monkeypatch.setattr(base, "NoisySums", lambda *given: scales.append(given[:2]) or true(*given))
    model = MODELS[kind](neighboring=neighboring, target_mu=0.7)
    assert model.privacy_guarantee() == GaussianDP(mu=0.7, neighboring=neighboring)
    model.fit(TABLE, TABLE[model.target])
    assert model.privacy_spent_.guarantee == model.privacy_guarantee(123)
    (loss, start), (_, each) = scales
    spent = (
        squared_distance(loss, neighboring)
        * base.UNIT**2
        * (Fraction(1, start**2) + Fraction(model.n_iter_, each**2))
    )
    assert 0.9999 * 0.7**2 < spent <= Fraction(0.7) ** 2
    # nothing else was released
    assert len(model.weights_) == len(model.partitions_) == 1 + model.n_iter_


def test_epsilon_and_delta_are_met(kind):
    found = MODELS[kind](target_mu=None, target_epsilon=1.0, target_delta=1e-6).privacy_guarantee()
    assert isinstance(found, GaussianDP)
    assert 0.999 < found.epsilon_at(1e-6) <= 1.0


@pytest.mark.parametrize("changed", [
    {"max_iter": 7}, {"learning_rate": 2.0}, {"prior_factor": 3.0}, {"max_iter": "rule"},
    {"max_bins": 5}, {"parts": 40}, {"max_features_per_cell": 1}, {"random_state": 3},
    {"n_jobs": 2},
])  # fmt: skip
def test_parameters_that_are_not_named_leave_the_guarantee_alone(kind, changed):
    assert not set(changed) & set(MODELS[kind]().privacy_parameters)
    assert MODELS[kind](**changed).privacy_guarantee() == MODELS[kind]().privacy_guarantee()


def test_a_search_multiplies_the_privacy_loss_as_configured(kind):
    """Of a Gaussian guarantee that is its μ, whichever way it was stated."""
    by_epsilon = MODELS[kind](target_mu=None, target_epsilon=1.0, target_delta=1e-6)
    cases = ((MODELS[kind](target_mu=0.3), 0.3), (by_epsilon, by_epsilon.privacy_guarantee().mu))
    for model, mu in cases:
        actual = clone(model).set_params(**model.scaled_privacy(2.0)).privacy_guarantee()
        assert actual == GaussianDP(mu=2.0 * mu, neighboring="zero_out")
    assert MODELS[kind](target_mu=None).scaled_privacy(0.5)["target_mu"] == 0.5
    assert MODELS[kind]().under("replace_one") == {"neighboring": "replace_one"}
    expected = {"neighboring": "zero_out"}
    assert MODELS[kind](target_mu=None, neighboring="replace_one").under("zero_out") == expected
    assert MODELS[kind]().expecting(100.0) == {"expected_samples": 100.0}


def test_a_record_that_is_blanked_costs_half_of_what_was_asked_for_a_replaced_one(kind):
    by_epsilon = MODELS[kind](target_mu=None, target_epsilon=1.0, target_delta=1e-6)
    for model in (MODELS[kind](target_mu=0.3), by_epsilon):
        asked = model.set_params(neighboring="replace_one").privacy_guarantee()
        step = clone(model).set_params(**model.under("zero_out")).privacy_guarantee()
        assert step == GaussianDP(mu=asked.mu / 2, neighboring="zero_out")
        assert as_replace_one(step) == asked


@pytest.mark.parametrize("given", [
    {"target_mu": None}, {"target_epsilon": 1.0}, {"target_mu": None, "target_epsilon": 1.0},
    {"target_epsilon": 1.0, "target_delta": 1e-5},
])  # fmt: skip
def test_exactly_one_way_to_state_the_privacy_is_needed(kind, given):
    with pytest.raises(PrivacyError, match="is needed"):
        MODELS[kind](**given).privacy_guarantee()


def test_a_meaningless_delta_is_refused_where_the_number_of_records_is_public(kind):
    model = MODELS[kind](target_mu=None, target_epsilon=1.0, target_delta=0.01)
    with pytest.raises(PrivacyError, match="promises nothing"):
        model.fit(TABLE, TABLE[model.target])
    model.set_params(neighboring="add_remove").fit(TABLE, TABLE[model.target])


@pytest.mark.slow
def test_cells_do_not_depend_on_the_records(kind):
    model = MODELS[kind](random_state=0, parts=16).fit(TABLE, TABLE[FITTED[kind].target])
    others = table(90, seed=5)
    other = clone(model).set_params(random_state=0).fit(others, others[model.target])
    same = 1 + int(EXPLORATION * model.n_iter_)  # later ones follow what is released
    for mine, theirs in zip(model.partitions_[:same], other.partitions_[:same]):
        assert mine[0] == theirs[0]
        assert all(np.array_equal(lookup, same) for lookup, same in zip(mine[1], theirs[1]))


@pytest.mark.parametrize("changed", [{}, {"init": True}, {"groups": True}])
def test_weights_are_the_same_bits_for_any_number_of_threads(kind, changed, monkeypatch):
    monkeypatch.setattr(rounds, "BLOCK", 97)
    monkeypatch.setattr(rounds, "PERSONS", 97)
    monkeypatch.setattr(base, "BLOCK", 97)
    # more than a processor each
    monkeypatch.setattr(base, "threads_now", lambda n_jobs: n_jobs or 1)
    given = {"init": STARTS[kind]} if "init" in changed else {}
    groups = np.arange(len(TABLE)) // 3 if "groups" in changed else None
    found = [
        MODELS[kind](random_state=0, noise_seed=0, max_iter=25, n_jobs=n_jobs, **given)
        for n_jobs in (None, 1, 2, 3)
    ]
    for model in found:
        model.fit(TABLE, TABLE[model.target], groups)
        for one, other in zip(model.weights_, found[0].weights_, strict=True):
            assert one.tobytes() == other.tobytes()
        assert model.predict(TABLE).tolist() == found[0].predict(TABLE).tolist()


@pytest.mark.slow
def test_noise_differs_from_fit_to_fit_and_is_not_seeded_by_random_state(kind):
    model = MODELS[kind](random_state=0, parts=16)
    one = model.fit(TABLE, TABLE[model.target]).weights_
    other = model.fit(TABLE, TABLE[model.target]).weights_
    same = 1 + int(EXPLORATION * model.n_iter_)  # later cells differ too
    assert all(np.any(mine != theirs) for mine, theirs in zip(one[1:same], other[1:same]))


@pytest.mark.parametrize("seed", [0, np.random.RandomState(0)], ids=["number", "generator"])
@pytest.mark.parametrize("change", ["a record", "an argument"])
def test_fits_that_differ_share_no_noise_with_one_seed(seed, change):
    """With one noise for both, their difference would be exact, for those without the seed too."""
    one = MODELS["numbers"](target_mu=1e-3, max_iter=20, random_state=0, noise_seed=seed)
    other, y = clone(one), TABLE["price"].to_numpy(copy=True)
    if change == "a record":
        y[0] = 0.0
    else:
        other.set_params(learning_rate=0.41)
    cases = (one.fit(TABLE, TABLE["price"]), other.fit(TABLE, y))
    weights = [np.concatenate([np.ravel(one) for one in model.weights_]) for model in cases]
    shared = min(map(len, weights))  # later cells follow what is released
    # Of ranks, since a few weights are far larger than the others: 0 ± 0.08, and nearly 1 where
    # noise is shared.
    assert abs(spearmanr(*(one[:shared] for one in weights)).statistic) < 0.5


def test_the_noise_seed_is_not_kept(kind):
    model = MODELS[kind](noise_seed=3).fit(TABLE, TABLE[MODELS[kind]().target])
    assert any("noise_seed was given" in text for text in model.privacy_spent_.assumptions)
    assert pickle.loads(pickle.dumps(model)).noise_seed is None


def test_assumptions_are_said(kind):
    texts = " ".join(FITTED[kind].privacy_spent_.assumptions)
    assert "schema was not taken from the records" in texts
    assert "labels that occur" not in texts
    loose = DPGradientBoostingClassifier(
        SCHEMA.without("pay", "grade", "price"), target_mu=1.0, class_weight={}
    )
    assert "labels that occur in y are public" in " ".join(loose.privacy_assumptions())
    assert "class_weight was not taken" in " ".join(loose.privacy_assumptions())


# --- pickles and clones ---------------------------------------------------------------------------


def test_a_pickle_predicts_the_same_and_holds_plain_values(kind):
    model = FITTED[kind]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))
    plain = (int, np.ndarray)
    flat = [value for one in model.partitions_ for value in (*one[0], *one[1], one[2])]
    assert {type(one) for one in model.partitions_} == {tuple}
    assert all(isinstance(value, plain) for value in [*flat, *model.weights_])


def test_constructors_only_assign():
    for model in (DPGradientBoostingClassifier, DPGradientBoostingRegressor):
        names = list(inspect.signature(model).parameters)
        assert list(model({"a": (0, 1)}).get_params(deep=False)) == sorted(names)


def test_a_failed_fit_leaves_no_model(kind):
    model = MODELS[kind]().fit(TABLE, TABLE[FITTED[kind].target])
    refuses_to_fit(model, ValueError, "missing from the table", TABLE[["age"]], TABLE[model.target])
    with pytest.raises(NotFittedError):
        model.predict(TABLE)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changed", "message"), [
    ({"target": "salary"}, "no column 'salary'"),
    ({"schema": 3}, "schema"),
    ({"max_iter": 0}, "max_iter"),
    ({"max_bins": 1}, "max_bins"),
    ({"parts": 1}, "parts"),
    ({"learning_rate": 1e300}, "learning_rate"),
    ({"prior_factor": 1e170}, "prior_factor"),
    ({"max_features_per_cell": 0}, "max_features_per_cell"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"target_mu": 1e-9}, "larger target"),
    ({"neighboring": "any"}, "neighboring"),
])  # fmt: skip
def test_wrong_arguments_are_errors_before_any_record_is_read(kind, changed, message):
    with pytest.raises((ValueError, KeyError, PrivacyError), match=message):
        MODELS[kind]().set_params(**changed).fit(None, None)
    with pytest.raises((ValueError, KeyError, PrivacyError), match=message):
        MODELS[kind]().set_params(**changed).privacy_guarantee()


@pytest.mark.parametrize(("name", "changed", "message"), [
    ("two classes", {"target": "age"}, "a list of values has classes"),
    ("two classes", {"classes": ["low", "high"]}, "the schema states"),
    ("two classes", {"class_weight": {"middle": 2.0}}, "labels among"),
    ("two classes", {"class_weight": "balanced"}, "counts the labels"),
    ("numbers", {"target": "job"}, "a range has bounds"),
    ("numbers", {"bounds_y": (0, 1)}, "the schema states"),
    ("numbers", {"target": None}, "bounds_y=None"),
    ("numbers", {"target": None, "bounds_y": (0.0, np.inf)}, "finite"),
    ("numbers", {"max_residual": 0.0}, "max_residual"),
    ("numbers", {"target": None, "bounds_y": (0.0, 5e-324)}, "wider bounds"),
])  # fmt: skip
def test_wrong_targets_are_errors_before_any_record_is_read(name, changed, message):
    with pytest.raises((ValueError, PrivacyError), match=message):
        MODELS[name](**changed).fit(None, None)


def test_targets_that_do_not_fit_are_refused():
    loose = DPGradientBoostingClassifier(SCHEMA.without("pay", "grade", "price"), target_mu=1.0)
    for model, y, match in (
        (MODELS["two classes"](), TABLE["pay"][:-1], "inconsistent"),
        (MODELS["two classes"](), None, "needs y"),
        (loose, np.zeros(600), "at least 2 classes"),
        # labels that are not declared are public
        (loose, TABLE["price"].where(TABLE["price"] > 50), "NaN"),
        (
            clone(loose).set_params(classes=["a", "b"]),
            np.zeros(600),
            "labels in y that are numbers: none of them",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(TABLE, y)


WRONG = [None, "nan", "a name", np.nan, 1j, [1], float, b"\xff"]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("start", [False, True], ids=["", "public start"])
@pytest.mark.parametrize("groups", [None, np.arange(600) // 3], ids=["records", "persons"])
def test_a_record_without_a_target_adds_nothing_and_others_stay(kind, start, groups, recwarn):
    def make(**changed):
        return MODELS[kind](max_iter=3, init=STARTS[kind] if start else None, **changed)

    targets, fits, sums = TABLE[make().target].to_numpy(dtype=object, copy=True), [], []
    for wrong in WRONG:
        targets[[0, 299, 599]] = [wrong, wrong, None]
        fits.append(make(random_state=0, noise_seed=0).fit(TABLE, targets, groups).weights_)
    assert all(np.array_equal(one, other) for fit in fits for one, other in zip(fits[0], fit))
    for rows in (np.arange(600), np.delete(np.arange(600), [0, 299, 599])):
        persons = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        records = make()._records(TABLE.iloc[rows], targets[rows], persons)
        step = np.full((records.loss.n_outputs, 1), 0.3)
        sums.append([records.sums(0 * step, SINGLE_CELL), records.sums(step, SINGLE_CELL)])
        sums[-1] += [records.sums_on_line(step), records.sums_on_line(step, 0.5)] if start else []
        assert records.n_units == (len(rows) if groups is None else 200)
    assert all(np.array_equal(*both) for both in zip(*sums))
    assert not recwarn.list


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("groups", [None, np.arange(600)], ids=["records", "persons"])
def test_no_records_are_records_like_others_where_their_number_is_private(kind, groups):
    model = MODELS[kind](neighboring="add_remove", max_iter=3)
    for n in (0, 1):
        model.fit(TABLE[:n], TABLE[model.target][:n], None if groups is None else groups[:n])
        assert len(model.predict(TABLE)) == 600
    with pytest.raises(ValueError, match="0 sample"):
        MODELS[kind]().fit(TABLE[:0], TABLE[model.target][:0])


def test_labels_of_y_are_taken_where_none_are_declared():
    model = DPGradientBoostingClassifier(
        SCHEMA.without("pay", "grade", "price"), target_mu=10.0, max_iter=20
    )
    assert list(model.fit(TABLE, TABLE["grade"]).classes_) == ["a", "b", "c"]
    assert list(
        clone(model).set_params(classes=["d", "c", "b", "a"]).fit(TABLE, TABLE["grade"]).classes_
    ) == [*"abcd"]
