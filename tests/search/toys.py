"""Small private estimators whose guarantees are exact, for tests and audits."""

from __future__ import annotations

import logging
import secrets
import sys
import time
import warnings
from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

import tests
from sklearn_dpsearch import (
    Doubling,
    DPGridSearchCV,
    DPRandomSearchCV,
    DPSubsetSearchCV,
    DPThresholdSearchCV,
)
from sklearn_dpsearch._process import steps_now
from sklearn_dpsearch.data import _columns as columns
from sklearn_dpsearch.privacy import Geometric, PureDP
from sklearn_dpsearch.search._checkpoint_folder import LOCK, README, RELEASE, STATE
from sklearn_dpsearch.search._execution.randomness import Randomness


class RandomizedResponse(ClassifierMixin, BaseEstimator):
    """Tells with odds e^epsilon whether any record has a positive first feature: exactly
    epsilon-DP, any relation."""

    def __init__(self, epsilon=1.0, label=0, neighboring="replace_one", random_state=None):
        self.epsilon = epsilon
        self.label = label
        self.neighboring = neighboring
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=self.epsilon, neighboring=self.neighboring)

    def fit(self, X, y=None):
        X = np.asarray(X)
        self.classes_, self.n_features_in_ = np.array([0, 1]), X.shape[1]
        truth = int(np.any(X[:, 0] > 0))
        honest = check_random_state(self.random_state).uniform() < 1 / (1 + np.exp(-self.epsilon))
        self.answer_ = truth if honest else 1 - truth
        return self

    def predict(self, X):
        return np.full(len(X), self.answer_)


class NoisyCentroids(ClassifierMixin, BaseEstimator):
    """Nearest-centroid classifier on records clipped to [-1, 1] per feature; declared, not audited,
    as epsilon-DP."""

    def __init__(self, epsilon=1.0, shrink=0.0, random_state=None):
        self.epsilon = epsilon
        self.shrink = shrink
        self.random_state = random_state

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=self.epsilon, neighboring="replace_one")

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise ValueError(f"secret: only class {self.classes_[0]}")
        noise = check_random_state(self.random_state)
        scale = 4 * X.shape[1] / (self.epsilon * max(len(X), 1))
        clipped = np.clip(X, -1, 1)
        self.centroids_ = np.array([clipped[y == one].mean(axis=0) for one in self.classes_])
        self.centroids_ = (1 - self.shrink) * (
            self.centroids_ + noise.laplace(scale=scale, size=self.centroids_.shape)
        )
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        distances = ((np.clip(X, -1, 1)[:, None] - self.centroids_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


def two_blobs(n=200, seed=0):
    """A public toy problem: X of shape (n, 2), y in {0, 1}."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return np.clip(rng.normal(0.5 * (2 * y - 1)[:, None], 0.4, (n, 2)), -1, 1), y


IN_DOUBLING = [field.name for field in fields(Doubling)]


def doubling(estimator, space, **given):
    """A search in which the threshold doubles; what belongs to ``Doubling`` is put there."""
    inside = {name: given.pop(name) for name in IN_DOUBLING if name in given}
    return DPThresholdSearchCV(estimator, space, threshold=Doubling(**inside), **given)


#: Kind of search: how it is made, and the parameters without which it has no plan.
SEARCHES = {
    "random": (DPRandomSearchCV, {"n_iter": 3}),
    "subset": (DPSubsetSearchCV, {"n_iter": 3, "subset_fraction": 0.5}),
    "grid": (DPGridSearchCV, {"selection_epsilon": 1.0, "n_parts": 3}),
    "threshold": (DPThresholdSearchCV, {"n_iter": 3, "threshold": 0.5}),
    "doubling": (doubling, {"round_epsilon": 1.0, "n_parts": 3, "max_rounds": 3}),
}


def search_of(kind, estimator, space, **given):
    """A search of this kind that has a plan."""
    make, needed = SEARCHES[kind]
    return make(estimator, space, **{**needed, **given})


#: All that a fit may leave on a search.
ALLOWED = {
    "best_params_", "best_score_", "best_score_std_", "best_index_", "best_estimator_",
    "cv_results_", "privacy_spent_", "scorer_", "n_splits_",
}  # fmt: skip


class Talkative(NoisyCentroids):
    """Leaves a token of its own on itself and everywhere it can."""

    def fit(self, X, y):
        token = f"token-{secrets.token_hex(8)}"
        print(token)
        print(token, file=sys.stderr)
        warnings.warn(token, stacklevel=2)
        logging.getLogger("talkative").error(token)
        self.token_ = token
        return super().fit(X, y)


class Slow(NoisyCentroids):
    """Takes so long that a worker can be lost meanwhile, and that workers have to write what they
    hold."""

    def fit(self, X, y):
        time.sleep(0.3)
        return super().fit(X, y)


class Remembering(NoisyCentroids):
    """Remembers the records that it was given, and how many of 1000 steps it should have taken."""

    seen: list = []

    def __init__(self, epsilon=1.0, shrink=0.0, random_state=None, bounds=None, classes=None):
        super().__init__(epsilon, shrink, random_state)
        self.bounds = bounds
        self.classes = classes

    def fit(self, X, y):
        Remembering.seen.append((X, np.asarray(y), steps_now(1000)))
        return super().fit(X, y)


class Untouchable:
    """Data that must not be read: a column whose type is known."""

    dtype = np.dtype(float)

    def __init__(self, n=60, features=2):
        self.shape = (n, features)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        raise AssertionError("data were read")

    __array__ = __getitem__


def some_labels(n=60):
    """Labels for data that must not be read."""
    return np.arange(n) % 2


def refuses_to_fit(search, error, match, *data, **given):
    """Assert that a fit is an error, and that nothing was spent."""
    with pytest.raises(error, match=match) as caught:
        search.fit(*data, **given)
    assert not hasattr(search, "privacy_spent_")
    return caught.value


tests.Untouchable = Untouchable
columns.CONTAINERS["tests"] = ("Untouchable",)
columns.READERS["tests"] = lambda column, exact: columns.Given(column, "f")


class Bounded(NoisyCentroids):
    """Declares bounds and classes."""

    def __init__(self, epsilon=1.0, shrink=0.0, bounds=(-1, 1), classes=None):
        super().__init__(epsilon, shrink)
        self.bounds = bounds
        self.classes = classes


def seed_of_runs(runs):
    """A seed with which a search with n_iter=4 has this number of runs."""
    return next(seed for seed in range(10**6) if Geometric(4).sample(Randomness(seed).bits) == runs)


def fit_of_runs(estimator, runs, **more):
    """A search that was fitted with a number of runs."""
    options = {"n_iter": 4, "random_state": seed_of_runs(runs), **more}
    return DPRandomSearchCV(estimator, {}, **options).fit(*two_blobs(60))


def soon(reached, seconds=20):
    """Whether something is so before the time is over."""
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.02)
    return reached()


def holds_a_release_alone(folder):
    """Nothing is left from which noise follows, and no loser."""
    found = {path.name for path in folder.iterdir()} - {LOCK}
    everything = b"".join(path.read_bytes() for path in folder.iterdir())
    return found == {README, STATE, RELEASE} and b"entropy" not in everything
