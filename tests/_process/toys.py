"""What is changed for silent threads, somebody who speaks in every way, and somebody who hears it all."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import logging
import os
import sys
import threading
import warnings


def state(filters=True):
    """Everything that is changed for silent threads; without the filters of warnings where others change them too."""
    return (
        sys.stdout,
        sys.stderr,
        logging.root.manager.disable,
        logging.Logger.handle,
        logging.Handler.handle,
        warnings._showwarnmsg,
        list(warnings.filters) if filters else None,
        threading.Thread.start,
        threading.excepthook,
        sys.unraisablehook,
        atexit.register,
        list(gc.callbacks),
        gc.get_freeze_count() > 0,
        os.fstat(1).st_ino,
        os.fstat(2).st_ino,
    )


def speak(name):
    print(f"out {name}")
    print(f"err {name}", file=sys.stderr)
    sys.stdout.writelines([f"lines {name}"])
    warnings.warn(f"warning {name}", stacklevel=1)
    logging.getLogger("somebody").error("record %s", name)


@contextlib.contextmanager
def hearing(filters=True):
    """Everything that is said, on streams as a notebook has them: objects of its own, without a descriptor."""
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    logging.getLogger().addHandler(handler)
    shown = warnings.catch_warnings(record=True)
    with shown as warned, contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        warnings.simplefilter("always")
        before = state(filters)
        yield told
        assert [pair for pair in zip(before, state(filters)) if pair[0] != pair[1]] == []
        told.writelines(f"{one.message}\n" for one in warned)
    logging.getLogger().removeHandler(handler)
