"""Searches over records that are many: no copy for a candidate, a fold or a part, and files that
are only read."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skorch")
from sklearn.base import clone

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.nets import DPLogisticRegression
from sklearn_dpsearch.nets import _records as training_records
from sklearn_dpsearch.privacy import ZCDP
from sklearn_dpsearch.scoring import private_scorer
from sklearn_dpsearch.scoring._base import is_additive
from sklearn_dpsearch.scoring._mean import Match, MeanScorer
from sklearn_dpsearch.scoring._r2 import R2Scorer
from sklearn_dpsearch.scoring._validation import all_numbers
from sklearn_dpsearch.search._execution import runs
from sklearn_dpsearch.search._records import take

from .toys import NoisyCentroids, refuses_to_fit

pytestmark = pytest.mark.processes

RNG = np.random.default_rng(0)
BUDGET = {"delta": 1e-6, "score_noise": ZCDP(rho=0.1, neighboring="zero_out")}
SPACE = {"learning_rate_factor": [0.5, 1.0, 2.0]}


def net(**changed):
    return DPLogisticRegression(
        **{
            "classes": [0, 1], "bounds_X": (-1, 1), "sample_rate": 0.01, "max_steps": 5,
            "noise_multiplier": 2.0, **changed,
        },
    )  # fmt: skip


def table(n, features=5):
    X = RNG.uniform(-1, 1, (n, features)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(int)


KINDS = {
    "random": (DPRandomSearchCV, {"n_iter": 5, **BUDGET}),
    "subset": (DPSubsetSearchCV, {"n_iter": 5, **BUDGET}),
    "grid": (DPGridSearchCV, {"n_parts": 8, "selection_epsilon": 1.0, "delta": 1e-6}),
    "threshold": (DPThresholdSearchCV, {"threshold": 0.5, "n_iter": 5, **BUDGET}),
}


def search_of(name, **more):
    kind, needed = KINDS[name]
    return kind(net(), SPACE, random_state=1, **needed, **more)


def released(search):
    return [search.best_params_, search.best_estimator_.coef_.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_search_over_a_file_is_the_search_over_the_array(name, tmp_path, monkeypatch):
    X, y = table(1500)
    np.save(tmp_path / "x.npy", X)
    expected = released(search_of(name).fit(X, y))
    assert released(search_of(name).fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y)) == expected
    monkeypatch.setitem(training_records.MAPPED_BYTES, "cpu", 0)
    assert released(search_of(name).fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y)) == expected


def peak_of(fit):
    """Bytes that a fit holds at most."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        fit()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cv"), [("random", 5), *((name, None) for name in KINDS)])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_search_holds_little_more_than_one_training(name, cv, where, tmp_path, monkeypatch):
    X, y = table(300_000, 50)  # 60 MB
    if where == "file":
        monkeypatch.setitem(training_records.MAPPED_BYTES, "cpu", 0)
        np.save(tmp_path / "x.npy", X)
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
    search = search_of(name, **({} if cv is None else {"cv": cv}))
    search.privacy_cost(len(X))  # the plan is there
    alone = peak_of(lambda: net(noise_multiplier=1.0).fit(X, y))
    found = peak_of(lambda: search.fit(X, y))
    if where == "memory":
        assert alone > 60e6
        assert found < 1.3 * alone
    else:  # neither holds a copy; blocks are scored
        assert alone < 10e6
        assert found < 35e6


@pytest.mark.parametrize("scorer", [
    private_scorer("accuracy"),
    private_scorer("balanced_accuracy", classes=[0, 1]),
    private_scorer("f1", pos_label=1),
    private_scorer("roc_auc", pos_label=1),
    R2Scorer(y_range=(0, 1)),
], ids=["accuracy", "balanced accuracy", "f1", "roc_auc", "r2"])  # fmt: skip
def test_scores_of_blocks_are_those_of_all_records(scorer, monkeypatch):
    assert is_additive(scorer)
    X, y = table(500)
    model = net().fit(X, y)
    records = np.arange(490)[::-1]
    whole = runs._exact_statistic(scorer, "zero_out", model, records, X, y)
    assert whole == scorer.statistic(model, X[records], y[records], "zero_out")
    monkeypatch.setattr(runs, "BLOCK", 64)
    assert runs._exact_statistic(scorer, "zero_out", model, records, X, y) == whole
    nobody = runs._exact_statistic(scorer, "zero_out", model, records[:0], X, y)
    assert nobody == scorer.statistic(model, X[:0], y[:0], "zero_out")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPRandomSearchCV, DPSubsetSearchCV])
def test_a_search_over_boosting_copies_no_rows_of_a_file(kind, tmp_path):
    X, y = table(200_000, 40)  # 32 MB
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    schema = {f"x{place}": (-1.0, 1.0) for place in range(40)}
    model = DPGradientBoostingClassifier(schema, classes=[0, 1], target_mu=1.0, max_iter=2)
    search = kind(model, {"prior_factor": [1.0, 1.5]}, n_iter=3, random_state=1, **BUDGET)
    search.privacy_cost(len(X))
    alone = peak_of(lambda: clone(model).fit(mapped, y))
    assert peak_of(lambda: search.fit(mapped, y)) < alone + 0.5 * X.nbytes


def test_what_is_not_known_to_be_a_sum_is_scored_as_a_whole(monkeypatch):
    class Longest(MeanScorer):
        """The largest value: over blocks it would add up."""

        def statistic(self, estimator, X, y, neighboring):
            seen.append(len(X))
            return [int(np.max(y))]

    seen = []
    monkeypatch.setattr(runs, "BLOCK", 64)
    scorer = Longest(values=Match(), lower=0, upper=1)
    X, y = table(300)
    assert runs._exact_statistic(scorer, "zero_out", None, np.arange(300), X, y) == [1]
    assert seen == [300]


class Stored:
    """Records of a million bytes each, in a file that is asked for the place of each."""

    def __init__(self, places=None):
        self.places, self.shape = places, (3000, 1)

    def __len__(self):
        return 3000

    def __getitem__(self, key):
        numbers = key[0] if isinstance(key, tuple) else key
        return Stored(numbers * 1_000_000)


def test_numbers_of_records_can_be_made_into_places_of_bytes():
    numbers = all_numbers(3000)
    assert numbers.dtype == np.int32
    assert np.array_equal(take(Stored(), numbers).places, np.arange(3000) * 1_000_000)


class LikeAnArray:
    """As collections of Dask are, and arrays of xarray."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self.values[key]

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_what_only_looks_like_an_array_is_refused_before_anything_is_spent():
    X, y = table(300)
    search = DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0, 0.2]}, n_iter=3)
    message = "Found X of type LikeAnArray; an array of NumPy"
    refuses_to_fit(search, TypeError, message, LikeAnArray(X), y)
