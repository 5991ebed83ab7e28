"""The global generators of Python, NumPy and PyTorch."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np


def reseed(seed: np.random.SeedSequence | None = None) -> None:
    """Give the global generators a fresh state: draws would repeat in forked processes.

    Parameters
    ----------
    seed : SeedSequence or None
        None: 512 bits from the operating system.
    """
    words = np.frombuffer(os.urandom(64), np.uint32) if seed is None else seed.generate_state(16)
    np.random.seed(words)
    random.seed(words.tobytes())
    if torch := _torch():
        seed_of_torch = int.from_bytes(words[:2].tobytes(), "little")
        torch.default_generator.manual_seed(seed_of_torch)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed_of_torch)


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the state of the global generators at the end."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    torch = _torch()
    state = torch.get_rng_state() if torch else None
    devices = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        if torch:
            torch.set_rng_state(state)
        if devices:
            torch.cuda.set_rng_state_all(devices)


def _torch() -> Any:
    """PyTorch, if fully imported."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "default_generator") else None
