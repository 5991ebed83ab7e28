"""Cost of tuning on a random subset, and noise of its scores where records that validate also train."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ...privacy import CountDistribution, Guarantee, best_of, subset_then_train
from ...privacy._types import Neighboring
from ...privacy.spent import Component
from ...scoring import Noise, Sensitivity
from ...scoring.noise_matching import matched_noise
from ...scoring.one_run import search_guarantee
from ..planning.space_guarantee import SpaceGuarantee
from .members import InSubset, OnTheRest

ON = {"rest": "the rest", "all": "all records"}
#: Factor of the noise of a score on the rest over the noise that would match the training: both costs compose.
FACTOR_OF_SCORES = 24
#: This factor without amplification: a record of the rest then always pays less than a record of the subset.
FACTOR_OF_KNOWN = 3


@dataclass(frozen=True, kw_only=True)
class CostOfSubset:
    """Cost of the best of K runs on the subset, and of one training on more records.

    Parameters
    ----------
    told_its_size : bool
        Whether the estimator can be told how many records to expect, so that it does not count them.
    """

    distribution: CountDistribution
    members: InSubset | OnTheRest
    train_on: Literal["rest", "all"]
    told_its_size: bool

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        search, spend = partial(best_of, count=self.distribution), partial(self._total, final.worst)
        if not isinstance(self.members, OnTheRest):
            total = spend(search_guarantee(promises.trained, scoring, self.members.exposures(), search))
        else:
            assert scoring is not None
            share = self.members.share
            validate = search(scoring)._roughly()  # scores lose next to nothing, and exact bounds would double the time
            total = spend(search(promises.one_run), validate=validate, validated_share=share)
        return (Component(name=self._name, guarantee=total),)

    def _total(self, train: Guarantee, tune: Guarantee, **scored: Any) -> Guarantee:
        secret = secret_membership(self.told_its_size, train.neighboring)
        return subset_then_train(tune, train, self.members.fraction, self.train_on, secret_membership=secret, **scored)

    @property
    def _name(self) -> str:
        validated = ""
        if isinstance(self.members, OnTheRest):
            share = self.members.share
            validated = f", validate on {'the rest' if share == 1.0 else f'a share of {share:g} of the rest'}"
        return (
            f"tune on a subset (each record with probability {self.members.fraction:g}) by the best of K runs, K ~ "
            f"{self.distribution!r}{validated}, then train on {ON[self.train_on]}"
        )


def secret_membership(told_its_size: bool, relation: Neighboring) -> bool:
    """Return whether membership in the subset stays secret: no model uses the number of its records."""
    return relation != "zero_out" or told_its_size


def noise_beside_training(final: Guarantee, sensitivity: Sensitivity, *, amplified: bool) -> Noise:
    """Noise of a score on records that may also train the final model: its loss is a small part of the training's.

    The noise depends on the final training alone, so on no secret.
    """
    return matched_noise(final, sensitivity).times(FACTOR_OF_SCORES if amplified else FACTOR_OF_KNOWN)
