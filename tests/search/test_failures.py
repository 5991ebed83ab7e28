"""What joblib could not do is told by kind, in fixed words; no word of the error itself, which may quote a record."""

from __future__ import annotations

import errno
import os
import pickle
import re
import traceback
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.search.execution import tasks as _tasks
from sklearn_dpsearch.search.execution.failures import why

from .toys import SEARCHES, NoisyCentroids, search_of, two_blobs

X, y = two_blobs(200)
SECRET = "record 17 has 4.25"


class _RemoteTraceback(Exception):
    """What loky puts in the place of a cause that happened in another thread or process."""

    def __init__(self, tb):
        self.tb = tb


def from_elsewhere(error, cause):
    error.__cause__ = _RemoteTraceback(f'"""\n{SECRET}\n{type(cause).__name__}: {cause}\n"""')
    return error


FAILURES = {
    "full disk": (OSError(errno.ENOSPC, SECRET), "A disk is full.*JOBLIB_TEMP_FOLDER"),
    "quota": (OSError(errno.EDQUOT, SECRET), "A disk is full"),
    "full disk while sending": (
        from_elsewhere(pickle.PicklingError(SECRET), OSError(errno.ENOSPC, "No space left on device")),
        "A disk is full",
    ),
    "memory": (MemoryError(SECRET), "not enough memory.*n_jobs"),
    "dead worker": (TerminatedWorkerError(SECRET), "worker process ended.*n_jobs"),
    "dead pool": (BrokenProcessPool(SECRET), "worker process ended"),
    "pickling": (pickle.PicklingError(SECRET), "cannot be pickled.*n_jobs=1"),
    "other of the system": (OSError(errno.EMFILE, SECRET), "limits on processes and open files"),
    "anything else": (ValueError(SECRET), "must be picklable.*n_jobs=1"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_kind_has_its_own_remedy(name):
    error, message = FAILURES[name]
    text = str(why(error))
    assert re.search(message, text)
    assert SECRET not in text


def test_names_of_classes_are_not_told_either():
    """A class can be made at run time, with a name that quotes a record."""
    error = type("Record_17_has_425", (Exception,), {})()
    assert "17" not in str(why(error))


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("name", ["full disk", "dead worker", "anything else"])
def test_every_search_says_so(kind, name, monkeypatch):
    error, message = FAILURES[name]

    class Broken:
        def __init__(self, **_):
            pass

        def __call__(self, tasks):
            raise error

    monkeypatch.setattr(_tasks, "Counted", Broken)
    with pytest.raises(RuntimeError, match=message) as caught:
        search_of(kind, NoisyCentroids(), {"shrink": [0.0, 0.5]}, random_state=0).fit(X, y)  # some coins allow no run
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_real_full_device_is_recognised():
    with pytest.raises(OSError, match="No space") as caught, open("/dev/full", "wb", buffering=0) as device:
        device.write(np.ones(10).tobytes())
    assert "A disk is full" in str(why(caught.value))


class Unpicklable(NoisyCentroids):
    """Says so with a record in its words."""

    def __getstate__(self):
        raise pickle.PicklingError(SECRET)


def test_a_real_estimator_that_cannot_be_sent_is_told_apart():
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        DPRandomSearchCV(Unpicklable(), {}, n_iter=3, n_jobs=2, random_state=3).fit(X, y)
