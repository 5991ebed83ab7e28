"""Records in the user's form: an array, arrays by name, or a ``Dataset`` read record by record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...data import _datasets
from ...data._columns import array_of
from ...data._datasets import RecordSource
from ...data._records import check_same_number
from ...data._rows import ChosenRows, array_in_memory, rows_in_file
from .._named_tensors import Inputs, list_tensors, map_tensors
from .._records import (
    CHECK_BLOCK,
    HeldRecords,
    MappedRecords,
    ReadRecords,
    TrainingData,
    converted_rows,
    least_bytes_in_file,
    single_precision,
)

#: Kinds of arrays that hold no numbers: the whole type would tell the longest text of all records.
KINDS = {
    **{"U": "text", "S": "bytes", "O": "objects", "c": "complex numbers"},
    **{"M": "dates", "m": "durations"},
}
#: Targets in the user's form ↦ targets for the loss.
Encode = Callable[[Any], Tensor]


class OneByOne(NamedTuple):
    """Facts about records that are read one by one.

    A public example of an input, or None; inputs, or a row of zeros like them ↦ in the form for the
    module; targets of some records ↦ tensor; a row of zeros like targets, once the module's outputs
    are known.
    """

    example: Any
    convert: Callable[[Inputs], Inputs]
    encode: Encode
    blank_target: Callable[[], Tensor]


def tensors_from_arrays(X: Any) -> Inputs:
    """Arrays as tensors in single precision; integers stay integers.

    Arrays that fit are not copied.

    Raises
    ------
    ValueError
        For values other than numbers, and for parts of different lengths.
    """
    if isinstance(X, ChosenRows) and X.dtype.kind in "fiub":
        return converted_rows(X, "single", zero_row(X).dtype, tensor_from_block, CHECK_BLOCK)
    named = _datasets.arrays_by_name(X)
    if named is None:
        return tensor_from_block(array_in_memory(X))
    parts = {name: tensor_from_block(part, f"X[{name!r}]") for name, part in named.items()}
    lengths = {name: len(part) for name, part in parts.items()}
    if len(set(lengths.values())) != 1:
        needed = "one row per record is needed in each."
        raise ValueError(f"Found inputs of different lengths, {lengths}; {needed}")
    return parts


def training_records(
    X: Any, y: Any, encode: Encode, device: Any, one_by_one: OneByOne
) -> TrainingData:
    """Records for training from arrays, named arrays, or a ``Dataset``.

    They stay as they are: read one by one, in their file, or in memory.

    Parameters
    ----------
    X : array-like, dict of such, or Dataset
    y : array-like or None
    encode : callable
        Targets of all records ↦ tensor.
    device : str or device
    one_by_one : OneByOne
        Facts about records that are read one by one, and the conversion of all inputs.
    """
    X, y = _datasets.arrays_from_dataset(X, y)
    if (source := _datasets.source_of(X, y)) is not None:
        return dataset_records(source, one_by_one)
    if y is None:
        needed = "the target of each record is needed."
        raise ValueError(f"Found y=None with X that is no Dataset; {needed}")
    rows = rows_in_file(X, least_bytes_in_file(device))
    if rows is None:
        inputs, targets = one_by_one.convert(tensors_from_arrays(X)), encode(y)
        check_same_number(len(list_tensors(inputs)[0]), len(targets))
        return HeldRecords(inputs=inputs, targets=targets)
    row, targets = one_by_one.convert(zero_row(rows)), encode(y)
    check_same_number(len(rows), len(targets))
    assert isinstance(row, Tensor)
    kind = row.dtype

    def to_tensor(block: NDArray[Any]) -> Tensor:
        return tensor_from_block(block).to(kind)

    return MappedRecords(rows=rows, convert=to_tensor, how=kind, inputs=row, targets=targets)


def zero_row(rows: ChosenRows) -> Tensor:
    """Tensor with one row of zeros, like the rows of an array."""
    return single_precision(torch.from_numpy(np.zeros((1, *rows.shape[1:]), rows.dtype)))


def tensor_from_block(block: Any, name: str = "X") -> Tensor:
    """Rows of an array as a tensor in single precision; integers stay integers."""
    return single_precision(torch.from_numpy(numeric_array(name, block)))


def numeric_array(name: str, data: Any) -> NDArray[Any]:
    """Array of numbers from the user's container.

    A list becomes one of floating-point numbers.

    Raises
    ------
    ValueError
        The message quotes no record.
    """
    array = array_of(data, name)
    if array.dtype.kind not in "fiub":
        kind = KINDS.get(array.dtype.kind, "others")
        raise ValueError(f"Expected {name} as numbers, got an array of {kind}.")
    return np.require(array, requirements=["C", "W"])


# --- data sets ------------------------------------------------------------------------------------


def dataset_records(source: RecordSource, facts: OneByOne) -> ReadRecords:
    """Records of a data set, each read when a batch needs it; none is read for its shape.

    Parameters
    ----------
    source : RecordSource
    facts : OneByOne
    """
    if facts.example is None:
        name = source.names[0]
        raise ValueError(
            f"Found X of type {name}, which is read record by record, and no example_input, so "
            f"that the shape of its records is not known. Give the net a public or made-up input, "
            "e.g. example_input=torch.zeros(1, 28, 28) (a dict of inputs by name, if records are)."
        )
    row = _datasets.record_tensors(facts.example)
    if row is None:
        needed = "a tensor, an array or a dict of such is needed."
        raise ValueError(f"Found example_input that holds no numbers; {needed}")
    zeros = map_tensors(lambda part: single_precision(torch.zeros_like(part).unsqueeze(0)), row)
    inputs, targets = facts.convert(zeros), facts.blank_target()
    return ReadRecords(source=source, encode=facts.encode, inputs=inputs, targets=targets)


class ForPrediction(torch.utils.data.Dataset):
    """Source for skorch's loaders: inputs like in training, without targets.

    Parameters
    ----------
    source : RecordSource
    """

    def __init__(self, source: RecordSource) -> None:
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self.source.input(number), 0


# --- trial of a module ----------------------------------------------------------------------------


def check_input_names(module: nn.Module, names: Sequence[str]) -> None:
    """Raise for named inputs that ``forward`` does not take.

    Raises
    ------
    ValueError
    """
    accepted = inspect.signature(module.forward).parameters
    if any(argument.kind is inspect.Parameter.VAR_KEYWORD for argument in accepted.values()):
        return
    needed = {name for name, arg in accepted.items() if arg.default is inspect.Parameter.empty}
    if not needed <= set(names) <= set(accepted):
        raise ValueError(
            f"Found inputs {sorted(names)} for {type(module).__name__}.forward, which takes "
            f"{list(accepted)}. Name the inputs as its arguments."
        )
