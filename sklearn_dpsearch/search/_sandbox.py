"""A sandbox of the kernel's for private work, and folders for it.

Work writes only in its own folders, and reaches no socket with a path: by Landlock and a filter of
system calls, on Linux, as far as the kernel has them. Folders are gone with their process; at the
latest the next one removes them.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import platform
import shutil
import struct
import tempfile
import uuid
from collections.abc import Sequence

import filelock

from .._namespaces import system

#: System calls, which have these numbers on all processors.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
#: Rights to files: of every version of Landlock, to link and move (version 2), and to truncate
#: (version 3).
WRITE, CHANGE_FOLDERS, MOVE, TRUNCATE = 1 << 1, 0b1111111110000, 1 << 13, 1 << 14
#: Rights to TCP, bind and connect (version 4); abstract sockets of other processes (version 6).
TCP, ABSTRACT_SOCKETS = 0b11, 1
#: Devices and processes, whose files hold nothing; and what processes share: semaphores need files
#: there.
HOLD_NOTHING, SHARED_MEMORY = ("/dev", "/proc"), "/dev/shm"
#: Processor ↦ its name in filters, and its number of the system call ``socket``.
SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
#: Of filters: load a word, keep some bits of it, compare it, return; answers (the family is
#: unknown).
LOAD, AND, EQUAL, RETURN, ALLOW, REFUSE = 0x20, 0x54, 0x15, 0x06, 0x7FFF0000, 0x00050000 | 97
#: Where a filter finds the processor, the number of the system call, and its first two arguments.
PROCESSOR, NUMBER, FAMILY, TYPE = 4, 0, 16, 24
#: The family of sockets with a path; bits of a type; the type of the socket by which CUDA shares
#: memory.
UNIX, TYPES, SEQUENCED = 1, 15, 5


def confine(folders: Sequence[str]) -> bool:
    """Confine this thread, and all threads and processes that it starts, for good.

    Return whether the kernel could.

    Parameters
    ----------
    folders : sequence of str
        Where files may be written.
    """
    libc = system()
    version = int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if version < 1:
        return False
    to_files = WRITE | (TRUNCATE if version >= 3 else 0)
    to_folders = to_files | CHANGE_FOLDERS | (MOVE if version >= 2 else 0)
    fields = 3 if version >= 6 else 2 if version >= 4 else 1
    ruleset = struct.pack("=3Q", to_folders, TCP, ABSTRACT_SOCKETS)[: 8 * fields]
    rules = int(libc.syscall(CREATE_RULESET, ruleset, ctypes.c_size_t(len(ruleset)), 0))
    if rules < 0:
        return False
    for folder in filter(os.path.isdir, (*HOLD_NOTHING, SHARED_MEMORY, *folders)):
        rights = to_files if folder in HOLD_NOTHING else to_folders
        beneath = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, beneath), 0)
        os.close(beneath)
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    confined = bool(libc.syscall(RESTRICT_SELF, rules, 0) == 0)
    os.close(rules)
    return confined


def refuse_sockets_with_a_path() -> bool:
    """Let this process, and all that it starts, make no socket that has a path.

    Logs, databases and services listen in files by such sockets. Pairs of sockets and pipes stay,
    and sockets of packets in sequence, without which CUDA does not start. Return whether the kernel
    could.
    """
    if platform.machine() not in SOCKET:
        return False
    processor, number = SOCKET[platform.machine()]
    steps = [
        (LOAD, 0, 0, PROCESSOR),
        (EQUAL, 0, 8, processor),  # nor system calls of another processor
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 5, number),
        (LOAD, 0, 0, FAMILY),
        (EQUAL, 0, 3, UNIX),
        (LOAD, 0, 0, TYPE),
        (AND, 0, 0, TYPES),
        (EQUAL, 0, 1, SEQUENCED),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(steps), ctypes.addressof(held))
    libc = system()
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.prctl(SET_SECCOMP, FILTER, pointer) == 0)


# --- folders -------------------------------------------------------------------------------------
#: Beginning of the names of folders, and end of those of the files that are locked while a process
#: uses a folder.
PREFIX, LOCK = "sklearn-dpsearch-", ".lock"


class PrivateFolder:
    """Folder of this process, readable by its owner alone.

    Those of processes that were killed are removed before.
    """

    def __init__(self) -> None:
        for lock in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{PREFIX}*{LOCK}")):
            with contextlib.suppress(OSError, filelock.Timeout), filelock.FileLock(lock, timeout=0):
                remove(lock.removesuffix(LOCK))
        self.path = os.path.join(tempfile.gettempdir(), PREFIX + uuid.uuid4().hex)
        self._lock = filelock.FileLock(self.path + LOCK, timeout=0, mode=0o600)
        self._lock.acquire()
        os.mkdir(self.path, 0o700)

    def close(self) -> None:
        """Remove the folder."""
        remove(self.path)
        self._lock.release()
        remove(self.path)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.close()


def remove(folder: str) -> None:
    """Remove a folder and its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(folder + LOCK)
