"""What is not a guarantee is refused with the way to write one; statements of what was spent count
as their total."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._count_distributions.base import Capped, Conditioned
from sklearn_dpsearch.privacy._guarantees.base import Guarantee
from sklearn_dpsearch.privacy._guarantees.composition import Composition, Envelope, Mixture
from sklearn_dpsearch.privacy._guarantees.neighboring_relations import ChangedRecord, OfGroup
from sklearn_dpsearch.privacy._selection.best_of import BestOf, TheoremOne, TheoremSix
from sklearn_dpsearch.privacy._selection.subset import SubsetThenTrain, TheoremFour
from sklearn_dpsearch.privacy._selection.threshold import TheoremThree
from sklearn_dpsearch.privacy._spent import Component, PrivacySpent

ONE = dp.PureDP(epsilon=1.0)
SPENT = PrivacySpent(guarantee=ONE, delta=0.0, components=(Component(name="all", guarantee=ONE),))

#: Every function of guarantees, as a function of one of them.
COMBINED = {
    "compose": lambda one: dp.compose(one, one),
    "mixture": lambda one: dp.mixture([one, ONE], [0.5, 0.5]),
    "envelope": lambda one: dp.envelope([one, ONE]),
    "best_of": lambda one: dp.best_of(one, 3),
    "until_above": lambda one: dp.until_above(one, 0.1),
    "subset_then_train, tune": lambda one: dp.subset_then_train(one, ONE, 0.1),
    "subset_then_train, train": lambda one: dp.subset_then_train(ONE, one, 0.1),
    "calibrate": lambda one: dp.calibrate(lambda _: one, 1.0, 0.0, (0.5, 1.0)),
    "witness": lambda one: dp.witness(one, 3, 0.5),
    "witness_epsilon": lambda one: dp.witness_epsilon(one, 3, 1e-3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("statement", [SPENT, SPENT.components[0]], ids=["spent", "component"])
def test_a_statement_counts_as_its_total(name, statement):
    assert COMBINED[name](statement) == COMBINED[name](ONE)


def test_a_composition_of_statements_can_be_used():
    both = dp.compose(SPENT, SPENT)
    assert both.epsilon_at(0.0) == 2.0
    assert both.pair.delta_at(np.array([0.0]))[0] > 0


def test_copies_and_pickles_are_built_as_before():
    one = dp.DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=10)
    assert pickle.loads(pickle.dumps(one)) == one
    assert dataclasses.replace(one, steps=20).steps == 20


class Plain(Guarantee):
    """Of somebody's own, and no dataclass: what it is made of is not among its fields."""

    def __init__(self, level):
        object.__setattr__(self, "neighboring", "add_remove")
        object.__setattr__(self, "level", level)

    @property
    def pure_epsilon(self):
        return self.level

    def _pair(self):
        return dp.PureDP(epsilon=self.level).pair


@dataclasses.dataclass(frozen=True, kw_only=True)
class WithList(Guarantee):
    """Cannot be hashed."""

    levels: list

    def _pair(self):
        return dp.PureDP(epsilon=max(self.levels)).pair


@pytest.mark.parametrize(
    "total", [lambda one: one, lambda one: dp.best_of(one, 5)], ids=["alone", "best of 5"]
)
def test_guarantees_of_ones_own_are_not_mixed_up(total):
    assert total(Plain(1.0)).epsilon_at(1e-3) < 2.5 < total(Plain(3.0)).epsilon_at(1e-3)


def test_an_envelope_of_guarantees_of_ones_own_is_the_larger():
    assert dp.envelope([Plain(1.0), Plain(3.0)]).epsilon_at(1e-3) > 2.5


def test_a_guarantee_that_cannot_be_hashed_is_worked_out_each_time():
    actual = WithList(levels=[1.0, 3.0]).epsilon_at(1e-3)
    assert WithList(levels=[1.0]).epsilon_at(1e-3) < 2.5 < actual


PARTS = {"tune": ONE, "train": ONE}


@pytest.mark.parametrize("build", [
    lambda: Mixture(parts=(ONE, dp.PureDP(epsilon=2.0)), weights=(1.0, -0.5)),
    lambda: Mixture(parts=(ONE,), weights=(0.5, 0.5)), lambda: Mixture(parts=(), weights=()),
    lambda: Composition(parts=(ONE, "PureDP")),
    lambda: Composition(parts=(dp.PureDP(epsilon=1.0, neighboring="zero_out"),)),
    lambda: Composition(parts=()), lambda: Envelope(parts=[ONE]),
    lambda: BestOf(one_run=ONE, count=10), lambda: BestOf(one_run=10, count=dp.Geometric(10)),
    lambda: TheoremOne(one_run=ONE, count=dp.Geometric(10), neighboring="replace_one"),
    lambda: TheoremThree(one_run=ONE, stop_probability=0.0), lambda: TheoremSix(first=ONE),
    lambda: TheoremFour(**PARTS, fraction=2.0, train_on="rest"),
    lambda: TheoremFour(**PARTS, fraction=0.5, train_on="none"),
    lambda: SubsetThenTrain(
        **PARTS | {"train": dp.NonPrivate(neighboring="zero_out")}, fraction=0.5, train_on="all"
    ),
    lambda: SubsetThenTrain(**PARTS, validate=ONE, fraction=0.5, share=-0.1, train_on="all"),
    lambda: OfGroup(one_record="PureDP", records=3), lambda: ChangedRecord(presence=1.0),
    lambda: dp.ProfileDP(profile=0.5), lambda: dp.ProfileDP.from_pair(ONE.pair.removed),
    lambda: Capped(distribution=dp.Geometric(10), most=2.5), lambda: Conditioned(distribution=10),
    lambda: dp.NegativeBinomial(shape="1", mean=10), lambda: dp.FromPMF(["0.5", "0.5"]),
])  # fmt: skip
def test_every_value_checks_itself_when_built(build) -> None:
    with pytest.raises((ValueError, TypeError), match=r"Expected|Found .* needed"):
        build()


def test_one_function_over_two_pairs_makes_two_guarantees() -> None:
    """Else the second search is reported with the ε of the first."""
    strict, loose = (
        dp.ProfileDP(profile=max_of_both, given_pair=dp.PureDP(epsilon=epsilon).pair)
        for epsilon in (0.1, 3.0)
    )
    assert strict != loose
    epsilons = [dp.best_of(one, dp.Geometric(10)).epsilon_at(1e-6) for one in (strict, loose)]
    assert epsilons[1] > 3.0 > epsilons[0]


def max_of_both(epsilon):
    return dp.PureDP(epsilon=3.0).pair.delta_at(epsilon)
