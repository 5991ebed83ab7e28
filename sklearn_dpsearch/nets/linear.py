"""Engines for nets whose parameters all lie in linear layers: clipped sums without per-record gradients."""

from __future__ import annotations

import functools
from abc import abstractmethod

import torch
from torch import nn

from . import plain
from .engines import Engine, all_finite, clip_factors
from .rounding import TINY, add_products, norms_of


class LinearEngine(Engine):
    """Nets whose parameters all lie in ``nn.Linear`` layers, each used once on one vector per record.

    The gradient of a linear layer is an outer product δ⊗a, with norm |δ|·√(|a|² + 1) and clipped sum Σ c·δ⊗a: no
    per-record gradient is ever formed (Goodfellow 2015; Li, Tramèr, Liang & Hashimoto 2022, "ghost clipping").
    """

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device) -> None:
        super().__init__(module, criterion, device)
        self.layers = [(name, one) for name, one in self.template.named_modules() if type(one) is nn.Linear]
        self.template.requires_grad_(False)

    @staticmethod
    def suits(module: nn.Module) -> bool:
        """Whether every parameter lies in exactly one linear layer (``probe`` checks how they are used)."""
        linear = [p for one in module.modules() if type(one) is nn.Linear for p in one.parameters()]
        return len(linear) > 0 and len({id(p) for p in linear}) == len(linear) == len(list(module.parameters()))

    @abstractmethod
    def _slopes(self, inputs: torch.Tensor, targets: torch.Tensor) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
        """For each layer: its number, its inputs (M, B, in), and the slopes of the summed loss in its outputs."""

    def bind(self, trained: torch.Tensor, frozen: torch.Tensor, sums: torch.Tensor) -> None:
        def stored(name: str, end: str) -> torch.Tensor | None:
            full = f"{name}.{end}" if name else end
            return self.layout.view(full, trained, frozen) if full in self.layout.entries else None

        def sum_of(name: str, end: str) -> torch.Tensor | None:
            full = f"{name}.{end}" if name else end
            return self.layout.view(full, sums, sums) if self.layout.entries.get(full, (False,))[0] else None

        self._weights = [stored(name, "weight") for name, _ in self.layers]
        self._biases = [stored(name, "bias") for name, _ in self.layers]
        self._sums = [(sum_of(name, "weight"), sum_of(name, "bias")) for name, _ in self.layers]

    def add_clipped(self, inputs: torch.Tensor, targets: torch.Tensor, bounds: torch.Tensor) -> None:
        parts = [(self._sums[i], a, slope) for i, a, slope in self._slopes(inputs, targets)]
        squared = torch.zeros_like(bounds)
        for (weight, bias), a, slope in parts:
            if weight is not None:
                squared.add_((norms_of(slope) * (norms_of(a).square_() + float(bias is not None)).sqrt_()).square_())
            elif bias is not None:
                squared.add_(norms_of(slope).square_())
        norms = squared.sqrt_().add_(TINY)  # 0/0 where there is no record
        factors = clip_factors(norms, bounds).unsqueeze(-1)
        finite = None if all_finite(norms) else torch.isfinite(norms).unsqueeze(-1)
        for (weight, bias), a, slope in parts:
            if finite is not None:
                a, slope = torch.where(finite, a, 0.0), torch.where(finite, slope, 0.0)
            scaled = slope * factors
            if weight is not None:
                add_products(weight, scaled, a, self.piece)
            if bias is not None:
                bias.add_(scaled.sum(-2, dtype=torch.float64))

    def _affine(self, i: int, inputs: torch.Tensor) -> torch.Tensor:
        """Layer number ``i`` of every net, on inputs of shape (M, B, in)."""
        weight, bias = self._weights[i], self._biases[i]
        assert weight is not None
        if bias is None:
            return torch.bmm(inputs, weight.mT)
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight.mT)


class PlainEngine(LinearEngine):
    """Nets of linear and element-wise layers in sequence (``plain.structure``): back-propagation spelled out."""

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device) -> None:
        super().__init__(module, criterion, device)
        numbers = {id(layer): i for i, (_, layer) in enumerate(self.layers)}
        self.parts = [numbers.get(id(part), part) for part in plain.parts(self.template)]

    def _slopes(self, inputs: torch.Tensor, targets: torch.Tensor) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
        seen = [inputs]
        for part in self.parts:
            seen.append(self._affine(part, seen[-1]) if isinstance(part, int) else plain.forward(part, seen[-1]))
        slope = plain.loss_slope(self.criterion, seen[-1], targets)
        found = []
        first = next(k for k, part in enumerate(self.parts) if isinstance(part, int))
        for k in range(len(self.parts) - 1, first - 1, -1):
            part = self.parts[k]
            if not isinstance(part, int):
                slope = plain.backward(part, slope, seen[k], seen[k + 1])
                continue
            found.append((part, seen[k], slope))
            if k > first:
                slope = torch.bmm(slope, self._weights[part])
        return found


class TracedEngine(LinearEngine):
    """Nets with a ``forward`` of their own: linear layers are watched while it runs, slopes come from autograd.

    Parameters
    ----------
    several : bool
        Whether the net's own code is run on a whole stack, shapes (M, B, ...). Whether that gives the same as one net
        at a time is checked with made-up records (``probe.agrees``).
    """

    def __init__(self, module: nn.Module, criterion: nn.Module, device: torch.device, several: bool) -> None:
        super().__init__(module, criterion, device)
        self.several = several
        for i, (_, layer) in enumerate(self.layers):
            layer.forward = functools.partial(self._watched, i)  # type: ignore[method-assign]
        for parameter in self.template.parameters():
            parameter.data.fill_(torch.nan)  # not those in training: of no use outside of their layers
        for one in self.template.modules():
            if getattr(one, "inplace", False):
                one.inplace = False  # the outputs of linear layers are needed as they are
            if several and type(one) is nn.Flatten and one.start_dim == 1:
                one.start_dim = 2

    def _watched(self, i: int, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.dim() != 2 + self.several:
            raise ValueError("a linear layer is not used on one vector per record")
        outputs = self._affine(i, inputs if self.several else inputs.unsqueeze(0))
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self._seen.append((i, inputs.detach(), outputs))
        return outputs if self.several else outputs[0]

    def _slopes(self, inputs: torch.Tensor, targets: torch.Tensor) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
        self._seen: list[tuple[int, torch.Tensor, torch.Tensor]] = []
        predicted = self.template(inputs if self.several else inputs[0])
        loss = self.criterion(predicted.flatten(0, 1) if self.several else predicted, targets.flatten(0, 1))
        seen, self._seen = self._seen, []
        if sorted(i for i, _, _ in seen) != list(range(len(self.layers))):
            raise ValueError("a linear layer is not used exactly once")
        slopes = torch.autograd.grad(loss, [outputs for _, _, outputs in seen])
        return [(i, a if self.several else a.unsqueeze(0), slope) for (i, a, _), slope in zip(seen, slopes)]
