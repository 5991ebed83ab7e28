"""Bad input to a subset search: what was found, what is needed, the remedy; before any data is
read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPSubsetSearchCV
from sklearn_dpsearch.privacy import PrivacyError, PureDP

from .subset_toys import Told, Watching
from .toys import NoisyCentroids, Untouchable, some_labels

SPACE = {"shrink": [0.1, 0.5], "epsilon": [1.0]}


def refused(error, match, estimator=None, space=None, **kwargs):
    """The error comes before any data is read."""
    estimator = NoisyCentroids() if estimator is None else estimator
    one = DPSubsetSearchCV(
        estimator, SPACE if space is None else space, **{"subset_fraction": 0.5, **kwargs}
    )
    with pytest.raises(error, match=match):
        one.fit(Untouchable(), some_labels())
    assert set(vars(one)) == set(one.get_params(deep=False))


def test_a_word_cannot_grow_in_proportion():
    space = {"solver": ["sgd"]}
    refused(ValueError, "'linear' and the value 'sgd', which is not a number", Watching(), space,
            extrapolate={"solver": "linear"})  # fmt: skip


@pytest.mark.parametrize("rule", ["linear", lambda value, n_tune, n_final: 5.0])
def test_what_the_guarantee_depends_on_cannot_be_extrapolated(rule):
    options = {"extrapolate": {"epsilon": rule}, "train_on": "all"}
    refused(PrivacyError, "promises something else.*must be kept", **options)


def test_a_rule_may_make_the_final_model_more_private():
    extrapolate = {"epsilon": lambda v, m, n: v / 2}
    one = DPSubsetSearchCV(NoisyCentroids(), SPACE, subset_fraction=0.5, extrapolate=extrapolate)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    assert one.fit(X, y).best_estimator_.epsilon == 0.5


@pytest.mark.parametrize(("estimator", "kwargs", "match"), [
    (
        None, {"subset_fraction": 0.1},
        "the subset is expected to hold 6 of them, fewer than 10. Give a larger",
    ),
    (
        None, {"subset_fraction": 0.9},
        "the rest is expected to hold 6 of them, fewer than 10. Give a smaller",
    ),
    (
        Watching(), {"space": {}, "subset_fraction": 0.3, "cv": 0.1},
        "the validating part of the rest .* hold 4.2",
    ),
])  # fmt: skip
def test_less_than_a_handful_of_records_is_refused(estimator, kwargs, match):
    refused(ValueError, match, estimator, **kwargs)


def test_a_share_of_tuning_needs_noise_that_can_be_set():
    match = "tuning_share=0.5, but the noise of candidates cannot be set.*tuning_share=1.0"
    declared = {"guarantee": PureDP(epsilon=1.0), "tuning_share": 0.5}
    refused(PrivacyError, match, LogisticRegression(), {}, **declared)
    match = "tuning_share=0.5 for the whole search while the candidates vary .'epsilon'"
    refused(PrivacyError, match, tuning_share=0.5)


@pytest.mark.parametrize(
    "estimator", [NoisyCentroids(), make_pipeline(FunctionTransformer(), NoisyCentroids())]
)
def test_a_warm_start_needs_an_estimator_that_has_it(estimator):
    match = "NoisyCentroids has no parameter warm_start.*warm_start=False"
    refused(ValueError, match, estimator, {}, warm_start=True)


def test_a_guarantee_that_depends_on_the_number_of_records_cannot_hold_for_a_random_part():
    def guarantee(estimator, n):
        return PureDP(epsilon=1.0 + 1.0 / (n or 1))

    one = DPSubsetSearchCV(NoisyCentroids(), {}, subset_fraction=0.5, guarantee=guarantee)
    options = {"X_public": np.zeros((4, 1)), "y_public": np.arange(4) % 2}
    with pytest.raises(PrivacyError, match="depends on the number of records"):
        one.fit(np.zeros((60, 1)), np.arange(60) % 2, **options)


class Counting(Told):
    """Pretends to keep its guarantee whatever it is told."""

    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=1.0 if self.told_n is None else 2.0, neighboring="zero_out")


def test_what_an_estimator_is_told_may_not_change_its_guarantee():
    refused(PrivacyError, "promises something else", Counting(neighboring="zero_out"), {})


def test_a_replaced_step_that_counts_its_records_makes_the_coins_known():
    """One family that counts is enough: there is no amplification, and a note says so."""
    model = make_pipeline(FunctionTransformer(), Told(neighboring="zero_out"))

    def cost(*steps):
        return DPSubsetSearchCV(model, {"told": list(steps)}, subset_fraction=0.5).privacy_cost(200)

    told, watching = Told(neighboring="zero_out"), Watching(neighboring="zero_out")
    alone, mixed, counted = cost(told), cost(told, watching), cost(watching)
    assert alone.epsilon < mixed.epsilon == counted.epsilon
    notes = [" ".join(cost.assumptions) for cost in (alone, mixed, counted)]
    assert ["without amplification" in note for note in notes] == [False, True, True]
