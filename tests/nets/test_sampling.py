"""Poisson batches are exact: sizes, inclusion, gaps, independence; and nothing is ever cut off."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch")
from sklearn_dpsearch.nets import DPNeuralNetClassifier
from sklearn_dpsearch.nets.estimators.settings import settings_of
from sklearn_dpsearch.nets.randomness import Secrets
from sklearn_dpsearch.nets.sampling import PoissonBatches, padded_batches

STEPS = 40_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 4_000
#: No test here fails an exact sampler more often than once in a million runs; the seeds are fixed all the same.
LEVEL = 1e-6


def batches(rate, n, seed=0):
    return PoissonBatches(Secrets(seed).coins, rate, n)


def labelled(rate, n, seed=0):
    own = Secrets(seed)
    return PoissonBatches(own.coins, rate, n, own.labels)


def drawn(rate, n, steps=STEPS, seed=0):
    """Whether each record is in each batch, shape (steps, n)."""
    step, record = batches(rate, n, seed).draw(steps)
    found = np.zeros((steps, n), dtype=bool)
    found[step, record] = True
    assert found.sum() == len(step)  # no record twice in a batch
    return found


@pytest.mark.parametrize(("rate", "n"), [(0.01, 500), (0.05, 100), (0.3, 50), (0.5, 40), (0.95, 30)])
def test_batch_sizes_are_binomial(rate, n):
    sizes = drawn(rate, n).sum(axis=1)
    expected = stats.binom.pmf(np.arange(n + 1), n, rate) * STEPS
    likely = expected > 5
    seen = np.bincount(sizes, minlength=n + 1)
    grouped, wanted = np.append(seen[likely], seen[~likely].sum()), np.append(expected[likely], expected[~likely].sum())
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
    between_steps = (found[1:] * found[:-1]).mean(axis=0) / 0.21
    assert np.abs(between_steps).max() < 5.5 / np.sqrt(STEPS)


def test_gaps_are_geometric_at_a_rate_of_one_in_ten_million():
    rate, n = 1e-7, 1_000_003
    step, record = batches(rate, n).draw(200_000)
    positions = step * n + record
    gaps = np.diff(positions)
    assert len(positions) == pytest.approx(rate * n * 200_000, abs=5 * np.sqrt(rate * n * 200_000))
    bins = stats.geom.cdf(gaps, rate)
    assert stats.kstest(bins, "uniform").pvalue > LEVEL
    assert gaps.mean() == pytest.approx(1 / rate, rel=0.05)  # uniforms in single precision would be off by 19 %


def test_a_rate_of_one_takes_every_record_every_time():
    assert drawn(1.0, 17, steps=5).all()


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_no_record_at_all_makes_empty_batches(rate):
    step, record = batches(rate, 0).draw(50)
    assert len(step) == len(record) == 0
    found, sizes = padded_batches([batches(rate, 0)], 50, 0)
    assert found.shape == (50, 1, 0)
    assert sizes.sum() == 0


def test_one_record_is_a_coin_per_step():
    assert drawn(0.25, 1).mean() == pytest.approx(0.25, abs=5 * np.sqrt(0.1875 / STEPS))


@pytest.mark.parametrize("rate", [1e-6, 0.003, 0.2, 0.9, 1.0])
def test_how_many_steps_are_drawn_at_once_changes_nothing(rate):
    n = 100
    whole = np.stack(batches(rate, n).draw(600))
    source, parts, before = batches(rate, n), [], 0
    for number in [1, 1, 7, 0, 91, 200, 300]:
        step, record = source.draw(number)
        parts.append(np.stack([step + before, record]))
        before += number
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_parts_hold_the_batch_dealt_by_labels_that_do_not_depend_on_how_many_steps_are_drawn_at_once():
    n, parts, rate = 100, 3, 0.3
    step, record = batches(rate, n).draw(600)
    place, dealt = labelled(rate, n).draw_parts(600, parts)
    assert (np.diff(place) >= 0).all()
    assert sorted(zip(place // parts, dealt)) == sorted(zip(step, record))
    assert all((np.diff(dealt[place == one]) > 0).all() for one in range(6))  # in each part in one order
    source = labelled(rate, n)
    np.testing.assert_array_equal(
        np.concatenate([source.draw_parts(number, parts)[1] for number in [1, 7, 0, 292, 300]]), dealt
    )


def test_labels_are_uniform_and_independent_of_steps_and_records():
    n, parts = 30, 4
    place, record = labelled(0.5, n).draw_parts(STEPS, parts)
    counts = np.zeros((n, parts))
    np.add.at(counts, (record, place % parts), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert np.abs(shares - 1 / parts).max() < 5.5 * np.sqrt(3 / 16 / (STEPS * 0.5))
    labels = np.full((STEPS, n), np.nan)
    labels[place // parts, record] = place % parts
    same = [np.nanmean(np.where(np.isnan(labels[:, i] + labels[:, j]), np.nan, labels[:, i] == labels[:, j]))
            for i in range(n) for j in range(i)]  # fmt: skip
    assert np.abs(np.array(same) - 1 / parts).max() < 6 * np.sqrt(3 / 16 / (STEPS * 0.25))


def test_batches_drawn_step_by_step_are_as_exact_as_those_drawn_together():
    source = batches(0.1, 50)
    sizes = np.array([len(source.draw(1)[0]) for _ in range(STEPS)])
    assert abs(sizes.mean() - 5.0) < 5 * np.sqrt(4.5 / STEPS)
    assert sizes.var() == pytest.approx(4.5, rel=0.15)


def test_candidates_draw_independently_of_each_other():
    n, number = 30, 6
    found, sizes = padded_batches([batches(0.2, n, seed) for seed in range(number)], STEPS, n)
    inside = np.zeros((STEPS, number, n + 1))
    np.put_along_axis(inside, found, 1.0, axis=2)
    inside = inside[:, :, :n] - 0.2
    for i in range(number):
        for j in range(i):
            together = (inside[:, i] * inside[:, j]).mean(axis=0) / 0.16
            assert np.abs(together).max() < 5.5 / np.sqrt(STEPS)
            assert abs(np.corrcoef(sizes[:, i], sizes[:, j])[0, 1]) < 5.5 / np.sqrt(STEPS)


def test_padded_batches_are_the_batches_and_are_never_truncated():
    rates, n, steps = [1e-4, 0.02, 0.5, 1.0], 40, 300
    found, sizes = padded_batches([batches(rate, n, i) for i, rate in enumerate(rates)], steps, n)
    assert found.shape[2] == sizes.max() == n
    for i, rate in enumerate(rates):
        step, record = batches(rate, n, i).draw(steps)
        for t in range(steps):
            np.testing.assert_array_equal(found[t, i, : sizes[t, i]], record[step == t])
            assert (found[t, i, sizes[t, i] :] == n).all()


def test_batches_far_above_the_expected_size_occur_and_are_kept():
    sizes = drawn(0.02, 50, steps=20_000).sum(axis=1)
    assert sizes.max() >= 6  # expected: 1
    assert (sizes == 0).mean() == pytest.approx(0.98**50, abs=0.02)


def test_rates_that_cannot_be_drawn_exactly_are_refused():
    """NumPy's geometric numbers are wrong by about 2**-53 in every probability, and saturate below 1e-18."""
    for rate, n in (({"sample_rate": 1e-10}, None), ({"batch_size": 1}, 10**10)):
        net = DPNeuralNetClassifier(None, classes=[0, 1], noise_multiplier=1.0, max_steps=1, **rate)
        with pytest.raises(ValueError, match="1e-09"):
            settings_of(net, n)


class Zeros:
    """A generator whose gaps are 0, as NumPy's are once in 2**53."""

    def geometric(self, rate, number):
        return np.zeros(number, dtype=np.int64)


def test_no_record_is_twice_in_a_batch():
    step, record = PoissonBatches(Zeros(), 0.5, 7).draw(3)
    assert len(set(zip(step.tolist(), record.tolist()))) == len(step) == 21


def test_batches_go_on_where_their_state_was_taken_however_they_were_drawn():
    """With what was drawn ahead, and however many steps are drawn at once from there on."""
    one, whole = (PoissonBatches(np.random.default_rng(0), 0.07, 90) for _ in range(2))
    expected = [whole.draw(30) for _ in range(2)][1]
    one.draw(11), one.draw(19)
    other = PoissonBatches(np.random.default_rng(5), 0.07, 90)
    other._rng.bit_generator.state = one._rng.bit_generator.state
    other.restore(one.state().clone())
    parts = [other.draw(steps) for steps in (1, 2, 13, 14)]
    starts = np.cumsum([0, 1, 2, 13])
    np.testing.assert_array_equal(
        np.concatenate([step + first for (step, _), first in zip(parts, starts)]), expected[0]
    )
    np.testing.assert_array_equal(np.concatenate([record for _, record in parts]), expected[1])
