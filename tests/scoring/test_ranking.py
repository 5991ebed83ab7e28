"""ROC AUC and average precision from histograms: the same as scikit-learn's of binned scores, and
near those of all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from sklearn_dpsearch.scoring import private_scorer
from sklearn_dpsearch.scoring._counts import RankingScorer, average_precision, roc_auc

EXACT = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
FROM_COUNTS = {"roc_auc": roc_auc, "average_precision": average_precision}
counts = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(counts=counts)
def test_metrics_of_counts_are_those_of_records_with_one_score_for_each_bin(kind, counts):
    positive, negative = np.array(counts, dtype=float).T
    if not positive.any() or not negative.any():
        return
    scores = np.concatenate(
        [np.repeat(np.arange(len(counts)), cells.astype(int)) for cells in (positive, negative)]
    )
    labels = np.repeat([1, 0], [int(positive.sum()), int(negative.sum())])
    assert FROM_COUNTS[kind](positive, negative) == pytest.approx(EXACT[kind](labels, scores))


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(counts=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=6))
def test_whatever_noise_makes_of_counts_the_metric_is_a_share(kind, counts):
    positive, negative = np.array(counts, dtype=float).T
    assert 0.0 <= FROM_COUNTS[kind](positive, negative) <= 1.0


@pytest.fixture(scope="module")
def classified():
    X, y = make_classification(6000, weights=[0.8], flip_y=0.1, random_state=0)
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.mark.parametrize("kind", EXACT)
def test_noise_moves_the_metric_both_ways(classified, kind):
    """Cut at 0, noise would add records to every empty bin, and push the metric down."""
    X, y, X_test, y_test = classified
    model, scorer = LogisticRegression().fit(X, y), private_scorer(kind, pos_label=1)
    counts = np.array(scorer.statistic(model, X_test, y_test, "zero_out"))
    rng = np.random.default_rng(0)
    noisy = (counts + np.rint(rng.normal(0, 20, (400, len(counts))))).astype(int).tolist()
    found = [scorer.score(one, len(y_test), "zero_out") for one in noisy]
    expected = pytest.approx(scorer(model, X_test, y_test), abs=4 * np.std(found) / 20)
    assert np.mean(found) == expected


def test_certain_probabilities_have_the_last_bins():
    class Certain:
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 0], X[:, 0]])

    scorer = private_scorer("roc_auc", pos_label="b", n_bins=4)
    found = scorer.statistic(
        Certain(), np.array([[0.0], [1.0], [0.5]]), ["b", "b", "a"], "zero_out"
    )
    assert found == [1, 0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("bins", [1, 2.5, 10**6])
def test_a_number_of_bins_that_makes_no_sense_is_refused(bins):
    with pytest.raises(ValueError, match="n_bins"):
        private_scorer("roc_auc", pos_label=1, n_bins=bins)


class Certain(LogisticRegression):
    """Probabilities of 0 and 1, exactly, as a net has in single precision."""

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def test_the_plain_metric_takes_probabilities_of_zero_and_one():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0], [0.4]]), np.array([0, 1, 1, 1, 0])
    scorer = RankingScorer(kind="roc_auc", pos_label=1)
    assert scorer.plain(Certain().fit(X, y), X, y) == roc_auc_score(y, X[:, 0])
