"""Records for training: in memory, in a file, or read one by one from a ``Dataset``."""

from __future__ import annotations

import contextlib
import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._process import generators_kept
from ..data._datasets import RecordSource
from ..data._labels import as_array, check_kind, class_codes, label_kind
from ..data._rows import ChosenRows
from ._named_tensors import Inputs, input_names, list_tensors, map_tensors
from ._randomness import CPU, Seed, reading_generator
from ._sampling import RecordsOfPersons

#: Records at once that are read for a digest: few enough for a cache.
BLOCK = 1024
#: Least bytes of an array in a file whose rows stay there. A smaller array is read once, which
#: makes training faster: on a CPU by up to a quarter
#: (``examples/benchmarks/large_data.py --speed``), elsewhere by more.
MAPPED_BYTES = {"cpu": 2**27}
MAPPED_BYTES_ELSEWHERE = 2**33
#: Records checked at once before the training.
CHECK_BLOCK = 2**14
#: Assumption about the code that reads a data set.
RECORD_ALONE = "what it returns for a number depends on that record alone."


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingData(ABC):
    """Records for training; their number itself stands for "no record".

    The gradients of such a place have factor 0.

    Parameters
    ----------
    inputs : Tensor or dict of Tensor
    targets : Tensor
        Of the shape and kind of records, on the device.
    persons : RecordsOfPersons, optional
        Persons who are drawn in place of records; None: each record by itself.
    lacking : bool
        Whether −1 may stand for a label, of a record that adds nothing.

    Attributes
    ----------
    stacks : bool
        Whether several nets can train on them at once: every reading of a record is equal.
    """

    inputs: Inputs
    targets: Tensor
    persons: RecordsOfPersons | None = None
    lacking: bool = False
    stacks: ClassVar[bool] = True

    @staticmethod
    def of(inputs: Inputs, targets: Tensor, device: torch.device = CPU) -> HeldRecords:
        """Records of inputs and targets of shapes (n, ...)."""
        return HeldRecords(inputs=inputs, targets=targets).on(device)

    def on(self, device: torch.device) -> Self:
        """Copy of the records on a device, for training."""
        targets, inputs = self.targets, map_tensors(lambda rows: rows.to(device), self.inputs)
        unseen = len(targets) < len(self)
        lacking = not targets.is_floating_point() and (unseen or bool((targets < 0).any()))
        return replace(self, inputs=inputs, targets=targets.to(device), lacking=lacking)

    @property
    def device(self) -> torch.device:
        """Device of the records."""
        return self.targets.device

    def __len__(self) -> int:
        return len(self.targets)

    @abstractmethod
    def take(self, places: Tensor) -> tuple[Inputs, Tensor]:
        """Inputs and targets of the records with these numbers.

        Shapes (*places.shape, ...); zeros in places without a record.
        """

    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about the source of the records, as plain sentences."""
        return ()

    @contextlib.contextmanager
    def opened(self, seed: Seed) -> Iterator[TrainingData]:
        """Open the records for one training."""
        yield self

    @property
    def units(self) -> int:
        """Number of persons, or of records without persons: public."""
        return len(self) if self.persons is None else len(self.persons)

    def are(self, other: TrainingData) -> bool:
        """Return whether another net has equal records.

        They have the same form, and are on the same device.
        """
        return False

    def digests(self) -> list[str]:
        """Digests of inputs and targets, equal for all forms of records."""
        digests: list[Any] = []
        with self.opened(0) as records:
            for places in torch.arange(len(records)).split(BLOCK):
                inputs, targets = records.take(places)
                tensors = [*list_tensors(inputs), targets]
                digests = digests or [hashlib.blake2b() for _ in tensors]
                for digest, rows in zip(digests, tensors):
                    flat = rows.detach().cpu().contiguous().reshape(-1)
                    digest.update(flat.view(torch.uint8).numpy().data)
        persons = [] if self.persons is None else [hashlib.blake2b(self.persons.codes.tobytes())]
        return [digest.hexdigest() for digest in (*digests, *persons)]


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldRecords(TrainingData):
    """Records in memory, on the device of the training."""

    def take(self, places: Tensor) -> tuple[Inputs, Tensor]:
        inputs = map_tensors(lambda rows: take_rows(rows, places), self.inputs)
        return inputs, take_rows(self.targets, places)

    def are(self, other: TrainingData) -> bool:
        names = input_names(self.inputs)
        if not isinstance(other, HeldRecords) or names != input_names(other.inputs):
            return False
        first, second = ([*list_tensors(part.inputs), part.targets] for part in (self, other))
        return self.persons is other.persons and all(map(_equal_tensors, first, second))


def take_rows(rows: Tensor, places: Tensor) -> Tensor:
    """Rows of a tensor at these places, shape (*places.shape, ...); zeros where it has none."""
    flat, n = places.reshape(-1), len(rows)
    source = rows if n else rows.new_zeros((1, *rows.shape[1:]))
    selected = source.index_select(0, flat.clamp(max=max(n - 1, 0)))
    blank = flat >= n
    if selected.device.type == "cpu":
        # fast, but elsewhere it would wait for the device
        selected.index_fill_(0, torch.nonzero(blank).view(-1), 0)
    else:
        selected.masked_fill_(blank.view(-1, *(1,) * (selected.dim() - 1)), 0)
    return selected.view(*places.shape, *rows.shape[1:])


def _equal_tensors(first: Tensor, second: Tensor) -> bool:
    if first.dtype != second.dtype or first.shape != second.shape or first.device != second.device:
        return False
    shared = first.data_ptr() == second.data_ptr() and first.stride() == second.stride()
    # nan is nan
    bytes_of_both = (tensor.contiguous().view(torch.uint8) for tensor in (first, second))
    return shared or bool(torch.equal(*bytes_of_both))


def single_precision(values: Tensor) -> Tensor:
    """Tensor with floats in single precision; integers stay as tokens."""
    return values.float() if values.is_floating_point() else values.long()


# --- in a file ------------------------------------------------------------------------------------


def least_bytes_in_file(device: Any) -> int:
    """Least bytes of an array in a file whose rows stay there, in a training on a device."""
    return MAPPED_BYTES.get(torch.device(device).type, MAPPED_BYTES_ELSEWHERE)


def converted_rows(
    rows: ChosenRows,
    how: Hashable,
    dtype: torch.dtype,
    convert: Callable[[NDArray[Any]], Tensor],
    size: int,
) -> Tensor:
    """Copy of an array's rows in another form, made in blocks, and kept for other nets.

    Parameters
    ----------
    rows : ChosenRows
    how : hashable
        Equal for equal conversions.
    dtype : torch.dtype
    convert : callable
        Rows of the array ↦ tensor of inputs, each row by itself.
    size : int
        Rows in a block.
    """
    if how not in rows.converted:
        # NumPy asks for large pages: filling 200 MB takes a sixth of the time.
        kind = np.dtype(str(dtype).removeprefix("torch."))
        converted = torch.from_numpy(np.empty(rows.shape, kind))
        for places, block in rows.blocks(size):
            converted[places] = convert(block)
        rows.converted[how] = converted
    return rows.converted[how]


@dataclass(frozen=True, kw_only=True, eq=False)
class MappedRecords(TrainingData):
    """Records in a file, with one batch at a time in memory.

    Results equal those of records in memory.

    Parameters
    ----------
    rows : ChosenRows
    convert : callable
        Rows of the file, shape (m, ...) ↦ tensor of inputs, each row by itself.
    how : hashable
        Equal for equal conversions.
    inputs : Tensor
        One row of zeros: the shape and kind of a record.
    targets : Tensor of shape (n, ...)
        Targets of all records.
    """

    rows: ChosenRows
    convert: Callable[[NDArray[Any]], Tensor]
    how: Hashable

    def take(self, places: Tensor) -> tuple[Inputs, Tensor]:
        flat = places.reshape(-1)
        rows = self.convert(self.rows[flat.clamp(max=len(self) - 1).cpu().numpy()]).to(self.device)
        rows[flat >= len(self)] = 0
        return rows.unflatten(0, places.shape), take_rows(self.targets, places)

    def are(self, other: TrainingData) -> bool:
        if not isinstance(other, MappedRecords):
            return False
        equal = (self.rows is other.rows, self.how == other.how, self.persons is other.persons)
        return all(equal) and _equal_tensors(self.targets, other.targets)


# --- one by one -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadRecords(TrainingData):
    """Records of a ``Dataset``, each read alone when a batch needs it.

    Each net is trained alone on such records: the random draws of a source belong to one training.
    A record that cannot be read, or does not fit the declared shapes, is blank.

    Parameters
    ----------
    source : RecordSource
    encode : callable
        Targets of several records ↦ tensor, as the loss wants them.
    inputs, targets : Tensor, or dict of Tensor
        One row of zeros: the declared shape and kind of a record.
    coins : Generator, optional
        For random draws while reading: each record is read with freshly seeded generators of its
        own, so that the draws and seeds of one record never affect another.
    """

    source: RecordSource
    encode: Callable[[list[Any]], Tensor]
    coins: np.random.Generator | None = None
    stacks: ClassVar[bool] = False

    @contextlib.contextmanager
    def opened(self, seed: Seed) -> Iterator[ReadRecords]:
        with generators_kept():
            yield replace(self, coins=reading_generator(seed))

    def __len__(self) -> int:
        return len(self.source)

    def take(self, places: Tensor) -> tuple[Inputs, Tensor]:
        flat = places.reshape(-1)
        inputs = map_tensors(lambda row: row.repeat_interleave(len(flat), 0), self.inputs)
        targets = self.targets.repeat_interleave(len(flat), 0)
        present = torch.nonzero(flat < len(self)).reshape(-1)
        for row, record in zip(present.tolist(), self.read_each(flat[present].tolist())):
            if record is None:
                targets[row] = torch.nan if targets.is_floating_point() else -1
                continue
            for batch, part in zip([*list_tensors(inputs), targets], record):
                batch[row] = part.to(batch)
        shaped = partial(torch.unflatten, dim=0, sizes=places.shape)
        return map_tensors(shaped, inputs), shaped(targets)

    def read_each(self, numbers: Sequence[int]) -> list[list[Tensor] | None]:
        """Read records by their numbers, each with generators of its own; None for blank ones."""
        assert self.coins is not None  # opened
        records = []
        # The generators of dropout are set aside: reading may seed them.
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            words_of_each = self.coins.integers(2**32, size=(len(numbers), 4), dtype=np.uint32)
            for number, words in zip(numbers, words_of_each):
                _seed_global_generators(words, self.device)
                records.append(self._fitting(self.source.read(number)))
        return records

    def _fitting(self, record: tuple[Inputs, Any] | None) -> list[Tensor] | None:
        """Tensors of a record of the declared shapes and kinds, inputs and target; else None."""
        names = input_names(self.inputs)
        if record is None or sorted(input_names(record[0]) or ()) != sorted(names or ()):
            return None
        item, target = record
        parts = list_tensors(item if names is None else {name: item[name] for name in names})
        try:
            code = self.encode([target])[0]
        except Exception:  # an error would tell of the record
            return None
        fits = code.shape == self.targets.shape[1:]
        for kind, part in zip(list_tensors(self.inputs), parts):
            in_kind = kind.is_floating_point() or not part.is_floating_point()
            fits = fits and in_kind and kind.shape[1:] == part.shape
        return [*parts, code] if fits else None

    def assumptions(self) -> tuple[str, ...]:
        return (f"{' and '.join(self.source.names)}: {RECORD_ALONE}",)


def _seed_global_generators(words: np.ndarray, device: torch.device) -> None:
    """Seed NumPy's, Python's and PyTorch's global generators.

    The first two with 128 bits, as other threads may draw from them too.
    """
    np.random.seed(words)
    random.seed(int.from_bytes(words.tobytes(), "little"))
    seed = int(words[0])  # all that PyTorch's takes
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


# --- targets --------------------------------------------------------------------------------------


def label_targets(y: Any, classes: np.ndarray) -> Tensor:
    """Position of each label among the declared classes, −1 for others.

    A record with another label adds nothing.

    Raises
    ------
    ValueError
        For several labels of a record, and for labels of another kind than the declared ones.
    """
    labels = as_array(y)
    if labels.ndim != 1:
        raise ValueError(
            f"Expected y with one label per record, shape (n_samples,), got shape {labels.shape}."
        )
    check_kind(classes, label_kind(y))
    return torch.from_numpy(class_codes(labels, classes).astype(np.int64))
