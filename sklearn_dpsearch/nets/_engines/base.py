"""Interface of engines: sums of clipped per-record gradients, for one net or a stack of nets."""

from __future__ import annotations

import copy
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...errors import TrainingError
from .._named_tensors import Inputs, map_tensors
from .layer_gradients import LayerGradients
from .refused_modules import in_training
from .rounding import norms_from_squares

#: Bytes in use at once on an accelerator. On a CPU more than a few megabytes would not fit into its
#: caches.
MEMORY_ELSEWHERE = 2**30
#: Fewest and most records at once: with fewer, even large products wait for each other.
FEWEST_RECORDS, MOST_RECORDS = 4, 4096


class Engine(ABC):
    """Engine that sums clipped per-record gradients of nets of one architecture.

    Parameters
    ----------
    module, criterion : Module
        Not changed: a released module is never run on records.
    device : torch.device
    template : Module, optional
        Module to run instead, with parameters of the same names.
    """

    def __init__(
        self,
        module: nn.Module,
        criterion: nn.Module,
        device: torch.device,
        template: nn.Module | None = None,
    ) -> None:
        self.layout, self.device = ParameterLayout(module), device
        self.template = copy.deepcopy(module if template is None else template)
        self.template = in_training(self.template.to(device))
        for layer in self.template.modules():
            if type(layer) is nn.Embedding:
                layer.register_forward_pre_hook(_set_unknown_tokens_apart)
                layer.register_forward_hook(_make_unknown_tokens_nan)
        self.criterion = copy.deepcopy(criterion).to(device)
        self.piece = 1  # records in a sum in single precision, see ``rounding``

    @abstractmethod
    def bind(self, trained: Tensor, frozen: Tensor, sums: Tensor) -> None:
        """Bind an engine to flat parameters and buffers of gradient sums.

        Shapes are (M, size); parameters and sums may change in place.

        The sums are in double precision.
        """

    @abstractmethod
    def add_clipped(self, inputs: Inputs, targets: Tensor, bounds: Tensor) -> None:
        """Add each net's sum of clipped per-record gradients to its buffer.

        Parameters
        ----------
        inputs, targets : tensors of shape (M, B, ...)
            M batches of B records.
        bounds : tensor of shape (M, B)
            Clipping norm of each record; 0 for a place without a record.
        """


class SingleNetEngine(Engine):
    """Engine for one net, with the gradients of a chunk of records at once."""

    #: Most records in a chunk.
    chunk_size: int

    def bind(self, trained: Tensor, frozen: Tensor, sums: Tensor) -> None:
        if len(trained) != 1:
            raise TrainingError(f"Expected one net at a time, got {len(trained)}.")
        for name, parameter in self.template.named_parameters():
            # moves with the training
            parameter.data = self.layout.view(name, trained[0], frozen[0])
        names = self.layout.names(trained=True)
        self._sums = {name: self.layout.view(name, sums[0], sums[0]) for name in names}

    def add_clipped(self, inputs: Inputs, targets: Tensor, bounds: Tensor) -> None:
        for start in range(0, targets.shape[1], self.chunk_size):
            part = slice(start, start + self.chunk_size)
            rows = map_tensors(operator.itemgetter((0, part)), inputs)
            gradients, blank = self._gradients_or_blanks(rows, targets[0, part])
            squares = [gradient.squares() for gradient in gradients.values()]
            norms = norms_from_squares(torch.stack(squares))
            finite = finite_mask(norms)
            factors = clip_factors(norms, bounds[0, part], finite)
            if blank is not None:
                factors = factors * ~blank
            for name, gradient in gradients.items():
                gradient.add(self._sums[name], factors, finite, self.piece)

    def _gradients_or_blanks(
        self, inputs: Inputs, targets: Tensor
    ) -> tuple[LayerGradients, Tensor | None]:
        """Gradients of records, and a mask of those on which the computation fails, or None.

        In their places are zeros then, in a call of the same shape with the same random draws: what
        is computed for the others does not change by a bit.
        """
        state = generator_states(self.device)

        def attempt(blank: Tensor) -> LayerGradients:
            restore_generators(self.device, state)
            rows = map_tensors(lambda part: with_blank_rows(part, blank), inputs)
            return self.per_sample_gradients(rows, with_blank_rows(targets, blank))

        def fails(blank: Tensor) -> bool:
            try:
                attempt(blank)
            except Exception:
                self.recover()
                return True
            return False

        try:
            return self.per_sample_gradients(inputs, targets), None
        except Exception:  # an error would tell of the record, unless blank ones make it too
            self.recover()
        every = torch.ones(len(targets), dtype=torch.bool, device=self.device)
        blank = every if fails(every) else failing_records(fails, len(targets), self.device)
        return attempt(blank), blank

    def recover(self) -> None:
        """Forget what a computation that failed has left behind."""
        return

    @abstractmethod
    def per_sample_gradients(self, inputs: Inputs, targets: Tensor) -> LayerGradients:
        """Gradient of each record in each trained parameter, by name."""


def _set_unknown_tokens_apart(layer: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Hook before an embedding: tokens that it has no row for become 0, and are noted."""
    tokens = args[0]
    unknown = (tokens < 0) | (tokens >= layer.num_embeddings)
    vars(layer)["unknown_tokens"] = unknown
    return (tokens.masked_fill(unknown, 0),)


def _make_unknown_tokens_nan(layer: nn.Module, args: object, outputs: Tensor) -> Tensor:
    """Hook behind an embedding: unknown tokens become NaN, which drops their record's gradient."""
    unknown: Tensor = vars(layer).pop("unknown_tokens")
    return outputs.masked_fill(unknown.unsqueeze(-1), torch.nan)


def failing_records(fails: Callable[[Tensor], bool], n: int, device: torch.device) -> Tensor:
    """Mask of the records on which a computation fails, shape (n,).

    Parameters
    ----------
    fails : callable
        Mask of blank records ↦ whether the computation fails on the others.
    n : int
    device : device
    """
    blank = torch.zeros(n, dtype=torch.bool, device=device)
    halves = [slice(0, n)]
    while halves:
        part = halves.pop()
        outside = torch.ones_like(blank)
        outside[part] = False
        if not fails(outside):
            continue
        if part.stop - part.start == 1:
            blank[part] = True
        else:
            middle = (part.start + part.stop) // 2
            halves += [slice(part.start, middle), slice(middle, part.stop)]
    return blank


def with_blank_rows(values: Tensor, blank: Tensor) -> Tensor:
    """Tensor with zeros in the rows of blank records."""
    return torch.where(blank.view(-1, *(1,) * (values.dim() - 1)), torch.zeros_like(values), values)


def generator_states(device: torch.device) -> list[Tensor]:
    """States of PyTorch's generators that a computation draws from."""
    on_device = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_device]


def restore_generators(device: torch.device, states: Sequence[Tensor]) -> None:
    """Put the states of PyTorch's generators back."""
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


def records_per_chunk(bytes_at_once: int, numbers: int, limit: int) -> int:
    """Number of records whose per-record gradients fit into memory at once."""
    return max(FEWEST_RECORDS, min(bytes_at_once // (4 * max(1, numbers)), limit))


def finite_mask(norms: Tensor) -> Tensor | None:
    """Mask of finite gradient norms; None if all are known to be finite.

    On an accelerator the mask is cheaper than asking.
    """
    if norms.device.type == "cpu" and math.isfinite(norms.sum().item()):
        return None
    return torch.isfinite(norms)


def clip_factors(norms: Tensor, bounds: Tensor, finite: Tensor | None) -> Tensor:
    """Factors that clip per-record gradients of these norms to their bounds.

    0 for an infinite or undefined norm: its gradient is dropped.

    Parameters
    ----------
    norms, bounds : tensors of one shape, (M, B) or (B,)
    finite : tensor of the same shape, optional
        Which norms are finite; without it all are.
    """
    # Each record by its own norm. Clipping never lengthens a gradient.
    factors = (bounds / norms).clamp_(max=1.0)
    return factors if finite is None else torch.where(finite, factors, 0.0)


# --- parameters in flat storage -------------------------------------------------------------------


class ParameterEntry(NamedTuple):
    """Place of one parameter in the flat storage of a module."""

    is_trained: bool
    start: int
    shape: torch.Size


class ParameterLayout:
    """Places of the parameters of a module in flat storage, trained and frozen ones apart."""

    def __init__(self, module: nn.Module) -> None:
        self.entries: dict[str, ParameterEntry] = {}
        sizes = {True: 0, False: 0}
        for name, parameter in module.named_parameters():
            trained = parameter.requires_grad
            self.entries[name] = ParameterEntry(trained, sizes[trained], parameter.shape)
            sizes[trained] += parameter.numel()
        self.trained, self.frozen = sizes[True], sizes[False]

    def read(self, modules: Sequence[nn.Module], device: torch.device, trained: bool) -> Tensor:
        """Copy the parameters of several modules into rows of flat storage."""
        # Always in single precision: the bound on rounding is for single precision.
        names, rows = set(self.names(trained)), []
        for module in modules:
            parameters = [p for name, p in module.named_parameters() if name in names]
            flat = [p.detach().reshape(-1).to(device, torch.float32) for p in parameters]
            rows.append(torch.cat([torch.empty(0, dtype=torch.float32, device=device), *flat]))
        return torch.stack(rows)

    def write(self, row: Tensor, module: nn.Module) -> None:
        """Copy a row of flat trained parameters back into a module."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if self.entries[name].is_trained:
                    parameter.copy_(self.view(name, row, row))

    def view(self, name: str, trained: Tensor, frozen: Tensor) -> Tensor:
        """View of one parameter inside of flat storage, in its own shape."""
        is_trained, start, shape = self.entries[name]
        flat = trained if is_trained else frozen
        return flat[..., start : start + shape.numel()].reshape(*flat.shape[:-1], *shape)

    def names(self, trained: bool) -> list[str]:
        """Names of the trained, or of the frozen, parameters in order."""
        return [name for name, entry in self.entries.items() if entry.is_trained is trained]
