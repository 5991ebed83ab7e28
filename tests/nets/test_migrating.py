"""The page for those who come from skorch or Opacus: every block of its code runs, and does what
the page says."""

from __future__ import annotations

import pytest

from ..pages import blocks_of, run

pytestmark = pytest.mark.slow

PAGE = "migrating_nets.md"


@pytest.fixture(scope="module")
def done():
    blocks = blocks_of(PAGE)
    assert len(blocks) == 8
    return run(PAGE, blocks)


@pytest.mark.parametrize("name", ["private", "trained", "augmented", "halves"])
def test_every_net_of_the_page_costs_what_it_says(done, name):
    assert 2.9 < done[name].privacy_spent_.epsilon_at(1e-5) <= 3.0


def test_the_private_nets_learn(done):
    X, y = done["X"], done["y"]
    assert done["net"].score(X, y) > 0.9  # without privacy
    assert done["private"].score(X, y) > 0.75
    assert done["trained"].score(X, y) > 0.6
    assert done["halves"].score({"top": X[:, :32], "bottom": X[:, 32:]}, y) > 0.6
    assert done["augmented"].score(X, y) > 0.5


def test_opacus_is_trained_for_as_much_and_costs_as_much(done):
    assert abs(done["engine"].get_epsilon(delta=1e-5) - 3.0) < 0.05
    assert type(done["trained"].module_) is done["MLP"]


def test_the_search_of_the_page_keeps_its_total(done):
    assert done["search"].privacy_spent_.epsilon <= 8.0
    assert done["search"].best_params_["lr_factor"] in (0.5, 1.0, 2.0)
