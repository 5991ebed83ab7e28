"""Theorem 6: any prices bound the loss of any order; good ones come close to what some order loses."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.privacy import (
    DPSGD,
    Binomial,
    CountLaw,
    Fixed,
    GaussianDP,
    Geometric,
    Guarantee,
    Poisson,
    ProfileDP,
    PureDP,
    best_of,
    compose,
    witness_epsilon,
)
from sklearn_dpsearch.privacy.selection import prices
from sklearn_dpsearch.privacy.selection.best_of import theorem_1
from sklearn_dpsearch.privacy.selection.prices import Gains, Ground, Priced, Room, best_room, bound_by, total
from tests.privacy import brute_force
from tests.privacy.brute_force import Mechanism, Violation, all_orders, check, random_law, random_mechanism

EPSILONS = (0.0, 0.2, 0.7, 1.5, 4.0)
SGD = DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=5000)


def exact_loss(one: Mechanism, law: CountLaw, epsilon: float) -> float:
    p, q = (brute_force.release(law, side, one.scores) for side in (one.p, one.q))
    return brute_force.hockey_stick(p, q, epsilon)


def in_pieces(rng: np.random.Generator, one: Mechanism) -> Mechanism:
    """The same laws; the score tosses coins, so that parts of one outcome have many places in the order."""
    number = rng.integers(1, 9, one.p.size)
    shares = np.concatenate([rng.dirichlet(np.ones(n)) for n in number])
    p, q = np.repeat(one.p, number) * shares, np.repeat(one.q, number) * shares
    return Mechanism(p, q, rng.permutation(p.size))


def best_of_many_orders(rng: np.random.Generator, one: Mechanism, law: CountLaw, epsilon: float) -> float:
    """The largest loss of some orders, of which a part is improved by moving single pieces."""
    pieces = in_pieces(rng, one)
    best, scores = 0.0, pieces.scores
    for _ in range(30):
        order = np.argsort(scores)
        moved = np.delete(order, at := int(rng.integers(order.size)))
        moved = np.insert(moved, int(rng.integers(order.size)), order[at])
        tried = np.argsort(moved)
        loss = exact_loss(Mechanism(pieces.p, pieces.q, tried), law, epsilon)
        if loss >= best:
            best, scores = loss, tried
    return best


def light_law(rng: np.random.Generator) -> CountLaw:
    return [Poisson(float(rng.uniform(1, 60))), Binomial(int(rng.integers(2, 60)), 0.5), Fixed(int(rng.integers(2, 30)))][
        int(rng.integers(3))
    ].at_least_one()


def ground_of(one: Mechanism, law: CountLaw) -> Ground:
    pld = brute_force.loss_distribution(one.p, one.q)
    return Ground.of(pld, law, theorem_1(pld, law))


def any_prices(rng: np.random.Generator, room: Room, epsilon: float) -> float:
    """The bound by prices of which nothing is good, on any slope."""
    gains = Gains(room, float(np.exp(epsilon)))
    unit = float(np.max(room.ground.ours)) * 10.0 ** rng.uniform(-4, 0)
    given = unit * rng.exponential(1.0, gains.above.size) * (rng.random(gains.above.size) < 0.7)
    priced = Priced(prices._integral(given, gains.above), *gains.left(given))
    return total(room, gains.c, priced)


def check_many(cases: int, seed: int, any_law: bool = False) -> float:
    """The bound by any prices and by good ones, for random mechanisms in both directions; tightest ratio."""
    rng = np.random.default_rng(seed)
    tightest = 0.0
    for _ in range(cases):
        one = random_mechanism(rng)
        law, epsilon = random_law(rng) if any_law else light_law(rng), float(rng.choice(EPSILONS))
        for side in (one, one.reversed):
            exact, ground = best_of_many_orders(rng, side, law, epsilon), ground_of(side, law)
            room = Room(ground, float(np.exp(rng.normal(0.3, 1.0))))
            bounds = [bound_by(best_room(ground, epsilon), epsilon)]
            if room.whole > 0:
                bounds += [bound_by(room, epsilon), any_prices(rng, room, epsilon)]
            if exact > min(bounds) + 1e-13:
                raise Violation(f"{exact:.10g} > {bounds}: {side}, {law}, {epsilon}, {room.slope}")
            tightest = max(tightest, exact / bounds[0] if bounds[0] > 1e-9 else 0.0)
    return tightest


@pytest.mark.parametrize("cases", [20, pytest.param(brute_force.size(1500, 120), marks=pytest.mark.slow)])
def test_bound_by_any_prices_is_never_below_the_exact_loss(cases: int) -> None:
    assert 0.75 < check_many(cases, seed=cases) <= 1.0 + 1e-9


def test_it_holds_for_every_law_of_the_number_of_runs() -> None:
    check_many(10, seed=1, any_law=True)
