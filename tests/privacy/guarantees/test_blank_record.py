"""From a missing record to a blank one: the same numbers, at every depth of a guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    ApproxDP,
    GaussianDP,
    Geometric,
    Guarantee,
    GumbelNoise,
    LaplaceDP,
    NonPrivate,
    ProfileDP,
    PureDP,
    RenyiDP,
    as_zero_out,
    best_of,
    compose,
    envelope,
    mixture,
    noisy_max,
    subset_then_train,
    until_above,
)
from sklearn_dpsearch.privacy.spent import PrivacySpent

NET = DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=20)
CASES: dict[str, Guarantee] = {
    "pure": PureDP(epsilon=1.0), "approximate": ApproxDP(epsilon=1.0, delta=1e-6),
    "laplace": LaplaceDP(epsilon=1.0), "concentrated": ZCDP(rho=0.1),
    "gaussian": GaussianDP(mu=0.5),
    "renyi": RenyiDP(orders=np.array([2.0, 4.0]), epsilons=np.array([0.1, 0.3])), "net": NET,
    "none": NonPrivate(), "pair": ProfileDP.from_pair(GaussianDP(mu=0.5).pair),
    "composition": compose(NET, PureDP(epsilon=0.1)),
    "mixture": mixture([PureDP(epsilon=1.0), compose(NET, PureDP(epsilon=0.1))], [0.5, 0.5]),
    "envelope": envelope([GaussianDP(mu=0.1), PureDP(epsilon=0.3)]),
    "best": best_of(compose(NET, PureDP(epsilon=0.1)), Geometric(3)),
    "subset": subset_then_train(
        best_of(PureDP(epsilon=0.5), Geometric(3)), GaussianDP(mu=0.5), 0.2,
    ),
    "threshold": until_above(PureDP(epsilon=0.3), 0.1),
    "grid": noisy_max(5, 1, GumbelNoise(scale=2)),
}  # fmt: skip


def inside(value: object) -> Iterator[Guarantee]:
    """All guarantees in a value."""
    if isinstance(value, tuple):
        for one in value:
            yield from inside(one)
    if isinstance(value, Guarantee):
        yield value
        for field in fields(value) if is_dataclass(value) else ():
            yield from inside(getattr(value, field.name))


@pytest.mark.slow
@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_a_blank_record_costs_what_a_missing_one_does(given: Guarantee) -> None:
    found = as_zero_out(given)
    assert type(found) is type(given)
    assert {one.neighboring for one in inside(found)} == {"zero_out"}
    assert found.delta_at([0.0, 0.5, 2.0]).tolist() == given.delta_at([0.0, 0.5, 2.0]).tolist()
    assert as_zero_out(found) == found


def test_other_relations_are_left_alone() -> None:
    for relation in ("zero_out", "replace_one"):
        given = GaussianDP(mu=0.5, neighboring=relation)
        assert as_zero_out(given) is given


def test_a_statement_is_taken_by_its_guarantee() -> None:
    expected = PureDP(epsilon=1.0, neighboring="zero_out")
    assert as_zero_out(PrivacySpent(guarantee=PureDP(epsilon=1.0), delta=0.0)) == expected


def test_a_guarantee_of_ones_own_keeps_its_curve() -> None:
    class Own(Guarantee):
        neighboring = "add_remove"

        def _pair(self):  # type: ignore[no-untyped-def]
            return PureDP(epsilon=1.0).pair

    found = as_zero_out(Own())
    assert (found.neighboring, found.delta_at(0.5)) == ("zero_out", Own().delta_at(0.5))
