"""DP-EBM: its stated and its true guarantee, what is refused, and the sensitivity of every noisy
number it computes."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.adapters import adapter_for

from .toys import promise, refused

pytest.importorskip("interpret.privacy")
from interpret.glassbox._ebm import _boost
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from interpret.utils import _preprocessor
from interpret.utils._privacy import calc_gdp_noise_multi

FEATURES = 4


def ebm(kind=DPExplainableBoostingClassifier, **parameters):
    """Four features in [-1, 1]."""
    given = {
        "feature_types": ["continuous"] * FEATURES,
        "privacy_bounds": np.array([[-1.0, 1.0]] * FEATURES),
    }
    return kind(**given | {"n_jobs": 1, "max_rounds": 20} | parameters)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, FEATURES))
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(0.0, 0.3, n) > 0.2).astype(int)


# --- the guarantee --------------------------------------------------------------------------------


@pytest.mark.parametrize(("stated", "true"), [(0.5, 0.43), (1.0, 0.87), (3.0, 2.62), (8.0, 7.05)])
def test_the_guarantee_is_below_the_stated_one(stated, true):
    found = promise(ebm(epsilon=stated, delta=1e-5))
    assert isinstance(found, dp.GaussianDP)
    assert found.neighboring == "zero_out"
    assert found.epsilon_at(1e-5) == pytest.approx(true, abs=0.006)


def test_the_guarantee_is_the_composition_of_both_gaussian_parts():
    found = promise(ebm(epsilon=2.0, delta=1e-6, bin_budget_frac=0.3))
    parts = [
        dp.GaussianDP(mu=1.0 / calc_gdp_noise_multi(1, share * 2.0, 5e-7), neighboring="zero_out")
        for share in (0.3, 0.7)
    ]
    assert found.mu == pytest.approx(dp.compose(*parts).mu, rel=1e-8)
    assert found.mu >= dp.compose(*parts).mu


@pytest.mark.parametrize("composition", ["gdp", "classic"])
def test_the_noise_of_a_fit_is_that_of_the_guarantee(composition):
    """Binning asks once for each feature, boosting once for each round and feature."""
    model = ebm(composition=composition, learning_rate=0.25).fit(*table())
    binning = math.sqrt(FEATURES) / model.noise_scale_binning_
    boosting = 0.25 * math.sqrt(20 * FEATURES) / model.noise_scale_boosting_
    expected = pytest.approx(math.hypot(binning, boosting), rel=1e-6)
    assert promise(ebm(composition=composition)).mu == expected


def test_rounds_rates_and_bags_change_the_noise_and_not_the_guarantee():
    changes = {"max_rounds": 7, "learning_rate": 0.5, "outer_bags": 3, "max_leaves": 2}
    for name, value in {**changes, "max_bins": 8}.items():
        assert promise(ebm(**{name: value})) == promise(ebm())


@pytest.mark.parametrize("factor", [0.1, 0.7, 1.0, 3.0])
def test_a_scaled_model_keeps_its_factor(factor):
    adapter, model = adapter_for(ebm()), ebm()
    changed = clone(model).set_params(**adapter.scaled_privacy(model, factor))
    assert promise(changed).mu <= factor * promise(model).mu
    assert promise(changed).mu == pytest.approx(factor * promise(model).mu, rel=1e-9)


def test_an_epsilon_out_of_reach_is_an_error():
    with pytest.raises(dp.PrivacyError, match="no epsilon from"):
        adapter_for(ebm()).scaled_privacy(ebm(), 1e4)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [
    {"feature_types": None},
    {"feature_types": ["continuous", "nominal", "continuous", "continuous"]},
    {"feature_types": ["continuous", ["a", "b"], "continuous", "continuous"]},
], ids=repr)  # fmt: skip
def test_types_and_categories_from_the_records_are_refused(parameters):
    refused(dp.LeakingEstimatorError, ebm(**parameters), "feature_types", "OrdinalEncoder")


@pytest.mark.parametrize("bounds", [
    None, np.array([[-1.0, 1.0]] * (FEATURES - 1)), dict.fromkeys("abcd", (-1, 1)),
    [(-1, 1), (-1, 1), (-1, 1), (np.nan, 1)], [(-1, 1), (-1, 1), (-1, 1), (1, 1)],
], ids=repr)  # fmt: skip
def test_bounds_from_the_records_are_refused(bounds):
    refused(dp.LeakingEstimatorError, ebm(privacy_bounds=bounds), "privacy_bounds", "lower < upper")


@pytest.mark.parametrize("parameters", [
    {"privacy_bounds": dict.fromkeys(range(FEATURES), (-1, 1))},
    {"privacy_bounds": dict.fromkeys("abcd", (-1, 1)), "feature_names": list("abcd")},
    {
        "privacy_bounds": {0: (-1, 1), 1: (-1, 1), 2: (-1, 1)},
        "feature_types": ["continuous"] * 3 + ["ignore"],
    },
], ids=repr)  # fmt: skip
def test_bounds_by_number_and_by_name_are_taken(parameters):
    assert promise(ebm(**parameters)) == promise(ebm())


@pytest.mark.parametrize(("parameters", "word"), [
    ({"epsilon": 0.0}, "epsilon"), ({"epsilon": True}, "epsilon"), ({"delta": 1.0}, "delta"),
    ({"bin_budget_frac": 1.0}, "bin_budget_frac"), ({"composition": "pure"}, "composition"),
    ({"validation_size": 0.2}, "validation_size"),
])  # fmt: skip
def test_a_budget_that_makes_no_sense_is_refused(parameters, word):
    refused(dp.PrivacyError, ebm(**parameters), word)


def test_the_regressor_is_refused_with_its_reason():
    message = "sklearn_dpsearch.nets"
    refused(dp.LeakingEstimatorError, ebm(DPExplainableBoostingRegressor), "residuals", message)


def test_another_release_is_refused(monkeypatch):
    monkeypatch.setattr("interpret.__version__", "0.8.0")
    refused(dp.UnknownGuaranteeError, ebm(), "0.8.0", "0.7.8")


def test_a_subclass_is_not_vouched_for():
    class Changed(DPExplainableBoostingClassifier):
        pass

    refused(dp.UnknownGuaranteeError, ebm(Changed), "no known training guarantee")


# --- record and replay: the declared sensitivity against the real one -----------------------------


class Recorder:
    """Notes the exact sums of a fit; in a replay the fit goes on from the noisy sums of the first
    one."""

    def __init__(self, monkeypatch):
        self.histograms, self.bins, self.updates = [], [], []
        self.replayed = iter(())
        binning, update = _preprocessor.private_numeric_binning, _boost.Booster.get_term_update

        def binned(column, weights, scale, max_bins, lower, upper, rng=None):
            self.histograms.append(np.histogram(column, bins=max_bins * 2, range=(lower, upper))[0])
            if (earlier := next(self.replayed, None)) is None:
                self.bins.append(binning(column, weights, scale, max_bins, lower, upper, rng))
                earlier = self.bins[-1]
            cuts, heights = earlier
            return cuts, list(heights)

        def updated(booster):
            # before the update, which is then cut at every bin
            splits = booster.get_term_update_splits()[0]
            found = update(booster)
            self.updates.append(np.array([part[0] for part in np.split(found, splits)]))
            return found if (earlier := next(self.again, None)) is None else earlier(found, splits)

        self.again = iter(())
        monkeypatch.setattr(_preprocessor, "private_numeric_binning", binned)
        monkeypatch.setattr(_boost.Booster, "get_term_update", updated)

    def replay(self):
        """Let the next fit take over the bins and the sums of the last one."""
        first, self.updates = self.updates, []
        self.replayed = iter(list(self.bins))

        def taken(values):
            def put(found, splits):
                parts = np.split(found, splits)
                return np.concatenate(
                    [np.full(part.shape, value) for part, value in zip(parts, values)]
                )

            return put

        self.again = iter([taken(values) for values in first])
        return first


def one_less(X, y, row):
    return np.delete(X, row, axis=0), np.delete(y, row)


@pytest.mark.filterwarnings("ignore:Privacy violation")
@pytest.mark.parametrize("row", [0, 7, 250])
def test_one_record_moves_a_histogram_by_one_place(monkeypatch, row):
    X, y = table()
    recorder = Recorder(monkeypatch)
    ebm(random_state=1).fit(X, y)
    whole, recorder.histograms, recorder.replayed = recorder.histograms, [], iter(recorder.bins)
    ebm(random_state=1).fit(*one_less(X, y, row))
    for more, less in zip(whole, recorder.histograms):
        assert np.abs(more - less).sum() == 1
    assert len(whole) == FEATURES


@pytest.mark.filterwarnings("ignore:Privacy violation")
@pytest.mark.parametrize("row", [0, 7, 250])
@pytest.mark.parametrize(
    "parameters", [{"learning_rate": 0.5}, {"learning_rate": 2.0, "max_leaves": 6, "epsilon": 50.0}]
)
def test_one_record_moves_a_step_by_at_most_the_declared_sensitivity(monkeypatch, row, parameters):
    """Noisy sums of the first fit are kept in the second, which lacks a record: only the exact sums
    may differ."""
    X, y = table()
    y[row] = 1 - y[row]  # an outlier, whose residual grows
    recorder = Recorder(monkeypatch)
    ebm(random_state=3, **parameters).fit(X, y)
    whole = recorder.replay()
    ebm(random_state=3, **parameters).fit(*one_less(X, y, row))
    moves = [np.linalg.norm(more - less) for more, less in zip(whole, recorder.updates)]
    assert len(moves) == 20 * FEATURES
    assert max(moves) <= parameters["learning_rate"] * (1 + 1e-9)
    assert max(moves) > 0.2 * parameters["learning_rate"]  # the replay sees the record


# --- in searches ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_search_costs_its_epsilon_and_its_candidates_are_seeded_by_the_operating_system():
    X, y = table(2000)
    fitted = DPRandomSearchCV(ebm(), "auto", n_iter=5, epsilon=2.0, delta=1e-5, random_state=0).fit(
        X, y
    )
    assert fitted.privacy_spent_.neighboring == "zero_out"
    assert 1.9 <= fitted.privacy_spent_.epsilon <= 2.0
    assert fitted.score(X, y) > 0.6
    assert any("double precision" in one for one in fitted.privacy_spent_.assumptions)
    assert (fitted.best_estimator_.random_state, fitted.best_estimator_.n_jobs) == (None, 1)
    assert set(fitted.best_params_) == {"learning_rate", "max_rounds", "max_leaves"}
    assert pickle.loads(pickle.dumps(fitted)).best_params_ == fitted.best_params_


def test_a_plan_without_calibration_is_the_best_of_k_runs_of_training_and_score():
    spent = DPRandomSearchCV(ebm(), "auto", n_iter=dp.Geometric(5), delta=1e-5).privacy_cost(1000)
    one = dp.best_of(promise(ebm()), dp.Geometric(5)).epsilon_at(1e-5)
    assert 0.99 * one < spent.epsilon < 3 * one


def test_a_subset_search_is_not_amplified_as_models_count_their_records():
    assert adapter_for(ebm()).expecting(ebm(), 100.0) is None
    search = DPSubsetSearchCV(ebm(), {"learning_rate": [0.1, 0.2]}, delta=1e-5)
    assert any("subset counts as known" in one for one in search.privacy_cost(1000).assumptions)
