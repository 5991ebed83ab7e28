"""Tasks say nothing to the outside, and share no randomness with it or with each other."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import parallel_config


@contextlib.contextmanager
def in_task(parent: int) -> Iterator[None]:
    """Around everything that one task does; ``parent`` is the process that isolated itself already."""
    with (
        isolated() if os.getpid() != parent else contextlib.nullcontext(),
        DESCRIPTORS.muted(),
        parallel_config(backend="sequential"),
    ):
        yield


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """No standard output, warnings or log records: each of them could count the runs or quote a record.

    A diffprivlib warning about a leak becomes an exception. The global generators are left as they were found.
    """
    previous, numpy_state, python_state = logging.root.manager.disable, np.random.get_state(), random.getstate()
    logging.disable(sys.maxsize)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            _torch_as_it_was(),
        ):
            warnings.simplefilter("ignore")
            if "diffprivlib.utils" in sys.modules:
                warnings.simplefilter("error", sys.modules["diffprivlib.utils"].PrivacyLeakWarning)
            yield
    finally:
        logging.disable(previous)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def reseed_globals(seed: Any) -> None:
    """Fresh state for the global generators: forked workers and users who seeded them would repeat each other."""
    words = np.frombuffer(os.urandom(64), np.uint32) if seed is None else seed.generate_state(16)
    np.random.seed(words)
    random.seed(words.tobytes())
    if torch := _torch():
        seed_of_torch = int.from_bytes(words[:2].tobytes(), "little")
        torch.default_generator.manual_seed(seed_of_torch)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed_of_torch)


def _torch() -> Any:
    """PyTorch, if somebody imported it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "default_generator") else None


@contextlib.contextmanager
def _torch_as_it_was() -> Iterator[None]:
    """PyTorch's global generators are left as they were found."""
    torch = _torch()
    state = torch.get_rng_state() if torch else None
    devices = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        if torch:
            torch.set_rng_state(state)
            if devices:
                torch.cuda.set_rng_state_all(devices)


class Descriptors:
    """The descriptors 1 and 2 of this process, which lead nowhere while any thread mutes them.

    Compiled code, child processes and loggers with a stream of their own write to them past ``sys.stdout``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._kept: dict[int, int] = {}

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Nothing that is written in here reaches the outside, not even later from a buffer."""
        with self._lock:
            if self._users == 0:
                self._mute()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore()

    def _mute(self) -> None:
        _flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # a process may have closed it
                self._kept[descriptor] = os.dup(descriptor)
                os.dup2(nowhere, descriptor)
        os.close(nowhere)

    def _restore(self) -> None:
        _flush()
        for descriptor, kept in self._kept.items():
            os.dup2(kept, descriptor)
            os.close(kept)
        self._kept = {}


DESCRIPTORS = Descriptors()


def _flush() -> None:
    """Empty the buffers of Python and of C."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
