"""Random numbers of a forward pass: only from PyTorch's generators as seeded by training, and never repeated.

``vmap`` gives each record the random numbers of its place in the batch, which is harmless if the numbers are secret and
independent. With known or repeated numbers, a record's contribution would depend on its place, which other records
decide.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...privacy import LeakingEstimatorError

#: Devices whose generators are watched.
WATCHED = ("cpu", "cuda")


class Draws(TorchDispatchMode):
    """Raises at random numbers from another generator, or from one that code has seeded or reset.

    Parameters
    ----------
    device : torch.device
    allowed : bool
        Whether random numbers are allowed at all.
    """

    def __init__(self, device: torch.device, allowed: bool = True) -> None:
        super().__init__()
        self.device, self.allowed = device, allowed
        self.drawn = False
        self._met: set[bytes] = set()

    def __enter__(self) -> Draws:
        self._seeds, self._began = self._now()
        super().__enter__()
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        super().__exit__(kind, *rest)
        if kind is None:
            seeds, state = self._now()
            if seeds != self._seeds or (self.drawn and state == self._began):
                raise _found("PyTorch's generator seeded or set back")

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        self._check_generator((*args, *kwargs.values()))
        before = self._now()
        result = func(*args, **kwargs)
        if self._now() != before or func.namespace != "aten":  # attention without dropout could draw, and does not
            self._check_draw(*before)  # operations of others could set the generator back themselves
        return result

    def _check_generator(self, arguments: tuple[object, ...]) -> None:
        if any(isinstance(one, torch.Generator) for one in arguments):
            raise _found("random numbers drawn from another generator")
        if self.device.type not in WATCHED:
            raise _found(f"random numbers on a device whose generator cannot be watched ({self.device.type})")

    def _check_draw(self, seeds: tuple[int, ...], state: bytes) -> None:
        """Raise for numbers that were drawn where none may be, or from a state that is known or was met before."""
        if not self.allowed:  # once for many records
            raise _found("random numbers drawn where the module is copied (__deepcopy__, __setstate__), and not")
        if seeds != self._seeds or state in self._met:
            raise _found("PyTorch's generator seeded or set back")
        self._met.add(state)
        self.drawn = True

    def _now(self) -> tuple[tuple[int, ...], bytes]:
        """Seeds of the generators, and a digest of their states."""
        there = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
        generators: list[torch.Generator] = [torch.default_generator, *there]
        digest = hashlib.blake2b(digest_size=16)
        for one in generators:
            digest.update(one.get_state().numpy().data)
        return tuple(one.initial_seed() for one in generators), digest.digest()


def _found(what: str) -> LeakingEstimatorError:
    return LeakingEstimatorError(
        f"Found {what} in forward or in the criterion: each record would get the numbers of its place in the batch, "
        "which are then known, and one record more would move those of all others. Draw with torch.rand, nn.Dropout "
        "and the like, without generator=, torch.manual_seed and fork_rng; training seeds PyTorch's generator."
    )
