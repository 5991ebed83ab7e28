"""skorch nets of others.

A new net with the trained parameters is released, and nothing else of the training.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from ..privacy import LeakingEstimatorError
from ._adapter import Estimator, ProtocolAdapter, TrainingRun, is_ours

#: Attribute of a net in training with an unfitted copy; skorch takes names without "_" at the end
#: for arguments.
UNFITTED_COPY = "_unfitted_"
PARAMETERS_ONLY = (
    "{}: of the trained net its parameters are released, and no other attribute that its fit sets "
    "(a loader, say)."
)


class SkorchAdapter(ProtocolAdapter):
    """skorch nets of others that state their own guarantee, or whose guarantee the caller declares.

    Parameters
    ----------
    declared : bool
        Whether the caller declares the guarantee, so that all nets are recognised.
    """

    def __init__(self, *, declared: bool = False) -> None:
        self.declared = declared

    def recognises(self, estimator: object) -> bool:
        return is_net_of_others(estimator) and (self.declared or super().recognises(estimator))

    def training_run(self, estimator: Any, n_samples: int | None) -> TrainingRun:
        run = super().training_run(estimator, n_samples)
        rebuilt = PARAMETERS_ONLY.format(type(estimator).__name__)
        return replace(run, assumptions=(*run.assumptions, rebuilt))

    def prepare(self, model: Estimator) -> None:
        keep_unfitted(model)

    def scrub(self, model: Estimator) -> None:
        rebuild_net(model)


def is_net_of_others(estimator: object) -> bool:
    """Return whether an estimator is a ``skorch.NeuralNet`` that derives from no net of ours."""
    net = getattr(sys.modules.get("skorch"), "NeuralNet", None)
    if net is None or not isinstance(estimator, net):
        return False
    return not any(is_ours(kind) and issubclass(kind, net) for kind in type(estimator).__mro__)


def keep_unfitted(net: Any) -> Any:
    """Keep an unfitted copy of a net with it, for ``rebuild_net``; return the copy."""
    vars(net)[UNFITTED_COPY] = copy = clone(net)
    return copy


def rebuild_net(net: Any, *, buffers: bool = True) -> None:
    """Replace a trained net by a new one with its trained parameters.

    Losses, gradients and batches stay behind, and all that its ``fit`` set: a loader, an engine,
    records.

    Parameters
    ----------
    net : skorch.NeuralNet
        Changed in place, if it was trained.
    buffers : bool, default=True
        Whether buffers may differ from those of a new module.

    Raises
    ------
    LeakingEstimatorError
        For modules that a new net does not have, and for changed buffers.
    """
    if not net.initialized_:
        return
    # an ensemble's copy has no copy of its own
    fresh = vars(net)[UNFITTED_COPY] if UNFITTED_COPY in vars(net) else clone(net)
    # callbacks may set the number of inputs; other names with "__" are private ones of a class
    for name, value in vars(net).items():
        if name.partition("__")[0] in net.prefixes_ and type(value) in (int, str, bool):
            vars(fresh)[name] = value
    fresh.initialize()
    for part in (*fresh._modules, *fresh._criteria):
        name = f"{part}_"
        if hasattr(new := getattr(fresh, name), "load_state_dict"):
            _load_state(name, _unwrapped(new), _unwrapped(getattr(net, name)), buffers=buffers)
    if getattr(fresh, "classes", None) is None and hasattr(net, "classes_inferred_"):
        fresh.classes_inferred_ = net.classes_inferred_
    net.__dict__.clear()
    net.__dict__.update(vars(fresh))


def _unwrapped(module: Any) -> Any:
    """The user's module inside of Opacus's."""
    of_opacus = type(module).__module__.startswith("opacus.")
    return module._module if of_opacus and hasattr(module, "_module") else module


def _load_state(name: str, new: Any, trained: Any, *, buffers: bool) -> None:
    """Copy the trained numbers into a new module."""
    if not buffers:
        before = dict(new.named_buffers())
        known = ((key, buffer) for key, buffer in trained.named_buffers() if key in before)
        changed = [key for key, buffer in known if not _equal(buffer, before[key])]
        if changed:
            raise LeakingEstimatorError(
                f"Found buffers of {name} that are not as a new module has them: {changed}. Noise "
                "is added to gradients alone, so buffers must not change in training. Use layers "
                "without running statistics (GroupNorm), and parameters with requires_grad=False "
                "for numbers that are drawn at random."
            )
    try:
        new.load_state_dict(trained.state_dict())
    except (RuntimeError, KeyError) as error:
        raise LeakingEstimatorError(
            f"Found other parameters in the trained {name} than in a new one "
            f"({type(error).__name__}): the released net is made anew from its constructor "
            "arguments. Change layers (ModuleValidator.fix) in the module's constructor, not in "
            "fit."
        ) from None


def _equal(first: Any, second: Any) -> bool:
    return bool(first.shape == second.shape and (first.to(second.device) == second).all())
