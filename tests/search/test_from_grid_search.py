"""The page for those who come from GridSearchCV: it has every keyword, and every block of its code
runs."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from ..pages import LEARN, blocks_of, run

PAGE = "from_grid_search.md"
ROWS = re.findall(r"^\| (.+?) \|", (LEARN / PAGE).read_text(), re.MULTILINE)
#: What the first cells of the page's tables name.
CELLS = [cell for row in ROWS for cell in re.findall(r"`(.+?)`", row)]


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_the_page_has_every_keyword_of_scikit_learns_searches(search):
    """A keyword of a newer scikit-learn is noticed here."""
    keywords = {
        *inspect.signature(search).parameters,
        *inspect.signature(search.fit).parameters,
    } - {"self"}
    assert keywords - set(CELLS) == set()
    assert {"groups", "sample_weight"} <= set(CELLS)  # in fit's **params


def test_every_attribute_that_the_page_promises_is_one_of_scikit_learn():
    documented = inspect.getdoc(GridSearchCV)
    promised = [cell for cell in CELLS if cell.endswith("_")]
    assert promised
    assert [name for name in promised if f"\n{name} : " not in documented] == []


@pytest.fixture(scope="module")
def names():
    pytest.importorskip("torch")
    blocks = blocks_of(PAGE)
    assert len(blocks) == 6
    return run(PAGE, blocks)


@pytest.mark.slow
def test_the_searches_of_the_page_learn_and_keep_their_totals(names):
    X, y = names["X_test"], names["y_test"]
    assert names["search"].score(X, y) > 0.8  # without privacy
    assert names["private"].score(X, y) > 0.7
    assert 2.9 < names["private"].privacy_spent_.epsilon <= 3.0
    assert 2.9 < names["every"].privacy_spent_.epsilon <= 3.0
    assert len(names["every"].cv_results_["params"]) == 3
    assert not hasattr(names["every"], "best_estimator_")


@pytest.mark.slow
def test_the_ensemble_of_the_page_predicts_names(names):
    predicted = names["voting"].predict(names["X_test"])
    assert set(predicted) <= {"no", "yes"}
    assert np.mean(predicted == names["y_test"]) > 0.6
    assert all(1.4 < each.privacy_spent_.epsilon <= 1.5 for each in names["voting"].estimators_)
