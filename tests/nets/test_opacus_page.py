"""The page about Opacus nets: every block of its code runs, and does what the page says."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.privacy import DPSGD, ApproxDP, Geometric, best_of

from ..pages import LEARN, blocks_of, run

pytestmark = pytest.mark.slow

PAGE = "opacus.md"


@pytest.fixture(scope="module")
def done():
    blocks = blocks_of(PAGE)
    assert len(blocks) == 5
    assert len((LEARN / PAGE).read_text().split()) <= 900
    begun = run(PAGE, blocks[:3])
    return {**run(PAGE, blocks[3:], begun), "first": begun["search"]}


def test_every_search_of_the_page_keeps_its_total(done):
    for search in (done["first"], *done["searches"]):
        assert 5.9 < search.privacy_spent_.epsilon <= 6.0
        assert search.privacy_spent_.neighboring == "zero_out"
        assert "Opacus" in search.privacy_spent_.assumptions[0]


def test_every_net_of_the_page_learns(done):
    found = [search.score(done["X"], done["y"]) for search in (done["first"], *done["searches"])]
    assert min(found) > 0.4
    assert done["private"].score(done["X"], done["y"]) > 0.4


def test_the_released_nets_are_those_of_the_page(done):
    modules = [type(search.best_estimator_.module_) for search in done["searches"]]
    assert modules == [done["MLP"], done["LSTM"]]
    assert type(done["first"].best_estimator_) is done["MyNet"]
    assert not hasattr(done["first"].best_estimator_, "privacy_engine_")


def test_the_price_on_the_page_is_right():
    run = DPSGD(noise_multiplier=1.38, sample_rate=1 / 16, steps=48, neighboring="zero_out")
    declared = ApproxDP(epsilon=2.06, delta=1e-6)
    assert run.delta_at(2.06) <= 1e-6
    searches = [best_of(one, Geometric(10)) for one in (run, declared)]
    prices = [float(one.epsilon_at(1e-5)) for one in (run, *searches)]
    assert np.round(prices, 1).tolist() == [1.7, 2.5, 5.0]
