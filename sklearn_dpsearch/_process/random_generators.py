"""The global generators of Python, NumPy and PyTorch."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import PrivacyError
from .reference_counting import Undo, WhileAnyone
from .this_process import this_process


def reseed(seed: np.random.SeedSequence | None = None) -> None:
    """Give the global generators a fresh state: draws would repeat in forked workers and after a user's seed.

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
    """PyTorch, if fully imported; a half-imported PyTorch, still loading in another thread, would crash the process."""
    torch = sys.modules.get("torch")
    is_half = getattr(getattr(torch, "__spec__", None), "_initializing", False)
    return torch if hasattr(torch, "default_generator") and not is_half else None


def _keep() -> Undo:
    numpy_state, python_state = np.random.get_state(), random.getstate()
    back = _keep_torch()

    def undo() -> None:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        back()

    return undo


def _keep_torch() -> Undo:
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


class AllSeededOrNone:
    """Searches that overlap in this process: all of them have a seed, or none has.

    They share the global generators. A search with a known seed would give known noise to one without.
    """

    def __init__(self) -> None:
        self._users = Counter[tuple[str, bool]]()  # by process: searches of the parent's threads stay there

    @contextlib.contextmanager
    def __call__(self, seeded: bool) -> Iterator[None]:
        """Count a search while it runs; one inside of another's candidate counts with that.

        Raises
        ------
        PrivacyError
            While a search of the other kind runs.
        """
        if GENERATORS.here:
            yield
            return
        own, other = (this_process(), seeded), (this_process(), not seeded)
        with GENERATORS.lock:
            if self._users[other]:
                raise PrivacyError(
                    f"Found a search {'with' if seeded else 'without'} random_state, and in another thread one "
                    f"{'without' if seeded else 'with'}: they share the generators of the process, so that the "
                    "known seed would give known noise to both. Fit one after the other, or in processes of their own."
                )
            self._users[own] += 1
        try:
            yield
        finally:
            with GENERATORS.lock:
                self._users[own] -= 1


#: While any thread is inside, candidates draw from the global generators. The last thread to leave restores the state
#: that the first found. (Restored earlier, a state that the user seeded would give the noise of a running candidate.)
GENERATORS = WhileAnyone(_keep)
ALL_SEEDED_OR_NONE = AllSeededOrNone()
