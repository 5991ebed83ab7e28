"""What a user may pass as ``scoring`` for private records."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score, get_scorer_names, make_scorer, mean_absolute_error
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch.privacy import UnknownSensitivityError
from sklearn_dpsearch.scoring import PrivateScorer, get_private_scorer, private_scorer
from sklearn_dpsearch.scoring._named_scorers import SCORERS


def test_no_name_is_an_error_with_a_remedy_for_regressors():
    match = r"LinearRegression.*neg_mean_absolute_error.*X_public"
    with pytest.raises(UnknownSensitivityError, match=match):
        get_private_scorer(None, LinearRegression())
    with pytest.raises(UnknownSensitivityError, match="public bounds"):
        get_private_scorer(None, KMeans())


@pytest.mark.parametrize(("name", "fact"), [
    ("balanced_accuracy", "classes"), ("f1", "pos_label"), ("r2", "y_range"),
    ("precision", "pos_label"), ("neg_mean_squared_error", "clip"),
])  # fmt: skip
def test_names_that_need_a_public_fact_say_which(name, fact):
    match = rf"until {fact} is stated.*private_scorer\('{name}', {fact}="
    with pytest.raises(UnknownSensitivityError, match=match):
        get_private_scorer(name, None)


OTHERS = sorted(set(get_scorer_names()) - set(SCORERS))


@pytest.mark.parametrize("scoring", [
    *OTHERS, "nonsense", make_scorer(f1_score), mean_absolute_error, ["accuracy"],
    {"a": "accuracy"},
])  # fmt: skip
def test_what_cannot_be_made_private_is_refused_with_the_remedies(scoring):
    remedies = r"no usable sensitivity.*make_private_scorer.*X_public"
    with pytest.raises(UnknownSensitivityError, match=remedies) as caught:
        get_private_scorer(scoring, LogisticRegression())
    assert not isinstance(scoring, str) or scoring in str(caught.value)


@pytest.mark.parametrize("name", SCORERS)
def test_the_example_in_the_message_builds_a_scorer(name):
    build, example = SCORERS[name]
    assert isinstance(eval(f"private_scorer({name!r}, {example})"), PrivateScorer)
    expected = any(one.default is one.empty for one in inspect.signature(build).parameters.values())
    assert bool(example) == expected


@pytest.mark.parametrize(("name", "options", "match"), [
    ("neg_mean_squared_error", {"clip": -10}, "Expected 0 < clip < inf, got clip=-10"),
    ("neg_mean_absolute_error", {"clip": "10"}, "clip='10'.*a number is needed"),
    ("neg_log_loss", {"clip": np.nan}, "Expected 0 < clip < inf"),
    ("top_k_accuracy", {"k": np.nan}, "Expected an integer k >= 1, got k=nan"),
    ("roc_auc", {"pos_label": 1, "n_bins": np.nan}, "Expected an integer n_bins >= 2"),
])  # fmt: skip
def test_options_that_make_no_sense_are_named(name, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        private_scorer(name, **options)


class Stated(BaseEstimator):
    """Was told public facts."""

    def __init__(self, bounds_y=None, classes=None):
        self.bounds_y = bounds_y
        self.classes = classes


class Regressor(RegressorMixin, Stated):
    """Predicts numbers."""


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_a_regressor_that_states_the_bounds_of_y_needs_no_others_for_r2(scoring):
    expected = private_scorer("r2", y_range=(0.0, 5.0))
    stated = Regressor(bounds_y=(0, 5))
    assert get_private_scorer(scoring, stated) == expected
    nested = make_pipeline("passthrough", make_pipeline("passthrough", stated))
    assert get_private_scorer(scoring, nested) == expected
    given = private_scorer("r2", y_range=(-1.0, 1.0))
    assert get_private_scorer(given, stated) is given


@pytest.mark.parametrize("bounds", [None, ([0, 0], [1, 1]), (0,), "ab", (1, 0)])
@pytest.mark.parametrize("scoring", [None, "r2"])
def test_a_regressor_without_two_numbers_as_bounds_has_no_sensitivity(scoring, bounds):
    with pytest.raises(UnknownSensitivityError, match="y_range"):
        get_private_scorer(scoring, Regressor(bounds_y=bounds))


@pytest.mark.parametrize(("scoring", "facts", "expected"), [
    ("neg_mean_absolute_error", {"bounds_y": (-1, 4)}, {"clip": 1.25}),
    ("neg_mean_squared_error", {"bounds_y": [0, 2]}, {"clip": 1.0}),
    ("balanced_accuracy", {"classes": ["yes", "no"]}, {"classes": ["no", "yes"]}),
    ("f1", {"classes": ["yes", "no"]}, {"pos_label": "yes"}),
    ("f1", {"classes": np.array([0, 1])}, {"pos_label": 1}),
    ("recall", {"classes": [2, 1, 0]}, {"pos_label": 1}),
    ("roc_auc", {"classes": [False, True]}, {"pos_label": True}),
    ("average_precision", {"classes": pd.Index(["a", "b"])}, {"pos_label": "b"}),
    ("neg_log_loss", {"classes": ["a", "b"], "bounds_y": (0, 1)}, {}),
])  # fmt: skip
def test_a_name_takes_the_public_facts_that_the_estimator_was_told(scoring, facts, expected):
    assert get_private_scorer(scoring, Stated(**facts)) == private_scorer(scoring, **expected)


@pytest.mark.parametrize("classes", [None, ["a", "b", "c"], ["a", 1j], "ab", 3])
def test_nobody_guesses_which_of_several_classes_is_to_be_found(classes):
    with pytest.raises(UnknownSensitivityError, match="pos_label"):
        get_private_scorer("f1", Stated(classes=classes))
