"""Pickles for private processes.

Code goes there once and comes back by name, and several share objects.

Classes, functions and modules of scripts, notebooks and tests travel by value. The user's process
pickles them once, as ``Code``; all else names them by numbers, both ways. So no process gets a
class that a run has changed, and what comes back holds the user's own.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import mmap
import os
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, ClassVar, Literal

import numpy as np

try:
    from joblib.externals import cloudpickle  # joblib < 1.6 brings its own
except ImportError:
    import cloudpickle

from .._process import reduction
from ..privacy import PrivacyError

#: Libraries whose objects start threads when they are unpickled: no process may be forked after
#: that.
THREADED_PACKAGES = frozenset({"polars", "pyarrow"})
#: Alignment of arrays, in bytes.
ALIGNMENT = 64
OWN_PROCESS = (
    "Private work is done in a process of its own. Remove open files, locks, connections and the "
    "like, or make them in fit."
)
LOCAL_CODE = (
    "it is, or holds, a class or function that was made inside of a function; define it at the top "
    "of a script"
)
#: Whether a module's name leads to code, as cloudpickle says it.
is_importable = cloudpickle.cloudpickle._should_pickle_by_reference
#: Kind of functions with a cache, and all kinds of code.
CACHED_FUNCTION = type(functools.lru_cache(len))
CODE = (type, FunctionType, ModuleType, CACHED_FUNCTION)


# --- code -----------------------------------------------------------------------------------------


class Code:
    """Classes, functions and modules that no module's name leads to; processes know them by number.

    Parameters
    ----------
    objects : iterable
    closed : bool
        Whether further ones are an error: what private work makes cannot leave it.

    Attributes
    ----------
    starts_threads : bool
        Whether unpickling them, or what was pickled beside them, starts threads.
    current : Code or None
        That of a private process; a user's process has none, and pickles code by value unless told
        otherwise.
    """

    current: ClassVar[Code | None] = None

    def __init__(self, objects: Iterable[Any] = (), closed: bool = False) -> None:
        self.objects, self.starts_threads = list(objects), False
        self.closed = closed
        self._numbers = {id(obj): number for number, obj in enumerate(self.objects)}
        self._importable: dict[int, Any] = {}

    def number(self, thing: Any) -> int | None:
        """Number of a class, function or module; None for what other processes import."""
        number = self._numbers.get(id(thing))
        if number is not None or id(thing) in self._importable:
            return number
        if not _goes_by_value(thing):
            self._importable[id(thing)] = thing
            return None
        if self.closed:
            raise pickle.PicklingError(LOCAL_CODE)
        self.objects.append(thing)
        return self._numbers.setdefault(id(thing), len(self._numbers))

    def complete(self, shared: Sequence[Any]) -> None:
        """Number what this code uses, too; shared objects are not looked into.

        Raises
        ------
        PrivacyError
            If it cannot be pickled.
        """
        _dump(_Pickler(io.BytesIO(), shared, self, notes=True), self.objects[:])

    @property
    def mark(self) -> bytes:
        """Digest of the names, by which a checkpoint knows that the numbers are the same."""
        parts = ("__module__", "__qualname__", "__name__")  # modules have the last alone
        names = [tuple(getattr(obj, part, "") for part in parts) for obj in self.objects]
        return hashlib.sha256(repr(names).encode()).digest()


def _goes_by_value(thing: Any) -> bool:
    code = thing.__wrapped__ if isinstance(thing, CACHED_FUNCTION) else thing
    return getattr(code, "__module__", "") != "builtins" and not is_importable(code)


def mark_of_code() -> bytes:
    """Digest of the names of this process's code."""
    return (Code.current or Code()).mark


def code_of(work: Any, shared: Sequence[Any]) -> Code:
    """Code that private work uses, in the order in which a private process numbers it."""
    code = Code()
    pickled(work, shared, code)
    code.complete(shared)
    return code


# --- pickles --------------------------------------------------------------------------------------


class _Pickler(cloudpickle.Pickler):
    """Pickler that names shared objects and code by numbers, and arrays in files by places.

    Generators have fresh states when they arrive. One that ``notes`` numbers the code that it
    meets, and pickles it by value.
    """

    def __init__(
        self,
        file: Any,
        shared: Sequence[Any],
        code: Code | None,
        out_of_band: Any = None,
        notes: bool = False,
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=out_of_band)
        self._notes = notes
        self._shared = {id(obj): number for number, obj in enumerate(shared)}
        self._code = Code.current if code is None else code

    def persistent_id(self, obj: Any) -> int | None:
        shared_number = self._shared.get(id(obj))
        if shared_number is None and isinstance(obj, CODE) and self._code is not None:
            number = self._code.number(obj)
            return None if number is None or self._notes else ~number
        return shared_number

    def reducer_override(self, obj: Any) -> Any:
        if self._code is not None:
            self._code.starts_threads |= type(obj).__module__.partition(".")[0] in THREADED_PACKAGES
        if type(obj) is np.memmap and (place := place_of(obj)) is not None:
            return MappedArray.open, (place,)
        if type(obj) is CACHED_FUNCTION and _goes_by_value(obj):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        if (special := reduction(obj)) is not None:
            return special
        # a net of skorch would pickle by itself, and not find classes of scripts
        if any(kind.__module__ == "skorch.net" for kind in type(obj).__mro__):
            return object.__new__, (type(obj),), vars(obj), None, None, _set_attributes
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: Any, shared: Sequence[Any], code: Code | None) -> None:
        super().__init__(io.BytesIO(content))
        self._shared, self._code = shared, code

    def persistent_load(self, pid: int) -> Any:
        if pid >= 0:
            return self._shared[pid]
        assert self._code is not None
        return self._code.objects[~pid]


def pickled(
    thing: Any, shared: Sequence[Any] = (), code: Code | None = None, head: bytes = b""
) -> bytes:
    """Pickle an object after a head, with shared objects and code in it named by their numbers.

    Parameters
    ----------
    thing : object
    shared : sequence of object
    code : Code, optional
        By default that of a private process; in a user's process all code goes by value.
    head : bytes

    Raises
    ------
    PrivacyError
        If it cannot be pickled.
    """
    file = io.BytesIO(head)
    file.seek(len(head))
    _dump(_Pickler(file, shared, code), thing)
    return file.getvalue()


def _dump(pickler: _Pickler, thing: Any) -> None:
    try:
        pickler.dump(thing)
        return
    except Exception as error:
        quotable = isinstance(error, (TypeError, AttributeError, pickle.PicklingError))
        why = str(error) if quotable else type(error).__name__
    raise PrivacyError(
        f"Found an estimator, a scorer or a parameter that cannot be pickled: {why}. {OWN_PROCESS}"
    )


def unpickled(content: Any, shared: Sequence[Any] = (), code: Code | None = None) -> Any:
    """Unpickle an object; shared objects and code in it are those of this process."""
    code = Code.current if code is None else code
    if not (shared or (code and code.objects)):
        return pickle.loads(content)  # without another copy
    return _Unpickler(content, shared, code).load()


def _cached(function: Any, settings: dict[str, Any]) -> Any:
    """Function with an empty cache."""
    return functools.lru_cache(**settings)(function)


def _set_attributes(thing: Any, attributes: dict[str, Any]) -> None:
    vars(thing).update(attributes)


# --- shared objects -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packed:
    """Code and objects that private processes share: in memory, or in a file of a folder.

    Parameters
    ----------
    file : int
        Descriptor.
    folder : str or None
    """

    file: int
    folder: str | None = None

    @classmethod
    def of(cls, shared: Sequence[Any], code: Code, folder: str | None = None) -> Packed:
        """Pickle objects, with arrays out of band, and code, which is then closed.

        Raises
        ------
        PrivacyError
            For objects that cannot be pickled, in fixed words: they may be records.
        """
        code.complete(shared)
        number = -1
        with contextlib.suppress(Exception):
            while number < len(code.objects):  # once, but for code that only shared objects use
                number, head, buffers = len(code.objects), io.BytesIO(), list[pickle.PickleBuffer]()
                pickler = _Pickler(head, (), code, buffers.append, notes=True)
                pickler.dump((code.objects[:], list(shared)))
            code.closed = True
        if not code.closed:  # outside of the handler: a chained exception could quote a record
            what = "records or public data that cannot be pickled"
            raise PrivacyError(f"Found {what}. {OWN_PROCESS}")
        parts = [head.getbuffer(), *(buffer.raw() for buffer in buffers)]
        facts = pickle.dumps((code.starts_threads, [part.nbytes for part in parts]))
        return cls._written([len(facts).to_bytes(8, "little") + facts, *parts], folder)

    @classmethod
    def copy_of(cls, content: np.ndarray, folder: str | None = None) -> Packed:
        """Packed objects whose content came from elsewhere."""
        return cls._written([content.data], folder)

    @classmethod
    def _written(cls, parts: Iterable[Any], folder: str | None) -> Packed:
        file = beyond_streams(os.memfd_create("shared")) if folder is None else _open(folder)
        packed = cls(file, folder)
        with open(packed.file, "wb", closefd=False) as stream:
            for part in parts:
                stream.write(bytes(-stream.tell() % ALIGNMENT))
                stream.write(part)
        return packed

    @classmethod
    def of_folder(cls, folder: str) -> Packed:
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

    def read(self) -> tuple[Code, list[Any]]:
        """Unpickle the code and the objects.

        Processes share the memory of arrays until they change them.
        """
        mapped = memoryview(mmap.mmap(self.file, 0, access=mmap.ACCESS_COPY))
        end = 8 + int.from_bytes(mapped[:8], "little")
        parts = []
        for size in pickle.loads(mapped[8:end])[1]:
            start = end + -end % ALIGNMENT
            end = start + size
            parts.append(mapped[start:end])
        objects, shared = pickle.loads(parts[0], buffers=parts[1:])
        return Code(objects, closed=True), shared

    def close(self) -> None:
        """Close the descriptor; the memory is free when no process has it."""
        os.close(self.file)


def beyond_streams(file: int) -> int:
    """Descriptor of the same file that is no standard stream's: a program may have closed those."""
    if file > 2 or os.name == "nt":
        return file
    import fcntl

    other = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(file)
    return other


def _open(folder: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    path, binary = os.path.join(folder, "shared"), getattr(os, "O_BINARY", 0)
    return beyond_streams(os.open(path, flags | binary, 0o600))


# --- arrays in files ------------------------------------------------------------------------------


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
        with contextlib.suppress(OSError):
            if _state_of(self.path) == self.state:
                return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
        raise FileChangedError


def place_of(array: np.memmap) -> MappedArray | None:
    """Place of an array as ``numpy.memmap`` made it.

    It is None for parts of such an array, for arrays that are changed in memory alone, and for
    those whose file has no name any more.
    """
    is_mapped = isinstance(array.base, mmap.mmap) and not array.dtype.hasobject
    if not is_mapped or array.mode == "c" or array.filename is None:
        return None
    array.flush()
    path = os.path.abspath(array.filename)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    with contextlib.suppress(OSError):
        return MappedArray(path, array.dtype, array.shape, array.offset, order, _state_of(path))
    return None


def _state_of(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
