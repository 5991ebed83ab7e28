"""The random subset: training and validation records of candidates, and the cost of tuning."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from ..errors import did_you_mean
from ..privacy import (
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
from ..privacy._checks import Neighboring
from ..privacy._mechanisms.array_sampling import RandomBytes, bernoulli
from ..privacy._spent import Component
from ..scoring._validation import (
    Exposure,
    Fold,
    HoldOut,
    Validation,
    numbers_where,
    search_guarantee,
    validation_of,
)
from ._planning.space_guarantee import SpaceGuarantee

#: Probability with which a Poisson sample exceeds the public bound on its size.
EXCESS_PROBABILITY = 1e-30
#: Fewest records expected in each part.
FEWEST_RECORDS = 10

VALIDATION_RECORDS = {"rest": "the records outside the subset", "subset": "some of the subset"}


@dataclass(frozen=True)
class InSubset(Validation):
    """Validation inside a Poisson sample.

    Each record joins the sample independently, with probability ``fraction``.
    """

    inside: Validation
    fraction: float

    def exposures(self) -> tuple[Exposure, ...]:
        """All the ways in which one run may use one record of the subset."""
        return self.inside.exposures()

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return self.draw(n_samples, random_bytes)[1]

    def draw(self, n_samples: int, random_bytes: RandomBytes) -> tuple[np.ndarray, list[Fold]]:
        """Draw the members, shape (n_samples,), and the folds inside as indices of all records."""
        joins = _who_joins(n_samples, self.fraction, random_bytes)
        members = numbers_where(joins)
        inside = self.inside.folds(members.size, random_bytes)
        return joins, [(members[train], members[test]) for train, test in inside]

    @property
    def taking_part(self) -> float:
        return self.fraction


@dataclass(frozen=True)
class OnTheRest(Validation):
    """Validation outside the subset.

    The subset trains, and each other record validates with probability ``share``.
    """

    fraction: float
    share: float

    def exposures(self) -> tuple[Exposure, ...]:
        scored = (1.0 - self.fraction) * self.share
        return (Exposure(1, 0, self.fraction), Exposure(0, 1, scored))

    def folds(self, n_samples: int, random_bytes: RandomBytes) -> list[Fold]:
        return self.draw(n_samples, random_bytes)[1]

    def draw(self, n_samples: int, random_bytes: RandomBytes) -> tuple[np.ndarray, list[Fold]]:
        """Draw the members, shape (n_samples,), and the one fold as indices of all records."""
        joins = _who_joins(n_samples, self.fraction, random_bytes)
        members, outsiders = numbers_where(joins), numbers_where(~joins)
        if self.share < 1.0:
            outsiders = outsiders[bernoulli(outsiders.size, self.share, random_bytes)]
        return joins, [(members, outsiders)]


def most_members(n_samples: int, fraction: float) -> int:
    """Public bound on the size of the subset.

    A Poisson sample exceeds it with probability EXCESS_PROBABILITY at most.
    """
    return int(binom.isf(EXCESS_PROBABILITY, n_samples, fraction))


def _who_joins(n_samples: int, fraction: float, random_bytes: RandomBytes) -> np.ndarray:
    """Draw the Poisson sample by an independent coin for each record.

    A sample above the bound is drawn again. Whatever the others do, a record joins with probability
    ``fraction``, or, where they reach the bound, not at all.
    """
    while True:
        joins: np.ndarray = bernoulli(n_samples, fraction, random_bytes)
        if np.count_nonzero(joins) <= most_members(n_samples, fraction):
            return joins


def members_of(
    validate_on: str, cv: Any, fraction: float, n_samples: int | None, public: bool
) -> InSubset | OnTheRest:
    """Make the validation of a subset search from its parameters.

    With public data all of the subset trains.
    """
    if validate_on not in VALIDATION_RECORDS:
        raise ValueError(
            f"Found validate_on={validate_on!r}; 'rest' (candidates are scored on records outside "
            f"the subset) or 'subset' (on some of the subset) is "
            f"needed.{did_you_mean(validate_on, VALIDATION_RECORDS)}"
        )
    if cv is not None and not isinstance(cv, numbers.Real):
        raise ValueError(
            f"Found cv={cv!r}: which records are in the subset, and how many, is random and "
            "secret, so there is nothing to split by index. Use cv as a fraction or a number of "
            "folds (the latter with validate_on='subset'), or X_public and y_public."
        )
    if public or validate_on == "subset":
        inside = HoldOut() if cv is None and not public else validation_of(cv, n_samples, public)
        return InSubset(inside, fraction)
    share = 1.0 if cv is None else cv
    if not isinstance(share, (float, np.floating)) or not 0 < share <= 1:
        raise ValueError(
            f"Found cv={cv!r} with validate_on='rest', where all of the subset trains: a float in "
            "(0, 1] is needed, the share of the other records that validates. Leave cv=None for "
            "all of them, or use validate_on='subset', where cv may be a number of folds."
        )
    return OnTheRest(fraction, float(share))


def check_handful(members: InSubset | OnTheRest, train_on: str, n: float) -> None:
    """Raise if a needed part is expected to hold next to nothing of ``n`` records."""
    fraction = members.fraction
    parts = {"subset": fraction * n}
    if train_on == "rest":
        parts["rest"] = (1.0 - fraction) * n
    if isinstance(members, OnTheRest):
        parts["validating part of the rest"] = (1.0 - fraction) * members.share * n
    for name, expected in parts.items():
        if expected < FEWEST_RECORDS:
            remedy = "Give a larger" if name == "subset" else "Give a smaller"
            raise ValueError(
                f"Found subset_fraction={fraction!r} of {n:g} records (n_samples={n:g}): the "
                f"{name} is expected to hold {expected:.3g} of them, fewer than {FEWEST_RECORDS}. "
                f"{remedy} subset_fraction, or use DPRandomSearchCV."
            )


# --- what it costs --------------------------------------------------------------------------------

#: Mean number of runs where the user gives none, and the longest list whose candidates may then all
#: run once.
USUAL_RUNS, SHORT_LIST = 10, 10
#: ``subset_fraction="auto"``: between the first two, with this number of expected records × ε in
#: the subset.
LEAST_FRACTION, LARGEST_FRACTION, ENOUGH_RECORDS = 0.1, 0.3, 1500.0
TRAINING_RECORDS = {"rest": "the rest", "all": "all records"}
#: Factor of the noise of a score on the rest over the noise that would match the final training, so
#: that its loss is a small part of the training's: both costs compose. The noise depends on the
#: final training alone, so on no secret.
FACTOR_OF_SCORES = 24
#: This factor where candidates are as private as the final training and nothing is amplified: a
#: record of the rest then always pays less than a record of the subset.
FACTOR_AT_NO_COST = 3
#: Relative gap within which two costs count as equal.
EQUAL_GAP = 0.02


def cost_of_subset(
    promises: SpaceGuarantee,
    scoring: Guarantee | None,
    final: SpaceGuarantee,
    *,
    distribution: CountDistribution,
    exhaustive: bool,
    members: InSubset | OnTheRest,
    train_on: Literal["rest", "all"],
    told_its_size: bool,
    replaced: bool,
) -> tuple[Component, ...]:
    """Cost of the runs on the subset, the best of which is found, and of one training on more.

    Parameters
    ----------
    promises, scoring, final
        As for ``Cost``.
    distribution : CountDistribution
        Distribution of the number of runs K.
    exhaustive : bool
        Whether each candidate of a list runs once, so that the runs compose.
    members : InSubset or OnTheRest
    train_on : {"rest", "all"}
    told_its_size : bool
        Whether the estimator can be told how many records to expect, so that it does not count
        them.
    replaced : bool
        Whether the guarantee, which is for the presence of a record, is stated for a replaced
        record.
    """
    search: Callable[[Guarantee], Guarantee] = partial(best_of, count=distribution)
    train, trained, validated = final.worst, promises.trained, dict[str, Any]()
    if exhaustive:  # all of them are "one run"
        search, trained = compose, promises.each_once
        scoring = None if scoring is None else compose(*[scoring] * int(distribution.mean))
    if isinstance(members, OnTheRest):
        assert scoring is not None
        tune = search(trained(1))
        # scores lose next to nothing, and exact bounds would double the time
        validated = {"validate": search(scoring)._roughly(), "validated_share": members.share}
    else:
        tune = search_guarantee(trained, scoring, members.exposures(), search)
    secret = secret_membership(told_its_size, train.neighboring)
    total = subset_then_train(
        tune, train, members.fraction, train_on, secret_membership=secret, **validated
    )
    if replaced:
        total = as_replace_one(total)
    name = _name_of_release(distribution, exhaustive, members, train_on)
    return (Component(name=name, guarantee=total),)


def _name_of_release(
    distribution: CountDistribution, exhaustive: bool, members: InSubset | OnTheRest, train_on: str
) -> str:
    validated, runs = "", f"the best of K runs, K ~ {distribution!r}"
    if isinstance(members, OnTheRest):
        share = "" if members.share == 1.0 else f"a share of {members.share:g} of "
        validated = f", validate on {share}the rest"
    if exhaustive:
        runs = f"the best of {distribution.mean:.0f} candidates, each of which runs once"
    return (
        f"tune on a subset (each with probability {members.fraction:g}) by {runs}{validated}, "
        f"then train on {TRAINING_RECORDS[train_on]}"
    )


def secret_membership(told_its_size: bool, relation: Neighboring) -> bool:
    """Return whether membership in the subset stays secret.

    No model uses the number of its records.
    """
    return relation != "zero_out" or told_its_size


def default_fraction(n: float | None, epsilon: float | None) -> float:
    """Share of ``n`` records that tunes by default, from public numbers.

    It is larger where n·ε is small, and 0.1 if n or ε is unknown.
    """
    if n is None or epsilon is None:
        return LEAST_FRACTION
    return min(max(ENOUGH_RECORDS / (n * epsilon), LEAST_FRACTION), LARGEST_FRACTION)


@lru_cache(maxsize=64)
def share_at_no_cost(
    epsilon: float, delta: float, distribution: CountDistribution, exhaustive: bool, pure: bool
) -> float:
    """Privacy loss of one candidate, as a share of the loss that a whole search has.

    The loss of the search is (``epsilon``, ``delta``). Where membership in the subset is known, a
    record pays for the search or for the final training, never for both: with this share both cost
    the same. Losses are those of pure or of Gaussian mechanisms.
    """

    def one_run(loss: float) -> Guarantee:
        return PureDP(epsilon=loss) if pure else GaussianDP(mu=loss)

    def search(loss: float) -> Guarantee:
        if exhaustive:
            return compose(*[one_run(loss)] * int(distribution.mean))
        return best_of(one_run(loss), distribution)

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
    """Return whether running each candidate once costs about as little as the usual number of runs.

    There are ``number`` candidates. Both costs are those of a Gaussian mechanism that promises
    (``epsilon``, ``delta``), which is close to what one run of a search with this total promises.
    The answer depends on public numbers alone.
    """
    if number > SHORT_LIST:
        return False
    mu = calibrate(lambda mu: GaussianDP(mu=mu), epsilon, delta)
    one_run = GaussianDP(mu=mu, neighboring=relation)

    def cost(tune: Guarantee) -> float:
        total = subset_then_train(tune, one_run, fraction, train_on, secret_membership=secret)
        return float(total.epsilon_at(delta))

    usual = cost(best_of(one_run, Geometric(USUAL_RUNS)))
    return cost(compose(*[one_run] * number)) <= usual * (1.0 + EQUAL_GAP)
