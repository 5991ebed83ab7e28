"""Sealed arguments and results of a cluster: the backend can neither quote their content nor fail on it.

Clusters log objects that they fail to write or to read, with their representation and the text of the error:
candidates, splits, scores, and texts of the user's code. Some clusters then wait for ever. So every object that is not
a plain array is written and read here, in silence, and a failure is a value.
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

#: Module that writes; Dask brings it.
PICKLERS = ("cloudpickle",)
#: Joblib's own processes use the one that joblib has imported, which knows the classes that it has sent: its own copy
#: before version 1.6, and then the package.
JOBLIBS_PICKLERS = ("joblib.externals.cloudpickle", "cloudpickle")


class Sealed:
    """An object that is written when it leaves its process, and read when it is opened.

    Parameters
    ----------
    content : object
    shared : bool
        Whether several tasks get it: its true size is told, so that a large one is sent to each worker only once.
        Otherwise the size of the content stays hidden.
    picklers : tuple of str
        Names of modules, of which the first that is imported writes.
    """

    def __init__(self, content: Any, shared: bool = False, picklers: tuple[str, ...] = PICKLERS) -> None:
        self._content, self._shared, self._picklers = content, shared, picklers
        self._opened, self._written = True, False
        self._text: bytes | None = None
        self._arrays: list[np.ndarray] = []

    def open(self) -> Any:
        """Open the content.

        Raises
        ------
        NotWritable, NotReadable
            If the sender could not write the content, or this process cannot read it.
        """
        if not self._opened:
            self._content, self._opened = self._read(), True
        return self._content

    def close(self) -> None:
        """Write the content and drop it, so that the backend frees nothing but bytes."""
        if self._opened:
            self._write()
            self._content, self._opened = None, False

    def _read(self) -> Any:
        if self._text is None:
            raise NotWritable
        try:
            with muted():
                return pickle.loads(self._text, buffers=self._arrays)
        except Exception:
            pass
        raise NotReadable  # outside of the handler: the text of the error must not leave

    def _write(self) -> None:
        """Write the content without its arrays, which the backend sends or maps as any array."""
        if self._written:
            return
        found: list[pickle.PickleBuffer] = []
        self._written = True
        try:
            with muted():
                text = _pickler(self._picklers).dumps(self._content, protocol=5, buffer_callback=found.append)
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
    """Sealed object received in another process, unread."""
    found = Sealed(None, shared)
    found._opened, found._written = False, True
    found._text, found._arrays = text, arrays
    return found


def _pickler(names: tuple[str, ...]) -> Any:
    """Pickler that writes classes and functions of scripts: the cluster's own cloudpickle, which users may extend."""
    return next((sys.modules[name] for name in names if name in sys.modules), pickle)


# --- tasks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InAFile:
    """An array in a file that workers see too: only its place is sent.

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
        """Open the array, read-only."""
        try:
            if _state_of(self.path) == self.state:
                return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
        except OSError:
            pass
        raise NotReadable


def in_a_file(array: Any) -> InAFile | None:
    """Place of an array that fills its file; None for other arrays, parts of one, and arrays changed in memory."""
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


def sealed(tasks: Iterable[Any]) -> Iterator[Any]:
    """Seal the results of tasks, and all arguments but plain arrays and numbers."""
    tasks = list(tasks)
    times = Counter(id(one) for _, given, named in tasks for one in (*given, *named.values()))
    once: dict[int, Any] = {}

    def seal(one: Any) -> Any:
        if _is_plain(one) and type(one) is not np.memmap:
            return one
        if id(one) not in once:
            once[id(one)] = in_a_file(one) or (one if _is_plain(one) else Sealed(one, times[id(one)] > 1))
        return once[id(one)]

    for work, given, named in tasks:
        arguments = [seal(one) for one in given], {name: seal(one) for name, one in named.items()}
        yield in_seals, (work, *arguments[0]), arguments[1]


def _is_plain(one: Any) -> bool:
    if isinstance(one, np.ndarray):
        return type(one) in (np.ndarray, np.memmap) and not one.dtype.hasobject
    return one is None or type(one) in (int, float, str, bool)


def in_seals(work: Callable[..., Any], *given: Any, **named: Any) -> Sealed:
    """Work on sealed arguments and seal the result; any error becomes a result with fixed words."""
    try:
        return Sealed(work(*map(_opened, given), **{name: _opened(one) for name, one in named.items()}))
    except Exception as error:
        return Sealed(error if isinstance(error, FailedThere) else FailedThere(str(why(error))))


def _opened(one: Any) -> Any:
    return one.open() if isinstance(one, (Sealed, InAFile)) else one


def unsealed(results: Iterable[Sealed]) -> list[Any]:
    """Open sealed results.

    Raises
    ------
    FailedThere
        For the first result that is an error.
    """
    found = [result.open() for result in results]
    for one in found:
        if isinstance(one, FailedThere):
            raise one
    return found
