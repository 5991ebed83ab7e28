"""scikit-learn's callbacks: its progress bar shows public phases, and whatever would see scores is refused."""

from __future__ import annotations

import contextlib
import io
import pickle

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch import DPRandomSearchCV, PrivacyError

from .toys import SEARCHES, NoisyCentroids, Untouchable, search_of, some_labels, two_blobs

callback = pytest.importorskip("sklearn.callback")

X, y = two_blobs(120)
SPACE = {"shrink": [0.0, 0.2]}


class Watching:
    """Callback of one's own, by scikit-learn's protocol, for a search and all of its estimators."""

    max_propagation_depth = None

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context): ...


@pytest.fixture
def bar():
    pytest.importorskip("rich")
    return callback.ProgressBar()


def shown(search):
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        search.fit(X, y)
    return stream.getvalue()


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("make", [lambda: callback.ScoringMonitor(scoring="accuracy"), Watching], ids=["scores", "own"])
def test_a_callback_that_could_see_scores_is_refused(kind, make):
    search = search_of(kind, NoisyCentroids(), SPACE)
    with pytest.raises(PrivacyError, match="would see records, scores of candidates or their number"):
        search.set_callbacks(make())
    assert "_skl_callbacks" not in vars(search)


def test_a_callback_on_the_estimator_is_refused_before_a_record_is_used(bar):
    model = type("Open", (callback.CallbackSupportMixin, NoisyCentroids), {})().set_callbacks(bar)
    with pytest.raises(PrivacyError, match="Found callbacks on the estimator"):
        DPRandomSearchCV(model, SPACE).fit(Untouchable(120), some_labels(120))


def test_a_progress_bar_shows_the_public_phases_of_a_verbose_search(bar):
    for kind, phase in (("random", "searching"), ("grid", "trainings on parts")):
        search = search_of(kind, NoisyCentroids(), SPACE)
        assert shown(search) == ""
        said = shown(search.set_callbacks(bar))
        assert "planning" in said
        assert phase in said
        assert shown(search.set_callbacks()) == ""


def test_copies_of_a_search_keep_its_progress_bar(bar):
    search = DPRandomSearchCV(NoisyCentroids(), SPACE).set_callbacks(bar)
    for copied in (clone(search), pickle.loads(pickle.dumps(search))):
        assert "searching" in shown(copied)


def test_a_progress_bar_around_a_search_is_refused_before_a_record_is_used(bar):
    around = make_pipeline(DPRandomSearchCV(NoisyCentroids(), SPACE)).set_callbacks(bar)
    with pytest.raises(PrivacyError, match="ProgressBar on an estimator around this search"):
        around.fit(X, y)
    assert not hasattr(around[-1], "privacy_spent_")
    around.set_callbacks().fit(X, y)
    assert hasattr(around[-1], "privacy_spent_")
