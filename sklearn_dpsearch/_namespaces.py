"""Namespaces of Linux: processes that see no other process and no network.

Such a process has memory and temporary files of its own. What it starts ends with it, its number
is always 1, and its files are gone when it is. This file imports the standard library alone: a
namespace of users has to be entered before any library starts a thread.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import struct
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

NEW_MOUNTS = 0x20000
NEW_IPC = 0x8000000
NEW_USERS = 0x10000000
NEW_PROCESSES = 0x20000000
NEW_NETWORK = 0x40000000
#: Of mounts: shared with no other namespace; the same folder in another place; without devices and
#: rights of users.
ALL_PRIVATE, SAME_FOLDER, NO_DEVICES = 1 << 18 | 1 << 14, 1 << 12, 1 << 1 | 1 << 2
#: System call that changes mounts, which has this number on all processors, and what it takes.
SET_MOUNTS, CURRENT_FOLDER, RECURSIVE, READ_ONLY = 442, -100, 0x8000, 1
SHARED_MEMORY, PROCESSES = "/dev/shm", "/proc"


@functools.cache
def system() -> Any:
    """Functions of the operating system's library."""
    return ctypes.CDLL(None)


def _call(function: str, *arguments: object) -> bool:
    """Call a function of the system, and return whether it succeeded."""
    return int(getattr(system(), function)(*arguments)) == 0


def begin() -> bool:
    """Go on in a child, and return whether the system allows it namespaces.

    This process ends with the child, and no signal of a job ends it. A user who is not root
    enters a namespace of users, with the same name and rights to files. A copy tries all of it
    before.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not (_succeeds(os.fork, _try) and _enter()):
        return False
    if child := os.fork():
        os.waitpid(child, 0)
        os._exit(0)
    return True


def _try() -> bool:
    """Return whether a child may fork again and again into namespaces."""
    settled = partial(settle, tempfile.gettempdir())
    return _enter() and _succeeds(os.fork, lambda: all(_succeeds(fork, settled) for _ in range(2)))


def _succeeds(fork: Callable[[], int], work: Callable[[], bool]) -> bool:
    """Return whether work succeeds in a child."""
    child, done = fork(), False
    if child == 0:
        try:
            done = work()
        finally:
            os._exit(not done)
    return os.waitpid(child, 0)[1] == 0


def _enter() -> bool:
    """Let children be in a namespace of processes; return whether the system allows it."""
    if _call("unshare", NEW_PROCESSES):
        return True
    user, group = os.geteuid(), os.getegid()
    if not _call("unshare", NEW_USERS):
        return False
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w") as stream:
            stream.write(text)
    return _call("unshare", NEW_PROCESSES)


def fork() -> int:
    """Fork a child that is the first process of a namespace, if the system allows it.

    ``begin`` has to be called before.
    """
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    is_new, child = _call("unshare", NEW_PROCESSES), -1
    try:
        child = os.fork()
    finally:
        if is_new and child != 0:
            _call("setns", namespace, NEW_PROCESSES)
        os.close(namespace)
    return child


def settle(folder: str, writes: Sequence[str] | None = None) -> bool:
    """Leave all that other processes see, in a child of ``fork``; return whether that is done.

    A process that is told what it may write still reads the memory that processes share: files may
    be there.

    Parameters
    ----------
    folder : str
        For temporary files, empty and in memory, under the same name in every process.
    writes : sequence of str or None
        Folders that may be written; all others are read-only. None: as before.
    """
    if os.getpid() != 1 or not _call("unshare", NEW_MOUNTS | NEW_IPC | NEW_NETWORK):
        return False
    if not _call("mount", None, b"/", None, ALL_PRIVATE, None):
        return False
    if writes is not None:
        _read_only(writes)
    elif os.path.isdir(SHARED_MEMORY) and not _mount("tmpfs", SHARED_MEMORY, "mode=1777"):
        return False
    _mount("proc", PROCESSES)  # containers that hide a part of it forbid another
    os.makedirs(folder, mode=0o700, exist_ok=True)  # it may have been in what is hidden now
    return _mount("tmpfs", folder, "mode=700")


def _mount(kind: str, folder: str, options: str = "") -> bool:
    return _call(
        "mount", kind.encode(), os.fsencode(folder), kind.encode(), NO_DEVICES, options.encode()
    )


def _read_only(writes: Sequence[str]) -> None:
    """Make all folders read-only, but for those that may be written."""
    if _set_mounts("/", RECURSIVE, READ_ONLY, 0):
        for folder in writes:
            path = os.fsencode(folder)
            _call("mount", path, path, None, SAME_FOLDER, None)
        for folder in (*writes, PROCESSES):
            _set_mounts(folder, 0, 0, READ_ONLY)


def _set_mounts(folder: str, which: int, on: int, off: int) -> bool:
    change = struct.pack("=4Q", on, off, 0, 0)
    size = ctypes.c_size_t(len(change))
    return _call("syscall", SET_MOUNTS, CURRENT_FOLDER, os.fsencode(folder), which, change, size)
