"""A search whose ε is infinite is refused before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import DPSGD, ApproxDP, BudgetUnreachableError, NonPrivate

from .toys import SEARCHES, search_of

DECLARED = ApproxDP(epsilon=2.0, delta=1e-5)


def made(kind="random", estimator=None, **given):
    return search_of(
        kind, estimator or LogisticRegression(), {"C": [1.0, 2.0]}, **{"guarantee": DECLARED, "delta": 1e-7, **given}
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
    with pytest.raises(BudgetUnreachableError, match=r"declare the curve, DPSGD\(noise_multiplier"):
        search.fit(np.zeros((1000, 2)), np.arange(1000) % 2)
    assert not hasattr(search, "privacy_spent_")


def test_nothing_promised_is_said():
    with pytest.raises(BudgetUnreachableError, match="needs a guarantee of its own"):
        made(guarantee=NonPrivate(neighboring="zero_out"), score_noise=DECLARED).privacy_cost(1000)


def test_the_curve_of_the_same_training_gives_what_the_message_says():
    """The training is (2, 1e-5)-private, and twenty runs of it have the stated ε."""
    curve = DPSGD(noise_multiplier=1.38, sample_rate=1 / 16, steps=48)
    assert curve.epsilon_at(1e-5) <= 2.0
    found = DPRandomSearchCV(LogisticRegression(), {"C": [1.0]}, n_iter=20, delta=1e-4, guarantee=curve)
    assert 2.30 < found.privacy_cost(1000).epsilon <= 2.36
