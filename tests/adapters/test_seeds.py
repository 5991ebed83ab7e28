"""No released model keeps the randomness that it was fitted with."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import check_random_state

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters._seeds import fitted_parts, seed_names
from sklearn_dpsearch.privacy import LeakingEstimatorError, PureDP

from ..search.toys import NoisyCentroids, two_blobs
from .toys import NoisyShift

X, y = two_blobs(120)


def test_fitted_copies_inside_a_model_keep_no_generator():
    """A column transformer fits copies of its parts, of which ``get_params`` knows nothing."""
    model = make_pipeline(ColumnTransformer([("shift", NoisyShift(), [0, 1])]), NoisyCentroids())
    found = DPRandomSearchCV(model, {}, n_iter=2).fit(X, y).best_estimator_
    parts = fitted_parts(found)
    copies = [part for part in parts if isinstance(part, NoisyShift) and hasattr(part, "mean_")]
    assert copies
    assert all(part.random_state is None for part in copies)
    assert b"MT19937" not in pickle.dumps(found)


class KeepsItsGenerator(NoisyCentroids):
    """As scikit-learn's own models do:
    ``self._random_state = check_random_state(self.random_state)``."""

    def fit(self, X, y):
        super().fit(X, y)
        self._random_state = check_random_state(self.random_state)
        self._drawn_by = {"centroids": [self._random_state, np.random.default_rng(0)]}
        self._spawned, self._seeds = (np.random.SeedSequence(1),), [1, 2]
        return self


def test_attributes_of_a_fitted_model_keep_no_generator():
    found = DPRandomSearchCV(KeepsItsGenerator(), {}, n_iter=2).fit(X, y).best_estimator_
    assert found._random_state is found._drawn_by is found._spawned is found._seeds is None
    assert found.centroids_ is not None
    written = pickle.dumps(found)
    assert not [kind for kind in (b"MT19937", b"PCG64", b"SeedSequence") if kind in written]


@pytest.mark.parametrize("kind", [BaggingClassifier, AdaBoostClassifier])
def test_ensembles_that_seed_private_models_with_few_bits_are_refused(kind):
    pytest.importorskip("diffprivlib")
    from diffprivlib.models import DecisionTreeClassifier

    tree = DecisionTreeClassifier(bounds=(0, 1), classes=[0, 1], epsilon=0.2)
    declared = PureDP(epsilon=2.0, neighboring="replace_one")
    search = DPRandomSearchCV(kind(tree), {"n_estimators": [2]}, n_iter=2, guarantee=declared)
    match = r"seeds each DecisionTreeClassifier .* below 2\*\*31"
    with pytest.raises(LeakingEstimatorError, match=match):
        search.fit(X, y)
    with pytest.raises(LeakingEstimatorError, match=r"Classifier \(bag\) seeds each"):
        search.set_params(estimator=Pipeline([("bag", kind(tree))]), param_distributions={}).fit(
            X, y
        )
    assert not hasattr(search, "privacy_spent_")


def test_seeds_are_found_at_any_depth():
    model = make_pipeline(ColumnTransformer([("shift", NoisyShift(), [0, 1])]), NoisyCentroids())
    expected = ["columntransformer__shift__random_state", "noisycentroids__random_state"]
    assert seed_names(model) == expected
