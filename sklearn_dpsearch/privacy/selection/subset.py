r"""Tune on a random subset, then train: Theorem 2 and the smallest of all known bounds.

Every record joins the subset independently with probability q. Let X and Y be the likelihood ratios (with the
record ÷ without it) of independent dominating pairs of tuning and of training.

**Theorem 2.** The release of both has the dominating likelihood ratio q·X + (1−q)·Y if the training uses the rest, and
(1−q+q·X)·Y if it uses all records:

    record in the first data set:   δ(ε) ≤ E (Z − e^ε)₊ ,     Z either ratio, under the distribution without the record,
    record in the second:           δ(ε) ≤ E (1 − e^ε·Z)₊ ,

counting infinite X and Y with the slopes of Z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from .._cached_property import cached_property
from .._checks import check_kind, plain_number, require
from .._types import Array
from ..guarantees.base import Guarantee, Statement, as_guarantee, check_parts
from ..guarantees.composition import compose, mixture, same_neighbors
from ..guarantees.tightest import SmallestOf
from ..guarantees.values import NonPrivate
from ..numerics.loss_distribution import ROUNDING, DominatingPair
from .subset_pairs import (
    average_delta,
    composed_delta,
    log_mean_exp,
    normalized,
    pair_of_directions,
    reversed_average_delta,
    sampled,
    thinned,
)
from .subset_published import published_subset
from .subset_validated import ValidatedOnTheRest, check_coins, check_presence

TrainOn = Literal["rest", "all"]
#: In compositions with other guarantees, the profile is evaluated from at most this many atoms of one part.
ATOMS = 500


# --- guarantees --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _TuneThenTrain(Guarantee):
    """Tuning on a random subset, then training."""

    tune: Guarantee
    train: Guarantee
    fraction: float
    train_on: TrainOn

    def _check(self) -> None:
        check_parts(self, tune=self.tune, train=self.train)
        check_coins(self.fraction, 1.0, self.train_on)


@dataclass(frozen=True, kw_only=True)
class TheoremTwo(_TuneThenTrain):
    """The guarantee of Theorem 2 alone, for 0 < fraction < 1 and neighbours that differ by the presence of a record."""

    def _check(self) -> None:
        super()._check()
        check_presence(self)

    @property
    def pure_epsilon(self) -> float | None:
        """log(q·e^a + (1−q)·e^b), respectively log(1−q+q·e^a) + b: the largest log-ratio, which is reached.

        That of the inverse ratio is never larger: −log E e^{−L} ≤ E L ≤ log E e^L.
        """
        tune, train = self.tune.pure_epsilon, self.train.pure_epsilon
        if tune is None or train is None:
            return None
        if self.train_on == "rest":
            return min(log_mean_exp(tune, train, self.fraction), max(tune, train))
        return (log_mean_exp(tune, 0.0, self.fraction) + train) * (1.0 + ROUNDING)

    @cached_property
    def _pairs(self) -> tuple[DominatingPair, DominatingPair]:
        tune, train = (
            DominatingPair(normalized(part.pair.removed), normalized(part.pair.added))
            for part in (self.tune, self.train)
        )
        return (tune if self.train_on == "rest" else sampled(tune, self.fraction)), train

    def in_direction(self, index: int, epsilon: Array, most: int | None = None) -> Array:
        """δ(ε) for a record removed (0) or added (1), from ``most`` atoms of the part that has fewer of them."""
        curve = self._curve(index, most)
        rows = [curve(float(e)) for e in np.ravel(epsilon)]
        return np.minimum(np.reshape(rows, np.shape(epsilon)) * (1.0 + ROUNDING), 1.0)

    def _curve(self, index: int, most: int | None) -> Callable[[float], float]:
        """ε ↦ δ(ε) in one direction, the part with fewer atoms summed."""
        tune, train = (pair.added if index else pair.removed for pair in self._pairs)
        swap = train.losses.size < tune.losses.size
        summed, other = (train, tune) if swap else (tune, train)
        summed = summed if most is None else thinned(summed, most)
        if self.train_on == "all":
            return partial(composed_delta, summed, other)
        weight, rest = self.fraction, 1.0 - self.fraction
        if swap:
            weight, rest = rest, weight
        return partial(reversed_average_delta if index else average_delta, summed, other, weight, rest)

    def _profile(self, epsilon: Array) -> Array:
        values = np.maximum(self.in_direction(0, epsilon), self.in_direction(1, epsilon))
        return self._none_beyond(epsilon, values)

    def _pair(self) -> DominatingPair:
        return pair_of_directions(partial(self.in_direction, most=ATOMS))


@dataclass(frozen=True, kw_only=True)
class SubsetThenTrain(SmallestOf, _TuneThenTrain):
    """Tuning on a random subset, then training: at each δ the smallest of Theorem 2 and the other bounds.

    Parameters
    ----------
    tune : Guarantee
        Guarantee of tuning for its own data set.
    train : Guarantee
        Guarantee of training for its own data set, at every result of tuning.
    fraction : float
        Probability with which each record joins the tuning subset.
    train_on : {"rest", "all"}
        Whether the training uses the records outside the subset or all.
    secret_membership : bool
        Whether membership in the subset matters only through the records themselves.
    """

    secret_membership: bool = True
    pair_of_all = False

    def _check(self) -> None:
        super()._check()
        check_kind("secret_membership", self.secret_membership, bool, "True or False")

    def _bounds(self) -> dict[str, Guarantee]:
        with_record = self.tune if self.train_on == "rest" else compose(self.tune, self.train)
        by_coin = {"mixture": mixture([with_record, self.train], [self.fraction, 1.0 - self.fraction])}
        if self.neighboring == "replace_one" or not self.secret_membership:
            return by_coin
        first = TheoremTwo(
            tune=self.tune,
            train=self.train,
            fraction=self.fraction,
            train_on=self.train_on,
            neighboring=self.neighboring,
        )
        rest = dict(published_subset(self.tune, self.train, self.fraction, self.train_on))
        return {"Theorem 2": first, **by_coin, **rest}

    def _pair(self) -> DominatingPair:
        return next(iter(self.bounds.values())).pair


def subset_then_train(
    tune: Guarantee | Statement,
    train: Guarantee | Statement,
    fraction: float,
    train_on: TrainOn = "rest",
    *,
    validate: Guarantee | Statement | None = None,
    validated_share: float = 1.0,
    secret_membership: bool = True,
) -> Guarantee:
    r"""Guarantee of tuning on a random subset and then training, releasing the results of both.

    Every record joins the subset independently, with secret membership (Poisson subsampling). Training may depend on
    the results of tuning (its hyperparameters, its model as a starting point), but otherwise not on the subset.

    Parameters
    ----------
    tune : Guarantee
        Guarantee of tuning for a record that trains candidates, e.g. ``best_of(one_run, count)``.
    train : Guarantee
        Guarantee of training for its own data set, at every result of tuning.
    fraction : float
        Probability with which a record joins the subset, 0 ≤ fraction ≤ 1.
    train_on : {"rest", "all"}
        Train on the records outside the subset, or on all.
    validate : Guarantee, optional
        Guarantee of tuning for a record outside the subset that validates candidates, e.g.
        ``best_of(one_score, count)``. None: nothing outside the subset is used for tuning.
    validated_share : float, default=1.0
        Probability with which a record outside the subset validates, 0 < validated_share ≤ 1.
    secret_membership : bool, default=True
        False if a part uses the number of its records, under ``"zero_out"``: the total is then the average over known
        membership.

    Returns
    -------
    Guarantee
        With ``bounds`` (all that apply) and ``tightest(delta)`` (the name of the one reported), unless one of the parts
        sees no record.

    Notes
    -----
    Theorems 2 and 4 of this library (docs/theory/subset.md, docs/theory/subset_rest.md); Koskela & Kulkarni (2023); Zhu
    & Wang (2019).

    The size of the subset is as secret as the membership. Under ``"add_remove"`` the parts' own guarantees ensure this.
    Under ``"zero_out"`` a record outside a part counts as replaced by nothing in its place: a part may use the number
    of all records n, and fraction·n, but not the number of its own records (else ``secret_membership=False``). Under
    ``"replace_one"`` the membership may be known, and the guarantee is the average over the changed record's
    membership: no amplification in ε.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP, Geometric, PureDP, best_of
    >>> one_run = GaussianDP(mu=0.5)
    >>> search = best_of(one_run, Geometric(10))
    >>> [round(one.epsilon_at(1e-5), 2) for one in (one_run, search)]
    [1.99, 3.01]
    >>> [round(subset_then_train(search, one_run, 0.1, on).epsilon_at(1e-5), 2) for on in ("rest", "all")]
    [1.94, 2.22]
    >>> round(subset_then_train(PureDP(epsilon=2.0), PureDP(epsilon=1.0), 0.1).epsilon_at(0.0), 4)
    1.1586

    With scores on the rest, which are eight times as noisy as the training:

    >>> scores = best_of(GaussianDP(mu=0.5 / 8), Geometric(10))
    >>> round(subset_then_train(search, one_run, 0.1, validate=scores).epsilon_at(1e-5), 2)
    2.1
    """
    fraction, validated_share = plain_number("fraction", fraction), plain_number("validated_share", validated_share)
    require(0 <= fraction <= 1, "0 <= fraction <= 1", fraction=fraction)
    require(train_on in ("rest", "all"), 'train_on to be "rest" or "all"', train_on=train_on)
    require(0 < validated_share <= 1, "0 < validated_share <= 1", validated_share=validated_share)
    check_kind("secret_membership", secret_membership, bool, "True or False")
    validation = None if validate is None else as_guarantee(validate, "validate")
    return _subset_then_train(
        as_guarantee(tune, "tune"),
        as_guarantee(train, "train"),
        fraction,
        train_on,
        validation,
        validated_share,
        secret_membership,
    )


@lru_cache(maxsize=64)
def _subset_then_train(
    tune: Guarantee,
    train: Guarantee,
    fraction: float,
    train_on: TrainOn,
    validate: Guarantee | None,
    share: float,
    secret_membership: bool,
) -> Guarantee:
    same_neighbors((tune, train) if validate is None else (tune, train, validate))
    if fraction == 1:
        return tune if train_on == "rest" else compose(tune, train)
    if validate is not None and validate.pure_epsilon != 0:
        if fraction == 0:
            return mixture([compose(validate, train), train], [share, 1.0 - share])
        return ValidatedOnTheRest(
            tune=tune,
            validate=validate,
            train=train,
            fraction=fraction,
            share=share,
            train_on=train_on,
            secret_membership=secret_membership,
            neighboring=train.neighboring,
        )
    if fraction == 0 or (train_on == "all" and isinstance(train, NonPrivate)):
        return train
    return SubsetThenTrain(
        tune=tune,
        train=train,
        fraction=fraction,
        train_on=train_on,
        secret_membership=secret_membership,
        neighboring=train.neighboring,
    )
