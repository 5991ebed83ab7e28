"""Theorems 2 and 4: never below the exact loss of a small search on a random subset, and exact
given its parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._numerics.loss_distribution import (
    DominatingPair,
    LossDistribution,
    normalized,
)
from sklearn_dpsearch.privacy._selection import subset
from sklearn_dpsearch.privacy._selection.subset import TheoremFour, coupled, delta_removed
from tests.privacy import brute_force, subset_search
from tests.privacy.brute_force import (
    Mechanism,
    Violation,
    exact_pair,
    hockey_stick,
    random_mechanism,
    small_mechanism,
)
from tests.privacy.subset_search import EPSILONS, VARIANTS, Search, check, neighbours

SGD = dp.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)
DELTA = 1e-5


def theorem(search: Search, fraction: float, train_on: str, share: float = 1.0) -> TheoremFour:
    """Theorem 4, or Theorem 2 where nothing validates."""
    parts = {name: getattr(search, f"{name}_guarantee") for name in ("tune", "validate", "train")}
    return TheoremFour(**parts, fraction=fraction, share=share, train_on=train_on)


def theorem_two(
    tune: dp.Guarantee, train: dp.Guarantee, fraction: float, train_on: str
) -> TheoremFour:
    return TheoremFour(tune=tune, train=train, fraction=fraction, train_on=train_on)


def check_many(
    number: int, seed: int, kind=subset_search.of_one_record, accounted: str = ""
) -> float:
    """The theorem for random searches of a kind; the tightest ratio met."""
    rng = np.random.default_rng(seed)
    tightest = 0.0
    for _ in range(number):
        search, fraction = kind(rng), float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.8, 0.97]))
        share = float(rng.choice([0.05, 0.4, 0.9, 1.0]))
        for train_on in VARIANTS:
            bound = theorem(search, fraction, accounted or train_on, share)
            tightest = max(tightest, check(bound, *neighbours(search, fraction, train_on, share)))
    return tightest


# --- oracle ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [subset_search.of_one_record, subset_search.silent])
def test_bound_is_never_below_the_exact_loss(kind) -> None:
    assert 1.0 - 1e-9 < check_many(brute_force.size(4000, 30), 0, kind) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("kind", "number"), [(subset_search.of_many_records, 1500), (subset_search.of_best_runs, 200)]
)
@pytest.mark.slow
def test_bound_holds_for_several_records_and_for_the_best_of_k_runs(kind, number: int) -> None:
    """Training depends on tuning; the runs' outcomes have one score order, and Theorem 1 states
    both parts."""
    assert 0.8 < check_many(brute_force.size(number, 8), 2, kind) <= 1.0 + 1e-9


@pytest.mark.parametrize("order", ["together", "silent"])
@pytest.mark.parametrize("train_on", VARIANTS)
def test_bound_is_exact_where_both_ratios_rise_together(train_on: str, order: str) -> None:
    """Then the release itself is the pair that the theorem speaks of, in both directions, and its
    pair is above."""
    rng, grid = np.random.default_rng(4), np.linspace(-5, 5, 41)
    for number in range(brute_force.size(40, 8)):
        search = subset_search.of_one_record(rng, order)
        fraction, share = float(rng.uniform(0.01, 0.99)), float(rng.uniform(0.01, 1.0))
        bound = theorem(search, fraction, train_on, share)
        p, q = neighbours(search, fraction, train_on, share)
        for index, (one, other) in enumerate([(p, q), (q, p)]):
            exact = [hockey_stick(one, other, epsilon) for epsilon in EPSILONS]
            assert bound.direction(index)(EPSILONS) == pytest.approx(exact, rel=1e-9, abs=1e-10)
            if number == 0:
                stated = (bound.pair.removed, bound.pair.added)[index].delta_at(grid)
                assert np.all(
                    stated >= [hockey_stick(one, other, epsilon) - 1e-12 for epsilon in grid]
                )


@pytest.mark.parametrize("share", [None, 0.4])
def test_bound_holds_for_parts_known_only_by_their_largest_loss_and_is_reached(share: float | None):
    rng = np.random.default_rng(6)
    for _ in range(3):
        a, b, d, fraction = *rng.uniform(0, 3, 3), float(rng.uniform(0.01, 0.99))
        b = 0.0 if share is None else b
        distributions = [np.array([1.0, np.exp(-one)]) / (1 + np.exp(-one)) for one in (a, b, d)]
        # Without the record the ratios of both parts are largest together, in outcomes of this
        # probability.
        ends = np.array([*sorted(1 / (1 + np.exp(one)) for one in (a, b)), 1.0])
        weights = np.diff(ends, prepend=0.0)
        tuned, scored = (
            weights * np.exp(np.where(ends <= 1 / (1 + np.exp(one)) * (1 + 1e-12), one, -one))
            for one in (a, b)
        )
        nobody, somebody = frozenset[int](), frozenset([0])
        search = Search(
            {(nobody, nobody): weights, (somebody, nobody): tuned, (nobody, somebody): scored},
            [{somebody: distributions[2], nobody: distributions[2][::-1]}] * 3,
            1,
            *(dp.PureDP(epsilon=float(one)) for one in (a, b, d)),
        )
        given = {"validate": dp.PureDP(epsilon=float(b)), "validated_share": share}
        given = {} if share is None else given
        for train_on in VARIANTS:
            bound = dp.subset_then_train(
                search.tune_guarantee, search.train_guarantee, fraction, train_on, **given
            )
            p, q = neighbours(search, fraction, train_on, share or 1.0)
            check(bound, p, q)
            exact = float(np.max(np.abs(np.log(p / q))))
            assert exact - 1e-12 <= bound.epsilon_at(0.0) <= exact * (1 + 1e-10) + 1e-12
            assert bound.delta_at(bound.epsilon_at(0.0)) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("train_on", VARIANTS)
def test_gaussian_parts_agree_with_a_quadrature(train_on: str) -> None:
    """All three ratios over fine grids of normal outcomes, the first two of one outcome."""
    mu, q, share = (1.1, 0.3, 0.5), 0.1, 0.6
    z = np.linspace(-9, 10, 2001)
    weight = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    x, v, y = (np.exp(one * z - 0.5 * one**2) for one in mu)
    both = weight[:, None] * weight[None]
    tune, validate, train = (dp.GaussianDP(mu=one) for one in mu)
    options = {"fraction": q, "share": share, "train_on": train_on}
    bound = TheoremFour(tune=tune, validate=validate, train=train, **options)
    tuned, scored = q * x[:, None], ((1 - q) * (share * v + 1 - share))[:, None]
    ratio = tuned + scored * y if train_on == "rest" else (tuned + scored) * y
    for epsilon in (0.2, 0.8, 1.5):
        c = np.exp(epsilon)
        exact = [
            np.sum(both * np.maximum(ratio - c, 0)),
            np.sum(both * np.maximum(1 - c * ratio, 0)),
        ]
        for index, value in enumerate(exact):
            stated = float(bound.direction(index)(np.array([epsilon]))[0])
            assert value * (1 - 1e-4) - 1e-15 <= stated <= value * (1 + 2e-3) + 1e-12


@pytest.mark.slow
def test_composition_of_totals_is_above_the_exact_product() -> None:
    rng = np.random.default_rng(33)
    for train_on in VARIANTS:
        search = subset_search.of_one_record(rng)
        total = theorem(search, 0.3, train_on, 0.7)
        p, q = neighbours(search, 0.3, train_on, 0.7)
        check(dp.compose(total, total), np.outer(p, p).ravel(), np.outer(q, q).ravel())


# --- coins that are known, and records that change ------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_the_average_over_known_membership_is_never_below_the_exact_loss(relation: str) -> None:
    """Parts that may use who does what in any way: other distributions for each use of each of two
    slots."""
    rng = np.random.default_rng(7)
    tightest = 0.0
    for _ in range(brute_force.size(1500, 10)):
        uses = list(product(range(3), repeat=2))
        sizes = (int(rng.integers(2, 4)), 3)
        tune, train = (
            {use: [small_mechanism(rng, (size,)) for _ in range(number)] for use in uses}
            for size, number in ((sizes[0], 1), (sizes[1], sizes[0]))
        )
        fraction, share = float(rng.choice([0.05, 0.3, 0.8])), float(rng.choice([0.3, 1.0]))
        promises = [
            _promise([tune[use][0] for use in uses if use[-1] == role], relation) for role in (0, 1)
        ]
        promises.append(_promise([one for use in uses for one in train[use]], relation))
        for train_on in VARIANTS:
            given = {"validate": promises[1], "validated_share": share, "secret_membership": False}
            total = dp.subset_then_train(promises[0], promises[2], fraction, train_on, **given)
            assert list(total.bounds) == ["mixture"]  # type: ignore[attr-defined]
            tightest = max(
                tightest, check(total, *_with_and_without(tune, train, fraction, share, train_on))
            )
    assert 0.3 < tightest <= 1.0 + 1e-9


def _promise(mechanisms: list, relation: str) -> dp.Guarantee:
    return dp.envelope([dp.ProfileDP.from_pair(exact_pair(one), relation) for one in mechanisms])


def _with_and_without(tune, train, fraction, share, train_on):
    """Distributions of (tuning, training) with the last slot's record as it is and as it is on the
    neighbour."""
    chances = (fraction, (1 - fraction) * share, (1 - fraction) * (1 - share))
    distributions = [np.zeros(1), np.zeros(1)]
    for use, (first,) in tune.items():
        weight = float(np.prod([chances[role] for role in use]))
        tuned, trained = use[-1] < 2, train_on == "all" or use[-1] > 0
        for k, present in enumerate((True, False)):
            outer = first.p if present or not tuned else first.q
            pairs = zip(outer, train[use])
            rows = [p * (one.p if present or not trained else one.q) for p, one in pairs]
            distributions[k] = distributions[k] + weight * np.concatenate(rows)
    return distributions


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_a_changed_record_and_known_membership_cost_the_average_over_the_coin(relation: str):
    tune, validate, train = (
        dp.PureDP(epsilon=one, neighboring=relation) for one in (2.0, 1.5, 1.0)
    )
    known = {"secret_membership": False} if relation == "zero_out" else {}
    for train_on, inside in (("rest", tune), ("all", dp.compose(tune, train))):
        totals = [
            dp.subset_then_train(tune, train, 0.1, train_on, **known),
            dp.subset_then_train(
                tune, train, 0.1, train_on, validate=validate, validated_share=0.3, **known
            ),
        ]
        averages = [
            dp.mixture([inside, train], [0.1, 0.9]),
            dp.mixture([inside, dp.compose(validate, train), train], [0.1, 0.27, 0.63]),
        ]
        for total, average in zip(totals, averages):
            assert total.tightest(0.0) == "mixture"
            expected = [average.epsilon_at(d) for d in (0.0, 1e-3)]
            assert [total.epsilon_at(d) for d in (0.0, 1e-3)] == expected


@pytest.mark.parametrize("train_on", VARIANTS)
def test_publishing_who_was_in_the_subset_costs_the_mixture_and_is_caught(train_on: str) -> None:
    rng, caught = np.random.default_rng(2), 0
    for _ in range(30):
        search = subset_search.of_one_record(rng, "silent")
        told = neighbours(search, 0.3, train_on, reveal=True)
        parts = search.tune_guarantee, search.train_guarantee
        check(dp.subset_then_train(*parts, 0.3, train_on, secret_membership=False), *told)
        try:
            check(theorem(search, 0.3, train_on), *told)
        except Violation:
            caught += 1
    assert caught


# --- limits ---------------------------------------------------------------------------------------


PARTS = [
    (dp.best_of(dp.PureDP(epsilon=0.4), dp.Geometric(5)), dp.PureDP(epsilon=0.5)),
    (dp.ApproxDP(epsilon=1.5, delta=1e-6), dp.ApproxDP(epsilon=0.5, delta=1e-7)),
    (dp.GaussianDP(mu=1.2), dp.GaussianDP(mu=0.4)),
]


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: type(parts[1]).__name__)
@pytest.mark.parametrize("train_on", VARIANTS)
def test_total_answers_like_any_guarantee(parts, train_on: str) -> None:
    tune, train = parts
    assert dp.subset_then_train(tune, train, 0.0, train_on) is train
    nearly = dp.subset_then_train(tune, train, 1e-9, train_on)
    assert nearly.epsilon_at(DELTA) == pytest.approx(train.epsilon_at(DELTA), rel=2e-3)
    nobody = dp.subset_then_train(tune, train, 0.1, train_on)
    actual = dp.subset_then_train(tune, train, 0.1, train_on, validate=dp.PureDP(epsilon=0.0))
    assert actual == nobody
    validate = dp.GaussianDP(mu=0.2)
    total = dp.subset_then_train(tune, train, 0.1, train_on, validate=validate)
    epsilon = total.epsilon_at(DELTA)
    assert total.delta_at(epsilon) <= DELTA
    assert epsilon == min(one.epsilon_at(DELTA) for one in total.bounds.values())
    assert nobody.epsilon_at(DELTA) <= epsilon < dp.compose(tune, validate, train).epsilon_at(DELTA)
    assert np.all(np.diff(total.delta_at(np.linspace(0, 8, 9))) <= 1e-15)


def test_a_subset_of_all_or_of_no_records_leaves_the_parts_that_see_the_record() -> None:
    tune, validate, train = dp.GaussianDP(mu=1.2), dp.GaussianDP(mu=0.3), dp.GaussianDP(mu=0.4)
    assert dp.subset_then_train(tune, train, 1.0, "rest", validate=validate) is tune
    expected = dp.compose(tune, train)
    assert dp.subset_then_train(tune, train, 1.0, "all", validate=validate) == expected
    for train_on in VARIANTS:
        expected = dp.compose(validate, train)
        assert dp.subset_then_train(tune, train, 0.0, train_on, validate=validate) == expected
    nearly = [
        theorem_two(tune, train, 1 - 1e-9, train_on).epsilon_at(DELTA) for train_on in VARIANTS
    ]
    assert nearly == pytest.approx(
        [tune.epsilon_at(DELTA), dp.compose(tune, train).epsilon_at(DELTA)], rel=5e-3
    )


def test_sampling_alone_amplifies_as_known() -> None:
    """(ε, δ) becomes (log(1 + q(e^ε − 1)), qδ); training on the rest alone is training on a
    sample."""
    nothing = dp.PureDP(epsilon=0.0)
    for total in (
        theorem_two(dp.ApproxDP(epsilon=1.2, delta=1e-4), nothing, 0.2, "all"),
        theorem_two(nothing, dp.ApproxDP(epsilon=1.2, delta=1e-4), 0.8, "rest"),
    ):
        assert total.epsilon_at(2.001e-5) == pytest.approx(np.log1p(0.2 * np.expm1(1.2)), rel=1e-6)
    pure = dp.subset_then_train(dp.PureDP(epsilon=1.2), nothing, 0.2, "all").epsilon_at(0.0)
    assert pure == pytest.approx(np.log1p(0.2 * np.expm1(1.2)), rel=1e-9)


@pytest.mark.parametrize("train_on", VARIANTS)
def test_no_promise_fails_as_often_as_it_sees_the_record(train_on: str) -> None:
    private = dp.GaussianDP(mu=0.3)
    total = dp.subset_then_train(
        private, private, 0.1, train_on, validate=dp.NonPrivate(), validated_share=0.5
    )
    assert total.delta_at(40.0) == pytest.approx(0.45)
    expected = pytest.approx(0.01)
    assert dp.subset_then_train(dp.NonPrivate(), private, 0.01, train_on).delta_at(40.0) == expected
    nothing = dp.subset_then_train(private, dp.NonPrivate(), 0.01, train_on)
    assert nothing.delta_at(40.0) == pytest.approx(0.99 if train_on == "rest" else 1.0)


@pytest.mark.parametrize("fraction", [1e-9, 3e-11, 1.1393127483383263e-13, 1e-20])
def test_tiny_fraction_keeps_its_digits(fraction: float) -> None:
    """Beyond all finite losses the total fails as often as the parts do on average."""
    exact = Fraction(fraction) * Fraction(0.1) + (1 - Fraction(fraction)) * Fraction(1e-12)
    for losses in ((24.0, 0.0), (0.0, 24.0)):
        tune, train = (
            dp.ApproxDP(epsilon=one, delta=delta) for one, delta in zip(losses, (0.1, 1e-12))
        )
        stated = theorem_two(tune, train, fraction, "rest").delta_at(60.0)
        assert exact <= Fraction(stated)
        assert stated == pytest.approx(float(exact), abs=1.01e-12)


def test_normalizing_keeps_an_exact_pair_and_bounds_the_mass_of_a_loose_one() -> None:
    rng, grid = np.random.default_rng(32), np.linspace(-6, 6, 61)
    for _ in range(30):
        one: Mechanism = random_mechanism(rng)
        pair = exact_pair(one).removed
        exact = np.array([hockey_stick(one.p, one.q, epsilon) for epsilon in grid])
        same = normalized(pair).delta_at(grid)
        assert np.all(same >= exact - 1e-15)
        assert same == pytest.approx(exact, abs=1e-9)
        # A loose bound: all masses a quarter too large, nothing known about impossible outcomes.
        loose = normalized(LossDistribution(pair.losses, 1.25 * pair.masses, 1.25 * pair.infinity))
        assert np.all(loose.delta_at(grid) >= exact - 1e-15)
        total_q = float(loose.masses @ np.exp(-loose.losses)) + float(loose.minus_infinity or 0.0)
        assert total_q == pytest.approx(1.0, abs=1e-9)
        if pair.infinity < 0.8:
            assert float(loose.masses.sum()) + loose.infinity == pytest.approx(1.0, abs=1e-9)


def test_relations_do_not_mix_and_parameters_are_checked() -> None:
    one, other = dp.PureDP(epsilon=1.0), dp.PureDP(epsilon=1.0, neighboring="replace_one")
    for given in ((one, other, {}), (one, one, {"validate": other})):
        with pytest.raises(dp.MixedNeighborsError):
            dp.subset_then_train(given[0], given[1], 0.1, **given[2])
    for given, message in (
        ({"fraction": -0.1}, "0 <= fraction <= 1"),
        ({"fraction": 0.1, "train_on": "both"}, 'train_on to be "rest"'),
        ({"fraction": 0.1, "validate": one, "validated_share": 0.0}, "validated_share"),
    ):
        with pytest.raises(ValueError, match=message):
            dp.subset_then_train(one, one, **given)


# --- the checker can fail -------------------------------------------------------------------------


def test_using_the_subset_again_without_composing_is_caught() -> None:
    """Training on all records, accounted as if it had used the rest."""
    with pytest.raises(Violation):
        check_many(50, seed=1, accounted="rest")


#: A function of the accountant, and what stands in its place.
BROKEN = {
    "weights swapped": ("coupled", lambda tune, validate, *rest: coupled(validate, tune, *rest)),
    "wrong way round": ("coupled", lambda *given: coupled(*given[:-1], 1 - given[-1])),
    "infinity forgotten": ("coupled", lambda *given: replace(coupled(*given), infinity=0.0)),
    "one direction for both": ("delta_added", delta_removed),
}


@pytest.mark.parametrize(("name", "broken"), BROKEN.values(), ids=BROKEN)
def test_a_broken_accountant_is_caught(monkeypatch: pytest.MonkeyPatch, name: str, broken) -> None:
    """Further ones are among the mutants: another coupling, and a record that pays for its score
    alone."""
    monkeypatch.setattr(subset, name, broken)
    with np.errstate(all="ignore"), pytest.raises(Violation):
        check_many(100, seed=8)


# --- the figures of the documentation -------------------------------------------------------------


@pytest.mark.slow
def test_geometric_distribution_keeps_the_total_near_one_run() -> None:
    """Total ÷ one run on all records (docs/theory/subset_costs.md), without and with scores on the
    rest."""
    tune, one_run = dp.best_of(SGD, dp.Geometric(15)), SGD.epsilon_at(DELTA)
    for train_on, ratio in (("rest", 0.96), ("all", 1.12)):
        actual = dp.subset_then_train(tune, SGD, 0.1, train_on).epsilon_at(DELTA) / one_run
        assert ratio - 0.02 < actual <= ratio
    for noise, ratio in ((33.0, 1.02), (100.0, 0.976)):
        validate = dp.best_of(dp.GaussianDP(mu=1.0 / noise), dp.Geometric(15))
        total = dp.subset_then_train(tune, SGD, 0.1, validate=validate).epsilon_at(DELTA)
        assert ratio - 0.005 < total / one_run <= ratio


@pytest.mark.slow
@pytest.mark.parametrize("train_on", VARIANTS)
def test_no_bound_can_be_below_what_tuning_alone_gives_away(train_on: str) -> None:
    """What tuning releases on the sampled subset is q·A + (1−q)·A' with the record: δ(ε) =
    q·δ_A(log(1 + (e^ε−1)/q)).

    ``witness`` is a δ_A that tuning over some DP-SGD run really has, whatever training does.
    """
    epsilon = 1.13
    one_run = dp.ProfileDP.from_pair(DominatingPair(SGD.pair.removed, SGD.pair.removed))
    certain = 0.1 * dp.witness(one_run, dp.Poisson(15), float(np.log1p(np.expm1(epsilon) / 0.1)))
    total = dp.subset_then_train(dp.best_of(SGD, dp.Poisson(15)), SGD, 0.1, train_on)
    assert DELTA < certain <= total.delta_at(epsilon)
