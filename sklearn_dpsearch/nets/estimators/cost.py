"""Privacy cost of a net's parameters: all trainings that led to them, stated and carried along on the module.

Names of private attributes end in an underscore: skorch takes all others for constructor arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...privacy import Guarantee, PrivacyError, compose
from ...privacy.spent import Component, PrivacySpent
from .. import checkpoints
from ..fingerprint import digest
from .settings import Settings

#: δ at which ``privacy_spent_`` states ε where no ``target_delta`` was given; ``epsilon_at`` gives any other.
STATED_DELTA = 1e-5
#: Attributes of a net after a successful training.
FITTED = (
    "module_",
    "privacy_spent_",
    "n_steps_",
    "noise_multiplier_",
    "learning_rate_init_",
    "max_grad_norm_",
    "weight_noise_",
    "_inherited_",
    "_known_parameters_",
    "optimizer_memory_",
)


def state(net: Any, *spent: PrivacySpent) -> None:
    """Set the statement of a net, and note all costs of its parameters on the module."""
    vars(net)["privacy_spent_"] = spent[0]
    if "module_" in vars(net):
        checkpoints.mark(net.module_, spent)


def costs_before(net: Any, fresh: bool) -> list[PrivacySpent]:
    """Costs of the parameters that training starts from: this net's own trainings, or those of other nets."""
    found = checkpoints.costs(net.module_)
    if fresh:
        vars(net).pop("_inherited_", None)
        if found:
            net._inherited_ = tuple(found)
    own = None if fresh else vars(net).get("privacy_spent_")
    return found if found or own is None else [own]


def remember(net: Any) -> None:
    """Remember the parameters of a net, so that parameters from elsewhere are recognised by their difference."""
    net._known_parameters_ = digest(*net.module_.state_dict().values())


def foreign_parameters(net: Any) -> tuple[str, ...]:
    """Assumptions about parameters that came into the module from elsewhere."""
    known = vars(net).get("_known_parameters_")
    if known is None or known == digest(*net.module_.state_dict().values()):
        return ()
    return (f"{type(net).__name__}: parameters put into module_ from elsewhere hold nothing of the records.",)


def total(settings: Settings, costs: Sequence[PrivacySpent]) -> Guarantee:
    """Cost of the parameters after one more training."""
    return compose(*(spent.guarantee for spent in costs), settings.guarantee)


def check_units(costs: Sequence[PrivacySpent], unit: str) -> None:
    """Raise for parameters whose earlier cost is of another unit of privacy than that of a training."""
    for spent in costs:
        if spent.unit != unit:
            raise PrivacyError(
                f"Found parameters whose cost so far is for one {spent.unit}, and a training for one {unit}; costs of "
                "different units do not add up. Give groups in every fit, or in none, or begin anew."
            )


def add_training(net: Any, settings: Settings, costs: Sequence[PrivacySpent], notes: Sequence[str], unit: str) -> None:
    """Add one training to the cost of the parameters of a net."""
    before = tuple(component for spent in costs for component in spent.components)
    assumed = [sentence for spent in costs for sentence in spent.assumptions]
    remember(net)
    net.n_steps_ = settings.steps
    net.noise_multiplier_ = settings.noise
    spent = PrivacySpent(
        guarantee=total(settings, costs),
        delta=STATED_DELTA if net.target_delta is None else float(net.target_delta),
        components=(*before, Component(name=f"training {len(before) + 1}", guarantee=settings.guarantee)),
        assumptions=tuple(dict.fromkeys((*assumed, *net.privacy_assumptions(unit), *notes))),
        unit=unit,
    )
    state(net, spent)


def unfit(net: Any) -> None:
    """Remove all traces of a failed training."""
    for name in FITTED:
        if name in vars(net):
            delattr(net, name)  # skorch keeps lists of the attributes that it has set
    if "initialized_" in vars(net):
        net.initialized_ = False  # of a skorch net, whose module is gone
