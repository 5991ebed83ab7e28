"""Privacy cost of a net's parameters: all trainings that led to them, stated and carried along."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import nn

from ...privacy import Guarantee, compose
from ...privacy.spent import Component, PrivacySpent
from .. import checkpoints
from ..digest import digest
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


class ParameterCost:
    """Mixin of nets whose parameters, ``module_``, carry their cost.

    Names of private attributes end in an underscore: skorch takes all others for constructor arguments.
    """

    module_: nn.Module
    target_delta: float | None

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Cost of all training of the current parameters, which carry it with them."""
        try:
            found: PrivacySpent = vars(self)["privacy_spent_"]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute 'privacy_spent_' before it is fitted"
            ) from None
        return found

    @privacy_spent_.setter
    def privacy_spent_(self, spent: PrivacySpent) -> None:
        """Set the cost that a search states of its released model; earlier costs stay noted."""
        self._set_spent(spent, *vars(self).get("_inherited_", ()))

    @privacy_spent_.deleter
    def privacy_spent_(self) -> None:
        self.__dict__.pop("privacy_spent_")

    @abstractmethod
    def privacy_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, as plain sentences."""

    def _set_spent(self, *spent: PrivacySpent) -> None:
        """Set the statement, and note the cost of the parameters on the module."""
        self.__dict__["privacy_spent_"] = spent[0]
        if "module_" in vars(self):
            checkpoints.mark(self.module_, spent)

    def _costs_before(self, fresh: bool) -> list[PrivacySpent]:
        """Costs of the parameters that training starts from: this net's own trainings, or those of other nets."""
        found = checkpoints.costs(self.module_)
        if fresh:
            self.__dict__.pop("_inherited_", None)
            if found:
                self._inherited_ = tuple(found)
        own = None if fresh else vars(self).get("privacy_spent_")
        return found if found or own is None else [own]

    def _remember(self) -> None:
        """Remember these parameters, so that parameters from elsewhere are recognised by their difference."""
        self._known_parameters_ = digest(*self.module_.state_dict().values())

    def _foreign_parameters(self) -> tuple[str, ...]:
        """Assumptions about parameters that came into the module from elsewhere."""
        known = vars(self).get("_known_parameters_")
        if known is None or known == digest(*self.module_.state_dict().values()):
            return ()
        return (f"{type(self).__name__}: parameters put into module_ from elsewhere hold nothing of the records.",)

    def _total(self, settings: Settings, costs: Sequence[PrivacySpent]) -> Guarantee:
        """Cost of the parameters after one more training."""
        return compose(*(spent.guarantee for spent in costs), settings.guarantee)

    def _add_training(self, settings: Settings, costs: Sequence[PrivacySpent], notes: Sequence[str]) -> None:
        """Add one training to the cost of the parameters."""
        before = tuple(component for spent in costs for component in spent.components)
        assumed = [sentence for spent in costs for sentence in spent.assumptions]
        self._remember()
        self.n_steps_ = settings.steps
        self.noise_multiplier_ = settings.noise
        self._set_spent(
            PrivacySpent(
                guarantee=self._total(settings, costs),
                delta=STATED_DELTA if self.target_delta is None else float(self.target_delta),
                components=(*before, Component(name=f"training {len(before) + 1}", guarantee=settings.guarantee)),
                assumptions=tuple(dict.fromkeys((*assumed, *self.privacy_assumptions(), *notes))),
            )
        )

    def _unfit(self) -> None:
        """Remove all traces of a failed training."""
        for name in FITTED:
            if name in vars(self):
                delattr(self, name)  # skorch keeps lists of the attributes that it has set
        if "initialized_" in vars(self):
            self.initialized_ = False  # of a skorch net, whose module is gone

    def __getstate__(self) -> dict[str, Any]:
        """Drop the noise seed from a fitted net: the seed would be enough to undo the noise."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "noise_seed": None} if "privacy_spent_" in state else state
