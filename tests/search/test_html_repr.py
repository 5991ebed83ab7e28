"""What a search shows of itself, and what its statement says: what is public, what was released,
and nothing else."""

from __future__ import annotations

import inspect
import re

import pytest

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Geometric
from sklearn_dpsearch.search._base import RELEASED_ATTRIBUTES

from .toys import NoisyCentroids, search_of, two_blobs

X, y = two_blobs(120)
OTHER_X, OTHER_Y = two_blobs(120, seed=1)
SPACE = {"shrink": [0.0, 0.1]}
DAY = "2026-01-31"
SEARCHES = {
    "random": {},
    "random without a model": {"refit": False},
    "random, all": {"n_iter": 2, "release": "all"},
    "subset": {},
    "threshold": {"threshold": -100.0, "n_iter": 50},
    "doubling": {"lower": 0.1, "granularity": 0.1, "round_epsilon": 20.0},
    "grid": {},
}


def made(name):
    return search_of(re.match(r"\w+", name)[0], NoisyCentroids(), SPACE, **SEARCHES[name])


@pytest.mark.parametrize("name", SEARCHES)
def test_the_statement_names_what_is_released_and_nothing_else(name):
    search = made(name).fit(X, y)
    while not getattr(search, "found_", True):  # a coin may end it before the first run
        search.fit(X, y)
    told = search.privacy_spent_.release
    assert set(told.attributes) == set(RELEASED_ATTRIBUTES) & set(vars(search))
    expected = (type(search).__name__, "NoisyCentroids", False)
    assert (told.made_by, told.model, told.seeded) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_a_report_is_the_same_before_the_data_and_after_any_data(name):
    reports = {str(made(name).privacy_cost(len(X)).report("markdown", date=DAY))}
    for records, labels in ((X, y), (OTHER_X, OTHER_Y)):
        reports.add(
            str(made(name).fit(records, labels).privacy_spent_.report("markdown", date=DAY))
        )
    assert len(reports) == 1


@pytest.mark.slow
def test_a_report_and_a_box_do_not_tell_how_many_runs_there_were(monkeypatch):
    told, shown = set(), set()
    for number in (2, 9):
        monkeypatch.setattr(Geometric, "sample", lambda self, rng=None, number=number: number)
        search = DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=5).fit(X, y)
        told.add(str(search.privacy_spent_.report(date=DAY)))
        # what is released has noise of its own in every fit, and new releases of scikit-learn show
        # all of it
        search.best_score_, search.best_score_std_, search.cv_results_ = 0.5, 0.1, {}
        search.best_estimator_ = NoisyCentroids(random_state=0).fit(X, y)
        shown.add(re.sub(r"id-\d+", "", search._repr_html_()))
    assert (len(told), len(shown)) == (1, 1)


# --- in notebooks ---------------------------------------------------------------------------------


def test_a_fitted_search_shows_cost_winner_score_and_model():
    search = DPRandomSearchCV(NoisyCentroids(), SPACE, n_iter=3).fit(X, y)
    shown = search._repr_html_()
    assert "best_estimator_: NoisyCentroids" in shown
    cost = f"ε = {search.privacy_spent_.epsilon:.2f}"
    for needed in (cost, "δ = 0", "replace_one", "best_params_", "best_score_"):
        assert needed in shown
    assert f"± {search.best_score_std_:.3g}" in shown
    assert search._repr_mimebundle_()["text/html"].startswith('<div class="dpsearch"')
    assert search._repr_mimebundle_()["text/plain"] == repr(search)


def test_the_box_reads_no_attribute_that_was_not_released():
    """Only names of the release stand in the code that shows."""
    import sklearn_dpsearch.search._html_repr as shown

    names = set(re.findall(r"search\.(\w+_)\b", inspect.getsource(shown)))
    assert names <= {*RELEASED_ATTRIBUTES, "privacy_spent_"}
