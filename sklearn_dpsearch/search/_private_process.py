"""Private work in a process of its own: data and work go in, one value comes out.

On Linux a server imports the libraries, and does nothing else. For each fit a holder of the records
is forked from it, and from the holder the work (which draws, runs and releases) and each run:

    user's process --asks--> server --forks--> holder --forks--> work
    work --asks--> holder --forks--> run

Elsewhere each process is started anew. What happens inside is in ``serving``.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .._process import Stage, at_most_threads, is_private
from . import _serving as serving
from ._pickling import Code, Packed, beyond_streams, pickled, unpickled
from ._sandbox import PrivateFolder
from ._serving import NOT_READ, ROLE, WALLS, Surroundings
from ._serving import PrivateProcessError as PrivateProcessError  # raised by all work

Result = TypeVar("Result")
#: Receiver of public progress.
Tell = Callable[[Stage], None]

#: Packages whose modules the server imports if the user's process has, or a rehearsal: that starts
#: no threads.
PACKAGES = (
    *("numpy", "scipy", "sklearn", "pandas", "torch", "sympy", "mpmath", "networkx", "skorch"),
    *("opacus", "diffprivlib", "dp_accounting", "interpret", __name__.partition(".")[0]),
)
#: Most modules in a request.
MOST_MODULES = 500

ENDED_PROCESS = (
    "The private process of the search ended before its work did: usually the system ended it for "
    "want of memory, or compiled code crashed. The cost in privacy_spent_ is spent. Use fewer "
    "workers (n_jobs), and try the candidates on public or made-up records: dry_run()."
)
NOT_STARTED = (
    "A private process could not be started, or was ended at once. No record was used and nothing "
    "is spent. It needs memory for the records, a temporary folder (tempfile.gettempdir()), and "
    "this library as the program imports it."
)
NO_WALL = (
    "Candidates tell nothing of records, or of how many candidates there are, by way of {}: this "
    "system has no wall between candidates and these."
)


class EndedError(PrivateProcessError):
    """Error for a private process that ended before its work did."""


def _ignore(stage: Stage) -> None:
    """Drop the stage."""


# --- the door -------------------------------------------------------------------------------------


def privately(
    work: Callable[[], Result], shared: Sequence[Any] = (), writes: Sequence[str] | None = ()
) -> Result:
    """Do work in a process of its own, and return its value.

    Parameters
    ----------
    work : callable
    shared : sequence of object
        Records and other large objects in ``work``: one copy serves all processes.
    writes : sequence of str or None
        Folders in which the work may write, beside its temporary one. None: anywhere, and it has
        the network.

    Raises
    ------
    PrivacyError
        If something cannot be pickled; before any work.
    PrivateProcessError
        If the work ends without a value: in fixed words, but for the library's own errors.
    """
    with PrivateProcess(work, shared, writes) as process:
        value: Result = process()
        return value


class PrivateProcess:
    """A process for private work: it is called as the work would be, until it is closed.

    Parameters
    ----------
    work : callable
        Its state stays there from call to call.
    shared : sequence of object
    writes : sequence of str or None
    """

    def __init__(
        self,
        work: Callable[..., Any],
        shared: Sequence[Any] = (),
        writes: Sequence[str] | None = (),
    ) -> None:
        self._shared, self._writes, self.code = shared, writes, Code()
        self.code.starts_threads = _uses_cuda()
        self._prepare(pickled(work, shared, self.code), partial(Packed.of, shared, self.code))

    def _prepare(self, work: bytes, pack: Callable[[str | None], Packed]) -> None:
        self._work, self._child = work, None
        with contextlib.ExitStack() as ends:
            self._packed = pack(None if ROLE.forks else ends.enter_context(PrivateFolder()))
            ends.callback(lambda: self._packed.close())
            self._ends = ends.pop_all()

    _child: _Child | None

    def start(self) -> tuple[str, ...]:
        """Start the process, and let it read all that it was sent.

        Return assumptions, as plain sentences.

        Raises
        ------
        PrivateProcessError
            If that fails; no record was used.
        """
        self._child = _Child.holding(self._packed, self._writes is not None)
        self._ends.callback(self._child.close)
        self._child.send(pickled(Surroundings.of_this_process(self._writes)))
        self._child.send(self._work)
        walls = self._child.walls()
        missing = [wall for wall in WALLS if wall not in walls]
        return (NO_WALL.format(", ".join(missing)),) if missing and self._writes is not None else ()

    def __call__(self, *arguments: Any, tell: Tell = _ignore) -> Any:
        """Call the work there."""
        return value_of(self.answer(*arguments, tell=tell), self.code)

    def answer(self, *arguments: Any, tell: Tell = _ignore) -> bytes:
        """Answer to a call, still pickled."""
        if self._child is None:
            self.start()
        assert self._child is not None
        return self._child.answer(pickled(arguments, self._shared, self.code), tell)

    def close(self) -> None:
        """End the process and all that it started."""
        self._ends.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def content_for_workers() -> np.ndarray:
    """The objects shared with this process, packed for workers on other machines."""
    assert ROLE.packed is not None
    return ROLE.packed.content


def for_workers(work: Callable[[], Any]) -> bytes:
    """Pickle work on the objects that are shared with this process."""
    return pickled(work, ROLE.shared)


def on_a_worker(work: bytes, content: np.ndarray) -> bytes:
    """Do work in a process of its own on a worker of a cluster.

    Its answer is ``value_of`` what this returns. It never raises an error: clusters log the
    arguments of tasks that do.
    """
    process = object.__new__(PrivateProcess)
    process._shared, process._writes, process.code = (), None, Code()
    try:
        process._prepare(work, partial(Packed.copy_of, content))
        with process:
            return process.answer()
    except Exception:
        return serving.ERROR + pickle.dumps((PrivateProcessError, NOT_READ))


def in_own_process(work: Callable[[], Result], threads: int | None = None) -> Result | None:
    """Do one run of private work in a process that only this run uses.

    The result is None if the process ends without a value, whatever the reason: an error would tell
    of the record that caused it.

    Parameters
    ----------
    work : callable
    threads : int, optional
        Number of threads of linear algebra; by default the libraries' own.
    """
    child = _Child.of_this_holder()
    try:
        if not ROLE.forks:
            child.send(pickled(Surroundings.of_this_process(ROLE.writes)))
        child.send(pickled(partial(_with_threads, work, threads), ROLE.shared))
        if not ROLE.forks:
            child.walls()
        value: Result = value_of(child.answer(pickled(()), _ignore))
        return value
    except PrivateProcessError:
        return None
    finally:
        child.close()


def tell(stage: Stage) -> None:
    """Report public progress from private work."""
    ROLE.tell(stage)


# --- a child and its frames -----------------------------------------------------------------------


class _Child:
    """Connection to a process; to close it ends the process and all that it has started.

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
    def holding(cls, packed: Packed, apart: bool) -> _Child:
        """Start a process for work on packed objects, apart from others if possible."""
        if packed.folder is not None:
            return cls._started(packed.folder, tempfile.mkdtemp(dir=packed.folder), packed.folder)
        if ROLE.asks is not None:
            return cls._forked(ROLE.asks, serving.HOLD, packed.file)
        _SERVERS[apart].imports(imported())
        return cls._forked(_SERVERS[apart].asks(), serving.HOLD, packed.file)

    @classmethod
    def of_this_holder(cls) -> _Child:
        """Start a process for a run, on the objects that are shared with this process."""
        if ROLE.folder is not None:
            temporary_folder = tempfile.mkdtemp()
            return cls._started(ROLE.folder, temporary_folder, temporary_folder)
        assert ROLE.asks is not None
        return cls._forked(ROLE.asks, serving.RUN)

    @classmethod
    def _forked(cls, asks: socket.socket, kind: bytes, *files: int) -> _Child:
        (parent_end, child_end), (life, alive) = _sockets(), map(beyond_streams, os.pipe())
        with child_end, contextlib.closing(Connection(life, writable=False)):
            child = cls(Connection(parent_end.detach()), Connection(alive, readable=False))
            with contextlib.suppress(OSError):  # the server has ended, as ``answer`` tells
                socket.send_fds(asks, [kind], [child_end.fileno(), life, *files])
        return child

    @classmethod
    def _started(cls, folder: str, temporary_folder: str, leaves: str) -> _Child:
        parent_end, child_end = _sockets()
        life = contextlib.ExitStack()
        with child_end:
            folders = [folder, temporary_folder, leaves]
            process = _python("work_alone", child_end, folders, stdin=subprocess.PIPE)
            life.enter_context(process)
        return cls(Connection(parent_end.detach()), life)

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        with contextlib.suppress(OSError):  # the process has ended, as ``answer`` tells
            self._connection.send_bytes(frame)

    def walls(self) -> set[str]:
        """Wait until the process has read what it was sent; return what it has walls against."""
        frame = b""
        with contextlib.suppress(OSError, EOFError):
            frame = self._connection.recv_bytes()
        if frame[:1] == serving.READY:
            walls: set[str] = pickle.loads(frame[1:])
            return walls
        raise PrivateProcessError(pickle.loads(frame[1:])[1] if frame else NOT_STARTED)

    def answer(self, call: bytes, tell: Tell) -> bytes:
        """Answer to a call: a frame with a value or an error."""
        self.send(call)
        try:
            while (frame := self._connection.recv_bytes())[:1] == serving.STAGE:
                tell(Stage(*pickle.loads(frame[1:])))
            return frame
        except (OSError, EOFError):
            return serving.ERROR + pickle.dumps((EndedError, ENDED_PROCESS))

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
    if answer[:1] == serving.VALUE:
        return unpickled(content, (), code)
    error, text = pickle.loads(content)
    raise error(text)


def _sockets(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    """Pair of sockets, neither of which is a standard stream."""
    first, second = (beyond_streams(end.detach()) for end in socket.socketpair(type=kind))
    return socket.socket(fileno=first), socket.socket(fileno=second)


def _python(
    entry: str, end: socket.socket, arguments: Sequence[str], apart: bool = False, **options: Any
) -> Any:
    """Start Python at a function that serves, with one end of a pair of sockets.

    With ``apart`` it is apart from other processes.
    """
    code = f"import sys; sys.path[:] = {Surroundings.of_this_process(None).path!r}; "
    code += f"arguments = {[end.fileno(), *arguments]}; "
    if apart:
        code += f"from {__package__.partition('.')[0]}._namespaces import begin; "
        code += "arguments.append(begin()); "
    code += f"from {serving.__name__} import {entry}; {entry}(*arguments)"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    end.set_inheritable(True)
    inherited: dict[str, Any] = {"pass_fds": [end.fileno()]}
    if os.name == "nt":
        inherited = {"close_fds": False}
    null = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, *flags, "-c", code],
        start_new_session=True,  # Ctrl-C is for the user's process
        **inherited,
        **{"stdin": null, "stdout": null, "stderr": null, **options},
    )


# --- this process ---------------------------------------------------------------------------------


class _Server:
    """A server of the user's process, which is started at the first use.

    Parameters
    ----------
    apart : bool
        Whether it is apart from all other processes: what reaches a cluster is not.
    """

    def __init__(self, apart: bool) -> None:
        self._apart = apart
        self._asks: socket.socket | None = None
        self.lock = threading.Lock()  # threads may ask first at the same time
        self._process: subprocess.Popen[bytes] | None = None
        self._imported = set[str]()

    def asks(self) -> socket.socket:
        """Socket to the server."""
        with self.lock:
            if self._process is None or self._asks is None or self._process.poll() is not None:
                self.close()
                parent_end, child_end = _sockets(socket.SOCK_SEQPACKET)
                with child_end:
                    self._process = _python("serve", child_end, [], self._apart)
                self._asks, self._imported = parent_end, set()
            return self._asks

    def forget(self) -> None:
        """Leave the server and the lock of its threads to the process that forked this one."""
        self.close()
        self.__init__(self._apart)  # type: ignore[misc]

    def imports(self, modules: Iterable[str]) -> None:
        """Let the server import modules that it has not imported before."""
        asks, new = self.asks(), [name for name in modules if name not in self._imported]
        self._imported.update(new)
        for part in range(0, len(new), MOST_MODULES):
            asks.send(serving.IMPORT + " ".join(new[part : part + MOST_MODULES]).encode())

    def close(self) -> None:
        """Let the server end."""
        if self._asks is not None:
            self._asks.close()
        if self._process is not None:
            self._process.returncode = 0  # it ends by itself when no process can ask any more


_SERVERS = {apart: _Server(apart) for apart in (True, False)}
for _server in _SERVERS.values():
    atexit.register(_server.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_server.forget)


def prepare(modules: Iterable[str]) -> None:
    """Start the server in the background, and let it import.

    Runs find there what the user's process has.
    """
    if ROLE.forks and not is_private():
        _SERVERS[True].imports(modules)


def _uses_cuda() -> bool:
    """Return whether this process uses a GPU: a copy of it, or of its tensors, cannot."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _with_threads(work: Callable[[], Result], threads: int | None) -> Result:
    """Do work with a number of threads of linear algebra, and of models that have their own."""
    if threads is None:
        return work()
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    with at_most_threads(threads), (ROLE.pools or ThreadpoolController()).limit(limits=threads):
        return work()
