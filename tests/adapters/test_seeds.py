"""No released model keeps the randomness that it was fitted with."""

from __future__ import annotations

import pickle

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.adapters.fitted_parts import fitted_parts
from sklearn_dpsearch.adapters.seeds import seed_names

from ..search.toys import NoisyCentroids, two_blobs
from .toys import NoisyShift

X, y = two_blobs(120)


def test_fitted_copies_inside_a_model_keep_no_generator():
    """A column transformer fits copies of its parts, of which ``get_params`` knows nothing."""
    model = make_pipeline(ColumnTransformer([("shift", NoisyShift(), [0, 1])]), NoisyCentroids())
    found = DPRandomSearchCV(model, {}, n_iter=2).fit(X, y).best_estimator_
    copies = [part for part in fitted_parts(found) if isinstance(part, NoisyShift) and hasattr(part, "mean_")]
    assert copies
    assert all(part.random_state is None for part in copies)
    assert b"MT19937" not in pickle.dumps(found)


def test_seeds_are_found_at_any_depth():
    model = make_pipeline(ColumnTransformer([("shift", NoisyShift(), [0, 1])]), NoisyCentroids())
    assert seed_names(model) == ["columntransformer__shift__random_state", "noisycentroids__random_state"]
