"""What a private process starts, names and sends ends with it, and tells nothing of how many there
were."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.search import _private_process as private_process
from sklearn_dpsearch.search._private_process import PrivateProcess, in_own_process, privately
from sklearn_dpsearch.search._sandbox import LOCK, PREFIX, PrivateFolder

from .toys import NoisyCentroids, fit_of_runs, soon, two_blobs

ROOT = Path(__file__).parents[2]
X, y = two_blobs(60)
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]


@pytest.fixture
def apart():
    """Namespaces, where the system allows them."""
    with PrivateProcess(os.getpid) as process:
        if process.start():
            pytest.skip(f"the system has no such walls: {process.start()}")


@pytest.fixture
def without(monkeypatch):
    """A system without namespaces."""
    monkeypatch.setitem(private_process._SERVERS, True, private_process._SERVERS[False])


class Looking(NoisyCentroids):
    """Keeps all that tells of other processes, and leaves traces for them."""

    def fit(self, X, y):
        is_first = os.readlink("/proc/self") == "1"
        processes = [name for name in os.listdir("/proc") if name.isdigit()] if is_first else []
        self.seen_ = [
            os.getpid(), os.getppid(), tempfile.gettempdir(),
            sorted(os.listdir(tempfile.gettempdir())), sorted(os.listdir("/dev/shm")), processes,
        ]  # fmt: skip
        open(os.path.join(tempfile.gettempdir(), "left"), "w").close()
        self.memory_ = SharedMemory("left", create=True, size=8).size
        subprocess.Popen(["sleep", "86321"], start_new_session=True)
        return super().fit(X, y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_run_sees_nothing_of_others_and_what_it_starts_ends_with_it(apart, n_jobs):
    two, nine = (fit_of_runs(Looking(), runs, n_jobs=n_jobs).best_estimator_ for runs in (2, 9))
    assert two.seen_ == nine.seen_
    assert two.seen_[:2] == [1, 0]
    assert two.seen_[3:5] == [[], []]
    assert set(two.seen_[5]) <= {"1"}
    assert not Path("/dev/shm/left").exists()
    assert soon(
        lambda: not [one for one in Path("/proc").glob("[0-9]*/cmdline") if "86321" in _text(one)]
    )


def _text(path):
    with contextlib.suppress(OSError):
        return path.read_text()
    return ""


def test_processes_of_joblib_work_inside_of_a_run_and_end_with_it(apart):
    assert privately(_of_joblib) == [16, 25]
    assert privately(_with_joblib_in_a_run) == [16, 25]


def _of_joblib():
    return Parallel(n_jobs=2, backend="loky")(delayed(pow)(number, 2) for number in (4, 5))


def _with_joblib_in_a_run():
    return in_own_process(_of_joblib)


@pytest.mark.slow
def test_loaders_of_torch_work_inside_of_a_run():
    """Their workers share tensors by sockets with a path, unless they are sent by value."""
    torch = pytest.importorskip("torch")

    def total():
        data = torch.utils.data.TensorDataset(torch.arange(100.0))
        parts = torch.utils.data.DataLoader(data, batch_size=10, num_workers=2)
        return sum(float(part.sum()) for (part,) in parts)

    def totals():
        return total(), in_own_process(total)

    assert privately(totals) == (4950.0, 4950.0)


def test_no_socket_with_a_path_is_reached(tmp_path):
    """As handlers of the system's log, databases and services listen at."""
    if any("sockets" in one for one in PrivateProcess(os.getpid).start()):
        pytest.skip("the system cannot filter sockets")
    path = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(path)
        log.settimeout(0.2)
        assert privately(_Says(path)) == [errno.EAFNOSUPPORT, errno.EAFNOSUPPORT, b"pair"]
        with pytest.raises(TimeoutError):
            log.recv(100)


class _Says:
    def __init__(self, path):
        self.path = path

    def __call__(self):
        return [self.said(), in_own_process(self.said), in_own_process(_through_a_pair)]

    def said(self):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.sendto(b"secret", self.path)
        except OSError as error:
            return error.errno


def _through_a_pair():
    """Through a pair of sockets; and those that CUDA needs can be made."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.bind("\0needed")
        one.listen()
    one, other = socket.socketpair()
    one.send(b"pair")
    return other.recv(4)


@pytest.mark.slow
def test_an_array_in_a_file_of_shared_memory_is_read(apart):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        array = np.memmap(Path(folder) / "array", float, "w+", shape=(100, 100))
        array[:] = 2.0

        def total():
            return float(array.sum())

        def totals():
            return total(), in_own_process(total)

        assert privately(totals, [array]) == (20_000.0, 20_000.0)


@pytest.mark.slow
def test_each_process_reads_for_itself_where_a_fork_could_not_use_what_was_read(apart, monkeypatch):
    """As after the use of a GPU: neither the holder nor a copy of it could use one."""
    monkeypatch.setattr(private_process, "_uses_cuda", lambda: True)
    search = fit_of_runs(NoisyCentroids(), 2)
    assert search.best_estimator_.predict(X).shape == y.shape
    assert not walls_in(search)


# --- what is stated -------------------------------------------------------------------------------


def walls_in(search):
    return [one for one in search.privacy_spent_.assumptions if "no wall" in one]


def test_the_statement_names_the_walls_that_are_missing(without):
    search = fit_of_runs(NoisyCentroids(), 2)
    (stated,) = walls_in(search)
    assert "the network, " in stated
    assert "processes and their memory" in stated
    assert search.best_estimator_.predict(X).shape == y.shape


def test_nothing_is_stated_where_all_walls_stand(apart):
    assert not walls_in(fit_of_runs(NoisyCentroids(), 2))


@pytest.mark.slow
def test_where_nothing_is_forked_no_wall_stands(monkeypatch):
    monkeypatch.setattr(private_process.ROLE, "forks", False)
    (stated,) = walls_in(fit_of_runs(NoisyCentroids(), 2))
    assert "way of files, the network" in stated


# --- before anything is spent ---------------------------------------------------------------------

PROGRAM = """
import os, sys, tempfile
from pathlib import Path
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import PureDP

X = np.random.default_rng(0).normal(size=(40, 2))
y = (X[:, 0] > 0).astype(int)
told = os.fdopen(os.dup(1), "w") if sys.argv[1] != "streams" else open(sys.argv[2], "w")

def fitted():
    declared = {"guarantee": PureDP(epsilon=1.0), "n_iter": 2}
    search = DPRandomSearchCV(LogisticRegression(), {"C": [1.0]}, **declared)
    return search.fit(X, y).best_estimator_.coef_.shape

if sys.argv[1] == "streams":
    for number in range(3):
        os.close(number)
if sys.argv[1] == "folder":
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
if sys.argv[1] == "path":
    sys.path.insert(0, Path("/nowhere"))
if sys.argv[1] == "copy":
    print(fitted(), file=told, flush=True)
    if os.fork() == 0:
        print(fitted(), file=told, flush=True)
        os._exit(0)
    os.wait()
print(fitted(), file=told, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["streams", "folder", "path", "copy"])
def test_a_program_may_have_closed_its_streams_or_lost_its_folder(odd, tmp_path):
    file = tmp_path / "told"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, odd, str(file)], env=environment, capture_output=True
    )
    told = file.read_text() if odd == "streams" else done.stdout.decode()
    assert told == "(1, 2)\n" * (3 if odd == "copy" else 1), done.stderr


@pytest.mark.parametrize("makes", ["search", "rounds"])
def test_what_keeps_a_private_process_from_starting_costs_nothing(makes, monkeypatch, tmp_path):
    from .toys import doubling, refuses_to_fit

    monkeypatch.setattr(
        private_process._Child, "holding", classmethod(lambda cls, *given: _Ended())
    )
    search = DPRandomSearchCV(NoisyCentroids(), {}, n_iter=2, rehearse=False)
    if makes == "search":
        refuses_to_fit(search, private_process.PrivateProcessError, "could not be started", X, y)
        return
    walk = doubling(NoisyCentroids(), {}, round_epsilon=1.0, n_parts=2, rehearse=False)
    with pytest.raises(private_process.PrivateProcessError, match="could not be started"):
        list(walk.rounds(X, y, [[{}]]))
    assert not hasattr(walk, "privacy_spent_")


class _Ended(private_process._Child):
    """A process that has ended at once."""

    def __init__(self):
        ours, theirs = socket.socketpair()
        theirs.close()
        super().__init__(private_process.Connection(ours.detach()), contextlib.ExitStack())


# --- the end --------------------------------------------------------------------------------------

WRITES = """
import os, sys, tempfile, time
from functools import partial
from sklearn_dpsearch.search import _private_process as private_process

if sys.argv[1] == "spawn":
    private_process.ROLE.forks = False
if sys.argv[1] == "without":
    private_process._SERVERS[True] = private_process._SERVERS[False]

def writes(last=False):
    with open(os.path.join(tempfile.gettempdir(), "record"), "w") as file:
        file.write("secret")
    if last:
        with open(sys.argv[2] if len(sys.argv) > 2 else os.environ["WRITTEN"], "w"):
            pass
        time.sleep(600)
    private_process.in_own_process(partial(writes, True))

folder = os.path.dirname(os.environ["WRITTEN"])
private_process.privately(writes, [b"secret" * 1000], writes=[folder])
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["namespaces", "without", "spawn"])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_no_record_stays_on_the_disk_after_a_signal_to_all_processes(way, end, tmp_path):
    written, folder = tmp_path / "kept" / "written", tmp_path / "temporary"
    written.parent.mkdir()
    folder.mkdir()
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "TMPDIR": str(folder),
        "WRITTEN": str(written),
    }  # fmt: skip
    stderr = subprocess.DEVNULL
    user = subprocess.Popen([sys.executable, "-c", WRITES, way], env=environment, stderr=stderr)
    try:
        assert soon(written.exists, 120)
        every = _with_mark(str(written))
        assert len(every) >= 3
        for number in every:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, end)
        user.wait(30)
        assert soon(lambda: not _with_mark(str(written)))
    finally:
        user.kill()
        user.wait()
    if end == signal.SIGTERM:
        assert soon(lambda: not list(folder.rglob("*"))), list(folder.rglob("*"))
    else:
        _someone_starts(folder)
        assert not list(folder.rglob("*"))


def _with_mark(mark):
    """Processes with a text in their environment that have not ended."""
    found = []
    for one in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in one.read_bytes():
                found.append(int(one.parent.name))
    return found


def _someone_starts(folder):
    code = "from sklearn_dpsearch.search._sandbox import PrivateFolder; PrivateFolder().close()"
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "TMPDIR": str(folder),
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_only_folders_without_a_process_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned = tmp_path / f"{PREFIX}abandoned"
    abandoned.mkdir()
    (tmp_path / f"{PREFIX}abandoned{LOCK}").touch()
    (abandoned / "record").write_text("secret")
    with PrivateFolder() as one:
        with PrivateFolder() as other:
            assert {str(path) for path in tmp_path.iterdir() if path.is_dir()} == {one, other}
        assert os.path.isdir(one)
    assert not list(tmp_path.iterdir())
