"""Secret batches and noise of one training, from the operating system or, for tests, a seed."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from .._process.random_generators import SEED_WORDS, refresh, seed_torch

#: Accepted seeds; None: the operating system.
Seed: TypeAlias = int | Sequence[int] | np.random.RandomState | np.random.SeedSequence | None

CPU = torch.device("cpu")
_GLOBAL_GENERATOR = threading.Lock()

#: Random streams of one training, each from its own child of the seed.
STREAMS = ("coins", "noise", "reading", "rows", "turns")


class Secrets:
    """Secret randomness of one training: batches and noise.

    Parameters
    ----------
    seed : None, int, RandomState or SeedSequence
        None: 256 bits from the operating system. A seed is for tests: it is enough to undo the
        noise.

    Notes
    -----
    Noise is drawn in double precision on the CPU, for every device. PyTorch's single-precision
    normals come from 24 random bits and are cut at 5.77 standard deviations, its generators keep 32
    or 64 bits of a seed, and its global generator is shared with the user: each of these three
    alone would make a stated ε false.
    """

    def __init__(self, seed: Seed = None) -> None:
        source = seed_sequence(seed)
        streams = (_stream(source, name) for name in ("coins", "rows", "turns"))
        self.coins, self.rows, self.turns = streams
        self._noise = np.random.Generator(np.random.SFC64(_stream_seed(source, "noise")))

    def normals(self, out: Tensor, scale: float = 1.0) -> None:
        """Fill a contiguous double-precision tensor, on any device, with independent normals."""
        values = out if out.device.type == "cpu" else torch.empty(out.shape, dtype=torch.float64)
        self._noise.standard_normal(out=values.numpy())
        values.mul_(scale)
        if values is not out:
            out.copy_(values)


def seed_sequence(seed: Seed = None) -> np.random.SeedSequence:
    """NumPy seed sequence with room for 256 bits.

    Without a seed the bits come from the operating system.
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.RandomState):
        seed = [int(word) for word in seed.randint(2**32, size=8, dtype=np.uint64)]
    return np.random.SeedSequence(secrets.randbits(256) if seed is None else seed, pool_size=8)


def seed_of_training(seed: Seed, words: Sequence[int]) -> np.random.SeedSequence:
    """Seed sequence of a seed and of a training's fingerprint."""
    entropy = seed_sequence(seed).generate_state(8)
    return np.random.SeedSequence([*map(int, entropy), *words], pool_size=8)


def _stream_seed(source: np.random.SeedSequence, name: str) -> np.random.SeedSequence:
    """Seed of one random stream of a training, equal at each call.

    A restarted training gets its secrets again.
    """
    key = (*source.spawn_key, STREAMS.index(name))
    return np.random.SeedSequence(source.entropy, spawn_key=key, pool_size=source.pool_size)


def _stream(source: np.random.SeedSequence, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64DXSM(_stream_seed(source, name)))


def reading_generator(seed: Seed) -> np.random.Generator:
    """Generator for reading records, independent of batches and noise."""
    return _stream(seed_sequence(seed), "reading")


@contextlib.contextmanager
def global_torch_seed(seed: Seed = None, device: torch.device = CPU) -> Iterator[None]:
    """Seed PyTorch's generators of the CPU and one device afresh, and restore them afterwards.

    Only initial weights and dropout masks use them. Masks belong to places in a batch, so they are
    as secret as batches, and 32 bits (all that the CPU's generator takes of a seed) are too few.
    """
    source = seed_sequence(seed)
    devices = [device] if device.type == "cuda" else []
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=devices):
        seed_torch(torch.default_generator, source.generate_state(SEED_WORDS))
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(torch.initial_seed())
        yield


def _reset_after_fork() -> None:
    """Give a forked child a free lock and fresh dropout masks.

    Another thread may have been training a net.
    """
    global _GLOBAL_GENERATOR
    if _GLOBAL_GENERATOR.locked():
        _GLOBAL_GENERATOR = threading.Lock()
        refresh(torch.default_generator)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def fill_normals(sources: Sequence[Secrets], scales: Sequence[float], out: Tensor) -> None:
    """Fill one row of normals from each training's secrets.

    Each row has a scale of its own; shape (len(sources), n).
    """
    for source, scale, row in zip(sources, scales, out):
        source.normals(row, scale)
