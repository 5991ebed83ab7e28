"""A search whose ε is infinite is refused before anything is trained, with numbers that would give
a finite one."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import DPSGD, ApproxDP, BudgetUnreachableError, Poisson

from .toys import SEARCHES, refuses_to_fit, search_of

DECLARED = ApproxDP(epsilon=2.0, delta=1e-5)


def made(kind="random", estimator=None, **given):
    return search_of(
        kind,
        estimator or LogisticRegression(),
        {"C": [1.0, 2.0]},
        **{"guarantee": DECLARED, "delta": 1e-7, **given},
    )


class Untrained(LogisticRegression):
    """A model that must not be trained."""

    def fit(self, X, y):
        raise AssertionError("trained")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in SEARCHES if kind != "doubling"])
def test_an_infinite_epsilon_is_an_error_of_every_search_before_anything_is_trained(kind):
    search = made(kind, estimator=Untrained())
    with pytest.raises(BudgetUnreachableError, match="epsilon=infinity at delta=1e-07"):
        search.privacy_cost(1000)
    refuses_to_fit(
        search, BudgetUnreachableError, r"declare the curve, DPSGD\(noise_multiplier",
        np.zeros((1000, 2)), np.arange(1000) % 2,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n_iter", [20, Poisson(20)])
def test_the_suggested_numbers_are_the_last_and_the_first_that_do(n_iter):
    search = made(n_iter=n_iter, delta=1e-4)
    with pytest.raises(BudgetUnreachableError) as caught:
        search.privacy_cost(1000)
    mean, delta = re.search(
        r"is n_iter=(\d+)\..*is about delta=(\S+)\. An", str(caught.value)
    ).groups()
    assert math.isfinite(made(n_iter=int(mean), delta=1e-4).privacy_cost(1000).epsilon)
    assert math.isfinite(search.privacy_cost(1000, delta=float(delta)).epsilon)
    for more in (
        {"n_iter": int(mean) + 1, "delta": 1e-4},
        {"n_iter": n_iter, "delta": 0.9 * float(delta)},
    ):
        with pytest.raises(BudgetUnreachableError):
            made(**more).privacy_cost(1000)


@pytest.mark.slow
def test_no_delta_of_one_in_n_is_suggested():
    guarantee = ApproxDP(epsilon=2.0, delta=1e-5, neighboring="zero_out")
    with pytest.raises(BudgetUnreachableError) as caught:
        made(n_iter=20, delta=1e-4, guarantee=guarantee).privacy_cost(9000)
    assert "n_iter=" in str(caught.value)
    assert "The smallest delta" not in str(caught.value)


def test_the_curve_of_the_same_training_gives_what_the_message_says():
    """The training is (2, 1e-5)-private, and twenty runs of it have the stated ε."""
    curve = DPSGD(noise_multiplier=1.38, sample_rate=1 / 16, steps=48)
    assert curve.epsilon_at(1e-5) <= 2.0
    options = {"n_iter": 20, "delta": 1e-4, "guarantee": curve}
    found = DPRandomSearchCV(LogisticRegression(), {"C": [1.0]}, **options)
    assert 2.30 < found.privacy_cost(1000).epsilon <= 2.36
