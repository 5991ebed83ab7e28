"""From a missing record to a blank one: the same numbers, at every depth of a guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._spent import PrivacySpent

NET = dp.DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=20)
CASES: dict[str, dp.Guarantee] = {
    "pure": dp.PureDP(epsilon=1.0), "approximate": dp.ApproxDP(epsilon=1.0, delta=1e-6),
    "laplace": dp.LaplaceDP(epsilon=1.0), "concentrated": dp.ZCDP(rho=0.1),
    "gaussian": dp.GaussianDP(mu=0.5),
    "renyi": dp.RenyiDP(orders=np.array([2.0, 4.0]), epsilons=np.array([0.1, 0.3])), "net": NET,
    "none": dp.NonPrivate(), "pair": dp.ProfileDP.from_pair(dp.GaussianDP(mu=0.5).pair),
    "composition": dp.compose(NET, dp.PureDP(epsilon=0.1)),
    "mixture": dp.mixture(
        [dp.PureDP(epsilon=1.0), dp.compose(NET, dp.PureDP(epsilon=0.1))],
        [0.5, 0.5],
    ),
    "envelope": dp.envelope([dp.GaussianDP(mu=0.1), dp.PureDP(epsilon=0.3)]),
    "best": dp.best_of(dp.compose(NET, dp.PureDP(epsilon=0.1)), dp.Geometric(3)),
    "subset": dp.subset_then_train(
        dp.best_of(dp.PureDP(epsilon=0.5), dp.Geometric(3)), dp.GaussianDP(mu=0.5), 0.2,
    ),
    "threshold": dp.until_above(dp.PureDP(epsilon=0.3), 0.1),
    "grid": dp.noisy_max(5, 1, dp.GumbelNoise(scale=2)),
}  # fmt: skip


def inside(value: object) -> Iterator[dp.Guarantee]:
    """All guarantees in a value."""
    if isinstance(value, tuple):
        for one in value:
            yield from inside(one)
    if isinstance(value, dp.Guarantee):
        yield value
        for field in fields(value) if is_dataclass(value) else ():
            yield from inside(getattr(value, field.name))


@pytest.mark.slow
@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_a_blank_record_costs_what_a_missing_one_does(given: dp.Guarantee) -> None:
    found = dp.as_zero_out(given)
    assert type(found) is type(given)
    assert {one.neighboring for one in inside(found)} == {"zero_out"}
    assert found.delta_at([0.0, 0.5, 2.0]).tolist() == given.delta_at([0.0, 0.5, 2.0]).tolist()
    assert dp.as_zero_out(found) == found


def test_other_relations_are_left_alone() -> None:
    for relation in ("zero_out", "replace_one"):
        given = dp.GaussianDP(mu=0.5, neighboring=relation)
        assert dp.as_zero_out(given) is given


def test_a_statement_is_taken_by_its_guarantee() -> None:
    expected = dp.PureDP(epsilon=1.0, neighboring="zero_out")
    assert dp.as_zero_out(PrivacySpent(guarantee=dp.PureDP(epsilon=1.0), delta=0.0)) == expected


def test_a_guarantee_of_ones_own_keeps_its_curve() -> None:
    class Own(dp.Guarantee):
        neighboring = "add_remove"

        def _pair(self):  # type: ignore[no-untyped-def]
            return dp.PureDP(epsilon=1.0).pair

    found = dp.as_zero_out(Own())
    assert (found.neighboring, found.delta_at(0.5)) == ("zero_out", Own().delta_at(0.5))
