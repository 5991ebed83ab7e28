"""Inside of private processes: a server, holders of records, work on them, and runs.

All runs start from one and the same state, that of the server, which has only imported: names,
counters and caches tell nothing, and no fork follows the use of OpenMP, which would hang.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

import numpy as np
from sklearn import get_config, set_config
from threadpoolctl import ThreadpoolController

from .. import _namespaces
from .._process import Stage, all_generators, become_private, refresh, reseed
from ..privacy import PrivacyError
from ._pickling import Code, Packed, pickled, unpickled
from ._sandbox import PrivateFolder, confine, refuse_sockets_with_a_path, remove

if sys.platform != "win32":
    import fcntl

#: Kinds of frames: an answer, an error, a stage of the work, and the walls around a process that is
#: ready for work.
VALUE, ERROR, STAGE, READY = b"v", b"e", b"s", b"w"
#: Kinds of requests: fork a holder of records and the work on them; fork a run; only import.
HOLD, RUN, IMPORT = b"h", b"r", b"i"
#: What walls are against.
FILES, NETWORK, SOCKETS = "files", "the network", "sockets with a path"
PROCESSES = "processes and their memory"
WALLS = (FILES, NETWORK, SOCKETS, PROCESSES)

STOPPED_SEARCH = (
    "The search was stopped by an error whose source and text could depend on the records and are "
    "not shown. The cost in privacy_spent_ is spent. Try search.dry_run() on public or made-up "
    "records."
)
NOT_READ = (
    "A private process could not read what it was sent. It needs this library and the modules of "
    "estimators and scorers, in the same versions; the file of a numpy.memmap must be there, "
    "unchanged and under the same path."
)
NO_MODEL_TRAVELS = (
    "A result cannot leave its private process, because it cannot be pickled, or holds a class or "
    "function that was made inside of a function. Define classes and functions at the top of a "
    "module or script, and keep open files, locks and connections out of models. search.dry_run() "
    "shows a model."
)


class PrivateProcessError(RuntimeError):
    """Error for private work that ended without a result."""


# --- this process ---------------------------------------------------------------------------------


@dataclass
class Role:
    """Role of this process: the user's process, until it becomes a private one."""

    #: Whether processes are forked from a server; elsewhere each is started anew.
    forks: bool = sys.platform == "linux"
    #: Objects that are shared with this process.
    shared: Sequence[Any] = ()
    #: Socket to the holder that forks processes for this one.
    asks: socket.socket | None = None
    #: Folder of the packed objects, where nothing is forked.
    folder: str | None = None
    #: Folders in which this process may write; None: anywhere, and it has the network.
    writes: Sequence[str] | None = None
    #: Whether this process and its children have namespaces of their own, and the walls that stand.
    apart: bool = False
    walls: set[str] = field(default_factory=set)
    #: The packed objects, and whether each process has to unpickle them by itself.
    packed: Packed | None = None
    reads: bool = False
    #: The work of a child to come, perhaps still pickled.
    work: Any = None
    #: Generators that forks would have in common, and the modules in which they and pools of
    #: threads were looked for.
    generators: list[Any] = field(default_factory=list)
    modules: frozenset[str] = frozenset()
    pools: ThreadpoolController | None = None
    #: Connection to the process that asked for this one.
    connection: Connection | None = None
    lock: Any = None

    def tell(self, stage: Stage) -> None:
        """Report progress to the process that asked; threads may report at once."""
        if self.connection is not None:
            with self.lock:
                self.connection.send_bytes(STAGE + pickle.dumps(tuple(stage)))

    def look_around(self) -> None:
        """Note generators and pools of threads.

        All objects are then frozen: no collector writes on their memory.
        """
        modules = frozenset(sys.modules)
        self.generators += all_generators(self.modules)
        if self.pools is None or modules != self.modules:
            self.pools = ThreadpoolController()
        self.modules = modules
        gc.freeze()


ROLE = Role()


@dataclass(frozen=True)
class Surroundings:
    """Surroundings of the user's process, which private work sees too."""

    environment: dict[str, str]
    folder: str
    path: list[str]
    config: dict[str, Any]
    forks: bool
    writes: Sequence[str] | None

    @classmethod
    def of_this_process(cls, writes: Sequence[str] | None) -> Surroundings:
        """Surroundings of this process."""
        folder = os.curdir
        with contextlib.suppress(OSError):  # it may be gone
            folder = os.getcwd()
        # as the import system takes it
        path = [place for place in sys.path if isinstance(place, str)]
        return cls(dict(os.environ), folder, path, get_config(), ROLE.forks, writes)

    def enter(self, temporary_folder: str) -> None:
        """Enter the surroundings, with a folder of one's own."""
        ROLE.forks, ROLE.writes = self.forks, self.writes
        if ROLE.forks and self.writes is not None:
            if ROLE.apart:  # Landlock is for the children, who could not settle behind it
                _settle(temporary_folder, self.writes)
            elif confine([temporary_folder, *self.writes]):
                ROLE.walls.add(FILES)
            if refuse_sockets_with_a_path():
                ROLE.walls.add(SOCKETS)
        os.environ.clear()
        os.environ.update(self.environment)
        with contextlib.suppress(OSError):
            os.chdir(self.folder)
        sys.path[:] = self.path
        set_config(**self.config)


def _settle(folder: str, writes: Sequence[str] | None = None) -> None:
    """Settle in namespaces, which a server that has tried it can do, or end."""
    if not _namespaces.settle(folder, writes):
        os._exit(1)
    ROLE.walls |= {NETWORK, PROCESSES}


def _isolate(folder: str) -> None:
    """Make this a private process, with its own temporary folder and generators.

    It gives no warnings.
    """
    become_private()
    if ROLE.apart:
        _settle(folder)
        if confine([folder, *(ROLE.writes or ())]):
            ROLE.walls.add(FILES)
    if SOCKETS in ROLE.walls:
        _send_tensors_by_value()
    ROLE.lock = threading.Lock()
    if ROLE.reads and ROLE.packed is not None:
        _read(ROLE.packed)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    for generator in ROLE.generators:
        refresh(generator)
    reseed()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if (diffprivlib := sys.modules.get("diffprivlib.utils")) is not None:
        diffprivlib.PrivacyLeakWarning.__init__ = _raise  # no filter of warnings can hide it


def _send_tensors_by_value() -> None:
    """Let processes of one run, as loaders have them, send tensors by value.

    Shared ones need a socket with a path.
    """
    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    for kind in [kind for kind in reducers if kind.__module__.partition(".")[0] == "torch"]:
        del reducers[kind]


def _raise(leak: Warning, *args: object) -> NoReturn:
    raise leak


def _serve_calls(connection: Connection, work: Callable[..., Any]) -> None:
    """Do the work for each frame that comes."""
    ROLE.connection = connection
    while True:
        answer = _answer(work, connection.recv_bytes())
        with ROLE.lock:
            connection.send_bytes(answer)


def _answer(work: Callable[..., Any], call: bytes) -> bytes:
    """Call the work, and answer with its value or its error.

    Texts of errors that are not the library's own could depend on records, and stay here.
    """
    try:
        value = work(*unpickled(call, ROLE.shared))
    except BaseException as error:
        is_ours = type(error).__module__.startswith(f"{__name__.partition('.')[0]}.")
        content = (type(error), str(error)) if is_ours else (PrivateProcessError, STOPPED_SEARCH)
        return ERROR + pickle.dumps(content)
    try:
        return pickled(value, head=VALUE)
    except PrivacyError:
        return ERROR + pickle.dumps((PrivateProcessError, NO_MODEL_TRAVELS))


# --- forks ----------------------------------------------------------------------------------------


def serve(file: int, apart: bool = False) -> None:
    """Serve a user's process until that ends.

    Children have namespaces of their own, where that is possible.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with PrivateFolder() as folder:
        ROLE.look_around()
        _Forking(socket.socket(fileno=file), folder, apart).run()


class _Forking:
    """A process that only imports, holds records and forks.

    All that it forks starts from this state.

    Parameters
    ----------
    asked : socket
        Brings requests.
    folder : str
        For temporary files: each child has it for itself, or, where the system allows no
        namespaces, a folder in it.
    apart : bool
        Whether children get namespaces.
    """

    def __init__(self, asked: socket.socket, folder: str, apart: bool) -> None:
        self._asked, self._folder, self._apart = asked, folder, apart
        self._children = dict[int, str]()
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
        folder = self._folder if self._apart else tempfile.mkdtemp(dir=self._folder)
        child = _namespaces.fork() if self._apart else os.fork()
        if child == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in (signal.SIGCHLD, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                for connection in (self._asked, self._wakes, self._woken):
                    connection.close()
                # PR_SET_PDEATHSIG: it ends with its parent
                _namespaces.system().prctl(1, signal.SIGKILL)
                ROLE.apart = self._apart
                become(folder)
            finally:
                os._exit(0)
        self._children[child] = folder
        return child

    def _ended(self) -> set[int]:
        """Wait for a request or the end of children; remove the folders of those."""
        select.select([self._asked, self._woken], [], [])
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        ended = {child for child in self._children if os.waitpid(child, os.WNOHANG)[0]}
        for folder in map(self._children.pop, ended):
            if folder != self._folder:
                shutil.rmtree(folder, ignore_errors=True)
        return ended

    def _request(self) -> bool:
        """Serve a request, if there is one; False when no process can ask any more."""
        if not select.select([self._asked], [], [], 0)[0]:
            return True
        message, files, _, _ = socket.recv_fds(self._asked, 2**16, 3)
        if message[:1] == IMPORT:
            _import(message[1:].decode().split())
            ROLE.look_around()
        elif message:
            become: Callable[..., None] = _become_run if message == RUN else _become_holder
            self.fork(partial(become, *files))
        for file in files:
            os.close(file)
        return bool(message)


def _import(modules: Sequence[str]) -> None:
    """Import what can be imported.

    What fails here is imported where it is needed, or fails there.
    """
    for name in modules:
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            importlib.import_module(name)


def _become_holder(file: int, life: int, shared: int, folder: str) -> None:
    """Unpickle the shared objects, and fork the work on them and its runs."""
    # it ends with those who asked, and removes folders
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_with(life)
    connection = Connection(file)
    if not _hold(connection, Packed(shared), folder):
        return
    asked, ROLE.asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    forking = _Forking(asked, folder, ROLE.apart)
    work = forking.fork(partial(_become_work, file))
    ROLE.work = None  # runs bring theirs
    connection.close()
    forking.run(until=work)


def _hold(connection: Connection, packed: Packed, folder: str) -> bool:
    """Enter the surroundings of the work, and unpickle what is shared, and the work.

    Return whether all succeeded.

    The work is unpickled here too, so that no child has to import its modules.
    """
    try:
        ROLE.packed = packed
        unpickled(connection.recv_bytes()).enter(folder)
        ROLE.work = connection.recv_bytes()
        ROLE.reads = packed.starts_threads and ROLE.forks
        if not ROLE.reads:
            with _one_thread():
                _read(packed)
                ROLE.work = unpickled(ROLE.work, ROLE.shared)
        ROLE.look_around()
        return True
    except Exception:
        connection.send_bytes(ERROR + pickle.dumps((PrivateProcessError, NOT_READ)))
        return False


def _read(packed: Packed) -> None:
    """Unpickle code and shared objects."""
    Code.current, ROLE.shared = packed.read()


def _become_run(file: int, life: int, folder: str) -> None:
    """Do one call of the work that the connection brings."""
    _end_with(life)
    connection = Connection(file)
    with contextlib.suppress(EOFError, OSError):
        _isolate(folder)
        _serve_calls(connection, unpickled(connection.recv_bytes(), ROLE.shared))


def _become_work(file: int, folder: str) -> None:
    """Do the work, of which the holder has read what it could; say before which walls stand."""
    connection = Connection(file)
    with contextlib.suppress(EOFError, OSError):
        try:
            _isolate(folder)
            work = unpickled(ROLE.work, ROLE.shared) if ROLE.reads else ROLE.work
        except Exception:
            connection.send_bytes(ERROR + pickle.dumps((PrivateProcessError, NOT_READ)))
            return
        connection.send_bytes(READY + pickle.dumps(ROLE.walls))
        _serve_calls(connection, work)


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


def _end_with(life: int) -> None:
    """Let the system end this process when the other end of a pipe is closed.

    It ends whatever the process is doing. The signal that tells of it is handled by compiled code:
    the first process of a namespace would ignore it otherwise.
    """
    libc = _namespaces.system()
    libc.signal(signal.SIGIO, libc._exit)
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:
        os._exit(0)


# --- where nothing is forked ----------------------------------------------------------------------


def work_alone(file: int, folder: str, temporary_folder: str, leaves: str) -> None:
    """Work in a new process, on the packed objects of a folder.

    Parameters
    ----------
    file : int
    folder : str
        Of the packed objects.
    temporary_folder : str
        For temporary files.
    leaves : str
        Folder that this process removes when the asking process ends.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_wait_for_the_end, args=(leaves,), daemon=True).start()
    ROLE.folder, connection = folder, Connection(file)
    if _hold(connection, Packed.of_folder(folder), temporary_folder):
        _become_work(file, temporary_folder)


def _wait_for_the_end(folder: str) -> None:
    """End this process, and remove a folder, when standard input ends."""
    sys.stdin.buffer.read()
    remove(folder)
    os._exit(0)
