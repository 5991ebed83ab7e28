"""What tuning on a random subset costs, and how noisy its scores are where records that validate also train."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ...privacy import CountLaw, Guarantee, best_of, subset_then_train
from ...privacy._types import Neighboring
from ...privacy.spent import Component
from ...scoring import Noise, Sensitivity, matched_noise, search_guarantee
from ..planning.space import SpaceGuarantee
from .subset_members import InSubset, OnTheRest

ON = {"rest": "the rest", "all": "all records"}
#: A score on the rest has so many times the noise that would match the training: its cost composes with the training's.
FACTOR_OF_SCORES = 24
#: The same where nothing is amplified: a record of the rest then pays less than one of the subset, whatever it adds.
FACTOR_OF_KNOWN = 3


@dataclass(frozen=True, kw_only=True)
class CostOfSubset:
    """The best of K runs on the subset, and one training on more records.

    Parameters
    ----------
    told_its_size : bool
        Whether the estimator can be told how many records to expect, so that it does not count them.
    """

    law: CountLaw
    members: InSubset | OnTheRest
    train_on: Literal["rest", "all"]
    told_its_size: bool

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        search, spend = partial(best_of, count=self.law), partial(self._total, final.worst)
        if not isinstance(self.members, OnTheRest):
            total = spend(search_guarantee(promises.trained, scoring, self.members.exposures(), search))
        else:
            assert scoring is not None
            share = self.members.share
            total = spend(search(promises.one_run), validate=search(scoring), validated_share=share)
        return (Component(name=self._name, guarantee=total),)

    def _total(self, train: Guarantee, tune: Guarantee, **scored: Any) -> Guarantee:
        secret = secret_coins(self.told_its_size, train.neighboring)
        return subset_then_train(tune, train, self.members.fraction, self.train_on, secret_coins=secret, **scored)

    @property
    def _name(self) -> str:
        validated = ""
        if isinstance(self.members, OnTheRest):
            share = self.members.share
            validated = f", validate on {'the rest' if share == 1.0 else f'a share of {share:g} of the rest'}"
        return (
            f"tune on a subset (each record with probability {self.members.fraction:g}) by the best of K runs, K ~ "
            f"{self.law!r}{validated}, then train on {ON[self.train_on]}"
        )


def secret_coins(told_its_size: bool, relation: Neighboring) -> bool:
    """Whether who is in the subset stays secret: no model uses how many records it was given."""
    return relation != "zero_out" or told_its_size


def noise_beside_training(final: Guarantee, sensitivity: Sensitivity, *, amplified: bool) -> Noise:
    """Noise of a score on records that may train the final model too: a small part of what that training loses.

    It depends on the final training alone, so on nothing that is secret.
    """
    return matched_noise(final, sensitivity).times(FACTOR_OF_SCORES if amplified else FACTOR_OF_KNOWN)
