"""Private work in a process of its own: nothing of it is seen outside, and it ends with whoever
asked for it."""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from joblib import cpu_count

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, NoModelError
from sklearn_dpsearch._process import Stage, is_private, threads_now
from sklearn_dpsearch.privacy import Fixed, PrivacyError
from sklearn_dpsearch.search import _private_process as private_process
from sklearn_dpsearch.search._pickling import Code, Packed, pickled, unpickled
from sklearn_dpsearch.search._private_process import (
    EndedError,
    PrivateProcess,
    PrivateProcessError,
    in_own_process,
    privately,
)

from .toys import NoisyCentroids, refuses_to_fit, soon, two_blobs

fcntl = pytest.importorskip("fcntl")
ROOT = Path(__file__).parents[2]
X, y = two_blobs(60)
SPACE = {"shrink": [0.0, 0.1]}

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]


@pytest.fixture(params=["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def start(request, monkeypatch):
    """Both ways of starting processes."""
    if request.param == "fork" and sys.platform != "linux":
        pytest.skip("forks, on Linux")
    monkeypatch.setattr(private_process.ROLE, "forks", request.param == "fork")


# --- nothing is seen outside ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_that_a_process_can_see_tells_how_many_runs_there_were(tmp_path):
    code = "from tests.search.seen_from_outside import main; main()"
    path = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    options = {"cwd": ROOT, "capture_output": True, "check": True}
    done = subprocess.run([sys.executable, "-c", code], env=environment, **options)
    assert b"secret" not in done.stdout + done.stderr
    for two, nine in json.loads(done.stdout):
        assert two == nine
        assert two["runs"] == two["records of a patched fit"] == []
        assert two["model"][:2] == ["model_1", 1]


def counts(state=[0]):  # noqa: B006  # state of the module, on purpose
    state[0] += 1
    return state[0]


GENERATOR, OLD, PYTHON = np.random.default_rng(), np.random.RandomState(3), random.Random(3)


def of_this_module():
    return GENERATOR.normal(), OLD.normal(), PYTHON.random()


@pytest.mark.slow
def test_runs_side_by_side_share_the_processors():
    def threads():
        pairs = itertools.product((-1, 10**6, None), (None, 1))
        return [in_own_process(partial(threads_now, n_jobs), most) for n_jobs, most in pairs]

    assert privately(threads) == [cpu_count(), 1, cpu_count(), 1, 1, 1]


def test_each_process_draws_noise_of_its_own():
    """Also from generators of modules, of scripts' functions and of objects, and from methods of
    the global ones."""
    own, normal, gauss = np.random.default_rng(5), np.random.normal, random.gauss
    old = np.random.RandomState(5)
    old.normal()  # keeps another number for the next draw

    def draw():
        drawn = [
            own.random(), old.normal(), normal(), gauss(0, 1), np.random.random(), random.random(),
        ]  # fmt: skip
        return [*drawn, *of_this_module()]

    def draws():
        return [in_own_process(draw) for _ in range(3)] + [draw()]

    for numbers in zip(*privately(draws), *privately(draws), draw()):
        assert len({*numbers}) == 9


def test_generators_of_torch_draw_noise_of_their_own():
    torch = pytest.importorskip("torch")
    own = torch.Generator().manual_seed(3)

    def draw():
        return (
            float(torch.rand(1, generator=own)),
            float(torch.rand(1)),
            float(torch.rand(1, generator=torch.default_generator)),
        )

    def draws():
        return [in_own_process(draw) for _ in range(3)]

    for numbers in zip(*privately(draws), *privately(draws)):
        assert len({*numbers}) == 6


@pytest.mark.slow
def test_temporary_files_are_private_and_gone(start):
    def write():
        with open(tempfile.mkstemp()[1], "w") as file:
            file.write("secret")
        return tempfile.gettempdir(), len(os.listdir(tempfile.gettempdir()))

    def runs():
        return [write(), in_own_process(write), in_own_process(write)]

    found = privately(runs)
    assert [number for _, number in found[1:]] == [1, 1]
    assert soon(lambda: not [file for folder, _ in found for file in _files(folder)])


def _files(folder):
    return [name for *_, names in os.walk(folder) for name in names]


# --- errors ---------------------------------------------------------------------------------------


def fails(error):
    raise error


@pytest.mark.parametrize(
    "error", [ValueError("secret"), KeyboardInterrupt("secret"), SystemExit("secret")]
)
def test_errors_come_in_fixed_words(start, error):
    with pytest.raises(PrivateProcessError, match="could depend on the records") as told:
        privately(partial(fails, error))
    assert "secret" not in repr(told.value)
    assert told.value.__cause__ is told.value.__context__ is None


def test_the_librarys_own_errors_come_as_they_are(start):
    with pytest.raises(NoModelError, match="no candidate"):
        privately(partial(fails, NoModelError("no candidate")))


def killed():
    os.abort()


@pytest.mark.slow
def test_a_process_that_ends_early_says_what_usually_ends_it(start):
    with pytest.raises(EndedError, match="for want of memory"):
        privately(killed)
    assert privately(partial(in_own_process, killed)) is None


class Crashing(NoisyCentroids):
    """Ends its process where a parameter says so."""

    def fit(self, X, y):
        if self.shrink:
            killed()
        return super().fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_run_that_crashes_is_a_failing_candidate(n_jobs, unrehearsed):
    search = DPRandomSearchCV(Crashing(), SPACE, n_iter=Fixed(12), n_jobs=n_jobs).fit(X, y)
    assert search.best_params_ == {"shrink": 0.0}
    options = {"n_parts": 2, "selection_epsilon": 1.0, "n_jobs": n_jobs}
    grid = DPGridSearchCV(Crashing(), {"shrink": [0.1]}, **options)
    with pytest.raises(NoModelError):
        grid.fit(X, y)


def test_what_cannot_be_pickled_costs_nothing():
    search = DPRandomSearchCV(Locked(), SPACE, rehearse=False)
    refuses_to_fit(search, PrivacyError, "cannot be pickled: cannot pickle '_thread.lock'", X, y)


class Locked(NoisyCentroids):
    """Holds a lock, as connections do."""

    def __init__(self, epsilon=1.0, shrink=0.0, random_state=None):
        super().__init__(epsilon, shrink, random_state)
        self.lock = __import__("threading").Lock()


class Secret:
    """Quotes itself when it is pickled."""

    def __reduce__(self):
        raise TypeError("secret")


def test_records_that_cannot_be_pickled_are_not_quoted():
    with pytest.raises(PrivacyError, match="records or public data") as told:
        privately(is_private, [np.array([Secret()], object)])
    assert "secret" not in repr(told.value)
    assert told.value.__context__ is None


# --- what travels ---------------------------------------------------------------------------------


def test_arrays_are_shared_and_writing_changes_nobodys(start):
    shared = [np.arange(10.0), np.zeros((3, 4), order="F"), np.array(["a", None], object)]

    def change():
        shared[0][:] = -1
        return float(shared[0].sum())

    def changes():
        return (
            in_own_process(change), float(shared[0].sum()), shared[1].flags.f_contiguous,
            shared[2].tolist(),
        )  # fmt: skip

    assert privately(changes, shared) == (-10.0, 45.0, True, ["a", None])
    assert shared[0].sum() == 45.0


def test_an_array_in_a_file_travels_as_its_place(tmp_path):
    array = np.memmap(tmp_path / "array", float, "w+", shape=(1000, 100))
    array[:] = 2.0
    packed = Packed.of([array], Code())
    assert packed.content.nbytes < 10_000
    assert float(packed.read()[1][0].sum()) == 200_000.0
    packed.close()
    part = Packed.of([array[:10]], Code())
    assert part.content.nbytes > 8000
    part.close()
    (tmp_path / "array").rename(tmp_path / "other")
    packed = Packed.of([array], Code())  # by its values
    (tmp_path / "other").rename(tmp_path / "array")
    assert float(packed.read()[1][0].sum()) == 200_000.0
    packed.close()
    packed = Packed.of([array], Code())
    array.flush()
    os.truncate(tmp_path / "array", 100)
    with pytest.raises(PrivateProcessError, match=r"memmap must be there, unchanged"):
        _with_packed(packed)


def _with_packed(packed):
    process = PrivateProcess(is_private)
    process._packed.close()
    process._packed = packed
    with process:
        return process()


def test_shared_objects_are_named_and_not_sent_again():
    big = np.zeros(10**6)
    assert len(pickled(partial(float, big), [big])) < 1000
    assert unpickled(pickled(partial(np.sum, big), [big]), [big]).args[0] is big


def test_progress_comes_while_the_work_goes_on(start):
    def speaks():
        private_process.tell(Stage("one"))
        private_process.tell(Stage("two", 1, 3))
        return is_private()

    told = []
    with PrivateProcess(speaks) as process:
        assert process(tell=told.append)
    assert told == [Stage("one"), Stage("two", 1, 3)]
    assert not is_private()


@pytest.mark.slow
def test_a_process_is_called_until_it_is_closed(start):
    with PrivateProcess(counts) as process:
        assert [process() for _ in range(3)] == [1, 2, 3]


# --- the end --------------------------------------------------------------------------------------


def _alive(pid):
    """Whether a process is there; one that nobody waits for has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _private(mark):
    """Numbers of processes that were started with a text in their environment, and not by this
    process."""
    found = []
    for one in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if (
                mark.encode() in one.read_bytes()
                and "serving import" in one.with_name("cmdline").read_text()
            ):
                found.append(int(one.parent.name))
    return found


ENDLESS = """
import os, signal, sys, time
from functools import partial
from sklearn_dpsearch.search import _private_process as private_process

private_process.ROLE.forks = sys.argv[1] == "fork"
signal.signal(signal.SIGINT, signal.default_int_handler)  # which background jobs of a shell ignore

def endless(last=False):
    with open(os.environ["PIDS"], "a") as file:
        print(os.getpid(), file=file)
    if not last:
        private_process.in_own_process(partial(endless, last=True))
    while True:
        time.sleep(60)

private_process.privately(endless, writes=[os.path.dirname(os.environ["PIDS"])])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("way", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_private_processes_end_with_the_users_and_leave_nothing(way, end, tmp_path):
    pids, folder = tmp_path / "pids", tmp_path / "temporary"
    folder.mkdir()
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder),
        "PIDS": str(pids),
    }  # fmt: skip
    stderr = subprocess.DEVNULL
    user = subprocess.Popen([sys.executable, "-c", ENDLESS, way], env=environment, stderr=stderr)
    try:
        assert soon(lambda: pids.exists() and len(pids.read_text().split()) == 2, 120)
        private = _private(str(pids))
        assert len(private) >= 2
        since = time.monotonic()
        user.send_signal(end)
        user.wait(30)
        assert soon(lambda: not any(map(_alive, private)))
        assert time.monotonic() - since < 20
    finally:
        user.kill()
        user.wait()
    assert soon(lambda: not list(folder.iterdir())), list(folder.rglob("*"))
    assert not [name for name in os.listdir("/dev/shm") if str(user.pid) in re.split("[_.-]", name)]


def waits(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("locked")
        file.flush()
        while True:  # looks at no connection
            time.sleep(60)


def _is_free(path):
    with open(path) as file, contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@pytest.mark.slow
def test_an_interrupt_ends_the_process_and_is_raised(interruptible, tmp_path):
    path = tmp_path / "pid"

    def presses():
        soon(lambda: path.exists() and path.read_text(), 120)
        os.kill(os.getpid(), signal.SIGINT)

    with PrivateProcess(partial(waits, str(path)), writes=[str(tmp_path)]) as process:
        threading.Thread(target=presses).start()
        with pytest.raises(KeyboardInterrupt):
            process()
    assert soon(lambda: _is_free(path))


def test_threads_that_ask_first_at_the_same_time_share_a_server(monkeypatch):
    """Two servers were started; one of them ended, and with it the work that it had begun."""
    monkeypatch.setitem(private_process._SERVERS, True, private_process._Server(True))
    with ThreadPoolExecutor(8) as pool:
        actual = list(pool.map(lambda number: privately(partial(abs, number)), range(-16, 0)))
        assert actual == list(range(16, 0, -1))
        assert len({id(private_process._SERVERS[True].asks()) for _ in range(8)}) == 1
    private_process._SERVERS[True].close()


# --- where searches run ---------------------------------------------------------------------------


def fitted(n_jobs=None):
    options = {"n_iter": 3, "n_jobs": n_jobs, "random_state": 0}
    return DPRandomSearchCV(NoisyCentroids(), SPACE, **options).fit(X, y).best_score_


@pytest.mark.slow
def test_a_search_is_the_same_where_nothing_is_forked(monkeypatch):
    forked = fitted()
    monkeypatch.setattr(private_process.ROLE, "forks", False)
    assert fitted() == forked


@pytest.mark.slow
def test_a_search_runs_inside_of_daemonic_workers():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(fitted) == fitted()


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_module_of_a_script_is_trained_and_comes_back_as_the_same_class(n_jobs):
    pytest.importorskip("skorch")
    script = Path(__file__).with_name("net_of_a_script.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    options = {"capture_output": True, "text": True, "timeout": 300, "env": environment}
    done = subprocess.run([sys.executable, str(script), str(n_jobs)], **options)
    assert (done.stdout, done.returncode) == ("True (500,)\n", 0), done.stderr
