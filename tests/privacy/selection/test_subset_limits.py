"""Theorem 2 as a guarantee: its limits, its numerics, how it combines, what it refuses."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    ApproxDP,
    GaussianDP,
    Geometric,
    Guarantee,
    MixedNeighborsError,
    NonPrivate,
    ProfileDP,
    PureDP,
    RenyiDP,
    best_of,
    calibrate,
    compose,
)
from sklearn_dpsearch.privacy.numerics.loss_distribution import LossDistribution
from sklearn_dpsearch.privacy.selection.subset import TheoremTwo, subset_then_train
from sklearn_dpsearch.privacy.selection.subset_pairs import (
    _log_sampled,
    average_delta,
    normalized,
    reversed_average_delta,
)
from tests.privacy import subset_search
from tests.privacy.brute_force import Mechanism, exact_pair, hockey_stick, random_mechanism
from tests.privacy.subset_search import VARIANTS, check, neighbours

SGD = DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)
DELTA = 1e-5


def theorem_two(tune: Guarantee, train: Guarantee, fraction: float, train_on: str) -> TheoremTwo:
    return TheoremTwo(tune=tune, train=train, fraction=fraction, train_on=train_on)


# --- limits -------------------------------------------------------------------------------------------------------


PARTS = [
    (best_of(PureDP(epsilon=0.4), Geometric(5)), PureDP(epsilon=0.5)),
    (ApproxDP(epsilon=1.5, delta=1e-6), ApproxDP(epsilon=0.5, delta=1e-7)),
    (ZCDP(rho=0.2), ZCDP(rho=0.05)),
    (GaussianDP(mu=1.2), GaussianDP(mu=0.4)),
    (
        RenyiDP(orders=np.arange(2, 64), epsilons=0.3 * np.arange(2, 64)),
        RenyiDP(orders=np.arange(2, 64), epsilons=0.05 * np.arange(2, 64)),
    ),
    pytest.param(
        (
            DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=500),
            DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=500),
        ),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: type(parts[1]).__name__)
@pytest.mark.parametrize("train_on", VARIANTS)
def test_total_answers_like_any_guarantee(parts, train_on: str) -> None:
    tune, train = parts
    total = subset_then_train(tune, train, 0.1, train_on)
    epsilon = total.epsilon_at(DELTA)
    assert total.delta_at(epsilon) <= DELTA
    assert epsilon == min(one.epsilon_at(DELTA) for one in total.bounds.values())
    assert total.bounds[total.tightest(DELTA)].epsilon_at(DELTA) == epsilon
    assert epsilon <= compose(tune, train).epsilon_at(DELTA)
    assert np.all(np.diff(total.delta_at(np.linspace(0, 8, 9))) <= 1e-15)
    assert (total.epsilon_at(0.0) == np.inf) == (train.pure_epsilon is None)


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: type(parts[1]).__name__)
@pytest.mark.parametrize("train_on", VARIANTS)
def test_an_empty_subset_leaves_the_training_alone(parts, train_on: str) -> None:
    tune, train = parts
    assert subset_then_train(tune, train, 0.0, train_on) is train
    nearly = subset_then_train(tune, train, 1e-9, train_on)
    assert nearly.epsilon_at(DELTA) == pytest.approx(train.epsilon_at(DELTA), rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: type(parts[1]).__name__)
def test_a_subset_of_all_records_is_tuning_alone_or_the_composition(parts) -> None:
    tune, train = parts
    assert subset_then_train(tune, train, 1.0, "rest") is tune
    assert subset_then_train(tune, train, 1.0, "all") == compose(tune, train)
    nearly = [theorem_two(tune, train, 1 - 1e-9, train_on).epsilon_at(DELTA) for train_on in VARIANTS]
    assert nearly[0] == pytest.approx(ProfileDP.from_pair(tune.pair).epsilon_at(DELTA), rel=5e-3)
    composed = compose(ProfileDP.from_pair(tune.pair), train).epsilon_at(DELTA)
    assert 0.985 * composed <= nearly[1] <= composed * (1 + 1e-6)  # one sum instead of two grids


@pytest.mark.parametrize("train", [PureDP(epsilon=0.5), GaussianDP(mu=0.4), SGD], ids=lambda one: type(one).__name__)
def test_tuning_that_looks_at_no_record_is_free(train: Guarantee) -> None:
    constant = PureDP(epsilon=0.0)
    for fraction in (0.1, 0.5):
        assert theorem_two(constant, train, fraction, "all").epsilon_at(DELTA) == pytest.approx(
            train.epsilon_at(DELTA), rel=1e-6
        )
        # Training on the rest is training on a random subset of the share 1 − q.
        on_the_rest = theorem_two(constant, train, fraction, "rest")
        amplified = theorem_two(train, constant, 1 - fraction, "all")
        assert on_the_rest.epsilon_at(DELTA) == pytest.approx(amplified.epsilon_at(DELTA), rel=1e-6)
        assert on_the_rest.epsilon_at(DELTA) < train.epsilon_at(DELTA)


def test_sampling_alone_amplifies_as_known() -> None:
    """(ε, δ) becomes (log(1 + q(e^ε − 1)), qδ)."""
    total = theorem_two(ApproxDP(epsilon=1.2, delta=1e-4), PureDP(epsilon=0.0), 0.2, "all")
    assert total.epsilon_at(2.001e-5) == pytest.approx(np.log1p(0.2 * np.expm1(1.2)), rel=1e-6)
    assert subset_then_train(PureDP(epsilon=1.2), PureDP(epsilon=0.0), 0.2, "all").epsilon_at(0.0) == pytest.approx(
        np.log1p(0.2 * np.expm1(1.2)), rel=1e-9
    )


@pytest.mark.slow
def test_both_parts_are_interchangeable_when_the_rest_is_used() -> None:
    one, other = GaussianDP(mu=1.3), DPSGD(noise_multiplier=1.0, sample_rate=0.02, steps=100)
    for epsilon in (0.1, 0.5, 2.0):
        assert theorem_two(one, other, 0.3, "rest").delta_at(epsilon) == pytest.approx(
            theorem_two(other, one, 0.7, "rest").delta_at(epsilon), rel=1e-9
        )


@pytest.mark.parametrize("train_on", VARIANTS)
def test_no_promise_fails_as_often_as_it_sees_the_record(train_on: str) -> None:
    private = GaussianDP(mu=0.3)
    assert subset_then_train(NonPrivate(), private, 0.01, train_on).delta_at(40.0) == pytest.approx(0.01)
    nothing = subset_then_train(private, NonPrivate(), 0.01, train_on)
    assert nothing.delta_at(40.0) == pytest.approx(0.99 if train_on == "rest" else 1.0)
    assert subset_then_train(NonPrivate(), NonPrivate(), 0.5, train_on).epsilon_at(0.9) == np.inf


@pytest.mark.slow
def test_average_is_the_same_whichever_part_is_summed() -> None:
    rng = np.random.default_rng(31)
    for _ in range(200):
        one, other = (exact_pair(random_mechanism(rng)) for _ in range(2))
        weight, epsilon = float(rng.uniform(0.01, 0.99)), float(rng.uniform(-2, 4))
        for function, direction in ((average_delta, "removed"), (reversed_average_delta, "added")):
            first, second = (normalized(getattr(pair, direction)) for pair in (one, other))
            assert function(first, second, weight, 1 - weight, epsilon) == pytest.approx(
                function(second, first, 1 - weight, weight, epsilon), rel=1e-9, abs=1e-10
            )


@pytest.mark.parametrize("fraction", [1e-9, 3e-11, 1.1393127483383263e-13, 1e-20])
def test_tiny_fraction_keeps_its_digits_whichever_part_is_summed(fraction: float) -> None:
    """Beyond all finite losses the total fails as often as the parts do on average."""
    exact = Fraction(fraction) * Fraction(0.1) + (1 - Fraction(fraction)) * Fraction(1e-12)
    for losses in ((24.0, 0.0), (0.0, 24.0)):
        tune, train = (ApproxDP(epsilon=one, delta=delta) for one, delta in zip(losses, (0.1, 1e-12)))
        stated = theorem_two(tune, train, fraction, "rest").delta_at(60.0)
        assert exact <= Fraction(stated)
        assert stated == pytest.approx(float(exact), abs=1.01e-12)


@pytest.mark.parametrize("fraction", [1e-12, 0.3, 1.0 - 1e-4, 1.0 - 1e-10, 1.0 - 1e-13])
def test_log_ratio_of_a_subset_keeps_its_digits(fraction: float) -> None:
    losses = np.array([-900.0, -50.0, -30.0, -20.0, -1.0, -1e-9, 1e-9, 0.4, 3.0, 30.0, 900.0])
    with mpmath.workdps(40):
        exact = [float(mpmath.log1p(mpmath.mpf(fraction) * mpmath.expm1(mpmath.mpf(float(one))))) for one in losses]
    assert _log_sampled(losses, fraction) == pytest.approx(exact, rel=1e-14)


@pytest.mark.slow
def test_normalizing_keeps_an_exact_pair_and_bounds_the_mass_of_a_loose_one() -> None:
    rng, grid = np.random.default_rng(32), np.linspace(-6, 6, 61)
    for _ in range(100):
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


@pytest.mark.slow
@pytest.mark.parametrize("train_on", VARIANTS)
def test_total_composes_and_calibrates(train_on: str) -> None:
    def total(epsilon: float) -> Guarantee:
        return subset_then_train(ApproxDP(epsilon=3 * epsilon, delta=1e-6), PureDP(epsilon=epsilon), 0.1, train_on)

    epsilon = calibrate(total, 1.0, DELTA, (0.1, 2.0), tolerance=1e-2)
    assert 0.98 < total(epsilon).epsilon_at(DELTA) <= 1.0
    one, later = total(epsilon), GaussianDP(mu=0.2)
    both = compose(one, later)
    assert max(one.epsilon_at(DELTA), later.epsilon_at(DELTA)) < both.epsilon_at(DELTA)
    assert both.epsilon_at(DELTA) < one.epsilon_at(DELTA / 2) + later.epsilon_at(DELTA / 2)


@pytest.mark.slow
def test_composition_of_totals_is_above_the_exact_product() -> None:
    rng = np.random.default_rng(33)
    for train_on in VARIANTS:
        search, fraction = subset_search.of_one_record(rng), 0.3
        total = theorem_two(search.tune_guarantee, search.train_guarantee, fraction, train_on)
        p, q = neighbours(search, fraction, train_on)
        check(compose(total, total), np.outer(p, p).ravel(), np.outer(q, q).ravel())


# --- neighbouring relations and errors ----------------------------------------------------------------------------


@pytest.mark.parametrize("train_on", VARIANTS)
def test_neighbouring_relation_survives_and_mixed_ones_are_refused(train_on: str) -> None:
    for relation in ("add_remove", "zero_out", "replace_one"):
        parts = [PureDP(epsilon=one, neighboring=relation) for one in (1.0, 0.4)]
        total = subset_then_train(*parts, 0.1, train_on)
        assert total.neighboring == relation
        assert all(one.neighboring == relation for one in total.bounds.values())
        assert (relation == "replace_one") == ("Theorem 2" not in total.bounds)
    with pytest.raises(MixedNeighborsError, match="PureDP.*zero_out.*PureDP.*add_remove"):
        subset_then_train(PureDP(epsilon=1.0, neighboring="zero_out"), PureDP(epsilon=1.0), 0.1, train_on)


def test_pure_total_of_a_changed_record_is_the_largest_or_the_sum() -> None:
    tune, train = (PureDP(epsilon=one, neighboring="replace_one") for one in (1.0, 0.4))
    assert subset_then_train(tune, train, 0.1, "rest").epsilon_at(0.0) == 1.0
    assert subset_then_train(tune, train, 0.1, "all").epsilon_at(0.0) == pytest.approx(1.4, rel=1e-15)


@pytest.mark.parametrize(
    ("fraction", "train_on", "message"),
    [(-0.1, "rest", "0 <= fraction <= 1"), (1.1, "all", "0 <= fraction <= 1"), (0.1, "both", 'train_on to be "rest"')],
)
def test_bad_parameters_say_what_was_expected(fraction: float, train_on, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        subset_then_train(PureDP(epsilon=1.0), PureDP(epsilon=1.0), fraction, train_on)
