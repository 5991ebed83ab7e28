"""Rounded normals: their probabilities, and the digits that decide them."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from sklearn_dpsearch.privacy.mechanisms import array_sampling
from sklearn_dpsearch.privacy.mechanisms.array_sampling import ACCURACY, rounded_normals
from tests.privacy.brute_force import size


def quantile(tail):
    """The value that a standard normal exceeds with this probability, to 60 digits."""
    return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(tail))


def of_words(*words):
    """A source of these words, in order."""
    stream = np.array(words, dtype="<u8").tobytes()
    places = iter(range(0, len(stream) + 1, 8))

    def read(size):
        start = next(places)
        for _ in range(size // 8 - 1):
            next(places)
        return stream[start : start + size]

    return read


@pytest.mark.parametrize("scale", [1, 3, 40])
def test_draws_have_the_probabilities_of_rounded_normals(scale):
    drawn = rounded_normals(scale, 200_000, np.random.RandomState(scale).bytes)
    edges = np.arange(-2 * scale, 2 * scale + 1) - 0.5
    counts = np.histogram(drawn, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    chances = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]) / scale))
    assert stats.chisquare(counts, chances * len(drawn)).pvalue > 1e-3  # seeded


def test_a_large_scale_loses_no_digits():
    drawn = rounded_normals(2**30, 100_000, np.random.RandomState(0).bytes)
    assert stats.kstest(drawn / 2**30, "norm").pvalue > 1e-3  # seeded
    assert len(np.unique(drawn % 1024)) == 1024


@pytest.mark.slow
def test_quantiles_of_scipy_are_far_more_accurate_than_is_assumed():
    rng, few = np.random.default_rng(0), size(500, 100)
    tails = np.concatenate(
        [rng.uniform(0, 0.5, few), 0.5 * 10.0 ** -rng.uniform(0, 19, 2 * few), 0.5 - 10.0 ** -rng.uniform(1, 15, few)]
    )
    with mpmath.workprec(200):
        errors = [abs(quantile(tail) + float(ndtri(tail))) / (1 + quantile(tail)) for tail in tails]
    assert max(errors) < ACCURACY / 25


@pytest.mark.slow
def test_every_draw_lies_where_its_word_says():
    """The whole interval of tails that a word stands for is rounded to the number that is returned."""
    words = np.random.default_rng(1).integers(0, 2**64, 300, dtype=np.uint64)
    drawn = rounded_normals(10**9, len(words), of_words(*words))
    with mpmath.workprec(200):
        for word, found in zip(words.tolist(), drawn.tolist()):
            sign = -1 if word & 1 else 1
            ends = [10**9 * quantile(mpmath.ldexp((word >> 1) + beyond, -64)) for beyond in (0, 1)]
            assert sign * found in (mpmath.floor(ends[0] + 0.5), mpmath.floor(ends[1] + 0.5))


def test_a_word_on_an_edge_is_decided_by_further_bits(monkeypatch):
    """The tail at 0.5 ÷ scale lies inside of one word's interval: later bits round it up or down."""
    with mpmath.workprec(200):
        exact = mpmath.ldexp(mpmath.ncdf(-mpmath.mpf(0.5) / 7), 64)
        word, rest = int(mpmath.floor(exact)), exact - mpmath.floor(exact)
        after = int(mpmath.floor(mpmath.ldexp(rest, 64)))
    asked = []
    refined = array_sampling._refined
    monkeypatch.setattr(array_sampling, "_refined", lambda *given: asked.append(1) or refined(*given))
    assert rounded_normals(7, 1, of_words(word << 1, after - 5)).tolist() == [1]  # less tail: further out
    assert rounded_normals(7, 1, of_words(word << 1, after + 5)).tolist() == [0]
    assert rounded_normals(7, 1, of_words(word << 1 | 1, after - 5)).tolist() == [-1]
    assert rounded_normals(7, 1, of_words(word << 1, after, 0)).tolist() == [1]  # a third word decides
    assert rounded_normals(7, 1, of_words(word << 1, after, 2**64 - 1)).tolist() == [0]
    assert len(asked) == 5


def test_in_doubt_digits_decide_what_double_precision_would(monkeypatch):
    """With an error bound that doubts half of the draws nothing changes but the time."""
    source = np.random.RandomState(3).bytes(8 * 60)
    plain = rounded_normals(5, 60, lambda size: source[:size])
    monkeypatch.setattr(array_sampling, "ACCURACY", 0.02)
    doubted = iter([source])
    draw = np.random.RandomState(4).bytes
    again = rounded_normals(5, 60, lambda size: next(doubted, None) or draw(size))
    np.testing.assert_array_equal(plain, again)


def test_a_word_without_a_bit_is_drawn_further():
    """The tail is below 2⁻⁶⁴; its next word is all that is known of it."""
    found = rounded_normals(1000, 1, of_words(0, 2**63)).tolist()
    with mpmath.workprec(200):
        assert found == [int(mpmath.floor(1000 * quantile(mpmath.ldexp(1, -65)) + 0.5))]
    assert rounded_normals(1000, 1, of_words(0, 0, 2**63))[0] > found[0]


@pytest.mark.parametrize("scale", [0, -1, 2**41])
def test_a_scale_out_of_range_is_an_error(scale):
    with pytest.raises(ValueError, match="scale"):
        rounded_normals(scale, 3)
