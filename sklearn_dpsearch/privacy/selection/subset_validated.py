r"""Tune on a random subset, validate on the rest, then train: Theorem 4.

Every record independently joins the subset with probability q, and otherwise validates with probability v. X, V and Y
are the likelihood ratios (with the record ÷ without it) of dominating pairs: of tuning if the record trains candidates,
of tuning if the record validates candidates, and of the final training.

**Theorem 4.** With U uniform on [0, 1], the quantile functions X(U) and V(U), and Y independent of U, the release has
the dominating likelihood ratio q·X(U) + (1−q)(1−v+v·V(U))·Y if the training uses the rest, and
(q·X(U) + (1−q)(1−v+v·V(U)))·Y if it uses all records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from .._checks import check_kind, require
from .._types import Array
from ..guarantees.base import Guarantee, check_parts
from ..guarantees.composition import compose, mixture
from ..guarantees.tightest import SmallestOf
from ..numerics.loss_distribution import ROUNDING, DominatingPair, LossDistribution
from .subset_coupled import Pieces, coupled, with_against_without, without_against_with
from .subset_pairs import log_mean_exp, normalized, pair_of_directions, thinned

TrainOn = Literal["rest", "all"]
#: Atoms of each part of tuning, and of both in compositions with other guarantees.
MOST, ATOMS = 4000, 300


def check_coins(fraction: float, share: float, train_on: object) -> None:
    """Raise ``ValueError`` unless the probabilities of joining and of validating are possible."""
    require(0 < fraction < 1, "0 < fraction < 1", fraction=fraction)
    require(0 < share <= 1, "0 < share <= 1", share=share)
    require(train_on in ("rest", "all"), 'train_on to be "rest" or "all"', train_on=train_on)


def check_presence(one: Guarantee) -> None:
    """Raise ``ValueError`` unless neighbours differ by the presence of a record."""
    presence = one.neighboring != "replace_one"
    require(presence, 'neighboring to be "add_remove" or "zero_out"', neighboring=one.neighboring)


@dataclass(frozen=True, kw_only=True)
class _TuneValidateTrain(Guarantee):
    """Tuning on a random subset, validated on the rest, then training."""

    tune: Guarantee
    validate: Guarantee
    train: Guarantee
    fraction: float
    share: float
    train_on: TrainOn

    def _check(self) -> None:
        check_parts(self, tune=self.tune, validate=self.validate, train=self.train)
        check_coins(self.fraction, self.share, self.train_on)


@dataclass(frozen=True, kw_only=True)
class TheoremFour(_TuneValidateTrain):
    """The guarantee of Theorem 4 alone, for 0 < fraction < 1 and neighbours that differ by the presence of a record."""

    def _check(self) -> None:
        super()._check()
        check_presence(self)

    @property
    def pure_epsilon(self) -> float | None:
        """log(q·e^a + (1−q)(1−v+v·e^b)·e^d), or log(q·e^a + (1−q)(1−v+v·e^b)) + d: the largest log-ratio."""
        a, b, d = self.tune.pure_epsilon, self.validate.pure_epsilon, self.train.pure_epsilon
        if a is None or b is None or d is None:
            return None
        validated = log_mean_exp(b, 0.0, self.share)
        if self.train_on == "rest":
            both = (validated + d) * (1.0 + ROUNDING)
            return min(log_mean_exp(a, both, self.fraction), max(a, both))
        return (min(log_mean_exp(a, validated, self.fraction), max(a, validated)) + d) * (1.0 + ROUNDING)

    def in_direction(self, index: int, epsilon: Array, most: int = MOST) -> Array:
        """δ(ε) for a record removed (0) or added (1), from ``most`` atoms of each part of tuning."""
        curve = without_against_with if index else with_against_without
        train, pieces = _loss(self.train, index), self._pieces(index, most)
        rows = [curve(pieces, train, float(e)) for e in np.ravel(epsilon)]
        return np.minimum(np.reshape(rows, np.shape(epsilon)) * (1.0 + ROUNDING), 1.0)

    def _pieces(self, index: int, most: int) -> Pieces:
        known = self.__dict__.setdefault("_known_pieces", {})
        if (index, most) not in known:
            tune, validate = (thinned(_loss(part, index), most) for part in (self.tune, self.validate))
            known[index, most] = coupled(tune, validate, self.fraction, self.share, self.train_on, index)
        found: Pieces = known[index, most]
        return found

    def _profile(self, epsilon: Array) -> Array:
        values = np.maximum(self.in_direction(0, epsilon), self.in_direction(1, epsilon))
        return self._none_beyond(epsilon, values)

    def _pair(self) -> DominatingPair:
        return pair_of_directions(partial(self.in_direction, most=ATOMS))


@dataclass(frozen=True, kw_only=True)
class ValidatedOnTheRest(SmallestOf, _TuneValidateTrain):
    """Tuning on a random subset, validated on the rest, then training: the smaller of Theorem 4 and the mixture.

    Parameters
    ----------
    tune, validate : Guarantee
        Guarantees of tuning for a record that trains the candidates, and for a record that validates them.
    train : Guarantee
        Guarantee of training for its own data set, at every result of tuning.
    fraction : float
        Probability with which each record joins the subset.
    share : float
        Probability with which each of the others validates.
    train_on : {"rest", "all"}
        Whether the training uses the records outside the subset or all.
    secret_membership : bool
        Whether the use of each record matters only through the records themselves.
    """

    secret_membership: bool = True
    pair_of_all = False

    def _check(self) -> None:
        super()._check()
        check_kind("secret_membership", self.secret_membership, bool, "True or False")

    def _bounds(self) -> dict[str, Guarantee]:
        q, v = self.fraction, self.share
        inside = self.tune if self.train_on == "rest" else compose(self.tune, self.train)
        uses = [inside, compose(self.validate, self.train), self.train]
        by_coin = {"mixture": mixture(uses, [q, (1.0 - q) * v, (1.0 - q) * (1.0 - v)])}
        if self.neighboring == "replace_one" or not self.secret_membership:
            return by_coin
        first = TheoremFour(
            tune=self.tune,
            validate=self.validate,
            train=self.train,
            fraction=q,
            share=v,
            train_on=self.train_on,
            neighboring=self.neighboring,
        )
        return {"Theorem 4": first, **by_coin}

    def _pair(self) -> DominatingPair:
        return next(iter(self.bounds.values())).pair


def _loss(part: Guarantee, index: int) -> LossDistribution:
    """The loss distribution of one part in one direction, with total masses of 1."""
    return normalized(part.pair.added if index else part.pair.removed)
