"""A process that dies at its n-th call of the system, and what it had used by then."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")
#: What is asked of the system while a ledger is begun and written into, as far as it changes
#: something.
CALLS = ("open", "write", "fsync", "ftruncate", "replace")
REAL = {name: getattr(os, name) for name in (*CALLS, "close")}
#: Which calls end the process, and whether half of the last one is done.
DEATHS = {"before a call": (CALLS, False), "while it writes": (("write",), True)}


def dies_at(number, calls, halfway):
    """From here on this process dies at its n-th call of these, of which it may do half.

    What there is after a call is what there is before the next one.
    """
    asked = []

    def instead(name):
        def call(*args):
            asked.append(name)
            if len(asked) == number:
                if halfway:
                    REAL["write"](args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return REAL[name](*args)

        return call

    for name in calls:
        setattr(os, name, instead(name))


def _child(work, *when):
    dies_at(*when)
    work()
    os._exit(0)


def died(work, *when):
    """Do this in a process that dies; whether it did so before it was done."""
    process = multiprocessing.get_context("fork").Process(target=_child, args=(work, *when))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def use(marks):
    """What stands for the use of private records: it leaves a mark."""
    descriptor = REAL["open"](marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    REAL["write"](descriptor, b".")
    REAL["close"](descriptor)


def uses(marks):
    return marks.stat().st_size if marks.exists() else 0
