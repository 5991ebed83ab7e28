"""A private process writes only in its own folders, and has no network."""

from __future__ import annotations

import errno
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PureDP
from sklearn_dpsearch.search import _private_process as private_process
from sklearn_dpsearch.search._private_process import in_own_process, privately

CONFINED = """
import sys, tempfile
from sklearn_dpsearch.search._sandbox import confine

sys.exit(not confine([tempfile.mkdtemp()]))
"""


@pytest.fixture(scope="module", autouse=True)
def kernel():
    if subprocess.run(
        [sys.executable, "-c", CONFINED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).returncode:
        pytest.skip("needs Landlock")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone"),
]


@pytest.fixture(params=["namespaces", "without"], autouse=True)
def way(request, monkeypatch):
    """As far as the system allows namespaces, and where it does not."""
    if request.param == "without":
        monkeypatch.setitem(private_process._SERVERS, True, private_process._SERVERS[False])


def tried(path, port):
    """Names of what a candidate tries in vain."""
    attempts = {
        "its folder": lambda: open(os.path.join(tempfile.mkdtemp(), "new"), "w").close(),
        "move there": lambda: os.rename(
            tempfile.mkdtemp(), os.path.join(tempfile.mkdtemp(), "moved")
        ),
        "semaphore": multiprocessing.Lock,
        "null device": lambda: open(os.devnull, "w").close(),
        "read": lambda: open(os.path.join(path, "old")).close(),
        "write": lambda: open(os.path.join(path, "old"), "r+").close(),
        "empty": lambda: os.truncate(os.path.join(path, "old"), 0),
        "make": lambda: open(os.path.join(path, "new"), "w").close(),
        "remove": lambda: os.unlink(os.path.join(path, "old")),
        "folder": lambda: os.mkdir(os.path.join(path, "folder")),
        "device": lambda: open(f"/dev/{os.getpid()}", "w").close(),
        "child": lambda: subprocess.run(
            ["touch", os.path.join(path, "new")], stderr=subprocess.DEVNULL, check=True
        ),
        "connect": lambda: socket.create_connection(("127.0.0.1", port), 5),
    }
    failed = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, subprocess.CalledProcessError):
            failed.append(name)
    return failed


REFUSED = {"write", "empty", "make", "remove", "folder", "device", "child", "connect"}


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "old").write_text("old")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(tmp_path), server.getsockname()[1]
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def in_a_run(path, port):
    return in_own_process(partial(tried, path, port))


@pytest.mark.parametrize("function", [tried, in_a_run])
def test_nothing_is_written_outside_and_nothing_is_reached(function, outside):
    assert set(privately(partial(function, *outside))) == REFUSED


def test_given_folders_may_be_written(tmp_path):
    assert privately(partial(_written, str(tmp_path / "kept")), writes=[str(tmp_path)]) == "kept"
    assert (tmp_path / "kept").read_text() == "kept"


def _written(path):
    with open(path, "w") as file:
        file.write("kept")
    return "kept"


def test_what_needs_the_network_is_not_confined(outside):
    assert privately(partial(_connected, outside[1]), writes=None)


def _connected(port):
    with socket.create_connection(("127.0.0.1", port), 5):
        return True


class Diary(LogisticRegression):
    """Writes a line for each fit."""

    def __init__(self, C=1.0, path=""):
        super().__init__(C=C)
        self.path = path

    def fit(self, X, y):
        with open(self.path, "a") as file:
            print(len(X), file=file)
        return super().fit(X, y)


def test_a_rehearsal_shows_what_would_fail_and_why(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    model = Diary(path=str(tmp_path / "diary"))
    options = {"n_iter": 2, "guarantee": PureDP(epsilon=1.0), "epsilon": None}
    search = DPRandomSearchCV(model, {"C": [1.0]}, **options)
    with pytest.raises(OSError, match="diary") as told:
        search.fit(X, y)
    assert told.value.errno in (errno.EACCES, errno.EROFS)
    assert any("temporary files" in note for note in told.value.__notes__)
    assert not list(tmp_path.iterdir())
