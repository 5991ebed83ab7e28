"""Pickles for private processes: objects that several of them share, and work on these objects."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

try:
    from joblib.externals import cloudpickle  # joblib < 1.6 brings its own
except ImportError:
    import cloudpickle

from .._process import reduction
from ..privacy import PrivacyError

#: Libraries whose objects start threads when they are unpickled: no process may be forked after that.
THREADED = frozenset({"polars", "pyarrow"})
#: Alignment of arrays, in bytes.
ALIGNED = 64
WHAT_TRAVELS = (
    "Private work is done in a process of its own. Remove open files, locks, connections and the like, or make them in "
    "fit."
)


class _Pickler(cloudpickle.Pickler):
    """Pickler of classes of scripts and notebooks too. Some objects are named by numbers, arrays in files by places.

    Generators have fresh states when they arrive.
    """

    def __init__(self, file: Any, named: Sequence[Any], buffers: list[pickle.PickleBuffer] | None = None) -> None:
        super().__init__(file, protocol=5, buffer_callback=None if buffers is None else buffers.append)
        self._numbers = {id(one): number for number, one in enumerate(named)}
        self.threaded = False

    def persistent_id(self, obj: Any) -> int | None:
        return self._numbers.get(id(obj))

    def reducer_override(self, obj: Any) -> Any:
        self.threaded |= type(obj).__module__.partition(".")[0] in THREADED
        if type(obj) is np.memmap and (place := place_of(obj)) is not None:
            return MappedArray.open, (place,)
        if (special := reduction(obj) or _of_skorch(obj)) is not None:
            return special
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, named: Sequence[Any]) -> None:
        super().__init__(file)
        self._named = named

    def persistent_load(self, pid: int) -> Any:
        return self._named[pid]


def pickled(thing: Any, named: Sequence[Any] = (), head: bytes = b"") -> bytes:
    """Pickle an object after a head, with others in it named by their numbers.

    Raises
    ------
    PrivacyError
        If it cannot be pickled.
    """
    file = io.BytesIO(head)
    file.seek(len(head))
    try:
        _Pickler(file, named).dump(thing)
        return file.getvalue()
    except Exception as error:
        told = isinstance(error, (TypeError, AttributeError, pickle.PicklingError))
        why = str(error) if told else type(error).__name__
    raise PrivacyError(f"Found an estimator, a scorer or a parameter that cannot be pickled: {why}. {WHAT_TRAVELS}")


def unpickled(content: Any, named: Sequence[Any] = ()) -> Any:
    """Unpickle an object. Classes of a script come back as the same classes."""
    if not named:
        return pickle.loads(content)  # without another copy
    return _Unpickler(io.BytesIO(content), named).load()


def _of_skorch(thing: Any) -> tuple[Any, ...] | None:
    """Reduction of a net of skorch, which would pickle by itself, and not find classes of scripts; None for others."""
    if not any(kind.__module__ == "skorch.net" for kind in type(thing).__mro__):
        return None
    return object.__new__, (type(thing),), vars(thing), None, None, _set_attributes


def _set_attributes(thing: Any, attributes: dict[str, Any]) -> None:
    vars(thing).update(attributes)


# --- shared objects ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packed:
    """Objects that private processes share: in memory, or in a file of a folder.

    Parameters
    ----------
    file : int
        Descriptor.
    folder : str or None
    """

    file: int
    folder: str | None = None

    @classmethod
    def of(cls, shared: Sequence[Any], folder: str | None = None) -> Packed:
        """Pickle objects, with arrays out of band.

        Raises
        ------
        PrivacyError
            For objects that cannot be pickled, in fixed words: they may be records.
        """
        buffers: list[pickle.PickleBuffer] = []
        head = io.BytesIO()
        pickler = _Pickler(head, (), buffers)
        done = False
        with contextlib.suppress(Exception):
            pickler.dump(list(shared))
            done = True
        if not done:  # outside of the handler: a chained exception could quote a record
            raise PrivacyError(f"Found records or public data that cannot be pickled. {WHAT_TRAVELS}")
        parts = [head.getbuffer(), *(buffer.raw() for buffer in buffers)]
        facts = pickle.dumps((pickler.threaded, [part.nbytes for part in parts]))
        packed = cls(os.memfd_create("shared") if folder is None else _open(folder), folder)
        with open(packed.file, "wb", closefd=False) as stream:
            stream.write(len(facts).to_bytes(8, "little") + facts)
            for part in parts:
                stream.write(bytes(-stream.tell() % ALIGNED))
                stream.write(part)
        return packed

    @classmethod
    def copy_of(cls, content: np.ndarray, folder: str | None = None) -> Packed:
        """Packed objects whose content came from elsewhere."""
        packed = cls(os.memfd_create("shared") if folder is None else _open(folder), folder)
        with open(packed.file, "wb", closefd=False) as stream:
            stream.write(content.data)
        return packed

    @classmethod
    def found(cls, folder: str) -> Packed:
        """Open the file of a folder."""
        return cls(_open(folder, os.O_RDONLY), folder)

    @property
    def content(self) -> np.ndarray:
        """Bytes of the packed objects, for another machine."""
        return np.frombuffer(mmap.mmap(self.file, 0, access=mmap.ACCESS_READ), np.uint8)

    @property
    def starts_threads(self) -> bool:
        """Return whether unpickling starts threads, so that each process has to do it by itself."""
        return bool(pickle.loads(self.content.data[8:])[0])

    def read(self) -> list[Any]:
        """Unpickle the objects. Processes share the memory of arrays until they change them."""
        mapped = memoryview(mmap.mmap(self.file, 0, access=mmap.ACCESS_COPY))
        end = 8 + int.from_bytes(mapped[:8], "little")
        parts = []
        for size in pickle.loads(mapped[8:end])[1]:
            start = end + -end % ALIGNED
            end = start + size
            parts.append(mapped[start:end])
        found: list[Any] = pickle.loads(parts[0], buffers=parts[1:])
        return found

    def close(self) -> None:
        """Close the descriptor; the memory is free when no process has it."""
        os.close(self.file)


def _open(folder: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    return os.open(os.path.join(folder, "shared"), flags | getattr(os, "O_BINARY", 0), 0o600)


# --- arrays in files --------------------------------------------------------------------------------------------------


class FileChangedError(Exception):
    """Error for an array whose file is gone or has changed since the array was sent."""


@dataclass(frozen=True)
class MappedArray:
    """An array in a file that other processes see too: only its place is sent.

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
        raise FileChangedError


def place_of(array: np.memmap) -> MappedArray | None:
    """Place of an array that fills its file; None for parts of one, and for arrays that are changed in memory alone."""
    whole = isinstance(array.base, mmap.mmap) and not array.dtype.hasobject
    if not whole or array.mode == "c" or array.filename is None:
        return None
    array.flush()
    path = os.path.abspath(array.filename)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return MappedArray(path, array.dtype, array.shape, array.offset, order, _state_of(path))


def _state_of(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
