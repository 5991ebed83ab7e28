"""Data sets of PyTorch and skorch: arrays where they hold arrays, else record by record.

A record that cannot be read, or is no pair of an input and a target, is blank: its neighbours in a
batch are not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ._columns import is_data_set
from ._labels import as_array
from ._records import check_same_number

#: Input of a record: a tensor, or tensors by name.
Item: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class RecordSource:
    """Records that are read one by one.

    Parameters
    ----------
    inputs : Dataset
    targets : sequence or None
        None: a record of ``inputs`` is a pair of both.
    """

    inputs: Any
    targets: Any = None

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def names(self) -> list[str]:
        """Names of the types that read records."""
        return [type(owner).__name__ for owner in (self.inputs, self.targets) if is_data_set(owner)]

    def read(self, number: int) -> tuple[Item, Any] | None:
        """Input and target of one record; None for one that cannot be read."""
        try:
            record = self.inputs[number]
            pair = record if self.targets is None else (record, self.targets[number])
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                return None
            tensors, target = record_tensors(pair[0]), pair[1]
            if isinstance(target, sys.modules["torch"].Tensor):
                target = target.detach().cpu().numpy()
            return None if tensors is None else (tensors, target)
        except Exception:  # an error would tell of the record
            return None

    def input(self, number: int) -> Item:
        """Input of one record, for predictions: errors are shown."""
        record = self.inputs[number]
        is_pair = isinstance(record, (tuple, list)) and len(record) == 2
        alone = type(self.inputs).__name__ == "SliceDataset" or not is_pair
        tensors = record_tensors(record if alone else record[0])
        if tensors is None:
            raise ValueError(
                f"Found a record of {type(self.inputs).__name__} that holds no numbers; a tensor, "
                "or a dict of tensors by the names of forward's arguments, is needed."
            )
        return tensors


def source_of(X: Any, y: Any = None) -> RecordSource | None:
    """Source of records of a data set; None for arrays.

    Raises
    ------
    TypeError, ValueError
        For a source without a number of records, and for targets that are missing or given twice.
    """
    if not is_data_set(X) or type(X).__name__ == "SliceDict":
        return None
    name, sliced = type(X).__name__, type(X).__name__ == "SliceDataset"
    stream = isinstance(X, sys.modules["torch.utils.data"].IterableDataset)
    if stream or not hasattr(X, "__getitem__") or not hasattr(X, "__len__"):
        raise ValueError(
            f"Found {name}, which has no number of records, or cannot be read by record number: "
            "Poisson subsampling needs both. Give a map-style Dataset (__getitem__ and __len__)."
        )
    if sliced == (y is None):
        raise ValueError(
            f"Found {name} {'without' if y is None else 'together with'} y. A Dataset has its own "
            "targets (fit(dataset, None)); a SliceDataset holds inputs alone "
            "(fit(SliceDataset(dataset), y))."
        )
    if y is not None:
        check_same_number(len(X), len(y))
    if len(X) == 0:
        raise ValueError(f"Found {name} with 0 records, from which nothing can be learned.")
    is_readable = y is None or is_data_set(y) or isinstance(y, (list, tuple))
    return RecordSource(X, y if is_readable else as_array(y))


def source_for_prediction(X: Any) -> RecordSource | None:
    """Source of the inputs of a data set; None for arrays."""
    return RecordSource(X) if is_data_set(X) and type(X).__name__ != "SliceDict" else None


def arrays_by_name(X: Any) -> dict[str, Any] | None:
    """Arrays by the names of inputs; None for other containers."""
    return {str(name): part for name, part in X.items()} if isinstance(X, Mapping) else None


def arrays_from_dataset(X: Any, y: Any) -> tuple[Any, Any]:
    """Replace data sets of arrays by their arrays.

    All other inputs are unchanged.
    """
    if type(X).__name__ == "DataLoader":
        raise TypeError(
            "Found a DataLoader; a private training draws its batches itself, as its guarantee "
            "depends on them. Give loader.dataset: fit(loader.dataset, None), with the rate or "
            "size of batches as sample_rate or batch_size."
        )
    if not is_data_set(X):
        return X, y
    if type(X).__name__ == "SliceDataset":
        held, answers = _arrays_held(X), _arrays_held(y) if is_data_set(y) else [y]
        return (held[0], answers[0]) if held and answers else (X, y)
    held = _arrays_held(X) if y is None else None
    return (X, y) if held is None or len(held) != 2 else (held[0], held[1])


def _arrays_held(source: Any) -> list[Any] | None:
    """Arrays that a data set holds, one for each returned value.

    The type has to be exact: a subclass may do more.
    """
    data, kind = sys.modules["torch.utils.data"], type(source)
    if kind is data.TensorDataset:
        return list(source.tensors)
    if kind is getattr(sys.modules.get("skorch.dataset"), "Dataset", None):
        arrays = type(source.X) is np.ndarray or type(source.X) is sys.modules["torch"].Tensor
        return None if source.y is None or not arrays else [source.X, source.y]
    sliced = kind is getattr(sys.modules.get("skorch.helper"), "SliceDataset", None)
    if kind is not data.Subset and not sliced:
        return None
    held = _arrays_held(source.dataset)
    if held is None:
        return None
    chosen = np.asarray(source.indices_ if sliced else source.indices, dtype=np.int64)
    rows = [column[chosen] for column in held]
    return rows[source.idx : source.idx + 1] if sliced else rows


def record_tensors(item: Any) -> Item | None:
    """Input of one record, or inputs by name, as tensors in the user's precision.

    The result is None for an input that holds no numbers.
    """
    if isinstance(item, Mapping):
        parts = {str(name): _record_tensor(part) for name, part in item.items()}
        return None if any(part is None for part in parts.values()) else parts
    return _record_tensor(item)


def _record_tensor(item: Any) -> Any:
    torch = sys.modules["torch"]
    if isinstance(item, torch.Tensor):
        return item.detach()
    if isinstance(item, (tuple, list)) and any(getattr(part, "ndim", 0) for part in item):
        return None  # several inputs, which need names
    values = np.asarray(item)
    return torch.tensor(values) if values.dtype.kind in "fiub" else None
