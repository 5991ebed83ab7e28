"""Theorem 4: never below the exact loss of a small search that validates on the rest; exact for ratios in one order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sklearn_dpsearch.privacy import (
    DPSGD,
    ApproxDP,
    GaussianDP,
    Geometric,
    Guarantee,
    MixedNeighborsError,
    NonPrivate,
    ProfileDP,
    PureDP,
    best_of,
    compose,
    envelope,
    mixture,
)
from sklearn_dpsearch.privacy.numerics.loss_distribution import LossDistribution
from sklearn_dpsearch.privacy.selection import subset_validated
from sklearn_dpsearch.privacy.selection.subset import TheoremTwo, subset_then_train
from sklearn_dpsearch.privacy.selection.subset_coupled import Pieces, _from_the_far_end, coupled, with_against_without
from sklearn_dpsearch.privacy.selection.subset_validated import TheoremFour
from tests.privacy import brute_force, validated_search
from tests.privacy.brute_force import Violation, exact_pair, hockey_stick, random_mechanism
from tests.privacy.subset_search import EPSILONS, VARIANTS, check
from tests.privacy.validated_search import Search, neighbours

SGD = DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)
DELTA = 1e-5


def theorem_four(search: Search, fraction: float, share: float, train_on: str) -> TheoremFour:
    return TheoremFour(
        tune=search.tune_guarantee,
        validate=search.validate_guarantee,
        train=search.train_guarantee,
        fraction=fraction,
        share=share,
        train_on=train_on,
    )


def check_many(number: int, seed: int, kind=validated_search.of_one_record) -> float:
    """Theorem 4 for random searches of a kind; the tightest ratio met."""
    rng = np.random.default_rng(seed)
    tightest = 0.0
    for _ in range(number):
        search, fraction = kind(rng), float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.8, 0.97]))
        share = float(rng.choice([0.05, 0.4, 0.9, 1.0]))
        for train_on in VARIANTS:
            bound = theorem_four(search, fraction, share, train_on)
            tightest = max(tightest, check(bound, *neighbours(search, fraction, share, train_on)))
    return tightest


# --- oracle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_bound_is_never_below_the_exact_loss(seed: int) -> None:
    tightest = check_many(brute_force.size(4000, 40), seed)
    print(f"tightest exact/stated delta: {tightest}")
    assert 1.0 - 1e-9 < tightest <= 1.0 + 1e-9


@pytest.mark.slow
def test_bound_holds_for_several_records_and_training_that_depends_on_tuning() -> None:
    tightest = check_many(brute_force.size(1500, 12), 2, validated_search.of_many_records)
    print(f"tightest exact/stated delta: {tightest}")
    assert 0.8 < tightest <= 1.0 + 1e-9


@pytest.mark.slow
def test_bound_holds_for_the_best_of_k_runs() -> None:
    """The runs' outcomes have one score order; both parts of tuning are stated by Theorem 1."""
    tightest = check_many(brute_force.size(200, 5), 3, validated_search.of_best_runs)
    print(f"tightest exact/stated delta: {tightest}")
    assert 0.8 < tightest <= 1.0 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("train_on", VARIANTS)
def test_bound_is_exact_where_both_ratios_rise_together(train_on: str) -> None:
    """Then the release itself is the pair that the theorem speaks of, in both directions."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        search = validated_search.of_one_record(rng, "together")
        fraction, share = float(rng.uniform(0.01, 0.99)), float(rng.uniform(0.01, 1.0))
        bound = theorem_four(search, fraction, share, train_on)
        p, q = neighbours(search, fraction, share, train_on)
        for index, (one, other) in enumerate([(p, q), (q, p)]):
            exact = [hockey_stick(one, other, epsilon) for epsilon in EPSILONS]
            assert bound.in_direction(index, EPSILONS) == pytest.approx(exact, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("train_on", VARIANTS)
def test_pair_is_above_the_release_at_every_real_epsilon(train_on: str) -> None:
    rng, grid = np.random.default_rng(5), np.linspace(-5, 5, 41)
    for _ in range(brute_force.size(40, 1)):
        search = validated_search.of_one_record(rng)
        fraction, share = float(rng.uniform(0.05, 0.9)), float(rng.uniform(0.1, 1.0))
        pair = theorem_four(search, fraction, share, train_on).pair
        p, q = neighbours(search, fraction, share, train_on)
        for stated, one, other in ((pair.removed, p, q), (pair.added, q, p)):
            exact = np.array([hockey_stick(one, other, epsilon) for epsilon in grid])
            assert np.all(stated.delta_at(grid) >= exact - 1e-12)


@pytest.mark.slow
def test_bound_holds_for_parts_known_only_by_their_largest_loss_and_is_reached() -> None:
    rng = np.random.default_rng(6)
    for _ in range(12):
        a, b, d, fraction, share = *rng.uniform(0, 3, 3), *rng.uniform(0.01, 0.99, 2)
        distributions = [np.array([1.0, np.exp(-one)]) / (1 + np.exp(-one)) for one in (a, b, d)]
        # Four outcomes of tuning. Under the distribution without the record the ratios of both parts are largest
        # together.
        high = sorted((1 / (1 + np.exp(one)), one) for one in (a, b))
        weights = np.diff([0.0, high[0][0], high[1][0], 1.0])
        ends = np.cumsum(weights)
        tuned, scored = (
            weights * np.exp(np.where(ends <= 1 / (1 + np.exp(one)) * (1 + 1e-12), one, -one)) for one in (a, b)
        )
        nobody, somebody = frozenset[int](), frozenset([0])
        search = Search(
            {(nobody, nobody): weights, (somebody, nobody): tuned, (nobody, somebody): scored},
            [{somebody: distributions[2], nobody: distributions[2][::-1]}] * 3,
            1,
            *(PureDP(epsilon=float(one)) for one in (a, b, d)),
        )
        for train_on in VARIANTS:
            bound = subset_then_train(
                search.tune_guarantee,
                search.train_guarantee,
                float(fraction),
                train_on,
                validate=search.validate_guarantee,
                validated_share=float(share),
            )
            p, q = neighbours(search, float(fraction), float(share), train_on)
            check(bound, p, q)
            exact = float(np.max(np.abs(np.log(p / q))))
            assert exact - 1e-12 <= bound.epsilon_at(0.0) <= exact * (1 + 1e-10) + 1e-12
            assert bound.delta_at(bound.epsilon_at(0.0)) == 0.0


# --- coins that are known, and records that change ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_the_average_over_known_membership_is_never_below_the_exact_loss(relation: str) -> None:
    """Parts that may use who does what in any way: other distributions for each use of each of two slots."""
    rng = np.random.default_rng(7)
    tightest = 0.0
    for _ in range(brute_force.size(1500, 10)):
        uses = list(product(range(3), repeat=2))
        sizes = (int(rng.integers(2, 4)), 3)
        tune, train = (
            {use: [_of_size(rng, size) for _ in range(number)] for use in uses}
            for size, number in ((sizes[0], 1), (sizes[1], sizes[0]))
        )
        fraction, share = float(rng.choice([0.05, 0.3, 0.8])), float(rng.choice([0.3, 1.0]))
        promises = [_promise([tune[use][0] for use in uses if use[-1] == role], relation) for role in (0, 1)]
        promises.append(_promise([one for use in uses for one in train[use]], relation))
        for train_on in VARIANTS:
            distributions = _with_and_without(tune, train, fraction, share, train_on)
            total = subset_then_train(
                promises[0],
                promises[2],
                fraction,
                train_on,
                validate=promises[1],
                validated_share=share,
                secret_membership=False,
            )
            assert list(total.bounds) == ["mixture"]  # type: ignore[attr-defined]
            tightest = max(tightest, check(total, *distributions))
    print(f"tightest exact/stated delta: {tightest}")
    assert 0.3 < tightest <= 1.0 + 1e-9


def _of_size(rng: np.random.Generator, outcomes: int):
    while True:
        one = random_mechanism(rng)
        if one.p.size == outcomes:
            return one


def _promise(mechanisms: list, relation: str) -> Guarantee:
    return envelope([ProfileDP.from_pair(exact_pair(one), relation) for one in mechanisms])


def _with_and_without(tune, train, fraction, share, train_on):
    """Distributions of (tuning, training) with the last slot's record as it is and as it is on the neighbour."""
    chances = (fraction, (1 - fraction) * share, (1 - fraction) * (1 - share))
    distributions = [np.zeros(1), np.zeros(1)]
    for use, (first,) in tune.items():
        weight = float(np.prod([chances[role] for role in use]))
        tuned, trained = use[-1] < 2, train_on == "all" or use[-1] > 0
        for k, present in enumerate((True, False)):
            outer = first.p if present or not tuned else first.q
            rows = [p * (one.p if present or not trained else one.q) for p, one in zip(outer, train[use])]
            distributions[k] = distributions[k] + weight * np.concatenate(rows)
    return distributions


def test_a_changed_record_costs_the_average_over_its_uses() -> None:
    tune, validate, train = (PureDP(epsilon=one, neighboring="replace_one") for one in (2.0, 1.5, 1.0))
    for train_on, inside in (("rest", tune), ("all", compose(tune, train))):
        total = subset_then_train(tune, train, 0.1, train_on, validate=validate, validated_share=0.3)
        expected = mixture([inside, compose(validate, train), train], [0.1, 0.27, 0.63])
        assert total.tightest(0.0) == "mixture"
        for delta in (0.0, 1e-3):
            assert total.epsilon_at(delta) == expected.epsilon_at(delta)


# --- limits -------------------------------------------------------------------------------------------------------


PARTS = [
    (best_of(PureDP(epsilon=0.4), Geometric(5)), PureDP(epsilon=0.5)),
    (ApproxDP(epsilon=1.5, delta=1e-6), ApproxDP(epsilon=0.5, delta=1e-7)),
    (GaussianDP(mu=1.2), GaussianDP(mu=0.4)),
]


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: type(parts[1]).__name__)
@pytest.mark.parametrize("train_on", VARIANTS)
def test_scores_that_tell_nothing_leave_theorem_two(parts, train_on: str) -> None:
    tune, train = parts
    bound = TheoremFour(
        tune=tune, validate=PureDP(epsilon=0.0), train=train, fraction=0.1, share=0.7, train_on=train_on
    )
    known = TheoremTwo(tune=tune, train=train, fraction=0.1, train_on=train_on)
    assert bound.epsilon_at(DELTA) == pytest.approx(known.epsilon_at(DELTA), rel=1e-5)
    total = subset_then_train(tune, train, 0.1, train_on, validate=PureDP(epsilon=0.0))
    assert total == subset_then_train(tune, train, 0.1, train_on)


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: type(parts[1]).__name__)
@pytest.mark.parametrize("train_on", VARIANTS)
def test_total_rises_with_the_share_and_stays_below_scores_for_everybody(parts, train_on: str) -> None:
    tune, train = parts
    validate = GaussianDP(mu=0.2)
    totals = [
        subset_then_train(tune, train, 0.1, train_on, validate=validate, validated_share=share).epsilon_at(DELTA)
        for share in (1e-6, 1.0)
    ]
    nobody = subset_then_train(tune, train, 0.1, train_on).epsilon_at(DELTA)
    assert totals[0] == pytest.approx(nobody, rel=1e-3)
    assert nobody <= totals[0] < totals[1] < compose(tune, validate, train).epsilon_at(DELTA)


def test_total_at_the_ends_is_that_of_the_parts_that_see_the_record() -> None:
    tune, validate, train = GaussianDP(mu=1.2), GaussianDP(mu=0.3), GaussianDP(mu=0.4)
    assert subset_then_train(tune, train, 1.0, "rest", validate=validate) is tune
    assert subset_then_train(tune, train, 1.0, "all", validate=validate) == compose(tune, train)
    for train_on in VARIANTS:
        nobody = subset_then_train(tune, train, 0.0, train_on, validate=validate)
        assert nobody == compose(validate, train)
        nearly = subset_then_train(tune, train, 1e-9, train_on, validate=validate)
        assert nearly.epsilon_at(DELTA) == pytest.approx(nobody.epsilon_at(DELTA), rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("train_on", VARIANTS)
def test_total_answers_like_any_guarantee(train_on: str) -> None:
    tune, validate, train = GaussianDP(mu=1.2), GaussianDP(mu=0.1), GaussianDP(mu=0.4)
    total = subset_then_train(tune, train, 0.1, train_on, validate=validate)
    epsilon = total.epsilon_at(DELTA)
    assert total.delta_at(epsilon) <= DELTA
    assert epsilon == min(one.epsilon_at(DELTA) for one in total.bounds.values())  # type: ignore[attr-defined]
    assert total.tightest(DELTA) == "Theorem 4"  # type: ignore[attr-defined]
    assert np.all(np.diff(total.delta_at(np.linspace(0, 8, 9))) <= 1e-15)
    both = compose(total, GaussianDP(mu=0.2))
    assert epsilon < both.epsilon_at(DELTA) < total.epsilon_at(DELTA / 2) + GaussianDP(mu=0.2).epsilon_at(DELTA / 2)


@pytest.mark.slow
def test_gaussian_parts_agree_with_a_quadrature() -> None:
    """All three ratios over fine grids of normal outcomes, the first two of one outcome."""
    first, second, third, q, share = 1.1, 0.3, 0.5, 0.1, 0.6
    z = np.linspace(-9, 10, 2001)
    weight = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    x, v, y = (np.exp(mu * z - 0.5 * mu**2) for mu in (first, second, third))
    both = weight[:, None] * weight[None]
    for train_on in VARIANTS:
        bound = TheoremFour(
            tune=GaussianDP(mu=first),
            validate=GaussianDP(mu=second),
            train=GaussianDP(mu=third),
            fraction=q,
            share=share,
            train_on=train_on,
        )
        tuned, scored = q * x[:, None], ((1 - q) * (share * v + 1 - share))[:, None]
        ratio = tuned + scored * y if train_on == "rest" else (tuned + scored) * y
        for epsilon in (0.2, 0.8, 1.5):
            c = np.exp(epsilon)
            exact = [np.sum(both * np.maximum(ratio - c, 0)), np.sum(both * np.maximum(1 - c * ratio, 0))]
            for index, value in enumerate(exact):
                stated = float(bound.in_direction(index, np.array([epsilon]))[0])
                assert value * (1 - 1e-4) - 1e-15 <= stated <= value * (1 + 2e-3) + 1e-12


@pytest.mark.parametrize("train_on", VARIANTS)
def test_no_promise_fails_as_often_as_it_sees_the_record(train_on: str) -> None:
    private = GaussianDP(mu=0.3)
    total = subset_then_train(private, private, 0.1, train_on, validate=NonPrivate(), validated_share=0.5)
    assert total.delta_at(40.0) == pytest.approx(0.45)
    total = subset_then_train(NonPrivate(), private, 0.1, train_on, validate=private)
    assert total.delta_at(40.0) == pytest.approx(0.1)
    total = subset_then_train(private, NonPrivate(), 0.1, train_on, validate=private)
    assert total.delta_at(40.0) == pytest.approx(0.9 if train_on == "rest" else 1.0)


def test_relations_do_not_mix_and_shares_are_checked() -> None:
    one, other = PureDP(epsilon=1.0), PureDP(epsilon=1.0, neighboring="replace_one")
    with pytest.raises(MixedNeighborsError):
        subset_then_train(one, one, 0.1, validate=other)
    for share in (0.0, 1.5):
        with pytest.raises(ValueError, match="validated_share"):
            subset_then_train(one, one, 0.1, validate=one, validated_share=share)


@pytest.mark.slow
def test_total_of_a_search_that_is_validated_on_the_rest() -> None:
    """Figures of docs/theory/subset_costs.md: DP-SGD, Geometric(15), a tenth, total ÷ one run."""
    tune, one_run = best_of(SGD, Geometric(15)), SGD.epsilon_at(DELTA)
    for noise, ratio in ((33.0, 1.02), (100.0, 0.976)):
        validate = best_of(GaussianDP(mu=1.0 / noise), Geometric(15))
        total = subset_then_train(tune, SGD, 0.1, validate=validate).epsilon_at(DELTA)
        assert ratio - 0.005 < total / one_run <= ratio


# --- the checker can fail -----------------------------------------------------------------------------------------


def _joined(tune, validate, fraction, share, train_on, index, weights, x, v) -> Pieces:
    """The line of the theorem for some other joint distribution of both ratios."""
    log_x = np.log(fraction) + x
    log_v = np.log1p(-fraction) + np.logaddexp(np.log1p(-share), np.log(share) + v)
    a, b = (log_x, log_v) if train_on == "rest" else (np.full_like(x, -np.inf), np.logaddexp(log_x, log_v))
    known = coupled(tune, validate, fraction, share, train_on, index)
    return Pieces(weights, weights, a, b, known.infinity)


def _steps(pld: LossDistribution, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and log-ratios without the record, from the far end on."""
    found = _from_the_far_end(pld, index)
    weights = np.diff(found.ends, prepend=0.0)
    return np.append(weights, max(1.0 - weights.sum(), 0.0)), np.append(found.log_ratios, -np.inf)


def _independent(tune, validate, fraction, share, train_on, index) -> Pieces:
    """Every atom of one part with every atom of the other."""
    (first, x), (second, v) = (_steps(one, index) for one in (tune, validate))
    both = (one.ravel() for one in np.meshgrid(x, v, indexing="ij"))
    return _joined(tune, validate, fraction, share, train_on, index, np.outer(first, second).ravel(), *both)


def _opposite(tune, validate, fraction, share, train_on, index) -> Pieces:
    """The largest ratio of one part with the smallest of the other."""
    (first, x), (second, v) = _steps(tune, index), [one[::-1] for one in _steps(validate, index)]
    ends = np.unique(np.concatenate([np.cumsum(first), np.cumsum(second)]))
    places = [np.minimum(np.searchsorted(np.cumsum(w), ends), w.size - 1) for w in (first, second)]
    weights = np.diff(ends, prepend=0.0)
    return _joined(tune, validate, fraction, share, train_on, index, weights, x[places[0]], v[places[1]])


def _product_forgotten(tune, validate, fraction, share, train_on, index) -> Pieces:
    """A record that validates pays for the score, and not for the training that follows."""
    found = coupled(tune, validate, fraction, share, train_on, index)
    silent = (1 - fraction) * (1 - share)
    if train_on == "all":
        return found
    scored = np.maximum(np.exp(found.b) - silent, 0.0)
    a, b = np.log(np.exp(found.a) + scored), np.full_like(found.b, np.log(silent))
    return Pieces(found.weights, found.above, a, b, found.infinity)


def _weights_swapped(tune, validate, fraction, share, train_on, index) -> Pieces:
    return coupled(validate, tune, fraction, share, train_on, index)


def _wrong_way_round(tune, validate, fraction, share, train_on, index) -> Pieces:
    return coupled(tune, validate, fraction, share, train_on, 1 - index)


def _infinity_forgotten(tune, validate, fraction, share, train_on, index) -> Pieces:
    found = coupled(tune, validate, fraction, share, train_on, index)
    return Pieces(found.weights, found.above, found.a, found.b, 0.0)


def _everybody_rarely(tune, validate, fraction, share, train_on, index) -> Pieces:
    """The share of those that validate taken twice."""
    return coupled(tune, validate, fraction, share**2, train_on, index)


BROKEN = [
    _independent,
    _opposite,
    _product_forgotten,
    _weights_swapped,
    _wrong_way_round,
    _infinity_forgotten,
    _everybody_rarely,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_accountant_is_caught(monkeypatch: pytest.MonkeyPatch, broken) -> None:
    monkeypatch.setattr(subset_validated, "coupled", broken)
    with np.errstate(all="ignore"), pytest.raises(Violation):
        check_many(100, seed=8)


def test_one_direction_for_both_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subset_validated, "without_against_with", with_against_without)
    with np.errstate(all="ignore"), pytest.raises(Violation):
        check_many(100, seed=9)
