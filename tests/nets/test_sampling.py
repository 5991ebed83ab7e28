"""Poisson batches are exact: sizes, inclusion, gaps, independence; rows tell of no other record."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from sklearn_dpsearch.nets import DPNeuralNetClassifier
from sklearn_dpsearch.nets._randomness import Secrets
from sklearn_dpsearch.nets._sampling import PoissonBatches, padded_batches, rows_per_batch

STEPS = 40_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 4_000
#: No test here fails an exact sampler more often than once in a million runs; the seeds are fixed
#: all the same.
LEVEL = 1e-6


def batches(rate, n, seed=0):
    own = Secrets(seed)
    return PoissonBatches(own.coins, own.rows, rate, n)


def drawn(rate, n, steps=STEPS, seed=0):
    """Whether each record is in each Poisson sample, before large ones are drawn again, shape
    (steps, n)."""
    step, record = batches(rate, n, seed)._draw_samples(steps)
    found = np.zeros((steps, n), dtype=bool)
    found[step, record] = True
    assert found.sum() == len(step)  # no record twice in a batch
    return found


@pytest.mark.parametrize(
    ("rate", "n"), [(0.01, 500), (0.05, 100), (0.3, 50), (0.5, 40), (0.95, 30)]
)
def test_batch_sizes_are_binomial(rate, n):
    sizes = drawn(rate, n).sum(axis=1)
    expected = stats.binom.pmf(np.arange(n + 1), n, rate) * STEPS
    likely = expected > 5
    seen = np.bincount(sizes, minlength=n + 1)
    grouped = np.append(seen[likely], seen[~likely].sum())
    wanted = np.append(expected[likely], expected[~likely].sum())
    assert stats.chisquare(grouped[wanted > 0], wanted[wanted > 0]).pvalue > LEVEL
    assert abs(sizes.mean() - n * rate) < 5 * np.sqrt(n * rate * (1 - rate) / STEPS)
    assert sizes.var() == pytest.approx(n * rate * (1 - rate), rel=0.15)


@pytest.mark.parametrize("rate", [0.02, 0.4, 0.9])
def test_every_record_is_included_equally_often(rate):
    counts = drawn(rate, 80).sum(axis=0)
    statistic = ((counts - STEPS * rate) ** 2 / (STEPS * rate * (1 - rate))).sum()
    assert LEVEL < stats.chi2.sf(statistic, 80) < 1 - LEVEL


def test_records_and_steps_are_included_independently_of_each_other():
    found = drawn(0.3, 20).astype(float) - 0.3
    between_records = found.T @ found / (0.21 * STEPS)
    np.fill_diagonal(between_records, 0.0)
    assert np.abs(between_records).max() < 5.5 / np.sqrt(STEPS)
    assert np.abs((found[1:] * found[:-1]).mean(axis=0) / 0.21).max() < 5.5 / np.sqrt(STEPS)


def test_gaps_are_geometric_at_a_rate_of_one_in_ten_million():
    rate, n = 1e-7, 1_000_003
    step, record = batches(rate, n)._draw_samples(200_000)
    positions = step * n + record
    gaps = np.diff(positions)
    assert len(positions) == pytest.approx(rate * n * 200_000, abs=5 * np.sqrt(rate * n * 200_000))
    bins = stats.geom.cdf(gaps, rate)
    assert stats.kstest(bins, "uniform").pvalue > LEVEL
    # uniforms in single precision would be off by 19 %
    assert gaps.mean() == pytest.approx(1 / rate, rel=0.05)


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_no_record_at_all_makes_empty_batches(rate):
    assert batches(rate, 0).draw(50).shape == (50, 0)
    assert (padded_batches([batches(rate, 0)], 50, 0, 3) == np.zeros((50, 1, 3))).all()


@pytest.mark.parametrize("rate", [1e-6, 0.003, 0.2, 0.9, 1.0])
def test_how_many_steps_are_drawn_at_once_changes_nothing(rate):
    source = batches(rate, 100)
    parts = [source.draw(number) for number in [1, 1, 7, 0, 91, 200, 300]]
    np.testing.assert_array_equal(np.concatenate(parts), batches(rate, 100).draw(600))


@pytest.mark.parametrize(
    ("rate", "n"), [(0.01, 500), (0.3, 50), (0.5, 3), (0.2, 2), (0.95, 30), (1e-6, 40)]
)
def test_batches_are_poisson_samples_that_fit_into_the_rows(rate, n):
    """Each sample of at most so many records as often as among all samples, and no other."""
    found = batches(rate, n).draw(STEPS)
    rows = rows_per_batch(rate, n)
    assert found.shape == (STEPS, rows)
    sizes = stats.binom(n, rate)
    seen = np.bincount((found < n).sum(axis=1), minlength=rows + 1)
    expected = sizes.pmf(np.arange(rows + 1)) / sizes.cdf(rows) * STEPS
    likely = expected > 5
    grouped = np.append(seen[likely], seen[~likely].sum())
    wanted = np.append(expected[likely], expected[~likely].sum())
    assert stats.chisquare(grouped[wanted > 0], wanted[wanted > 0]).pvalue > LEVEL
    for batch in found[:200]:
        there = batch[batch < n]
        assert len(set(there)) == len(there)


@pytest.mark.parametrize(
    ("rate", "n"), [(1e-9, 10), (0.5, 1), (0.1, 2), (0.5, 10), (0.02, 10**6), (1.0, 7)]
)
def test_few_batches_are_drawn_again(rate, n):
    """By Cantelli's inequality at most one in five."""
    assert stats.binom.sf(rows_per_batch(rate, n), n, rate) < 0.2


@pytest.mark.parametrize(("rate", "n"), [(0.3, 4), (0.5, 3), (0.9, 5)])
def test_whether_a_record_is_drawn_tells_nothing_of_the_rows_of_another(rate, n):
    found = batches(rate, n).draw(20 * STEPS)
    for last in (True, False):
        given = found[((found == n - 1).any(axis=1) == last) & (found == 0).any(axis=1)]
        counts = np.bincount(np.argmax(given == 0, axis=1), minlength=rows_per_batch(rate, n))
        assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize(("rate", "n"), [(0.3, 4), (0.5, 5), (0.9, 5)])
def test_whatever_the_others_do_a_record_is_drawn_at_most_at_the_rate(rate, n):
    """Which is all that amplification by sampling needs; a full batch of the others leaves no row
    for it."""
    found = batches(rate, n).draw(20 * STEPS)
    there = (found[:, :, None] == np.arange(n)).any(axis=1)
    for others, number in Counter(map(tuple, there[:, 1:].tolist())).items():
        joins = there[(there[:, 1:] == others).all(axis=1), 0].mean()
        assert joins <= rate + 5.5 * np.sqrt(rate * (1 - rate) / number)
        if sum(others) < rows_per_batch(rate, n):
            assert joins >= rate - 5.5 * np.sqrt(rate * (1 - rate) / number)


def test_members_of_a_secret_subset_take_random_rows_of_a_full_batch():
    """With a rate of one, too: a member more would move the later ones by a row."""
    found = padded_batches([batches(1.0, 5)], 20 * STEPS, 3, 5)[:, 0]
    for member in range(3):
        assert (
            stats.chisquare(np.bincount(np.argmax(found == member, axis=1), minlength=5)).pvalue
            > LEVEL
        )


def test_rows_of_two_records_are_any_two_rows_equally_often():
    n, rate = 3, 0.6
    found = batches(rate, n).draw(20 * STEPS)
    both = found[(found == 0).any(axis=1) & (found == 1).any(axis=1)]
    pairs = Counter(zip(np.argmax(both == 0, axis=1), np.argmax(both == 1, axis=1)))
    rows = rows_per_batch(rate, n)
    assert len(pairs) == rows * (rows - 1)
    assert stats.chisquare(list(pairs.values())).pvalue > LEVEL


def test_candidates_draw_independently_of_each_other():
    n, number = 30, 6
    found = padded_batches([batches(0.2, n, seed) for seed in range(number)], STEPS, n, 20)
    inside = np.zeros((STEPS, number, n + 1))
    np.put_along_axis(inside, found, 1.0, axis=2)
    inside = inside[:, :, :n]
    sizes = inside.sum(axis=2)
    inside -= inside.mean(axis=(0, 2))[:, None]
    for i in range(number):
        for j in range(i):
            together = (inside[:, i] * inside[:, j]).mean(axis=0) / 0.16
            assert np.abs(together).max() < 5.5 / np.sqrt(STEPS)
            assert abs(np.corrcoef(sizes[:, i], sizes[:, j])[0, 1]) < 5.5 / np.sqrt(STEPS)


def test_padded_batches_are_the_batches():
    rates, n, steps = [1e-4, 0.02, 0.5, 1.0], 40, 300
    found = padded_batches([batches(rate, n, i) for i, rate in enumerate(rates)], steps, n, 44)
    assert found.shape == (steps, 4, 44)
    for i, rate in enumerate(rates):
        alone = batches(rate, n, i).draw(steps)
        np.testing.assert_array_equal(found[:, i, : alone.shape[1]], alone)
        assert (found[:, i, alone.shape[1] :] == n).all()


def test_places_without_a_record_are_blank():
    found = padded_batches([batches(0.5, 40)], 300, 25, 27)
    alone = batches(0.5, 40).draw(300)
    np.testing.assert_array_equal(found[:, 0, : alone.shape[1]], np.where(alone < 25, alone, 25))


def test_rates_that_cannot_be_drawn_exactly_are_refused():
    """NumPy's geometric numbers are wrong by about 2**-53 in every probability, and saturate below
    1e-18."""
    for rate, n in (({"sample_rate": 1e-10}, None), ({"batch_size": 1}, 10**10)):
        net = DPNeuralNetClassifier(None, classes=[0, 1], noise_multiplier=1.0, max_steps=1, **rate)
        with pytest.raises(ValueError, match="1e-09"):
            net.privacy_guarantee(n)


class Zeros:
    """A generator whose gaps are 0, as NumPy's are once in 2**53."""

    def geometric(self, rate, number):
        return np.zeros(number, dtype=np.int64)


def test_no_record_is_twice_in_a_batch():
    step, record = PoissonBatches(Zeros(), Zeros(), 0.5, 7)._draw_samples(3)
    assert len(set(zip(step.tolist(), record.tolist()))) == len(step) == 21
