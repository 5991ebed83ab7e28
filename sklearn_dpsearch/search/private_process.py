"""Private work in a process of its own: data and work go in, one value comes out.

The only file that knows processes. On Linux a server imports the libraries, and does nothing else. For each fit a
holder of the records is forked from it, and from the holder the work (which draws, runs and releases) and each run:

    user's process --asks--> server --forks--> holder --forks--> work --asks--> holder --forks--> run

So all runs start from one and the same state, of a process that has only imported: names, counters and caches tell
nothing, and no fork follows the use of OpenMP, which would hang. Elsewhere each process is started anew.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from sklearn import get_config, set_config
from threadpoolctl import threadpool_limits

from .._process import Stage, all_generators, become_private, is_private, refresh, reseed
from ..privacy import PrivacyError
from .pickling import Code, Packed, enter, pickled, unpickled
from .sandbox import confine

if sys.platform != "win32":
    import fcntl

Found = TypeVar("Found")
#: Receiver of public progress.
Tell = Callable[[Stage], None]

#: Packages whose modules the server imports if the user's process has, or a rehearsal: that starts no threads.
PACKAGES = (
    *("numpy", "scipy", "sklearn", "pandas", "torch", "sympy", "mpmath", "networkx", "skorch", "opacus"),
    *("diffprivlib", "dp_accounting", "interpret", __name__.partition(".")[0]),
)
#: Kinds of frames.
VALUE, ERROR, STAGE = b"v", b"e", b"s"
#: Kinds of requests: fork a holder of records and the work on them, fork a run from a holder, only import.
HOLD, RUN, IMPORT = b"h", b"r", b"i"
#: Most modules in a request.
MODULES = 500

ENDED = (
    "The private process of the search ended before its work did: usually the system ended it for want of memory, or "
    "compiled code crashed. The cost in privacy_spent_ is spent. Use fewer workers (n_jobs), and try the candidates on "
    "public or made-up records: dry_run()."
)
STOPPED = (
    "The search was stopped by an error whose source and text could depend on the records and are not shown. The cost "
    "in privacy_spent_ is spent. Try search.dry_run() on public or made-up records."
)
NOT_READ = (
    "A private process could not read what it was sent. It needs this library and the modules of estimators and "
    "scorers, in the same versions; the file of a numpy.memmap must be there, unchanged and under the same path."
)
NO_MODEL_TRAVELS = (
    "A result cannot leave its private process, because it cannot be pickled, or holds a class or function that was "
    "made inside of a function. Define classes and functions at the top of a module or script, and keep open files, "
    "locks and connections out of models. search.dry_run() shows a model."
)


class PrivateProcessError(RuntimeError):
    """Error for private work that ended without a result."""


class EndedError(PrivateProcessError):
    """Error for a private process that ended before its work did."""


def _ignore(stage: Stage) -> None:
    """Drop the stage."""


# --- the door ---------------------------------------------------------------------------------------------------------


def privately(
    work: Callable[[], Found], shared: Sequence[Any] = (), writes: Sequence[str] | None = (), tell: Tell = _ignore
) -> Found:
    """Do work in a process of its own, and return its value.

    Parameters
    ----------
    work : callable
    shared : sequence of object
        Records and other large objects in ``work``: one copy serves all processes.
    writes : sequence of str or None
        Folders in which the work may write, beside its temporary one. None: anywhere, and it has the network.
    tell : callable, optional
        Told the stages of the work, which are public.

    Raises
    ------
    PrivacyError
        If something cannot be pickled; before any work.
    PrivateProcessError
        If the work ends without a value: in fixed words, but for the library's own errors.
    """
    with PrivateProcess(work, shared, writes) as process:
        found: Found = process(tell=tell)
        return found


class PrivateProcess:
    """A process for private work: it is called as the work would be, until it is closed.

    Parameters
    ----------
    work : callable
        Its state stays there from call to call.
    shared : sequence of object
    writes : sequence of str or None
    """

    def __init__(self, work: Callable[..., Any], shared: Sequence[Any] = (), writes: Sequence[str] | None = ()) -> None:
        self._shared, self._writes, self.code = shared, writes, Code()
        self._prepare(pickled(work, shared, self.code), partial(Packed.of, shared, self.code))

    def _prepare(self, work: bytes, pack: Callable[[str | None], Packed]) -> None:
        self._work, self._child = work, None
        self._folder = None if _HERE.forks and not _uses_cuda() else tempfile.mkdtemp(prefix="private-")
        try:
            self._packed = pack(self._folder)
        except BaseException:
            self._remove()
            raise

    _child: _Child | None

    def __call__(self, *given: Any, tell: Tell = _ignore) -> Any:
        """Call the work there."""
        return value_of(self.answer(*given, tell=tell), self.code)

    def answer(self, *given: Any, tell: Tell = _ignore) -> bytes:
        """Answer to a call, still pickled."""
        if self._child is None:
            self._child = _Child.holding(self._packed)
            self._child.send(pickled(_Surroundings.here(self._writes)))
            self._child.send(self._work)
        return self._child.answer(pickled(given, self._shared, self.code), tell)

    def close(self) -> None:
        """End the process and all that it started."""
        if self._child is not None:
            self._child.close()
        self._packed.close()
        self._remove()

    def _remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def content_for_workers() -> np.ndarray:
    """The objects shared with this process, packed for workers on other machines."""
    assert _HERE.packed is not None
    return _HERE.packed.content


def for_workers(work: Callable[[], Any]) -> bytes:
    """Pickle work on the objects that are shared with this process."""
    return pickled(work, _HERE.shared)


def on_a_worker(work: bytes, content: np.ndarray) -> bytes:
    """Do work in a process of its own on a worker of a cluster; its answer is ``value_of`` what this returns.

    It never raises an error: clusters log the arguments of tasks that do.
    """
    process = object.__new__(PrivateProcess)
    process._shared, process._writes, process.code = (), None, Code()
    try:
        process._prepare(work, partial(Packed.copy_of, content))
        with process:
            return process.answer()
    except Exception:
        return ERROR + pickle.dumps((PrivateProcessError, NOT_READ))


def in_own_process(work: Callable[[], Found], threads: int | None = None) -> Found | None:
    """Do one run of private work in a process that only this run uses; None if it ends without a value.

    Whatever the reason: an error would tell of the record that caused it.

    Parameters
    ----------
    work : callable
    threads : int, optional
        Number of threads of linear algebra; by default the libraries' own.
    """
    child = _Child.of_this_holder()
    try:
        if not _HERE.forks:
            child.send(pickled(_Surroundings.here(_HERE.writes)))
        child.send(pickled(partial(_with_threads, work, threads), _HERE.shared))
        found: Found = value_of(child.answer(pickled(()), _ignore))
        return found
    except PrivateProcessError:
        return None
    finally:
        child.close()


def tell(stage: Stage) -> None:
    """Report public progress from private work."""
    _HERE.tell(stage)


# --- a child and its frames -------------------------------------------------------------------------------------------


class _Child:
    """Connection to a process, which ends with all that it has started when the connection is closed.

    Parameters
    ----------
    connection : Connection
        Frames, both ways.
    life : Connection or ExitStack
        Closing it ends the process, whatever that is doing.
    """

    def __init__(self, connection: Connection, life: Any) -> None:
        self._connection, self._life = connection, life

    @classmethod
    def holding(cls, packed: Packed) -> _Child:
        """Start a process for work on packed objects."""
        if packed.folder is not None:
            return cls._started(packed.folder, packed.folder)
        return cls._forked(_HERE.server.asks() if _HERE.asks is None else _HERE.asks, HOLD, packed.file)

    @classmethod
    def of_this_holder(cls) -> _Child:
        """Start a process for a run, on the objects that are shared with this process."""
        if _HERE.folder is not None:
            return cls._started(_HERE.folder, tempfile.mkdtemp())
        assert _HERE.asks is not None
        return cls._forked(_HERE.asks, RUN)

    @classmethod
    def _forked(cls, asks: socket.socket, kind: bytes, *files: int) -> _Child:
        (ours, theirs), (life, alive) = socket.socketpair(), os.pipe()
        with theirs, contextlib.closing(Connection(life, writable=False)):
            child = cls(Connection(ours.detach()), Connection(alive, readable=False))
            with contextlib.suppress(OSError):  # the server has ended, as ``answer`` tells
                socket.send_fds(asks, [kind], [theirs.fileno(), life, *files])
        return child

    @classmethod
    def _started(cls, folder: str, own: str) -> _Child:
        ours, theirs = socket.socketpair()
        life = contextlib.ExitStack()
        with theirs:
            life.enter_context(_python("work_alone", theirs, [folder, own], stdin=subprocess.PIPE))
        return cls(Connection(ours.detach()), life)

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        with contextlib.suppress(OSError):  # the process has ended, as ``result`` tells
            self._connection.send_bytes(frame)

    def answer(self, call: bytes, tell: Tell) -> bytes:
        """Answer to a call: a frame with a value or an error."""
        self.send(call)
        try:
            while (frame := self._connection.recv_bytes())[:1] == STAGE:
                tell(Stage(*pickle.loads(frame[1:])))
            return frame
        except (OSError, EOFError):
            return ERROR + pickle.dumps((EndedError, ENDED))

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._life.close()


def imported() -> list[str]:
    """Names of modules that this process has imported, and that a server may import."""
    return [name for name in list(sys.modules) if name.partition(".")[0] in PACKAGES]


def value_of(answer: bytes, code: Code | None = None) -> Any:
    """Value of an answer, with the code of those who asked; its error is raised."""
    content = memoryview(answer)[1:]
    if answer[:1] == VALUE:
        return unpickled(content, (), code)
    error, text = pickle.loads(content)
    raise error(text)


def _python(entry: str, theirs: socket.socket, given: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start Python at a function of this file, with one end of a pair of sockets."""
    arguments = ", ".join([str(theirs.fileno()), *map(repr, given)])
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import {entry}; {entry}({arguments})"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    theirs.set_inheritable(True)
    inherited: dict[str, Any] = {"close_fds": False} if os.name == "nt" else {"pass_fds": [theirs.fileno()]}
    null = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, *flags, "-c", code],
        start_new_session=True,  # Ctrl-C is for the user's process
        **inherited,
        **{"stdin": null, "stdout": null, "stderr": null, **options},
    )


# --- this process -----------------------------------------------------------------------------------------------------


class _Server:
    """The user's process's server, which is started at the first use; forked copies of that process share it."""

    def __init__(self) -> None:
        self._asks: socket.socket | None = None
        self.lock = threading.Lock()  # threads may ask first at the same time
        self._process: subprocess.Popen[bytes] | None = None
        self._of, self._imported = 0, set[str]()

    def asks(self) -> socket.socket:
        """Socket to the server."""
        with self.lock:
            if self._asks is None or (self._of == os.getpid() and self._process and self._process.poll() is not None):
                self.close()
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = _python("serve", theirs, [])
                self._asks, self._of, self._imported = ours, os.getpid(), set()
            return self._asks

    def imports(self, modules: Iterable[str]) -> None:
        """Let the server import modules that it has not imported before."""
        asks, new = self.asks(), [name for name in modules if name not in self._imported]
        self._imported.update(new)
        for part in range(0, len(new), MODULES):
            asks.send(IMPORT + " ".join(new[part : part + MODULES]).encode())

    def close(self) -> None:
        """Let the server end."""
        if self._asks is not None:
            self._asks.close()
        if self._process is not None:
            self._process.returncode = 0  # it ends by itself when no process can ask any more


@dataclass
class _Here:
    """Role of this process: the user's process, until it becomes a private one."""

    #: Whether processes are forked from a server; elsewhere each is started anew.
    forks: bool = sys.platform == "linux"
    server: _Server = field(default_factory=_Server)
    #: Objects that are shared with this process.
    shared: Sequence[Any] = ()
    #: Socket to the holder that forks processes for this one.
    asks: socket.socket | None = None
    #: Folder of the packed objects, where nothing is forked.
    folder: str | None = None
    #: Folders in which this process may write; None: anywhere.
    writes: Sequence[str] | None = None
    #: The packed objects, and whether each process has to unpickle them by itself.
    packed: Packed | None = None
    reads: bool = False
    #: The work of a child to come, perhaps still pickled.
    work: Any = None
    #: Generators that forks would have in common, and the modules in which they were looked for.
    generators: list[Any] = field(default_factory=list)
    modules: frozenset[str] = frozenset()
    #: Connection to the process that asked for this one.
    connection: Connection | None = None
    lock: Any = None

    def tell(self, stage: Stage) -> None:
        """Report progress to the process that asked; threads may report at once."""
        if self.connection is not None:
            with self.lock:
                self.connection.send_bytes(STAGE + pickle.dumps(tuple(stage)))


def _free_the_lock() -> None:
    """Free the lock in a forked copy of this process, where no thread would."""
    _HERE.server.lock = threading.Lock()


_HERE = _Here()
atexit.register(_HERE.server.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_the_lock)


@dataclass(frozen=True)
class _Surroundings:
    """Surroundings of the user's process, which private work sees too."""

    environment: dict[str, str]
    folder: str
    path: list[str]
    config: dict[str, Any]
    forks: bool
    writes: Sequence[str] | None

    @classmethod
    def here(cls, writes: Sequence[str] | None) -> _Surroundings:
        return cls(dict(os.environ), os.getcwd(), list(sys.path), get_config(), _HERE.forks, writes)

    def enter(self, own: str) -> None:
        """Enter the surroundings, with a folder of one's own."""
        _HERE.forks, _HERE.writes = self.forks, self.writes
        if self.writes is not None and sys.platform == "linux":
            confine([own, *self.writes])
        os.environ.clear()
        os.environ.update(self.environment)
        with contextlib.suppress(OSError):
            os.chdir(self.folder)
        sys.path[:] = self.path
        set_config(**self.config)


def _uses_cuda() -> bool:
    """Return whether this process uses a GPU: a copy of such a process, or of its tensors, cannot."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _isolate(folder: str) -> None:
    """Make this a private process, with a temporary folder and generators of its own, and without warnings."""
    become_private()
    _HERE.lock = threading.Lock()
    if _HERE.reads and _HERE.packed is not None:
        _read(_HERE.packed)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    for generator in _HERE.generators:
        refresh(generator)
    reseed()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if (diffprivlib := sys.modules.get("diffprivlib.utils")) is not None:
        diffprivlib.PrivacyLeakWarning.__init__ = _raise  # no filter of warnings can hide it


def _raise(leak: Warning, *args: object) -> NoReturn:
    raise leak


def _serve_calls(connection: Connection) -> None:
    """Do the work that was unpickled before, or that the first frame brings, for each frame that follows."""
    _HERE.connection = connection
    with contextlib.suppress(EOFError, OSError):
        work = _HERE.work if callable(_HERE.work) else unpickled(_HERE.work or connection.recv_bytes(), _HERE.shared)
        while True:
            answer = _answer(work, connection.recv_bytes())
            with _HERE.lock:
                connection.send_bytes(answer)


def _answer(work: Callable[..., Any], call: bytes) -> bytes:
    """Call the work. Texts of errors that are not the library's own could depend on records, and stay here."""
    try:
        value = work(*unpickled(call, _HERE.shared))
    except BaseException as error:
        ours = type(error).__module__.startswith(f"{__name__.partition('.')[0]}.")
        return ERROR + pickle.dumps((type(error), str(error)) if ours else (PrivateProcessError, STOPPED))
    try:
        return pickled(value, head=VALUE)
    except PrivacyError:
        return ERROR + pickle.dumps((PrivateProcessError, NO_MODEL_TRAVELS))


def _with_threads(work: Callable[[], Found], threads: int | None) -> Found:
    """Do work with a number of threads of linear algebra."""
    if threads is None:
        return work()
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    with threadpool_limits(threads):
        return work()


# --- forks ------------------------------------------------------------------------------------------------------------


def prepare(modules: Iterable[str]) -> None:
    """Start the server in the background, and let it import: runs find there what the user's process has."""
    if _HERE.forks and not is_private():
        _HERE.server.imports(modules)


def serve(file: int) -> None:
    """Serve a user's process until that ends."""
    folder = tempfile.mkdtemp(prefix="private-")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _Forking(socket.socket(fileno=file), folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Forking:
    """A process that only imports, holds records and forks: all that it forks starts from this state.

    Parameters
    ----------
    asked : socket
        Brings requests.
    folder : str
        For the temporary folders of children.
    """

    def __init__(self, asked: socket.socket, folder: str) -> None:
        self._asked, self._folder, self._children = asked, folder, set[int]()
        self._wakes, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)

    def run(self, until: int | None = None) -> None:
        """Fork for each request, until the asking process or the given child ends."""
        try:
            while until not in self._ended() and self._request():
                pass
        finally:
            for child in self._children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def fork(self, become: Callable[[str], None]) -> int:
        """Fork a child, which gets a temporary folder."""
        child = os.fork()
        if child == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (self._asked, self._wakes, self._woken):
                    one.close()
                _end_with_parent()
                os.mkdir(folder := os.path.join(self._folder, str(os.getpid())), 0o700)
                become(folder)
            finally:
                os._exit(0)
        self._children.add(child)
        return child

    def _ended(self) -> set[int]:
        """Wait for a request or the end of children; remove the folders of those."""
        select.select([self._asked, self._woken], [], [])
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        ended = set[int]()
        for child in list(self._children):
            if os.waitpid(child, os.WNOHANG)[0]:
                ended.add(child)
                shutil.rmtree(os.path.join(self._folder, str(child)), ignore_errors=True)
        self._children -= ended
        return ended

    def _request(self) -> bool:
        """Serve a request, if there is one; False when no process can ask any more."""
        if not select.select([self._asked], [], [], 0)[0]:
            return True
        message, files, _, _ = socket.recv_fds(self._asked, 2**16, 3)
        if not message:
            return False
        if message[:1] == IMPORT:
            _import(message[1:].decode().split())
            _note_generators()
        else:
            become: Callable[..., None] = _become_holder if message[:1] == HOLD else _become_run
            self.fork(partial(become, *files))
        for file in files:
            os.close(file)
        return True


def _import(modules: Sequence[str]) -> None:
    """Import what can be imported: what fails here is imported where it is needed, or fails there."""
    for name in modules:
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            importlib.import_module(name)


def _become_holder(file: int, life: int, shared: int, folder: str) -> None:
    """Unpickle the shared objects, and fork the work on them and its runs."""
    _end_with(life)
    connection = Connection(file)
    if not _hold(connection, Packed(shared), folder):
        return
    asked, _HERE.asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    forking = _Forking(asked, folder)
    work = forking.fork(partial(_become_work, file))
    _HERE.work = None  # runs bring theirs
    connection.close()
    forking.run(until=work)


def _hold(connection: Connection, packed: Packed, own: str) -> bool:
    """Enter the surroundings of the work, and unpickle what is shared, and the work; return whether all succeeded.

    The work is unpickled here too, so that no child has to import its modules.
    """
    try:
        _HERE.packed = packed
        unpickled(connection.recv_bytes()).enter(own)
        _HERE.work = connection.recv_bytes()
        _HERE.reads = packed.starts_threads and _HERE.forks
        if not _HERE.reads:
            with _one_thread():
                _read(packed)
                _HERE.work = unpickled(_HERE.work, _HERE.shared)
        _note_generators()
        return True
    except Exception:
        connection.send_bytes(ERROR + pickle.dumps((PrivateProcessError, NOT_READ)))
        return False


def _note_generators() -> None:
    """Note generators that are new; all objects are then frozen, so that neither this nor a fork looks at them again."""
    _HERE.generators += all_generators(_HERE.modules)
    _HERE.modules = frozenset(sys.modules)
    gc.freeze()


def _read(packed: Packed) -> None:
    """Unpickle code and shared objects."""
    code, _HERE.shared = packed.read()
    enter(code)


def _become_run(connection: int, life: int, folder: str) -> None:
    _end_with(life)
    _become_work(connection, folder)


def _become_work(connection: int, folder: str) -> None:
    _isolate(folder)
    _serve_calls(Connection(connection))


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Unpickle tensors without OpenMP: a fork of a process that has used it would hang."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    number = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(number)


def _end_with_parent() -> None:
    """Let the system end this process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _end_with(life: int) -> None:
    """Let the system end this process when the other end of a pipe is closed, whatever the process is doing."""
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)  # SIGIO ends a process
    if select.select([life], [], [], 0)[0]:
        os._exit(0)


# --- where nothing is forked ------------------------------------------------------------------------------------------


def work_alone(file: int, folder: str, own: str) -> None:
    """Work in a new process, on the packed objects of a folder; its own folder goes with the asking process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_the_end, args=(own,), daemon=True).start()
    _HERE.folder, connection = folder, Connection(file)
    if _hold(connection, Packed.found(folder), own):
        _isolate(tempfile.mkdtemp(dir=own))
        _serve_calls(connection)


def _wait_for_the_end(folder: str) -> None:
    """End this process, and remove its folder, when standard input ends."""
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
