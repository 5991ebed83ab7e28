"""Losers are not heard when they are freed, nor what they leave behind: garbage, threads, hooks, calls at exit."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import subprocess
import sys
import tempfile
import threading
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPThresholdSearchCV, NoModelError
from sklearn_dpsearch._process import muted
from sklearn_dpsearch.privacy import Fixed

from .._process.toys import state
from .toys import NoisyCentroids, two_blobs

pytestmark = [
    pytest.mark.usefixtures("unrehearsed"),  # a rehearsal of these candidates would fail
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*secret:Warning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
X, y = two_blobs(60)
SPACE = {"shrink": [0.0, 0.1]}


class Speaker:
    """Speaks in every way when it is freed."""

    def __del__(self):
        print("secret out")
        print("secret err", file=sys.stderr)
        os.write(1, b"secret descriptor\n")
        warnings.warn("secret warning", stacklevel=1)
        logging.getLogger("speaker").error("secret record")
        raise ValueError("secret exception")


def waits():
    try:
        yield
    finally:
        print("secret finally")


def noise():
    """Things that speak when they are freed."""
    waiting = waits()
    next(waiting)
    file = open(os.devnull)  # noqa: SIM115 - a ResourceWarning
    found = [Speaker(), waiting, file, tempfile.TemporaryDirectory(prefix="secret")]
    with contextlib.suppress(ImportError):
        from tqdm import tqdm

        found.append(tqdm(range(3), desc="secret bar", mininterval=0.0))
    return found


class Speaking(NoisyCentroids):
    """Leaves things behind that speak when they are freed: on itself, in cycles, in the frames of an error."""

    def __init__(self, where="self", shrink=0.0):
        super().__init__(shrink=shrink)
        self.where = where

    def fit(self, X, y):
        things = noise()
        if self.where == "self":
            self.things_ = things
        elif self.where == "cycle":
            self.things_ = [things, self]
        elif self.where == "garbage":
            things.append(things)
        elif self.where == "error":
            raise ValueError(things)
        return super().fit(X, y)

    def __getstate__(self):
        if hasattr(self, "centroids_"):
            print("secret state")
        return {name: value for name, value in vars(self).items() if name != "things_"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "centroids_" in state:  # a loser, and not what it was made from
            print("secret state")
            self.things_ = [Speaker(), self]


def searches(where):
    model = Speaking(where)
    return {
        "random": DPRandomSearchCV(model, SPACE, n_iter=Fixed(6)),
        "refit": DPRandomSearchCV(model, SPACE, n_iter=Fixed(6), refit=True),
        "all": DPRandomSearchCV(model, SPACE, n_iter=Fixed(4), release="all"),
        "grid": DPGridSearchCV(model, SPACE, n_parts=3, selection_epsilon=1.0),
        "threshold": DPThresholdSearchCV(model, SPACE, threshold=0.4, n_iter=30, random_state=0),
    }


@pytest.fixture
def heard(capfd, caplog, monkeypatch):
    """All that is said, as text, whenever it is called."""
    with contextlib.suppress(ImportError):  # its watching thread belongs to the process, and to no candidate
        from tqdm import tqdm

        tqdm(range(1), file=io.StringIO()).close()
    hooked = []
    for owner, name in ((threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(owner, name, lambda args: hooked.append(f"secret hook {args.exc_value}"))
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        yield lambda: "".join([*capfd.readouterr(), caplog.text, *map(str, shown), *hooked])
        gc.collect()  # winners: the next test would hear them


def test_the_toys_can_be_heard(heard):
    """Or the tests below would see nothing anyhow."""
    for where in ("self", "cycle", "garbage"):
        Speaking(where).fit(X, y)
        gc.collect()
        said = heard()
        for way in ("out", "err", "descriptor", "warning", "record", "finally", "hook"):
            assert f"secret {way}" in said
        assert "ResourceWarning" in said


@pytest.mark.parametrize("where", ["self", "cycle", "garbage", "error"])
@pytest.mark.parametrize("which", ["random", "refit", "all", "grid", "threshold"])
def test_losers_are_freed_unheard(which, where, heard):
    search = searches(where)[which]
    with contextlib.suppress(NoModelError):
        search.fit(X, y)
    gc.collect()
    assert "secret" not in heard()


@pytest.mark.parametrize("where", ["self", "cycle", "garbage", "error"])
@pytest.mark.parametrize("backend", ["threading", "multiprocessing", pytest.param("loky", marks=pytest.mark.slow)])
def test_losers_are_freed_unheard_in_workers_too(backend, where, heard):
    get_reusable_executor().shutdown(wait=True)  # its processes would write where an earlier test did
    search = searches(where)["random"]
    with parallel_config(backend=backend, n_jobs=2), contextlib.suppress(NoModelError):
        search.fit(X, y)
    get_reusable_executor().shutdown(wait=True)
    gc.collect()
    assert "secret" not in heard()


def test_the_winner_is_heard_again_when_it_is_freed(heard):
    search = searches("self")["random"].fit(X, y)
    assert not heard()
    del search.best_estimator_
    gc.collect()
    assert heard().count("secret descriptor") == 1


def test_garbage_that_another_thread_happens_to_collect_is_freed_unheard(heard):
    """A thread that nobody silenced speaks, but for what it frees."""

    def collect():
        go_on.wait(30)
        gc.collect()
        print("public")

    go_on, collector = threading.Event(), threading.Thread(target=collect)
    collector.start()
    gc.disable()
    try:
        with muted():
            speakers = [Speaker()]
            speakers.append(speakers)
            del speakers
            go_on.set()
            collector.join()
    finally:
        gc.enable()
    assert heard().split() == ["secret", "descriptor", "public"]  # which belongs to the whole process


class Announced:
    """A distribution that says when it is drawn from: as often as there are candidates."""

    def rvs(self, random_state=None):
        print("secret draw")
        return 0.0


def test_drawing_candidates_is_unheard(heard):
    DPRandomSearchCV(NoisyCentroids(), {"shrink": Announced()}, n_iter=Fixed(5)).fit(X, y)
    assert heard().count("secret draw") <= 1  # a look at what kind of values it draws, before records are used


class Threads(NoisyCentroids):
    """Starts threads: one that fails, one that goes on after the end, and a timer."""

    go_on, left = threading.Event(), []

    def fit(self, X, y):
        failing = threading.Thread(target=self._fail, args=(X,))
        failing.start()
        failing.join()
        later = [threading.Thread(target=self._speak), threading.Timer(0.05, self._speak)]
        for thread in later:
            thread.start()
        self.left.extend(later)
        return super().fit(X, y)

    @staticmethod
    def _fail(X):
        raise ValueError(f"secret {X[0]}")

    @classmethod
    def _speak(cls):
        cls.go_on.wait(30)
        print("secret out")
        print("secret err", file=sys.stderr)
        logging.getLogger("thread").error("secret record")
        warnings.warn("secret warning", stacklevel=1)
        raise ValueError("secret exception")


def test_threads_that_a_candidate_leaves_running_stay_silent_for_as_long_as_they_live(heard):
    before = state(filters=False)
    Threads.go_on.clear()
    DPRandomSearchCV(Threads(), {"shrink": [0.0]}, n_iter=Fixed(3)).fit(X, y)
    print("public")
    Threads.go_on.set()
    for thread in Threads.left:
        thread.join(30)
    for thread in threading.enumerate():
        if thread.name == "silence":
            thread.join(30)
    assert len(Threads.left) == 6
    assert heard().splitlines() == ["public"]
    assert state(filters=False) == before


@pytest.mark.parametrize("owner", [threading, sys])
def test_hooks_that_are_replaced_while_a_candidates_thread_lives_on_hear_no_loser(owner, heard, monkeypatch):
    Threads.go_on.clear()
    Threads.left.clear()
    DPRandomSearchCV(Threads(), {"shrink": [0.0]}, n_iter=Fixed(1)).fit(X, y)
    name = {threading: "excepthook", sys: "unraisablehook"}[owner]
    late = []
    monkeypatch.setattr(owner, name, late.append)
    searches("garbage")["random"].fit(X, y)
    gc.collect()
    Threads.go_on.set()
    watching = [thread for thread in threading.enumerate() if thread.name == "silence"]
    for thread in [*Threads.left, *watching]:
        thread.join(30)
    assert late == []
    assert getattr(owner, name) == late.append


AT_EXIT = """
import atexit
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed
from tests.search.toys import NoisyCentroids, two_blobs

def speak(text):
    print(text)
    open({path!r}, "a").write("called ")
    raise ValueError("secret")

class Leaves(NoisyCentroids):
    def fit(self, X, y):
        atexit.register(speak, "secret")
        atexit.register(unwanted)
        atexit.unregister(unwanted)
        return super().fit(X, y)

def unwanted():
    open({path!r}, "a").write("unwanted ")

DPRandomSearchCV(Leaves(), {{"shrink": [0.0]}}, n_iter=Fixed(3), rehearse=False).fit(*two_blobs(60))
atexit.register(print, "public")
"""


def test_calls_at_exit_that_candidates_asked_for_are_made_unheard(tmp_path):
    path = tmp_path / "calls"
    script = AT_EXIT.format(path=str(path))
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    assert (said.stdout, said.stderr) == ("public\n", "")
    assert path.read_text() == "called called called "


class Warns(NoisyCentroids):
    def fit(self, X, y):
        for level in (1, 2, 3, 99):
            warnings.warn(f"secret {X[0, 0]}", stacklevel=level)
        return super().fit(X, y)


@pytest.mark.parametrize("action", ["default", "module", "once"])
def test_python_remembers_no_text_of_a_private_warning(action):
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        DPRandomSearchCV(Warns(), {"shrink": [0.0]}, n_iter=Fixed(2)).fit(X, y)
        remembered = [vars(module).get("__warningregistry__") for module in [*sys.modules.values()]]
        assert "secret" not in repr(remembered) + repr(warnings.onceregistry)


class Pretending:
    """Among the modules, as cffi's libraries are."""

    __class__ = type(sys)


@pytest.mark.parametrize("before", [None, {}, {"version": 0, ("public", UserWarning, 1): True}])
def test_what_modules_remember_does_not_tell_whether_a_candidate_was_warned(before, monkeypatch):
    """Python makes a registry where there is none, and empties one from before."""
    here = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "only_says_that_it_is_a_module", Pretending())
    monkeypatch.setattr(here, "__warningregistry__", {}, raising=False)
    if before is None:
        monkeypatch.delattr(here, "__warningregistry__")
    else:
        here.__warningregistry__.update(before)
    DPRandomSearchCV(Warns(), {"shrink": [0.0]}, n_iter=Fixed(2)).fit(X, y)
    assert vars(here).get("__warningregistry__") == before


@pytest.mark.parametrize("action", ["default", "module", "once"])
def test_what_other_threads_are_warned_of_meanwhile_is_remembered(action):
    def candidate():
        with muted():
            warnings.warn("secret", stacklevel=1)
            inside.set()
            leave.wait(30)

    inside, leave = threading.Event(), threading.Event()
    with warnings.catch_warnings(record=True) as shown:
        warnings.resetwarnings()
        warnings.simplefilter(action)
        thread = threading.Thread(target=candidate)
        thread.start()
        inside.wait(30)
        for _ in range(3):
            warnings.warn("public", stacklevel=1)
        leave.set()
        thread.join()
    assert [str(one.message) for one in shown] == ["public"]


def test_an_error_leaves_no_loser_behind():
    """The frames under it are gone before the silence ends."""
    alive = []

    class Counts(NoisyCentroids):
        def fit(self, X, y):
            alive.append(1)
            self.thing_ = Freed(alive)
            raise ValueError(self)

    class Freed:
        def __init__(self, alive):
            self.alive = alive

        def __del__(self):
            self.alive.pop()

    with pytest.raises(NoModelError):
        DPRandomSearchCV(Counts(), {"shrink": [0.0]}, n_iter=Fixed(3)).fit(X, np.zeros_like(y))
    assert not alive
