"""The global generators of Python, NumPy and PyTorch."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .counted import WhileAnyone


def reseed(seed: Any = None) -> None:
    """Fresh state for the global generators: forked workers and users who seeded them would repeat each other.

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


def _torch() -> Any:
    """PyTorch, if somebody imported it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "default_generator") else None


def _keep() -> Callable[[], None]:
    numpy_state, python_state = np.random.get_state(), random.getstate()
    back = _keep_torch()

    def undo() -> None:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        back()

    return undo


def _keep_torch() -> Callable[[], None]:
    torch = _torch()
    if not torch:
        return lambda: None
    state = torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def undo() -> None:
        torch.set_rng_state(state)
        if devices:
            torch.cuda.set_rng_state_all(devices)

    return undo


#: While anyone is inside, candidates draw from the global generators; the last to leave puts them back as the first
#: found them. (Put back earlier, a state that the user seeded would be the noise of a candidate still running.)
GENERATORS = WhileAnyone(_keep)
