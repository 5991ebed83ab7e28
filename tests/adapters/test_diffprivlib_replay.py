"""Models of diffprivlib, recorded and replayed: the stated ε against the ε that their exact values
really use.

A first fit notes what every mechanism was given and what it returned. A second fit, on records of
which one is replaced, gets the same noisy values back. So all that is adaptive stays as it was, and
what a mechanism is given differs through the one record alone. The differences, over the scales of
the noise, add up to the loss (the method of Cebere et al. 2026).
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("diffprivlib")
from diffprivlib import mechanisms

from sklearn_dpsearch.adapters import training_run

from .diffprivlib_toys import bayes, linear, scaler, tree

#: The mechanisms of the models here.
KINDS = (
    mechanisms.Laplace, mechanisms.LaplaceFolded, mechanisms.LaplaceTruncated,
    mechanisms.LaplaceBoundedDomain, mechanisms.GeometricTruncated, mechanisms.PermuteAndFlip,
)  # fmt: skip


class Replay:
    """Notes the calls of a fit; in later fits the mechanisms return what they returned in the
    first."""

    def __init__(self, monkeypatch):
        self.first, self.calls, self.depth = [], [], 0
        for kind in KINDS:
            monkeypatch.setattr(kind, "randomise", self.noted(kind.__dict__["randomise"]))

    def noted(self, original):
        def randomise(mechanism, value=None):
            if self.depth:  # a mechanism may be built on another
                return original(mechanism, value)
            self.depth += 1
            try:
                given = np.array(mechanism.utility if value is None else value, float)
                out = self.first[len(self.calls)][2] if self.first else original(mechanism, value)
                self.calls.append((described(mechanism), given, out))
                return out
            finally:
                self.depth -= 1

        return randomise

    def loss(self, fit, records, changed):
        """Loss between two data sets by the noisy values of one fit on the first."""
        self.first, self.calls = [], []
        fit(*records)
        self.first, self.calls = self.calls, []
        fit(*changed)
        # what sets the noise is public
        assert [call[0] for call in self.calls] == [call[0] for call in self.first]
        pairs = zip(self.first, self.calls)
        return sum(loss_of(kind, one, other) for (kind, one, _), (_, other, _) in pairs)


def described(mechanism):
    return type(mechanism), float(mechanism.epsilon), float(mechanism.sensitivity)


def loss_of(kind, one, other):
    """Largest log-ratio of one noisy value."""
    mechanism, epsilon, sensitivity = kind
    moved = float(np.abs(one - other).sum()) / sensitivity
    if mechanism is mechanisms.LaplaceBoundedDomain:
        assert moved <= 1 + 1e-9
        return epsilon * (moved > 0)
    return epsilon * moved


def table(n, lower=-1.0, upper=1.0, d=2):
    X = np.random.default_rng(5).uniform(lower, upper, (n, d))
    return X, (X[:, 0] > (lower + upper) / 2).astype(int)


def neighbours(X, y, values, labels):
    """Every record of a few replaced by extreme ones."""
    for row in (0, len(X) // 2, len(X) - 1):
        for value in values:
            for label in labels:
                changed, labelled = X.copy(), y.copy()
                changed[row], labelled[row] = value, label
                yield changed, labelled


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "bounds", "numbers", "reached"), [
    (scaler(epsilon=1.0, random_state=0), (-1.0, 1.0), False, 0.7),
    (bayes(epsilon=1.0, random_state=0), (-1.0, 1.0), False, 0.7),
    (bayes(epsilon=1.0, bounds=(0.0, 4.0), random_state=0), (0.0, 4.0), False, 0.7),
    (bayes(epsilon=1.0, bounds=(2.0, 3.0), random_state=0), (2.0, 3.0), False, 0.7),
    (linear(epsilon=1.0, random_state=0), (-1.0, 1.0), True, 0.4),
    (tree(epsilon=1.0, max_depth=2, random_state=0), (0.0, 1.0), False, 0.99),
], ids=[
    "scaler", "bayes", "bayes, bounds from 0", "bayes, bounds far from 0", "linear", "tree",
])  # fmt: skip
def test_one_record_uses_at_most_the_stated_epsilon(monkeypatch, model, bounds, numbers, reached):
    X, y = table(60, *bounds)
    y = X[:, 1] if numbers else y
    stated = training_run(model, len(X)).guarantee.epsilon_at(0.0)
    replay, largest = Replay(monkeypatch), 0.0
    lower, upper = bounds
    values = [np.full(2, lower), np.full(2, upper), np.array([lower, upper])]
    for changed in neighbours(X, y, values, (lower, upper) if numbers else (0, 1)):
        from_one = replay.loss(model.fit, (X, y), changed)
        from_other = replay.loss(model.fit, changed, (X, y))
        assert max(from_one, from_other) <= stated * (1 + 1e-9)
        largest = max(largest, from_one, from_other)
    assert largest > reached * stated  # the replay sees the record, and the statement is no guess


@pytest.mark.filterwarnings("ignore")
def test_a_model_whose_noise_is_too_small_for_its_data_is_found_out(monkeypatch):
    """Records outside of the bounds, which linear regression does not clip."""
    X, _ = table(60)
    far = X.copy()
    far[0] = 40.0
    replay = Replay(monkeypatch)
    assert replay.loss(linear(epsilon=1.0, random_state=0).fit, (X, X[:, 1]), (far, X[:, 1])) > 10.0
