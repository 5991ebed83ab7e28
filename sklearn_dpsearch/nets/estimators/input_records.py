"""Records in the user's form: an array, arrays by name, or a ``Dataset`` that is read record by record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import skorch
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length
from skorch.helper import SliceDataset
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from ...data.columns import array_of
from ...data.lists import is_list
from ...data.rows import ChosenRows
from ...errors import TrainingError
from ..named_tensors import Inputs, list_tensors, map_tensors
from ..randomness import global_torch_seed
from ..records import CHECKED, HeldRecords, MappedRecords, ReadRecords, Records, converted_rows, stays_in_file

#: Kinds of arrays that hold no numbers: the whole type would tell the longest text of all records.
KINDS = {"U": "text", "S": "bytes", "O": "objects", "c": "complex numbers", "M": "dates", "m": "durations"}
#: Targets in the user's form ↦ targets for the loss.
Encode = Callable[[Any], torch.Tensor]


def is_dataset(X: Any) -> bool:
    """Return whether X is a dataset whose records are read one by one."""
    return isinstance(X, (torch.utils.data.Dataset, SliceDataset))


def tensors_from_arrays(X: Any) -> Inputs:
    """Arrays as tensors in single precision; integers stay integers.

    Arrays that fit are not copied.

    Raises
    ------
    ValueError
        For values other than numbers, and for parts of different lengths.
    """
    if isinstance(X, ChosenRows) and X.dtype.kind in "fiub":
        return converted_rows(
            X, "single", zero_row(X).dtype, lambda block, out: out.copy_(tensor_from_block(block)), CHECKED
        )
    if not isinstance(X, Mapping):
        return tensor_from_block(np.array(X) if isinstance(X, np.memmap) else X)  # the file may change meanwhile
    parts = {str(name): tensor_from_block(part, f"X[{name!r}]") for name, part in X.items()}
    lengths = {name: len(part) for name, part in parts.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"Found inputs of different lengths, {lengths}; one row per record is needed in each.")
    return parts


def training_records(X: Any, y: Any, taken: Callable[[Inputs], Inputs], encode: Encode, device: Any) -> Records:
    """Records for training from arrays, named arrays, or a ``Dataset``.

    They stay as they are: read one by one, in their file, or in memory.

    Parameters
    ----------
    X : array-like, dict of such, or Dataset
    y : array-like or None
    taken : callable
        Inputs, or a row of zeros like them ↦ in the form for the module.
    encode : callable
    device : str or device
    """
    X, y = arrays_from_dataset(X, y)
    if is_dataset(X):
        return dataset_records(X, y, taken, encode)
    if y is None:
        raise ValueError("Found y=None with X that is no Dataset; the target of each record is needed.")
    if not stays_in_file(X, device):
        inputs, targets = taken(tensors_from_arrays(X)), encode(y)
        check_consistent_length(list_tensors(inputs)[0], targets)
        return HeldRecords(inputs=inputs, targets=targets)
    rows = X if isinstance(X, ChosenRows) else ChosenRows(X)
    row, targets = taken(zero_row(rows)), encode(y)
    check_consistent_length(rows, targets)
    assert isinstance(row, torch.Tensor)
    kind = row.dtype
    return MappedRecords(
        rows=rows, convert=lambda block: tensor_from_block(block).to(kind), how=kind, inputs=row, targets=targets
    )


def zero_row(rows: ChosenRows) -> torch.Tensor:
    """Tensor with one row of zeros, like the rows of an array."""
    return single_precision(torch.from_numpy(np.zeros((1, *rows.shape[1:]), rows.dtype)))


def tensor_from_block(block: Any, name: str = "X") -> torch.Tensor:
    """Rows of an array as a tensor in single precision.

    Integers stay integers.
    """
    return single_precision(torch.from_numpy(numeric_array(name, block)))


def numeric_array(name: str, data: Any) -> NDArray[Any]:
    """Array of numbers from the user's container.

    A list becomes one of floating-point numbers.

    Raises
    ------
    ValueError
        The message quotes no record.
    """
    found = array_of(data, name)
    if found.dtype.kind not in "fiub":
        raise ValueError(f"Expected {name} as numbers, got an array of {KINDS.get(found.dtype.kind, 'others')}.")
    return np.require(found, requirements=["C", "W"])


def single_precision(values: torch.Tensor) -> torch.Tensor:
    """Tensor with floats in single precision; integers stay as tokens."""
    return values.float() if values.is_floating_point() else values.long()


# --- sources ---------------------------------------------------------------------------------------------------------


def read_record(inputs: Any, targets: Any, number: int) -> tuple[Inputs, Any]:
    """Read the input and the target of one record of a ``Dataset``.

    Without targets a record is a pair of both.

    Raises
    ------
    ValueError
        The message tells neither the record nor its number.
    """
    name = type(inputs).__name__
    try:
        found = inputs[number] if targets is None else (inputs[number], targets[number])
    except Exception as error:
        raise TrainingError(
            f"{name} fails to read a record ({type(error).__name__}). Read all records once before the training, where "
            "the whole error can be seen."
        ) from None
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise TrainingError(
            f"Found a record of {name} that is no pair; its __getitem__ has to return two values, the input (a tensor, "
            "or a dict of tensors) and the target, as in skorch."
        )
    return record_tensors(found[0]), found[1].detach().cpu().numpy() if isinstance(found[1], torch.Tensor) else found[1]


def dataset_records(X: Any, y: Any, taken: Callable[[Inputs], Inputs], encode: Encode) -> ReadRecords:
    """Records of a ``Dataset``, each read when a batch needs it.

    The first one is read for its shape and kind only; its values are not used.

    Raises
    ------
    ValueError
        For a source without a number of records, and for targets that are missing or given twice.
    """
    name = type(X).__name__
    if isinstance(X, IterableDataset) or not hasattr(X, "__getitem__") or not hasattr(X, "__len__"):
        raise ValueError(
            f"Found {name}, which has no number of records, or cannot be read by record number: Poisson subsampling "
            "needs both. Give a map-style Dataset (__getitem__ and __len__)."
        )
    if isinstance(X, SliceDataset) == (y is None):
        raise ValueError(
            f"Found {name} {'without' if y is None else 'together with'} y. A Dataset has its own targets "
            "(fit(dataset, None)); a SliceDataset holds inputs alone (fit(SliceDataset(dataset), y))."
        )
    check_consistent_length(X, y)
    if len(X) == 0:
        raise ValueError(f"Found {name} with 0 records; the first one says what shape they have.")
    y = y if y is None or isinstance(y, SliceDataset) or is_list(y) else np.asarray(y)
    owners, nothing = tuple(owner for owner in (X, y) if is_dataset(owner)), torch.empty(0)
    unseen = ReadRecords(
        read=partial(read_record, X, y), encode=encode, number=len(X), owners=owners, inputs=nothing, targets=nothing
    )
    with unseen.opened(None) as opened, global_torch_seed():  # its lock: other threads may be training
        ((first, target),) = opened.read_each([0])
    row = taken(map_tensors(lambda part: torch.zeros_like(part).unsqueeze(0), first))
    return replace(unseen, inputs=row, targets=torch.zeros_like(encode([target])))


def arrays_from_dataset(X: Any, y: Any) -> tuple[Any, Any]:
    """Replace datasets of arrays by their arrays.

    All other inputs are unchanged.
    """
    if isinstance(X, DataLoader):
        raise TypeError(
            "Found a DataLoader; a private training draws its batches itself, as its guarantee depends on them. Give "
            "loader.dataset: fit(loader.dataset, None), with the rate or size of batches as sample_rate or batch_size."
        )
    if isinstance(X, SliceDataset):
        held, answers = _arrays_held(X), _arrays_held(y) if isinstance(y, SliceDataset) else [y]
        return (held[0], answers[0]) if held and answers else (X, y)
    held = _arrays_held(X) if y is None else None
    return (X, y) if held is None or len(held) != 2 else (held[0], held[1])


def _arrays_held(source: Any) -> list[Any] | None:
    """Arrays that a ``Dataset`` holds, one for each returned value.

    By exact type: a subclass may do more.
    """
    if type(source) is TensorDataset:
        return list(source.tensors)
    if type(source) is skorch.dataset.Dataset and isinstance(source.X, (np.ndarray, torch.Tensor)):
        return None if source.y is None else [source.X, source.y]
    if type(source) not in (Subset, SliceDataset):
        return None
    held = _arrays_held(source.dataset)
    if held is None:
        return None
    chosen = np.asarray(source.indices if type(source) is Subset else source.indices_, dtype=np.int64)
    rows = [column[chosen] for column in held]
    return rows if type(source) is Subset else rows[source.idx : source.idx + 1]


def record_tensors(item: Any) -> Inputs:
    """Input of one record, or inputs by name, as tensors.

    In single precision; integers stay integers.
    """
    if isinstance(item, Mapping):
        return {str(name): _record_tensor(part) for name, part in item.items()}
    if isinstance(item, (tuple, list)) and any(getattr(part, "ndim", 0) for part in item):
        raise TrainingError(
            "Found several inputs of a record in a tuple or list. Return a dict with the names of forward's arguments."
        )
    return _record_tensor(item)


def _record_tensor(item: Any) -> torch.Tensor:
    if isinstance(item, torch.Tensor):
        return single_precision(item.detach())
    values = np.asarray(item)
    if values.dtype.kind not in "fiub":
        raise TrainingError(f"Expected the inputs of a record as numbers, got dtype {values.dtype}.")
    return single_precision(torch.tensor(values))


class ForPrediction(torch.utils.data.Dataset):
    """Source for skorch's loaders: inputs like in training, without targets.

    Parameters
    ----------
    source : Dataset or SliceDataset
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        found = self.source[number]
        alone = isinstance(self.source, SliceDataset) or not isinstance(found, (tuple, list)) or len(found) != 2
        return record_tensors(found if alone else found[0]), 0


# --- trial of a module ------------------------------------------------------------------------------------------------


def check_input_names(module: nn.Module, names: Sequence[str]) -> None:
    """Raise for named inputs that ``forward`` does not take.

    Raises
    ------
    ValueError
    """
    accepted = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted):
        return
    needed = {parameter.name for parameter in accepted if parameter.default is inspect.Parameter.empty}
    if not needed <= set(names) <= {parameter.name for parameter in accepted}:
        raise ValueError(
            f"Found inputs {sorted(names)} for {type(module).__name__}.forward, which takes "
            f"{[parameter.name for parameter in accepted]}. Name the inputs as its arguments."
        )
