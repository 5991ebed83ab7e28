"""Coins have exactly the probability that is accounted, to the last bit."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch.privacy.mechanisms.array_sampling import bernoulli, uniform_integers


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
    """How many of the 2**64 words that may follow these ones are successes whatever comes later, by bisection."""
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
    assert bernoulli(2048, 1e-17, scripted(*words, *[0] * 10)).sum() == 185  # 184 below, and the tie


@pytest.mark.parametrize(("probability", "all_of_them"), [(0, False), (1, True), (0.0, False), (1.0, True)])
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
    counts = np.bincount(uniform_integers(n, below, random.Random(below).randbytes), minlength=below)
    assert counts.size == below
    assert np.abs(counts - n / below).max() < 6 * np.sqrt(n / below)


def test_integers_that_would_be_favoured_are_drawn_again():
    rejected = 2 * ((2**63 // 3) * 3)  # the first word whose upper 63 bits are beyond the last whole multiple of 3
    assert uniform_integers(2, 3, scripted(rejected, 2 * 4, 2 * 5)).tolist() == [2, 1]
