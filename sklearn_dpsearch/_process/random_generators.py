"""The global generators of Python, NumPy and PyTorch."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

#: Size of the state of PyTorch's CPU generator (MT19937), and where its 624 words lie, 8 bytes
#: each.
TORCH_STATE, TORCH_WORDS = 5056, slice(24, 24 + 8 * 624)
#: Number of words that ``seed_torch`` takes.
SEED_WORDS = 2 + 624


def seed_torch(generator: Any, words: np.ndarray) -> None:
    """Give a generator of PyTorch a state of ``SEED_WORDS`` words of 32 bits.

    ``manual_seed`` alone would leave 2³² states on a CPU: few enough to try them all.
    """
    torch = _torch()
    generator.manual_seed(int.from_bytes(words[:2].tobytes(), "little") >> 1)
    state = generator.get_state()
    if state.numel() == TORCH_STATE:
        state[TORCH_WORDS] = torch.from_numpy(words[2:].astype(np.uint64).view(np.uint8))
        generator.set_state(state)


def _of_the_system() -> np.ndarray:
    """Words for a generator of PyTorch, from the operating system."""
    return np.frombuffer(os.urandom(4 * SEED_WORDS), np.uint32)


def reseed(seed: np.random.SeedSequence | None = None) -> None:
    """Give the global generators a fresh state: draws would repeat in forked processes.

    Parameters
    ----------
    seed : SeedSequence or None
        None: from the operating system.
    """
    words = np.frombuffer(os.urandom(64), np.uint32) if seed is None else seed.generate_state(16)
    np.random.seed(words)
    random.seed(words.tobytes())
    if torch := _torch():
        of_torch = _of_the_system() if seed is None else seed.generate_state(16 + SEED_WORDS)[16:]
        seed_torch(torch.default_generator, of_torch)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(torch.initial_seed())


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


# --- generators that objects and modules hold: copies of them in other processes would draw the sam

#: Kinds of generators that can be found among the objects of a process; NumPy's ``Generator`` has
#: one of them inside.
KINDS = (np.random.BitGenerator, np.random.RandomState, random.Random)


#: Generators of PyTorch that came in pickles: no list of objects has them.
RECEIVED: list[Any] = []


def all_generators(excluded: Collection[str] = ()) -> list[Any]:
    """All generators of this process, but for those of frozen objects and excluded modules.

    ``gc.freeze`` freezes objects.

    Parameters
    ----------
    excluded : collection of str
        Names of known modules.
    """
    objects = gc.get_objects()
    kinds = {id(kind): kind for kind in map(type, objects)}  # some types have no hash
    wanted = {number for number, kind in kinds.items() if issubclass(kind, KINDS)}
    generators = [element for element in objects if id(type(element)) in wanted]
    torch = _torch()
    if torch is None:
        return generators
    modules = [module for name, module in list(sys.modules.items()) if name not in excluded]
    held = (value for module in modules for value in list(vars(module).values()))
    return [*generators, *RECEIVED, *(value for value in held if type(value) is torch.Generator)]


def refresh(generator: Any) -> None:
    """Give a generator a state from the operating system."""
    if isinstance(generator, np.random.BitGenerator):
        generator.state = type(generator)().state
    # it also keeps a normal number for the next draw
    elif isinstance(generator, np.random.RandomState):
        fresh = _new_generator(type(generator), type(generator._bit_generator))
        generator.__setstate__(fresh.__getstate__())
    elif isinstance(generator, random.Random):
        generator.seed()
    else:
        seed_torch(generator, _of_the_system())


def reduction(thing: Any) -> tuple[Any, ...] | None:
    """Reduction of a generator for pickles that go to other processes; None for other objects.

    In the other process the generator has a fresh state.
    """
    torch = _torch()
    if thing is np.random.mtrand._rand or thing is getattr(random, "_inst", None):
        return _of_the_process, ("numpy" if thing is np.random.mtrand._rand else "python",)
    if isinstance(thing, (np.random.BitGenerator, random.Random)):
        return type(thing), ()
    if isinstance(thing, np.random.RandomState):
        return _new_generator, (type(thing), type(thing._bit_generator))
    if isinstance(thing, np.random.Generator):
        return _new_generator, (type(thing), type(thing.bit_generator))
    if torch is None or type(thing) is not torch.Generator:
        return None
    if thing is torch.default_generator:
        return (_of_the_process, ("torch",))
    return (_of_torch, (str(thing.device),))


def _new_generator(kind: Any, bits: Any) -> Any:
    return kind(bits())


def _of_the_process(library: str) -> Any:
    """Global generator of a library."""
    if library == "torch":
        return sys.modules["torch"].default_generator
    return np.random.mtrand._rand if library == "numpy" else random._inst


def _of_torch(device: str) -> Any:
    import torch

    generator = torch.Generator(device)
    seed_torch(generator, _of_the_system())
    RECEIVED.append(generator)
    return generator
