"""What goes to a cluster and comes back, sealed: what carries it cannot quote it, and cannot fail on it.

Clusters log what they fail to write or to read, with its representation and the text of the error: candidates, splits,
scores, and whatever code of the user's says. Some then wait for ever. So all that is not a plain array is written and
read here, in silence, and a failure is a value.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..._process import muted
from .failures import FailedThere, NotReadable, NotWritable, why

#: In this order. Dask and Ray bring theirs along.
PICKLERS = ("cloudpickle", "ray.cloudpickle")


class Sealed:
    """Something that is written when it leaves its process, and read when it is opened.

    Parameters
    ----------
    content : object
    shared : bool
        Whether several tasks get it: its true size is told, so that a large one is sent to each worker only once.
        Nobody else learns the size of what is inside.
    """

    def __init__(self, content: Any, shared: bool = False) -> None:
        self._content, self._shared = content, shared
        self._opened, self._written = True, False
        self._text: bytes | None = None
        self._arrays: list[np.ndarray] = []

    def open(self) -> Any:
        """What is inside.

        Raises
        ------
        NotWritable, NotReadable
            If it could not be written, there, or read, here.
        """
        if not self._opened:
            self._content, self._opened = self._read(), True
        return self._content

    def _read(self) -> Any:
        if self._text is None:
            raise NotWritable
        try:
            with muted():
                return pickle.loads(self._text, buffers=self._arrays)
        except Exception:
            pass
        raise NotReadable  # outside of the handler: the text of the error is not told

    def _write(self) -> None:
        """Arrays stay where they are; what carries this writes or maps them as it does with any array."""
        if self._written:
            return
        found: list[pickle.PickleBuffer] = []
        self._written = True
        try:
            with muted():
                text = _pickler().dumps(self._content, protocol=5, buffer_callback=found.append)
                self._arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in found]
                self._text = text
        except Exception:
            self._text, self._arrays = None, []

    def __reduce__(self) -> tuple[Callable[..., Sealed], tuple[Any, ...]]:
        self._write()
        return _arrived, (self._text, self._arrays, self._shared)

    def __sizeof__(self) -> int:
        if not self._shared:
            return object.__sizeof__(self)
        self._write()
        return object.__sizeof__(self) + len(self._text or b"") + sum(array.nbytes for array in self._arrays)


def _arrived(text: bytes | None, arrays: list[np.ndarray], shared: bool) -> Sealed:
    """The same in another process, unread."""
    found = Sealed(None, shared)
    found._opened, found._written = False, True
    found._text, found._arrays = text, arrays
    return found


def _pickler() -> Any:
    """cloudpickle writes classes and functions of scripts: that which clusters use, which users may have told more."""
    return next((sys.modules[name] for name in PICKLERS if name in sys.modules), pickle)


# --- tasks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """Something that workers read from a store, where it lies once.

    Parameters
    ----------
    reference : object
        What ``ray.put`` returned.
    """

    reference: Any

    def open(self) -> Any:
        """What is there."""
        found = sys.modules["ray"].get(self.reference)
        return found.open() if isinstance(found, Sealed) else found


@dataclass(frozen=True)
class InAFile:
    """An array that stays in its file, which workers see too: what is sent is where it lies.

    Parameters
    ----------
    path : str
    dtype, shape, offset, order
        As ``numpy.memmap`` takes them.
    state : (int, int)
        Size of the file, and when it was last changed: another one is not read.
    """

    path: str
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int
    order: Literal["C", "F"]
    state: tuple[int, int]

    def open(self) -> np.ndarray:
        """The array, which cannot be written to."""
        try:
            if _state_of(self.path) == self.state:
                return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
        except OSError:
            pass
        raise NotReadable


def in_a_file(array: Any) -> InAFile | None:
    """Where an array lies whose file is the array; None for any other, a part of one, or one that was changed here."""
    whole = type(array) is np.memmap and isinstance(array.base, mmap.mmap) and not array.dtype.hasobject
    if not whole or array.mode == "c" or array.filename is None:
        return None
    array.flush()
    path = os.path.abspath(array.filename)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return InAFile(path, array.dtype, array.shape, array.offset, order, _state_of(path))


def _state_of(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def sealed(tasks: Iterable[Any], store: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    """The same tasks, with everything sealed that is not a plain array or number, and with sealed results.

    Parameters
    ----------
    tasks : iterable of delayed calls
    store : callable, optional
        Where what several tasks share is put, by something that would otherwise send it with every task.
    """
    tasks = list(tasks)
    times = Counter(id(one) for _, given, named in tasks for one in (*given, *named.values()))
    once: dict[int, Any] = {}

    def packed(one: Any) -> Any:
        if (place := in_a_file(one)) is not None:
            return place
        shared = times[id(one)] > 1
        parcel = one if isinstance(one, np.ndarray) and _is_plain(one) else Sealed(one, shared)
        return Stored(store(parcel)) if store is not None and shared else parcel

    def seal(one: Any) -> Any:
        if _is_plain(one) and type(one) is not np.memmap and (store is None or not isinstance(one, np.ndarray)):
            return one
        if id(one) not in once:
            once[id(one)] = packed(one)
        return once[id(one)]

    for work, given, named in tasks:
        arguments = [seal(one) for one in given], {name: seal(one) for name, one in named.items()}
        yield in_seals, (work, *arguments[0]), arguments[1]


def _is_plain(one: Any) -> bool:
    if isinstance(one, np.ndarray):
        return type(one) in (np.ndarray, np.memmap) and not one.dtype.hasobject
    return one is None or type(one) in (int, float, str, bool)


def in_seals(work: Callable[..., Any], *given: Any, **named: Any) -> Sealed:
    """The sealed result of sealed arguments; an error of any kind is a result too, in fixed words."""
    try:
        return Sealed(work(*map(_opened, given), **{name: _opened(one) for name, one in named.items()}))
    except Exception as error:
        return Sealed(error if isinstance(error, FailedThere) else FailedThere(str(why(error))))


def _opened(one: Any) -> Any:
    return one.open() if isinstance(one, (Sealed, Stored, InAFile)) else one


def unsealed(results: Iterable[Sealed]) -> list[Any]:
    """The results.

    Raises
    ------
    FailedThere
        For the first that is an error.
    """
    found = [result.open() for result in results]
    for one in found:
        if isinstance(one, FailedThere):
            raise one
    return found
