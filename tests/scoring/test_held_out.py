"""The share of records that validates where nobody says it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from sklearn_dpsearch.privacy import DPSGD, GaussianDP, Geometric, best_of
from sklearn_dpsearch.scoring._validation import (
    HoldOut,
    UnknownShare,
    default_share,
    search_guarantee,
    validation_of,
)


@pytest.mark.parametrize("epsilon", [None, 0.1, 1.0, 8.0])
def test_the_rule_leaves_forty_records_to_validate_and_nine_tenths_to_train(epsilon):
    shares = {n: default_share(n, epsilon) for n in (10, 100, 400, 1000, 10_000, 60_000, 10**7)}
    assert all(0 < share <= 0.3 for share in shares.values())
    assert all(share <= 0.1 and share * n >= 40 for n, share in shares.items() if n >= 400)
    numbers = np.array([share * n for n, share in shares.items()])
    assert np.all(np.diff(numbers) >= -1e-9)  # more records never mean fewer that validate


def test_large_data_validate_on_three_thousand_records_and_on_more_at_a_small_epsilon():
    found = [round(default_share(10**6, epsilon) * 10**6) for epsilon in (3.0, None, 1.0, 0.5, 0.1)]
    assert found == [3000, 3000, 3000, 6000, 30_000]


def test_the_share_follows_from_the_number_of_records():
    assert validation_of(None, 60_000, False, 1.0) == HoldOut(0.05)
    assert isinstance(validation_of(None, None, False, 1.0), UnknownShare)


@pytest.mark.slow
@pytest.mark.parametrize("scoring", [GaussianDP(mu=0.2), GaussianDP(mu=0.8)])
def test_what_is_stated_without_a_number_of_records_covers_every_share(scoring):
    training = DPSGD(noise_multiplier=2.0, sample_rate=0.05, steps=100)
    search = partial(best_of, count=Geometric(5))
    stated = search_guarantee(training, scoring, UnknownShare().exposures(), search).epsilon_at(
        1e-6
    )
    of_shares = [
        search_guarantee(training, scoring, HoldOut(share).exposures(), search).epsilon_at(1e-6)
        for share in (0.01, 0.1, 0.3)
    ]
    assert max(of_shares) <= stated * (1 + 1e-9)
