"""Memory of containers, by addresses alone: no entry is read, converted or compared."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import columns_in, is_frame, library_of

#: Work in which it is seen whether two arrays share memory.
MAX_WORK = 10**6
#: Attributes in which arrays of pandas keep their values.
STORES = ("_ndarray", "_data", "_codes", "_pa_array", "asi8")


def share_memory(container: Any, other: Any) -> bool:
    """Return whether two containers are the same, or may hold the same memory: a doubt is a yes."""
    if container is other:
        return True
    for views in itertools.product(_memory_of(container), _memory_of(other)):
        try:
            if np.shares_memory(*views, MAX_WORK):  # type: ignore[arg-type]
                return True
        except Exception:  # NumPy's, of which the name differs by version: it is too hard to see
            return True
    return False


def _memory_of(values: Any) -> Iterator[NDArray[Any]]:
    """Yield views of the memory of a container, of any type: only their addresses are used."""
    library = library_of(values)
    if library == "numpy":
        yield values
    elif library == "builtins":
        yield _address(id(values))
        yield from (_address(id(row)) for row in values if isinstance(row, (list, np.ndarray)))
    elif library == "torch":
        storage = values.detach().untyped_storage()
        yield _address(storage.data_ptr(), storage.nbytes())
    elif is_frame(values):
        for column in columns_in(values):
            yield from _memory_of(column)
    elif library == "pandas":
        yield from _memory_of_pandas(getattr(values, "array", values))
    elif library == "polars" and "pyarrow" in sys.modules:
        newest = sys.modules["polars"].CompatLevel.newest()  # texts are not copied
        yield from _memory_of_arrow(values.to_arrow(compat_level=newest))
    elif library == "pyarrow":
        yield from _memory_of_arrow(values)
    elif isinstance(data := getattr(values, "data", None), np.ndarray):  # a sparse matrix
        yield data
    else:
        yield _address(id(values))


def _memory_of_pandas(array: Any) -> Iterator[NDArray[Any]]:
    held = (getattr(array, "__dict__", {}).get(name) for name in STORES)
    stores = itertools.chain(held, (getattr(array, name, None) for name in STORES))
    memory = next((store for store in stores if store is not None), None)
    yield from [_address(id(array))] if memory is None else _memory_of(memory)


def _memory_of_arrow(column: Any) -> Iterator[NDArray[Any]]:
    """Memory of each chunk's own values: slices share their buffers."""
    for chunk in getattr(column, "chunks", [column]):
        values = chunk.indices if hasattr(chunk, "indices") else chunk
        buffer = values.buffers()[1] if len(values.buffers()) > 1 else None
        try:
            bits = int(values.type.bit_width)
        except Exception:  # of texts, which have no width: those of their places
            kind = str(values.type)
            bits = 64 if "large" in kind else 128 if "view" in kind else 32
        if buffer is not None:
            start, end = values.offset * bits, (values.offset + len(values)) * bits
            yield _address(buffer.address + -(-start // 8), max(end // 8 - -(-start // 8), 0))


def _address(start: int, size: int = 1) -> NDArray[Any]:
    """Array that stands for memory, and is never read."""
    interface = {"data": (start, True), "shape": (size,), "typestr": "|u1", "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__=interface))
