"""Draws for many records: exact probabilities from bytes written out, and frequencies."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from sklearn_dpsearch.privacy._mechanisms import array_sampling
from sklearn_dpsearch.privacy._mechanisms.array_sampling import (
    ACCURACY,
    bernoulli,
    rounded_normals,
    uniform_integers,
)
from tests.privacy.brute_force import size


def scripted(*words):
    """Random bytes that are these 64-bit words, one after the other."""
    left = list(words)

    def random_bytes(n):
        taken, left[:] = left[: n // 8], left[n // 8 :]
        return np.array(taken, dtype="<u8").tobytes()

    return random_bytes


def digits(probability, blocks):
    """The first binary digits of a probability, in blocks of 64."""
    found, rest = [], Fraction(probability)
    for _ in range(blocks):
        block, rest = divmod(rest * 2**64, 1)
        found.append(int(block))
    return found


@pytest.mark.parametrize("probability", [1e-17, 3e-30, 0.1, 1 - 2.0**-53, 2.0**-70, Fraction(1, 3)])
def test_a_tie_is_decided_by_the_next_digits(probability):
    first, second = digits(probability, 2)
    below = [(first, second - 1)] if second else []
    for words in below:
        assert bernoulli(1, probability, scripted(*words)).tolist() == [True]
    assert bernoulli(1, probability, scripted(first, second + 1)).tolist() == [False]
    if first:
        assert bernoulli(1, probability, scripted(first - 1)).tolist() == [True]
    assert bernoulli(1, probability, scripted(first + 1)).tolist() == [False]


def test_only_the_tied_coins_draw_again():
    first, second = digits(1e-17, 2)
    drawn = bernoulli(4, 1e-17, scripted(first, 0, first, first + 1, second - 1, second + 1))
    assert drawn.tolist() == [True, True, False, False]


def test_a_tie_with_all_digits_is_no_success():
    assert bernoulli(2, 0.5, scripted(2**63, 2**63 - 1)).tolist() == [False, True]


def successful_words(probability, before):
    """How many of the 2**64 words that may follow these ones are successes whatever comes later, by
    bisection."""
    low, high = 0, 2**64
    while low < high:
        middle = (low + high) // 2
        later = [2**64 - 1] * 20
        success = bernoulli(1, probability, scripted(*before, middle, *later))[0]
        low, high = (middle + 1, high) if success else (low, middle)
    return low


def exact_probability(probability):
    """P[True], counted from what the coins did and not from the digits of the probability."""
    total, before = Fraction(0), []
    for level in range(1, 19):
        count = successful_words(probability, before)
        total += Fraction(count, 2 ** (64 * level))
        before.append(min(count, 2**64 - 1))  # the word that ties
    return total


@pytest.mark.slow
@pytest.mark.parametrize("probability", [1e-17, 1e-300, 0.2, 1 / 3, 5e-324])
def test_the_probability_is_the_float_to_the_last_bit(probability):
    assert exact_probability(probability) == Fraction(probability)


def test_a_probability_of_1e_17_is_not_that_of_a_53_bit_uniform():
    """Words below 2**11 made a uniform double 0: eleven times as many as belong to 1e-17."""
    words = list(range(2048))
    # 184 below, and the tie
    assert bernoulli(2048, 1e-17, scripted(*words, *[0] * 10)).sum() == 185


@pytest.mark.parametrize(
    ("probability", "all_of_them"), [(0, False), (1, True), (0.0, False), (1.0, True)]
)
def test_certain_coins_need_no_randomness(probability, all_of_them):
    assert (bernoulli(5, probability, scripted()) == all_of_them).all()


@pytest.mark.parametrize("probability", [-1e-9, 1.0000001, 2])
def test_a_number_that_is_no_probability_is_refused(probability):
    with pytest.raises(ValueError, match="0 <= probability <= 1"):
        bernoulli(3, probability, random.Random(0).randbytes)


@pytest.mark.parametrize("probability", [0.003, 0.2, 0.5, 0.97])
def test_frequencies_are_the_probability(probability):
    n = 400_000
    share = bernoulli(n, probability, random.Random(7).randbytes).mean()
    assert abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / n)


@pytest.mark.parametrize("below", [1, 2, 3, 7, 1000])
def test_integers_are_uniform(below):
    n = 200_000
    counts = np.bincount(
        uniform_integers(n, below, random.Random(below).randbytes), minlength=below
    )
    assert counts.size == below
    assert np.abs(counts - n / below).max() < 6 * np.sqrt(n / below)


def test_integers_that_would_be_favoured_are_drawn_again():
    # the first word whose upper 63 bits are beyond the last whole multiple of 3
    rejected = 2 * ((2**63 // 3) * 3)
    assert uniform_integers(2, 3, scripted(rejected, 2 * 4, 2 * 5)).tolist() == [2, 1]


def quantile(tail):
    """The value that a standard normal exceeds with this probability, to 60 digits."""
    return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(tail))


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
    small, large = 0.5 * 10.0 ** -rng.uniform(0, 19, 2 * few), 10.0 ** -rng.uniform(1, 15, few)
    tails = np.concatenate([rng.uniform(0, 0.5, few), small, 0.5 - large])
    with mpmath.workprec(200):
        errors = [abs(quantile(tail) + float(ndtri(tail))) / (1 + quantile(tail)) for tail in tails]
    assert max(errors) < ACCURACY / 25


@pytest.mark.slow
def test_every_draw_lies_where_its_word_says():
    """The whole interval of tails that a word stands for is rounded to the number that is
    returned."""
    words = np.random.default_rng(1).integers(0, 2**64, 300, dtype=np.uint64)
    drawn = rounded_normals(10**9, len(words), scripted(*words))
    with mpmath.workprec(200):
        for word, found in zip(words.tolist(), drawn.tolist()):
            sign = -1 if word & 1 else 1
            ends = [10**9 * quantile(mpmath.ldexp((word >> 1) + beyond, -64)) for beyond in (0, 1)]
            assert sign * found in (mpmath.floor(ends[0] + 0.5), mpmath.floor(ends[1] + 0.5))


def test_a_word_on_an_edge_is_decided_by_further_bits(monkeypatch):
    """The tail at 0.5 ÷ scale lies inside of one word's interval: later bits round it up or
    down."""
    with mpmath.workprec(200):
        exact = mpmath.ldexp(mpmath.ncdf(-mpmath.mpf(0.5) / 7), 64)
        word, rest = int(mpmath.floor(exact)), exact - mpmath.floor(exact)
        after = int(mpmath.floor(mpmath.ldexp(rest, 64)))
    asked = []
    refined = array_sampling._round_with_more_bits
    monkeypatch.setattr(
        array_sampling, "_round_with_more_bits", lambda *given: asked.append(1) or refined(*given)
    )
    # less tail: further out
    assert rounded_normals(7, 1, scripted(word << 1, after - 5)).tolist() == [1]
    assert rounded_normals(7, 1, scripted(word << 1, after + 5)).tolist() == [0]
    assert rounded_normals(7, 1, scripted(word << 1 | 1, after - 5)).tolist() == [-1]
    # a third word decides
    assert rounded_normals(7, 1, scripted(word << 1, after, 0)).tolist() == [1]
    assert rounded_normals(7, 1, scripted(word << 1, after, 2**64 - 1)).tolist() == [0]
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
    found = rounded_normals(1000, 1, scripted(0, 2**63)).tolist()
    with mpmath.workprec(200):
        assert found == [int(mpmath.floor(1000 * quantile(mpmath.ldexp(1, -65)) + 0.5))]
    assert rounded_normals(1000, 1, scripted(0, 0, 2**63))[0] > found[0]


@pytest.mark.parametrize("scale", [0, -1, 2**41])
def test_a_scale_out_of_range_is_an_error(scale):
    with pytest.raises(ValueError, match="scale"):
        rounded_normals(scale, 3)
