"""What workers could not do is told by kind, in fixed words; no word of the error itself, which may
quote a record."""

from __future__ import annotations

import errno
import re
import traceback

import pytest

from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.search._execution.workers import (
    LeakDetected,
    Threads,
    attempt,
    error_in_fixed_words,
)
from sklearn_dpsearch.search._private_process import EndedError

from .toys import SEARCHES, NoisyCentroids, search_of, two_blobs

X, y = two_blobs(200)
SECRET = "record 17 has 4.25"
FAILURES = {
    "memory": (MemoryError(SECRET), "not enough memory.*n_jobs"),
    "dead workers": (
        type("KilledWorker", (Exception,), {})(SECRET),
        "Workers of the cluster ended",
    ),
    "no workers": (TimeoutError(SECRET), "has no workers"),
    "system": (OSError(errno.EMFILE, SECRET), "limits on processes, open files"),
    "anything else": (ValueError(SECRET), "need enough memory, this library"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_kind_has_its_own_remedy(name):
    error, message = FAILURES[name]
    text = str(error_in_fixed_words(error))
    assert re.search(message, text)
    assert SECRET not in text


def test_fixed_words_of_the_library_alone_are_kept():
    for error in (EndedError("ended"), PrivacyError("refused")):
        assert type(error_in_fixed_words(error)) is type(error)
        assert str(error_in_fixed_words(error)) == str(error)
    of_user = type("OfUser", (PrivacyError,), {})
    assert SECRET not in str(error_in_fixed_words(of_user(SECRET)))


def test_names_of_classes_are_not_told_either():
    """A class can be made at run time, with a name that quotes a record."""
    assert "17" not in str(error_in_fixed_words(type("Record_17_has_425", (Exception,), {})()))


@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, ValueError]
)
def test_whatever_one_candidate_of_several_raises_leaves_the_others(error):
    def work():
        raise error(SECRET)

    assert attempt(work) is None
    assert attempt(lambda: "done") == "done"


def test_a_leak_ends_the_search():
    def work():
        raise type("PrivacyLeakWarning", (Warning,), {})(SECRET)

    with pytest.raises(LeakDetected) as caught:
        attempt(work)
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("name", ["memory", "anything else"])
def test_every_search_says_so(kind, name, monkeypatch):
    error, message = FAILURES[name]

    def broken(workers, tasks, counter):
        raise error

    monkeypatch.setattr(Threads, "run", broken)
    with pytest.raises(RuntimeError, match=message) as caught:
        # some coins allow no run
        search_of(kind, NoisyCentroids(), {"shrink": [0.0, 0.5]}, random_state=0).fit(X, y)
    assert SECRET not in "".join(traceback.format_exception(caught.value, chain=True))
