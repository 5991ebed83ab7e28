"""Criteria: sums of one loss per record, skorch's use of them, and checks against the outputs."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...errors import TrainingError
from .refused_modules import is_altered

#: (shape of a record's outputs, shape of its targets) ↦ whether they fit.
Fits = Callable[[torch.Size, torch.Size], bool]


_CLASSES = (nn.CrossEntropyLoss, nn.MultiMarginLoss, nn.NLLLoss)
_LABELS = (nn.BCEWithLogitsLoss, nn.MultiLabelSoftMarginLoss, nn.SoftMarginLoss)
_NUMBERS = (nn.HuberLoss, nn.KLDivLoss, nn.L1Loss, nn.MSELoss, nn.PoissonNLLLoss, nn.SmoothL1Loss)
#: Losses that PyTorch sums over records with reduction="sum", by exact type: with one class in each
#: place, or one target for each output, as other shapes would be broadcast over the records.
SUMMED_LOSSES: dict[type[nn.Module], Fits] = {
    **dict.fromkeys(_CLASSES, lambda outputs, targets: bool(outputs) and outputs[1:] == targets),
    **dict.fromkeys((*_LABELS, *_NUMBERS), operator.eq),
}


class NLLOfProbabilities(nn.Module):
    """Negative log-likelihood of probabilities, of which it takes the logarithm, as skorch does."""

    def __init__(self, criterion: nn.NLLLoss) -> None:
        super().__init__()
        self.criterion = criterion

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Negative log-likelihood of the targets."""
        return self.criterion(torch.log(outputs + torch.finfo(outputs.dtype).eps), targets)


def sums_one_loss_per_record(criterion: nn.Module, outputs: Tensor, targets: Tensor) -> bool:
    """Return whether a criterion is known to sum one loss per record."""
    if type(criterion) is NLLOfProbabilities:
        inner = criterion.criterion
        return not is_altered(criterion) and sums_one_loss_per_record(inner, outputs, targets)
    fits = SUMMED_LOSSES.get(type(criterion))
    if fits is None or is_altered(criterion) or getattr(criterion, "reduction", None) != "sum":
        return False
    trained = any(True for _ in criterion.parameters())
    spread = any(weight.dim() >= outputs.dim() for weight in criterion.buffers())  # one per record
    return not trained and not spread and fits(outputs.shape[1:], targets.shape[1:])


#: Classes up to which ``_fast_softmax`` runs over the other axis.
FEW_CLASSES = 32


def loss_gradient(criterion: nn.Module, outputs: Tensor, targets: Tensor) -> Tensor:
    """Gradient of a known criterion's summed loss in the outputs."""
    # The two most frequent losses have formulas: autograd would take longer than the rest of the
    # step.
    classes = type(criterion) is nn.CrossEntropyLoss and outputs.dim() == 2 and targets.dim() == 1
    if classes and criterion.label_smoothing == 0 and criterion.ignore_index == -100:
        gradient = _fast_softmax(outputs)
        places = targets.unsqueeze(-1)
        minus_one = gradient.new_full((1, 1), -1.0).expand(places.shape)
        gradient = gradient.scatter_add_(-1, places, minus_one)
        return gradient if criterion.weight is None else gradient * criterion.weight[places]
    if type(criterion) is nn.MSELoss:
        return (outputs - targets) * 2.0
    leaf = outputs.requires_grad_()
    return torch.autograd.grad(criterion(leaf, targets), leaf)[0]


def _fast_softmax(logits: Tensor) -> Tensor:
    """Softmax over the last axis.

    If that axis is short, PyTorch is ten times faster over another one.
    """
    if logits.shape[-1] > FEW_CLASSES:
        return torch.softmax(logits, dim=-1)
    return torch.softmax(logits.mT.contiguous(), dim=-2).mT


# --- criteria that do not belong to the outputs ---------------------------------------------------

#: Kind of net ↦ criteria that do not fit it, and the rest of the error.
MISFITS: dict[str, tuple[tuple[type[nn.Module], ...], str]] = {
    "numbers": (
        (nn.CrossEntropyLoss, nn.NLLLoss, nn.BCEWithLogitsLoss, nn.MultiMarginLoss),
        "in a regressor: its outputs are logits or probabilities of classes, not predicted "
        "numbers. Use a loss for numbers, e.g. torch.nn.MSELoss, or DPNeuralNetClassifier.",
    ),
    "logits": (
        (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss),
        "with one output per class, in a classifier with one logit for each yes or no. Use "
        "torch.nn.BCEWithLogitsLoss, or DPNeuralNetClassifier.",
    ),
    "classes": (
        (nn.BCEWithLogitsLoss, nn.BCELoss),
        "in a classifier with one output per class. Use torch.nn.CrossEntropyLoss; for one logit "
        "DPNeuralNetBinaryClassifier; for several labels of a record "
        "DPNeuralNetMultiLabelClassifier.",
    ),
}


def check_criterion_kind(criterion: object, outputs: str) -> None:
    """Raise for a criterion that does not fit the kind of net.

    Raises
    ------
    ValueError
    """
    kind = criterion if isinstance(criterion, type) else type(criterion)
    misfits, explanation = MISFITS[outputs]
    if issubclass(kind, misfits):
        raise TrainingError(f"Found criterion {kind.__name__} {explanation}")


def check_criterion_outputs(criterion: nn.Module, outputs: Tensor) -> None:
    """Raise where a module's outputs on made-up records do not fit the criterion.

    Raises
    ------
    ValueError
        Probabilities for a criterion that takes logits; something else for one that takes
        probabilities.
    """
    if outputs.dim() < 2 or outputs.shape[1] < 2 or not bool(outputs.isfinite().all()):
        return
    totals = outputs.double().sum(1)
    probabilities = bool((outputs >= 0).all()) and bool(((totals - 1).abs() < 1e-4).all())
    if isinstance(criterion, nn.CrossEntropyLoss) and probabilities:
        raise TrainingError(
            "Found a module that returns probabilities (a softmax at its end) with "
            "CrossEntropyLoss, which takes logits and applies a softmax itself: gradients would be "
            "nearly flat. Leave the softmax out of the module, or give criterion=torch.nn.NLLLoss."
        )
    if isinstance(criterion, (NLLOfProbabilities, nn.NLLLoss)) and not probabilities:
        raise TrainingError(
            "Found a module that does not return probabilities with NLLLoss: as in skorch the "
            "logarithm is taken during training, so the module has to end with a softmax (not a "
            "log-softmax). Or return logits, and give criterion=torch.nn.CrossEntropyLoss."
        )
