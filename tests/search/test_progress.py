"""What a search shows while it runs: public numbers, and nothing that depends on K, on candidates
or on records."""

from __future__ import annotations

import contextlib
import io
import re
import sys

import pytest
from joblib import parallel_config

from sklearn_dpsearch import (
    DPGridSearchCV,
    DPRandomSearchCV,
    DPSubsetSearchCV,
    DPThresholdSearchCV,
    NoModelError,
)
from sklearn_dpsearch.privacy import Fixed, Geometric

from .toys import SEARCHES, NoisyCentroids, Slow, search_of, two_blobs

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unrehearsed"), pytest.mark.processes]

X, y = two_blobs(120)
SPACE = {"shrink": [0.0, 0.2]}
BACKENDS = ["sequential", "threading", "multiprocessing", "loky"]


class Failing(NoisyCentroids):
    """Prints, and fails where it is told to."""

    def __init__(self, epsilon=1.0, shrink=0.0, fails=False, random_state=None):
        super().__init__(epsilon, shrink, random_state)
        self.fails = fails

    def fit(self, X, y):
        print("secret", file=sys.stderr)
        if self.fails:
            raise ValueError("secret")
        return super().fit(X, y)


def shown(search):
    """What a fit wrote to standard error: one line for each text, with times replaced."""
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(NoModelError)
    with contextlib.redirect_stderr(io.StringIO()) as err, quiet[0], quiet[1]:
        search.fit(X, y)
    lines = re.split(r"[\r\n]+", err.getvalue())
    lines = [re.sub(r"\d+:\d\d|\?|\d+\.\d s", "TIME", line.strip()) for line in lines]
    return [line for line, before in zip(lines, [None, *lines]) if line != before]


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize("kind", ["random", "refit", "subset"])
def test_what_is_shown_is_the_same_for_one_run_and_for_forty(kind, verbose, monkeypatch):
    def of(number):
        monkeypatch.setattr(Geometric, "sample", lambda self, rng=None: number)
        more = {"refit": True} if kind == "refit" else {}
        made = {"subset": DPSubsetSearchCV}.get(kind, DPRandomSearchCV)
        return shown(made(NoisyCentroids(), SPACE, n_iter=5, verbose=verbose, **more))

    one = of(1)
    assert one == of(40)
    assert any("searching" in line for line in one) == (verbose == 1)
    expected = verbose == 2 and kind != "random"
    assert any("training the final model" in line for line in one) == expected


@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.parametrize("kind", SEARCHES)
def test_what_is_shown_is_the_same_for_candidates_that_win_and_that_fail(kind, verbose):
    def of(fails):
        return shown(
            search_of(kind, Failing(), {"fails": [fails], "shrink": [0.0, 0.1]}, verbose=verbose)
        )

    good = of(False)
    assert good == of(True)
    assert len(good) > 2
    assert "secret" not in "".join(good)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_grid_is_counted_to_exactly_its_public_number_of_trainings(backend, fails):
    options = {"selection_epsilon": 1.0, "n_parts": 4, "verbose": 1}
    search = DPGridSearchCV(Failing(), {"fails": [fails], "shrink": [0.0, 0.1, 0.2]}, **options)
    with parallel_config(backend=backend, n_jobs=2):
        lines = shown(search)
    counts = [int(found) for line in lines for found in re.findall(r"on parts: (\d+) of 12$", line)]
    assert (counts[0], counts[-1]) == (0, 12)
    assert counts == sorted(set(counts))
    if backend == "sequential":
        assert counts == [0, 3, 6, 9, 12]


def test_a_search_that_is_not_asked_says_nothing(make):
    fails = contextlib.suppress(NoModelError)
    with (
        contextlib.redirect_stderr(io.StringIO()) as err,
        contextlib.redirect_stdout(io.StringIO()) as out,
        fails,
    ):
        make(NoisyCentroids(), SPACE).fit(X, y)
    assert (err.getvalue(), out.getvalue()) == ("", "")


def test_no_time_lasts_where_private_work_took_it():
    """A file that is kept would tell for good how long the runs took."""
    with (
        contextlib.redirect_stderr(io.StringIO()) as err,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        DPRandomSearchCV(Slow(), SPACE, n_iter=Fixed(4), verbose=2).fit(X, y)
    assert not re.search(r"\d+:\d\d", err.getvalue())
    assert err.getvalue().splitlines()[-1] == "[DPRandomSearchCV] tuning"


def test_the_line_of_a_nested_search_is_as_silent_as_any_candidate():
    inner = DPRandomSearchCV(NoisyCentroids(), SPACE, n_iter=2, verbose=2)
    assert shown(
        DPRandomSearchCV(
            inner, {"n_iter": [2.0, 3.0]}, n_iter=2, guarantee=inner.privacy_guarantee()
        )
    ) == [""]


def test_a_threshold_that_nobody_reaches_shows_what_one_that_is_reached_shows():
    def of(threshold, seed):
        options = {"n_iter": 3, "refit": True, "verbose": 2, "random_state": seed}
        search = DPThresholdSearchCV(NoisyCentroids(), SPACE, threshold=threshold, **options)
        return shown(search), search.found_

    (none, lost), *others = of(2.0, 0), *(of(0.0, seed) for seed in range(4))
    assert not lost
    assert any(found for _, found in others)
    assert [lines for lines, _ in others] == [none] * 4
