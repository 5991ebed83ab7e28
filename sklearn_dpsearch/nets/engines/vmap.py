"""Engine for any code: the gradient of one record, for many at once by ``torch.func.vmap``.

Code inside of ``vmap`` sees a batch of one record, and cannot see the others; code that branches on the value of a
record raises.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.func import functional_call, grad, vmap
from torch.overrides import TorchFunctionMode

from ...errors import TrainingError
from ...privacy import LeakingEstimatorError
from .base import Engine, clip_factors, which_finite
from .draws import Draws
from .rounding import add_products, norms_of, root_of_sum

#: Bytes of gradients held at once: on a CPU more would not fit into its caches, and be slower.
MEMORY = {"cpu": 2**23}
MEMORY_ELSEWHERE = 2**30
#: Records at once: with fewer, even large products wait for each other; with more, activations need much memory.
LEAST = 4
MOST = {"cpu": 256}
MOST_ELSEWHERE = 4096
#: Operators of PyTorch itself, whose rules for ``vmap`` are PyTorch's own.
KNOWN_OPERATORS = ("aten", "prims")
#: User-written methods of functions with their own gradient.
METHODS = ("forward", "setup_context", "backward", "jvp")
#: Methods that would show all records of a batch as text.
TEXT = (torch.Tensor.__repr__, torch.Tensor.__format__)


class VmapEngine(Engine):
    """Any net, one at a time: gradients of single records, clipped and summed.

    Parameters
    ----------
    template : Module, optional
        Graph of the module, to run instead.
    own_code : bool
        Whether module or criterion run unknown code. Each call then gets fresh copies, so that no state is carried to
        the next call, and is watched for operations that would see other records.
    """

    def __init__(
        self,
        module: nn.Module,
        criterion: nn.Module,
        device: torch.device,
        template: nn.Module | None = None,
        own_code: bool = True,
    ) -> None:
        super().__init__(module, criterion, device, template)
        self.own_code = own_code
        #: Whether own code may draw random numbers; and whether it has.
        self.draws, self.drew = True, False
        for layer in self.template.modules():
            if type(layer) is nn.GRU or type(layer) is nn.RNN:
                vars(layer)["forward"] = _Started(type(layer), layer)
        for parameter in self.template.parameters():
            parameter.requires_grad_(False)  # gradients come from torch.func alone, and none is left on a module
        room = MEMORY.get(device.type, MEMORY_ELSEWHERE) // (4 * max(1, self.layout.trained))
        self.most = max(LEAST, min(room, MOST.get(device.type, MOST_ELSEWHERE)))

    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        if len(trained) != 1:
            raise TrainingError(f"Expected one net at a time, got {len(trained)}.")
        there = dict(self.template.named_parameters())
        views = {name: self.layout.view(name, trained[0], frozen[0]) for name in self.layout.entries if name in there}
        moving = [name for name in self.layout.names(trained=True) if name in there]
        self._trained = {name: views[name] for name in moving}
        self._frozen = {name: view for name, view in views.items() if name not in self._trained}
        self._sums = {name: self.layout.view(name, sums[0], sums[0]).view(1, 1, -1) for name in moving}

    def add_clipped(
        self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor, norms: torch.Tensor | None = None
    ) -> None:
        for start in range(0, inputs.shape[1], self.most):
            part = slice(start, start + self.most)
            self._add(self.gradients(inputs[0, part], targets[0, part]), bounds[0, part])

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
        """Gradient of every record in every trained parameter, shapes (B, size)."""
        module, criterion = self._fresh()
        frozen = self._frozen

        def loss(trained: Mapping[str, torch.Tensor], record: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            outputs = functional_call(module, {**trained, **frozen}, (record.unsqueeze(0),))  # a batch of one
            found: torch.Tensor = criterion(outputs, target.unsqueeze(0)).sum()
            return found

        # "different": each record has its own dropout mask, as in a batch.
        each = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different" if self.draws else "error")
        with self._watched():
            found = each(self._trained, inputs, targets)
        return {name: gradient.detach().flatten(1) for name, gradient in found.items()}

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Watch unknown code."""
        if not self.own_code:
            yield
            return
        if not self.draws:  # vmap refuses random numbers by itself, and faster
            with _Watch():
                yield
            return
        with Draws(self.device) as draws, _Watch():
            yield
        self.drew |= draws.drawn

    def _fresh(self) -> tuple[nn.Module, nn.Module]:
        """Copy module and criterion in their initial state, with the given parameters."""
        if not self.own_code:
            return self.template, self.criterion
        memo: dict[int, Any] = {id(p): p for p in self.template.parameters()}
        with Draws(self.device, allowed=False):
            return copy.deepcopy(self.template, memo), copy.deepcopy(self.criterion)

    def _add(self, gradients: dict[str, torch.Tensor], bounds: torch.Tensor) -> None:
        norms = root_of_sum(norms_of(gradients.values()).square_())
        finite = which_finite(norms)
        factors = clip_factors(norms, bounds, finite, None if self.automatic is None else self.automatic[0])
        for name, gradient in gradients.items():
            if finite is not None:
                gradient = torch.where(finite.unsqueeze(-1), gradient, 0.0)
            add_products(self._sums[name], factors[None, :, None], gradient[None], self.piece)


class _Watch(TorchFunctionMode):
    """Raises at all that sees through ``vmap``: operators with their own rules, batches as text, and other modes."""

    def __enter__(self) -> _Watch:
        super().__enter__()
        self.modes = _modes()
        return self

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if isinstance(func, (OpOverload, OpOverloadPacket, HigherOrderOperator)):
            _check_operator(func, args)
            if isinstance(func, HigherOrderOperator):
                args = (_watched(args[0]), *args[1:])
        elif func in TEXT:
            raise TrainingError("a tensor is printed, or turned into text, which would show whole batches")
        if _modes() > self.modes:
            raise LeakingEstimatorError(
                "Found a mode of PyTorch (TorchDispatchMode, a profiler, a counter) opened in forward or in the "
                "criterion: it sees whole batches. Remove it."
            )
        return func(*args, **(kwargs or {}))


def _watched(function: Any) -> type:
    """Function with its own gradient, whose code is watched as well; the watch is off while PyTorch calls it."""
    own = {name: getattr(function, name) for name in METHODS}
    changed = {name: one for name, one in own.items() if one is not getattr(torch.autograd.Function, name)}
    return type(
        function.__name__, (function,), {name: staticmethod(_under_watch(one)) for name, one in changed.items()}
    )


def _under_watch(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _Watch():
            return method(*args, **kwargs)

    return run


def _modes() -> int:
    return int(torch._C._len_torch_dispatch_stack())


def _check_operator(func: object, args: tuple[object, ...]) -> None:
    if isinstance(func, HigherOrderOperator):
        function = args[0] if args else None
        if not getattr(function, "generate_vmap_rule", False):
            name = getattr(function, "__name__", func)
            raise TrainingError(f"{name} has a rule of its own for vmap, which would see whole batches")
    elif str(func).partition(".")[0].partition("::")[0] not in KNOWN_OPERATORS:
        raise TrainingError(f"the operator {func} is not one of PyTorch's")


class _Started:
    """``forward`` of a recurrent layer with an initial state per record (``vmap`` cannot write into a shared one).

    Parameters
    ----------
    kind : type
    layer : Module
    """

    def __init__(self, kind: type[nn.Module], layer: nn.RNNBase) -> None:
        self.kind, self.layer = kind, layer

    def __call__(self, inputs: torch.Tensor, state: torch.Tensor | None = None) -> Any:
        layer = self.layer
        if state is None:
            records = (inputs.shape[0 if layer.batch_first else 1],) if inputs.dim() == 3 else ()
            layers = layer.num_layers * (1 + layer.bidirectional)
            state = inputs.new_zeros((layers, *records, layer.hidden_size))
        return self.kind.forward(layer, inputs, state)
