"""The standard error of a released score: as large as the scores really vary, from noisy integers
alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sklearn_dpsearch.scoring import PrivateScorer, Sensitivity, private_scorer
from sklearn_dpsearch.scoring._base import standard_error

#: Right and wrong predictions, and the integers of each scorer for them, of 1,000 records.
CASES = {
    "accuracy, n known": (private_scorer("accuracy"), [800 - 200], 1000, "zero_out"),
    "accuracy, one changed": (private_scorer("accuracy"), [800], 1000, "replace_one"),
    "balanced accuracy": (
        private_scorer("balanced_accuracy", classes=[0, 1]), [500, 100, 300, 100], 1000, "zero_out",
    ),
    "f1": (private_scorer("f1", pos_label=1), [400, 80, 120], 1000, "zero_out"),
    "r2": (
        private_scorer("r2", y_range=(-1, 1)), [50_000 - 500_000, 10_000, 300_000 - 500_000], 1000,
        "zero_out",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_scores_vary_as_much_as_their_standard_error_says(case):
    scorer, statistic, n, relation = case
    std = 10.0 * scorer.sensitivity(relation).l1
    rng = np.random.default_rng(0)
    noisy = np.rint(statistic + std * rng.normal(size=(4000, len(statistic)))).astype(int).tolist()
    scores = [scorer.score(one, n, relation) for one in noisy]
    stated = standard_error(scorer, statistic, n, relation, noise_std=std)
    assert np.std(scores) == pytest.approx(stated, rel=0.05)


def test_a_number_that_is_only_expected_adds_its_own_error():
    """1,000 records are expected and 800 of 1,000 are right: the drawn number is off by 30."""
    scorer, rng = private_scorer("accuracy"), np.random.default_rng(1)
    drawn = rng.normal(1000, 30, 4000)
    scores = [scorer.score([round(0.6 * n)], 1000, "zero_out") for n in drawn]
    stated = standard_error(scorer, [600], 1000, "zero_out", noise_std=1e-9, size_std=30.0)
    assert np.std(scores) == pytest.approx(stated, rel=0.05)
    together = standard_error(scorer, [600], 1000, "zero_out", noise_std=20.0, size_std=30.0)
    assert together == pytest.approx(math.hypot(stated, 20 / 2000), rel=1e-6)


def test_a_scorer_that_refuses_its_neighbours_has_no_standard_error():
    class Choosy(PrivateScorer):
        def statistic(self, estimator, X, y, neighboring):
            return [7]

        def sensitivity(self, neighboring):
            return Sensitivity(1, 1)

        def score(self, noisy, n_scored, neighboring):
            if noisy != [7]:
                raise ValueError
            return 1.0

        def __call__(self, estimator, X, y):
            return 1.0

    assert math.isnan(standard_error(Choosy(), [7], 10, "zero_out", noise_std=1.0))
