"""Cost of tuning on a random subset, and noise of its scores where records that validate also train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from ...privacy import (
    CountDistribution,
    GaussianDP,
    Geometric,
    Guarantee,
    PureDP,
    as_replace_one,
    best_of,
    calibrate,
    compose,
    subset_then_train,
)
from ...privacy._types import Neighboring
from ...privacy.spent import Component
from ...scoring.scored_run import search_guarantee
from ..planning.space_guarantee import SpaceGuarantee
from .final_training import Sizes
from .members import InSubset, OnTheRest

#: Mean number of runs where the user gives none, and the longest list whose candidates may then all run once.
USUAL, SHORT = 10, 10
#: ``subset_fraction="auto"``: between the first two, with this number of expected records × ε in the subset.
FEWEST, MOST, ENOUGH = 0.1, 0.3, 1500.0
ON = {"rest": "the rest", "all": "all records"}
#: Factor of the noise of a score on the rest over the noise that would match the final training, so that its loss is a
#: small part of the training's: both costs compose. The noise depends on the final training alone, so on no secret.
FACTOR_OF_SCORES = 24
#: This factor where candidates are as private as the final training and nothing is amplified: a record of the rest then
#: always pays less than a record of the subset.
FACTOR_AT_NO_COST = 3
#: Relative gap within which two costs count as equal.
ABOUT = 0.02


@dataclass(frozen=True, kw_only=True)
class CostOfSubset:
    """Cost of the runs on the subset, the best of which is found, and of one training on more records.

    Parameters
    ----------
    distribution : CountDistribution
        Distribution of the number of runs K.
    each : bool
        Whether each candidate of a list runs once, so that the runs compose.
    told_its_size : bool
        Whether the estimator can be told how many records to expect, so that it does not count them.
    replaced : bool
        Whether the guarantee, which is for the presence of a record, is stated for a replaced record.
    """

    distribution: CountDistribution
    each: bool
    members: InSubset | OnTheRest
    train_on: Literal["rest", "all"]
    told_its_size: bool
    replaced: bool

    def components(
        self, promises: SpaceGuarantee, scoring: Guarantee | None, final: SpaceGuarantee
    ) -> tuple[Component, ...]:
        spend = partial(self._total, final.worst)
        search: Callable[[Guarantee], Guarantee] = partial(best_of, count=self.distribution)
        trained = promises.trained
        if self.each:  # all of them are "one run"
            search, trained = compose, promises.each_once
            scoring = None if scoring is None else compose(*[scoring] * int(self.distribution.mean))
        if not isinstance(self.members, OnTheRest):
            total = spend(search_guarantee(trained, scoring, self.members.exposures(), search))
        else:
            assert scoring is not None
            share = self.members.share
            validate = search(scoring)._roughly()  # scores lose next to nothing, and exact bounds would double the time
            total = spend(search(trained(1)), validate=validate, validated_share=share)
        return (Component(name=self._name, guarantee=total),)

    def _total(self, train: Guarantee, tune: Guarantee, **scored: Any) -> Guarantee:
        secret = secret_membership(self.told_its_size, train.neighboring)
        total = subset_then_train(tune, train, self.members.fraction, self.train_on, secret_membership=secret, **scored)
        return as_replace_one(total) if self.replaced else total

    def sizes(self, n_samples: int | None) -> Sizes:
        """Expected numbers of records that tune, and that train the final model; shares where ``n_samples`` is None."""
        whole, q = 1.0 if n_samples is None else float(n_samples), self.members.fraction
        return Sizes(q * whole, (1.0 - q if self.train_on == "rest" else 1.0) * whole)

    @property
    def _name(self) -> str:
        validated = ""
        if isinstance(self.members, OnTheRest):
            share = self.members.share
            validated = f", validate on {'the rest' if share == 1.0 else f'a share of {share:g} of the rest'}"
        runs = f"the best of K runs, K ~ {self.distribution!r}"
        if self.each:
            runs = f"the best of {self.distribution.mean:.0f} candidates, each of which runs once"
        return (
            f"tune on a subset (each with probability {self.members.fraction:g}) by {runs}{validated}, then "
            f"train on {ON[self.train_on]}"
        )


def secret_membership(told_its_size: bool, relation: Neighboring) -> bool:
    """Return whether membership in the subset stays secret: no model uses the number of its records."""
    return relation != "zero_out" or told_its_size


def default_fraction(n: float | None, epsilon: float | None) -> float:
    """Share of ``n`` records that tunes by default, from public numbers: larger where n·ε is small, 0.1 if unknown."""
    if n is None or epsilon is None:
        return FEWEST
    return min(max(ENOUGH / (n * epsilon), FEWEST), MOST)


@lru_cache(maxsize=64)
def share_at_no_cost(epsilon: float, delta: float, distribution: CountDistribution, each: bool, pure: bool) -> float:
    """Privacy loss of one candidate, as a share of the loss (``epsilon``, ``delta``) that a whole search has.

    Where membership in the subset is known, a record pays for the search or for the final training, never for both:
    with this share both cost the same. Losses are those of pure or of Gaussian mechanisms.
    """

    def one_run(loss: float) -> Guarantee:
        return PureDP(epsilon=loss) if pure else GaussianDP(mu=loss)

    def search(loss: float) -> Guarantee:
        return compose(*[one_run(loss)] * int(distribution.mean)) if each else best_of(one_run(loss), distribution)

    return min(1.0, calibrate(search, epsilon, delta) / calibrate(one_run, epsilon, delta))


@lru_cache(maxsize=64)
def each_is_cheap(
    number: int,
    epsilon: float,
    delta: float,
    fraction: float,
    train_on: Literal["rest", "all"],
    relation: Neighboring,
    secret: bool,
) -> bool:
    """Return whether each of ``number`` candidates, run once, costs about as little as the usual number of runs.

    Both costs are those of a Gaussian mechanism that promises (``epsilon``, ``delta``), which is close to what one run
    of a search with this total promises. The answer depends on public numbers alone.
    """
    if number > SHORT:
        return False
    one_run = GaussianDP(mu=calibrate(lambda mu: GaussianDP(mu=mu), epsilon, delta), neighboring=relation)
    each, usual = (
        subset_then_train(tune, one_run, fraction, train_on, secret_membership=secret).epsilon_at(delta)
        for tune in (compose(*[one_run] * number), best_of(one_run, Geometric(USUAL)))
    )
    return each <= usual * (1.0 + ABOUT)
