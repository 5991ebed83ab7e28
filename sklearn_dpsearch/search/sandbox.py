"""A sandbox of the kernel's for private work: it reads files, writes only in its own folders, and has no network.

Landlock and a network namespace, on Linux, as far as the kernel has them and allows them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Sequence

#: System calls, which have these numbers on all processors.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
SET_NO_NEW_PRIVS, NEW_USERS, NEW_NETWORK = 38, 0x10000000, 0x40000000
#: Rights to files: of every version of Landlock, to link and move (version 2), and to truncate (version 3).
WRITE, CHANGE_FOLDERS, MOVE, TRUNCATE = 1 << 1, 0b1111111110000, 1 << 13, 1 << 14
#: Rights to TCP, bind and connect (version 4); abstract sockets of other processes (version 6).
TCP, ABSTRACT_SOCKETS = 0b11, 1
#: Devices, which hold nothing; and what processes of one computer share: semaphores need files there.
DEVICES, SHARED_MEMORY = "/dev", "/dev/shm"


def confine(folders: Sequence[str]) -> bool:
    """Confine this thread, and all threads and processes that it starts, for good; return whether the kernel could.

    Parameters
    ----------
    folders : sequence of str
        Where files may be written.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _leave_network(libc)
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


def _leave_network(libc: ctypes.CDLL) -> None:
    """Enter a namespace without a network; who is not root needs one of users too, and stays who he is."""
    if libc.unshare(NEW_NETWORK) == 0:
        return
    users = {"uid_map": os.getuid(), "gid_map": os.getgid()}
    if libc.unshare(NEW_USERS | NEW_NETWORK) == 0:
        with contextlib.suppress(OSError):  # some systems allow the namespace, and no names in it
            for file, text in [("setgroups", "deny"), *((name, f"{one} {one} 1") for name, one in users.items())]:
                with open(f"/proc/self/{file}", "w") as stream:
                    stream.write(text)
