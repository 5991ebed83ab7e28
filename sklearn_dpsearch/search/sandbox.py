"""A sandbox of the kernel's for private work: it writes only in its own folders, and reaches no socket with a path.

Landlock and a filter of system calls, on Linux, as far as the kernel has them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence

#: System calls, which have these numbers on all processors.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
#: Rights to files: of every version of Landlock, to link and move (version 2), and to truncate (version 3).
WRITE, CHANGE_FOLDERS, MOVE, TRUNCATE = 1 << 1, 0b1111111110000, 1 << 13, 1 << 14
#: Rights to TCP, bind and connect (version 4); abstract sockets of other processes (version 6).
TCP, ABSTRACT_SOCKETS = 0b11, 1
#: Devices, which hold nothing; and what processes of one computer share: semaphores need files there.
DEVICES, SHARED_MEMORY = "/dev", "/dev/shm"
#: Processor ↦ its name in filters, and its number of the system call ``socket``.
SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
#: Of filters: load a word, compare it, return; answers; the family of sockets with a path.
LOAD, EQUAL, RETURN, ALLOW, REFUSE, UNIX = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | 13, 1
#: Where a filter finds the processor, the number of the system call, and the first argument.
PROCESSOR, NUMBER, FIRST = 4, 0, 16


def confine(folders: Sequence[str]) -> bool:
    """Confine this thread, and all threads and processes that it starts, for good; return whether the kernel could.

    Parameters
    ----------
    folders : sequence of str
        Where files may be written.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if version < 1:
        return False
    to_files = WRITE | (TRUNCATE if version >= 3 else 0)
    to_folders = to_files | CHANGE_FOLDERS | (MOVE if version >= 2 else 0)
    known = 3 if version >= 6 else 2 if version >= 4 else 1
    ruleset = struct.pack("=3Q", to_folders, TCP, ABSTRACT_SOCKETS)[: 8 * known]
    rules = int(libc.syscall(CREATE_RULESET, ruleset, ctypes.c_size_t(len(ruleset)), 0))
    if rules < 0:
        return False
    for folder in filter(os.path.isdir, (DEVICES, SHARED_MEMORY, *folders)):
        rights = to_files if folder == DEVICES else to_folders
        beneath = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, beneath), 0)
        os.close(beneath)
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    confined = bool(libc.syscall(RESTRICT_SELF, rules, 0) == 0)
    os.close(rules)
    return confined


def refuse_sockets_with_a_path() -> bool:
    """Let this process, and all that it starts, make no socket by which logs, databases and services listen in files.

    Pairs of sockets and pipes stay. Return whether the kernel could.
    """
    if platform.machine() not in SOCKET:
        return False
    processor, number = SOCKET[platform.machine()]
    steps = [
        (LOAD, 0, 0, PROCESSOR),
        (EQUAL, 0, 5, processor),  # nor system calls of another processor
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 2, number),
        (LOAD, 0, 0, FIRST),
        (EQUAL, 1, 0, UNIX),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(steps), ctypes.addressof(held))
    libc = ctypes.CDLL(None)
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.prctl(SET_SECCOMP, FILTER, pointer) == 0)
