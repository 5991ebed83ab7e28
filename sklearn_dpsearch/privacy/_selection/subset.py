r"""Tune on a random subset, then train: Theorems 2 and 4, and the smallest of all known bounds.

Every record independently joins the subset with probability q, and otherwise validates with
probability v. X, V and Y are the likelihood ratios (with the record ÷ without it) of dominating
pairs: of tuning if the record trains candidates, of tuning if the record validates candidates, and
of the final training.

**Theorem 4.** With U uniform on [0, 1], the quantile functions X(U) and V(U), and Y independent of
U, the release has the dominating likelihood ratio q·X(U) + (1−q)(1−v+v·V(U))·Y if the training uses
the rest, and (q·X(U) + (1−q)(1−v+v·V(U)))·Y if it uses all records:

    record in the first data set:   δ(ε) ≤ E (Z − e^ε)₊ ,     Z either ratio, under the distribution
    without the record, record in the second:           δ(ε) ≤ E (1 − e^ε·Z)₊ .

**Theorem 2** is the case V = 1: nothing outside the subset is used for tuning.

X and V are functions of one output of tuning, with an unknown joint distribution. Of all couplings
with the same marginals the comonotone one (both are large together) has the largest expectations
above (docs/theory/subset_rest.md). For two discrete ratios that is a merge of their quantile
functions: exact, with as many pieces as there are atoms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._checks import Array, Neighboring, cached_property
from .._guarantees import base
from .._guarantees.base import Guarantee, SmallestOf, Statement
from .._guarantees.composition import compose, mixture
from .._guarantees.neighboring_relations import CONVERSIONS, ChangedRecord, as_replace_one
from .._guarantees.pure import PureDP
from .._guarantees.single_mechanisms import NonPrivate
from .._numerics.arithmetic import safe_exp
from .._numerics.loss_distribution import (
    ROUNDING,
    DominatingPair,
    LossDistribution,
    coarser,
    normalized,
)
from .best_of import BestOf
from .published_bounds import SUBSET

#: Losses beyond it count as infinite, which only raises a curve: products of their ratios would
#: overflow.
LARGEST_LOSS = 300.0


def thinned(pld: LossDistribution, atoms: int) -> LossDistribution:
    """Loss distribution spread on about ``atoms`` points if it has more: the curve only rises."""
    return pld if pld.losses.size <= atoms else coarser(pld, float(np.ptp(pld.losses)) / atoms)


def log_mean_exp(a: float, b: float, weight: float) -> float:
    """Logarithm of w·e^a + (1−w)·e^b for a, b ≥ 0, rounded up."""
    if max(a, b) < 30.0:
        mean = np.log1p(weight * np.expm1(a) + (1.0 - weight) * np.expm1(b))
    else:
        with np.errstate(divide="ignore"):
            mean = np.logaddexp(np.log(weight) + a, np.log1p(-weight) + b)
    return float(mean * (1.0 + ROUNDING))


@dataclass(frozen=True, eq=False)
class Pieces:
    """Random line Y ↦ e^a + e^b·Y of Theorem 4, in finitely many pieces.

    It is distributed as without the record.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Probabilities of the values, of which ``above`` counts those up to and with each, from the
        far end on.
    above : ndarray of shape (n,)
    a, b : ndarrays of shape (n,)
        Logarithms, −∞ for 0.
    infinity : float
        Probability, under the distribution with the record, of outcomes that are impossible without
        it at every Y.
    """

    weights: Array
    above: Array
    a: Array
    b: Array
    infinity: float


def coupled(
    tune: LossDistribution,
    validate: LossDistribution,
    fraction: float,
    share: float,
    train_on: str,
    index: int,
) -> Pieces:
    """Comonotone coupling of tuning and validation (Theorem 4).

    Its ratio is Z = q·X + (1−q)(1−v+v·V)·Y on the rest, and (q·X + (1−q)(1−v+v·V))·Y on all.

    Parameters
    ----------
    tune, validate : LossDistribution
        Normalized, and both in the direction ``index``: the record removed (0) or added (1).
    fraction, share : float
        q: probability of joining the subset; v: probability of validating otherwise.
    train_on : {"rest", "all"}
    index : {0, 1}
    """
    x, v = (_quantile_steps(pld, index) for pld in (tune, validate))
    ends = np.unique(np.concatenate([x.ends, v.ends, [1.0]]))
    with np.errstate(divide="ignore"):
        log_x = np.log(fraction) + x.at(ends)
        log_v = np.log1p(-fraction) + np.logaddexp(np.log1p(-share), np.log(share) + v.at(ends))
    a, b = log_x, log_v
    if train_on == "all":
        a, b = np.full_like(log_x, -np.inf), np.logaddexp(log_x, log_v)
    infinity = fraction * x.infinity + (1.0 - fraction) * share * v.infinity
    return Pieces(np.diff(ends, prepend=0.0), ends, a, b, infinity)


@dataclass(frozen=True, eq=False)
class _QuantileSteps:
    """Quantile function of the log-likelihood ratio, from its far end.

    It is a step function of the probability, without the record, of what is at least as far out.

    For the record removed the far end is that of the largest X, for the record added that of X = 0.
    """

    ends: Array
    log_ratios: Array
    infinity: float

    def at(self, ends: Array) -> Array:
        """Log-ratios of the steps that end at given probabilities.

        They are −∞ beyond the last step (where rounding left something: never too low).
        """
        steps: npt.NDArray[np.intp] = np.searchsorted(self.ends, ends, side="left")
        return np.append(self.log_ratios, -np.inf)[steps]


def _quantile_steps(pld: LossDistribution, index: int) -> _QuantileSteps:
    """Quantile function of a loss distribution in one direction."""
    losses, masses = pld.losses[::-1], pld.masses[::-1]
    far = losses > LARGEST_LOSS
    infinity = pld.infinity + float(masses[far].sum())
    losses, masses = losses[~far], masses[~far]
    if index:  # losses are −log X, and masses probabilities without the record
        ends = np.cumsum(np.append(infinity, masses))
        return _QuantileSteps(ends, np.append(-np.inf, -losses), 0.0)
    return _QuantileSteps(np.cumsum(masses * safe_exp(-losses)), losses, infinity)


def delta_in_direction(
    index: int, pieces: Pieces, train: LossDistribution, epsilon: Array
) -> Array:
    """δ(ε) of the subset search for a record removed (0) or added (1), rounded up."""
    curve = delta_added if index else delta_removed
    rows = [curve(pieces, train, float(value)) for value in np.ravel(epsilon)]
    return np.minimum(np.reshape(rows, np.shape(epsilon)) * (1.0 + ROUNDING), 1.0)


def delta_removed(pieces: Pieces, train: LossDistribution, epsilon: float) -> float:
    """δ(ε) of the subset search for a record removed.

    It is E (Z − c)₊, c = e^ε: e^b·H_k with k = (c − e^a)/e^b, and e^a + e^b − c where k ≤ 0; and
    the mass at infinity.
    """
    share = safe_exp(pieces.a - epsilon) * (1.0 + ROUNDING)  # e^a/c, up: k is rounded down
    inside = (share < 1.0) & (pieces.b > -np.inf)
    k = epsilon + np.log1p(-share[inside]) - pieces.b[inside] - ROUNDING
    values = np.zeros_like(share)
    values[inside] = np.exp(pieces.b[inside]) * train.delta_at(k)
    beyond = share >= 1.0
    with np.errstate(over="ignore", divide="ignore"):
        rise = np.exp(epsilon + np.log(share[beyond] - 1.0))  # 0 where e^a = c
    values[beyond] = np.minimum(rise, np.finfo(float).max) + np.exp(pieces.b[beyond])
    return pieces.infinity + _expected_value(pieces, values)


def delta_added(pieces: Pieces, train: LossDistribution, epsilon: float) -> float:
    """δ(ε) of the subset search for a record added.

    It is E (1 − c·Z)₊, c = e^ε: r·H_{c·e^b/r} with r = (1 − c·e^a)₊, for the pair of training
    (without, with).
    """
    remainder = -np.expm1(np.minimum(epsilon + pieces.a, 0.0)) * (1.0 + ROUNDING)
    inside = remainder > 0.0
    k = epsilon + pieces.b[inside] - np.log(remainder[inside]) - ROUNDING
    values = np.zeros_like(remainder)
    values[inside] = remainder[inside] * train.delta_at(k)
    return _expected_value(pieces, values)


def _expected_value(pieces: Pieces, values: Array) -> float:
    """Mean of nonnegative values over the pieces, rounded up.

    The values fall from the far end on. The mean includes the rounding errors of the sums behind
    the weights.
    """
    lost = np.finfo(float).eps * float(pieces.above @ values)
    return float(pieces.weights @ values) * (1.0 + ROUNDING) + lost


TrainOn = Literal["rest", "all"]
#: Atoms of each part of tuning; and of each in compositions, where the profile is evaluated at
#: POINTS points.
MOST_ATOMS, ATOMS, POINTS = 4000, 500, 800


# --- guarantees -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _TuneThenTrain(Guarantee):
    """Base class of guarantees of tuning on a subset, then training."""

    tune: Guarantee
    train: Guarantee
    fraction: float
    train_on: TrainOn
    validate: Guarantee | None = None
    share: float = 1.0

    def _check(self) -> None:
        validation = {} if self.validate is None else {"validate": self.validate}
        base.check_parts(self, tune=self.tune, train=self.train, **validation)
        _checks.require_in("(0, 1)", fraction=self.fraction)
        _checks.require_in("(0, 1]", share=self.share)
        valid = self.train_on in ("rest", "all")
        _checks.require(valid, 'train_on to be "rest" or "all"', train_on=self.train_on)


@dataclass(frozen=True, kw_only=True)
class TheoremFour(_TuneThenTrain):
    """Guarantee of a subset search by Theorem 4 alone.

    It holds for 0 < fraction < 1 and neighbours that differ by the presence of a record.
    """

    def _check(self) -> None:
        super()._check()
        presence, relations = self.neighboring != "replace_one", '"add_remove" or "zero_out"'
        _checks.require(presence, f"neighboring to be {relations}", neighboring=self.neighboring)

    @cached_property
    def _validated(self) -> Guarantee:
        """Guarantee of tuning for a record outside the subset."""
        if self.validate is None:
            return PureDP(epsilon=0.0, neighboring=self.neighboring)
        return self.validate

    @property
    def pure_epsilon(self) -> float | None:
        """Largest loss of tuning on a subset, then training.

        It is the largest log-ratio, log(q·e^a + (1−q)(1−v+v·e^b)·e^d) on the rest, or log(q·e^a +
        (1−q)(1−v+v·e^b)) + d on all.

        That of the inverse ratio is never larger: −log E e^{−L} ≤ E L ≤ log E e^L.
        """
        a, b, d = self.tune.pure_epsilon, self._validated.pure_epsilon, self.train.pure_epsilon
        if a is None or b is None or d is None:
            return None
        outside = log_mean_exp(b, 0.0, self.share)
        if self.train_on == "rest":
            outside = (outside + d) * (1.0 + ROUNDING) if outside else d
        # a mean, so at most the larger
        mixed = min(log_mean_exp(a, outside, self.fraction), max(a, outside))
        return mixed if self.train_on == "rest" else (mixed + d) * (1.0 + ROUNDING)

    def direction(self, index: int, atoms: int = MOST_ATOMS) -> Callable[[Array], Array]:
        """Profile ε ↦ δ of one direction, a record removed (0) or added (1).

        It is computed from ``atoms`` atoms of each part of tuning.
        """
        pairs = (part.pair for part in (self.tune, self._validated, self.train))
        tune, validate, train = (normalized((p.removed, p.added)[index]) for p in pairs)
        tuning = thinned(tune, atoms), thinned(validate, atoms)
        pieces = coupled(*tuning, self.fraction, self.share, self.train_on, index)
        return partial(delta_in_direction, index, pieces, train)

    @cached_property
    def _directions(self) -> tuple[Callable[[Array], Array], ...]:
        return self.direction(0), self.direction(1)

    def _profile(self, epsilon: Array) -> Array:
        values = np.max([delta(epsilon) for delta in self._directions], axis=0)
        return self._zero_beyond_largest_loss(epsilon, values)

    def _pair(self) -> DominatingPair:
        curves = self.direction(0, ATOMS), self.direction(1, ATOMS)
        return base.discretize_profiles(*curves, number=POINTS, adaptive=True)


@dataclass(frozen=True, kw_only=True)
class SubsetThenTrain(SmallestOf, _TuneThenTrain):
    """Guarantee of tuning on a random subset, then training.

    It is the smallest of Theorem 4 and the other bounds at each δ.

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
    validate : Guarantee, optional
        Guarantee of tuning for a record that validates the candidates.
    share : float
        Probability with which each record outside the subset validates.
    secret_membership : bool
        Whether the use of each record matters only through the records themselves.
    """

    secret_membership: bool = True
    pair_of_all = False

    def _check(self) -> None:
        super()._check()
        _checks.check_kind("secret_membership", self.secret_membership, bool, "True or False")

    def _bounds(self) -> dict[str, Guarantee | None]:
        by_coin: dict[str, Guarantee | None] = {"mixture": self._known_membership()}
        if self.neighboring == "replace_one" or not self.secret_membership:
            return by_coin
        parts = {field.name: getattr(self, field.name) for field in fields(TheoremFour)}
        first = TheoremFour(**parts)
        if self.validate is not None:
            return {"Theorem 4": first, **by_coin}
        name, published = SUBSET[self.train_on]
        by_curves = published(self.tune, self.train, self.fraction)
        return {"Theorem 2": first, **by_coin, name: by_curves}

    def _known_membership(self) -> Guarantee:
        """Guarantee of a subset search whose membership is known.

        It is the average over the coin of one record.
        """
        q, v = self.fraction, self.share
        inside = self.tune if self.train_on == "rest" else compose(self.tune, self.train)
        if self.validate is None:
            return mixture([inside, self.train], [q, 1.0 - q])
        outside = [compose(self.validate, self.train), self.train]
        return mixture([inside, *outside], [q, (1.0 - q) * v, (1.0 - q) * (1.0 - v)])


@dataclass(frozen=True, kw_only=True)
class ReplacedInSubset(SmallestOf):
    """Guarantee of a subset search for a replaced record.

    It is that of a chain of two steps, or of known membership.

    To replace a record is to remove one and to add another. Where membership in the subset is
    secret, each of these steps has the guarantee of Theorem 2 or 4, amplification included. The
    other bound fixes the coin of the replaced record, and is the average over it
    (docs/theory/subset_replaced.md).

    Parameters
    ----------
    presence : SubsetThenTrain
        Guarantee for the presence of a record.
    neighboring : {"replace_one"}
    """

    presence: SubsetThenTrain
    neighboring: Neighboring = "replace_one"
    pair_of_all = False

    def _check(self) -> None:
        needed = "the guarantee of a search on a subset"
        _checks.check_kind("presence", self.presence, SubsetThenTrain, needed)
        valid = self.neighboring == "replace_one"
        _checks.require(valid, 'neighboring="replace_one"', neighboring=self.neighboring)

    def _bounds(self) -> dict[str, Guarantee | None]:
        presence = self.presence
        tune, train = map(_part_for_replaced_record, (presence.tune, presence.train))
        validate = presence.validate and _part_for_replaced_record(presence.validate)
        parts: dict[str, Any] = {"tune": tune, "train": train, "validate": validate}
        membership = replace(presence, **parts, neighboring="replace_one")
        return {"chain": ChangedRecord(presence=presence), "known membership": membership}


def _part_for_replaced_record(part: Guarantee) -> Guarantee:
    """Guarantee of a part of the search for a replaced record.

    The best of K runs becomes the best of K runs for a replaced record.
    """
    if type(part) is BestOf:
        return replace(part, one_run=as_replace_one(part.one_run), neighboring="replace_one")
    return as_replace_one(part)


CONVERSIONS[SubsetThenTrain] = lambda presence: ReplacedInSubset(presence=presence)


# --- what is offered ------------------------------------------------------------------------------


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

    Every record joins the subset independently, with secret membership (Poisson subsampling).
    Training may depend on the results of tuning (its hyperparameters, its model as a starting
    point), but otherwise not on the subset.

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
        False if a part uses the number of its records, under ``"zero_out"``: the total is then the
        average over known membership.

    Returns
    -------
    Guarantee
        With ``bounds`` (all that apply) and ``tightest(delta)`` (the name of the one reported),
        unless one of the parts sees no record.

    Notes
    -----
    Theorems 2 and 4 of this library (docs/theory/subset.md, docs/theory/subset_rest.md); Koskela &
    Kulkarni (2023); Zhu & Wang (2019).

    The size of the subset is as secret as the membership. Under ``"add_remove"`` the parts' own
    guarantees ensure this. Under ``"zero_out"`` a record outside a part counts as replaced by
    nothing in its place: a part may use the number of all records n, and fraction·n, but not the
    number of its own records (else ``secret_membership=False``). Under ``"replace_one"`` the
    membership may be known, and the guarantee is the average over the changed record's membership:
    no amplification in ε.

    Examples
    --------
    >>> from sklearn_dpsearch.privacy import GaussianDP, Geometric, PureDP, best_of
    >>> one_run = GaussianDP(mu=0.5)
    >>> search = best_of(one_run, Geometric(10))
    >>> [round(guarantee.epsilon_at(1e-5), 2) for guarantee in (one_run, search)]
    [1.99, 3.01]
    >>> round(subset_then_train(search, one_run, 0.1).epsilon_at(1e-5), 2)
    1.94
    >>> round(subset_then_train(search, one_run, 0.1, "all").epsilon_at(1e-5), 2)
    2.22
    >>> round(subset_then_train(PureDP(epsilon=2.0), PureDP(epsilon=1.0), 0.1).epsilon_at(0.0), 4)
    1.1586

    With scores on the rest, which are eight times as noisy as the training:

    >>> scores = best_of(GaussianDP(mu=0.5 / 8), Geometric(10))
    >>> round(subset_then_train(search, one_run, 0.1, validate=scores).epsilon_at(1e-5), 2)
    2.1
    """
    fraction = _checks.number_in("[0, 1]", fraction=fraction)
    validated_share = _checks.number_in("(0, 1]", validated_share=validated_share)
    valid = train_on in ("rest", "all")
    _checks.require(valid, 'train_on to be "rest" or "all"', train_on=train_on)
    _checks.check_kind("secret_membership", secret_membership, bool, "True or False")
    tune, train = base.as_guarantee(tune, "tune"), base.as_guarantee(train, "train")
    validate = None if validate is None else base.as_guarantee(validate, "validate")
    base.check_same_neighbors((tune, train) if validate is None else (tune, train, validate))
    if fraction == 1:
        return tune if train_on == "rest" else compose(tune, train)
    if validate is None or validate.pure_epsilon == 0:
        validate, validated_share = None, 1.0
    if fraction == 0 and validate is not None:
        return mixture([compose(validate, train), train], [validated_share, 1.0 - validated_share])
    if fraction == 0 or (train_on == "all" and isinstance(train, NonPrivate)):
        return train
    return base.built_once(
        SubsetThenTrain,
        tune=tune,
        train=train,
        fraction=fraction,
        train_on=train_on,
        validate=validate,
        share=validated_share,
        secret_membership=secret_membership,
        neighboring=train.neighboring,
    )
