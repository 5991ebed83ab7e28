"""To plain dictionaries and back, through JSON: the same guarantee, to the last bit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._calibration import gaussian_target
from sklearn_dpsearch.privacy._selection.best_of import TheoremFive, TheoremOne, TheoremSix
from sklearn_dpsearch.privacy._selection.subset import TheoremFour
from sklearn_dpsearch.privacy._selection.threshold import TheoremThree
from sklearn_dpsearch.privacy._serialization import _concrete_kinds
from sklearn_dpsearch.privacy._spent import PrivacySpent
from sklearn_dpsearch.scoring._noise import DiscreteGaussianNoise, Sensitivity

RUN = dp.DPSGD(noise_multiplier=1.1, sample_rate=0.1, steps=7)
PURE = dp.PureDP(epsilon=0.1 + 0.2)
DISTRIBUTIONS = [
    dp.Geometric(7.3), dp.Logarithmic(5), dp.NegativeBinomial(shape=-0.5, mean=4), dp.Poisson(3.7),
    dp.Poisson(3.7).at_least_one(), dp.Binomial(n=9, p=0.3), dp.Fixed(2),
    dp.FromPMF([0.1, 0.2, 0.7]), dp.Geometric(7.3).capped(20),
]  # fmt: skip
GUARANTEES: list[dp.Guarantee] = [
    PURE, dp.PureDP(epsilon=1 / 3, neighboring="replace_one"), dp.ApproxDP(epsilon=0.7, delta=1e-7),
    dp.ZCDP(rho=0.01), dp.GaussianDP(mu=0.37), dp.BoundedRangeDP(epsilon=0.9),
    dp.LaplaceDP(epsilon=0.9),
    dp.RenyiDP(orders=[1.5, 2.0, 8.0, np.inf], epsilons=[0.1, 0.2, 0.9, np.inf]), RUN,
    dp.NonPrivate(neighboring="zero_out"),
    dp.ProfileDP.from_pld(from_laplace_mechanism(3.0, value_discretization_interval=1e-2)),
    dp.ProfileDP.from_pair(RUN.pair, "zero_out"), dp.compose(RUN, PURE, dp.ZCDP(rho=0.1)),
    dp.mixture([RUN, PURE], [0.3, 0.7]), dp.envelope([RUN, dp.GaussianDP(mu=0.5)]),
    dp.as_replace_one(dp.ApproxDP(epsilon=0.5, delta=1e-6)),
    dp.for_group(dp.ApproxDP(epsilon=0.5, delta=1e-6), 3),
    dp.until_above(dp.GaussianDP(mu=0.4), 0.1),
    dp.subset_then_train(PURE, dp.PureDP(epsilon=0.2), 0.1),
    dp.as_replace_one(dp.subset_then_train(PURE, dp.PureDP(epsilon=0.2), 0.1)),
    dp.subset_then_train(PURE, dp.PureDP(epsilon=0.2), 0.1, validate=dp.PureDP(epsilon=0.05)),
    dp.noisy_max(20, Fraction(1, 49), dp.GumbelNoise(scale=Fraction(1, 7))),
    dp.doubling_search(0.1, levels=10), gaussian_target(0.7),
    DiscreteGaussianNoise(Fraction(17, 3)).guarantee(Sensitivity(2, 4), "add_remove"),
    dp.best_of(
        dp.PureDP(epsilon=dp.calibrate(lambda e: dp.best_of(dp.PureDP(epsilon=e), 5), 1.0, 0.0)), 5,
    ),
    *(TheoremOne(one_run=PURE, count=distribution) for distribution in DISTRIBUTIONS),
    TheoremFive(first=TheoremOne(one_run=PURE, count=dp.Geometric(3))),
    TheoremSix(first=TheoremOne(one_run=PURE, count=dp.Poisson(9))),
    dp.best_of(dp.compose(RUN, dp.PureDP(epsilon=0.1)), dp.Geometric(4)),
    TheoremFour(tune=PURE, train=PURE, fraction=0.1, train_on="rest"),
    TheoremThree(one_run=PURE, stop_probability=0.2),
    TheoremFour(tune=PURE, validate=PURE, train=PURE, fraction=0.1, share=0.5, train_on="all"),
]  # fmt: skip


def through_json(guarantee: dp.Guarantee) -> dp.Guarantee:
    return dp.from_dict(json.loads(json.dumps(guarantee.to_dict(), allow_nan=False)))


@pytest.mark.slow
@pytest.mark.parametrize("one", GUARANTEES, ids=lambda one: type(one).__name__)
def test_every_number_is_the_same_to_the_last_bit(one: dp.Guarantee) -> None:
    back = through_json(one)
    assert type(back) is type(one)
    assert back.neighboring == one.neighboring
    expected = [one.epsilon_at(delta) for delta in (0.0, 1e-6)]
    assert [back.epsilon_at(delta) for delta in (0.0, 1e-6)] == expected
    assert back.delta_at(0.5) == one.delta_at(0.5)
    assert back.to_dict() == one.to_dict()


@pytest.mark.parametrize(
    "one",
    [one for one in GUARANTEES if type(one) is not dp.ProfileDP],
    ids=lambda one: type(one).__name__,
)
def test_what_is_made_of_parts_is_made_of_the_same_parts(one: dp.Guarantee) -> None:
    assert through_json(one) == one


@pytest.mark.slow
def test_both_directions_of_a_loss_distribution_come_back() -> None:
    back = through_json(dp.ProfileDP.from_pair(RUN.pair))
    for ours, theirs in ((RUN.pair.removed, back.pair.removed), (RUN.pair.added, back.pair.added)):
        assert np.array_equal(ours.losses, theirs.losses)
        assert np.array_equal(ours.masses, theirs.masses)
        assert (ours.infinity, ours.minus_infinity) == (theirs.infinity, theirs.minus_infinity)
    symmetric = through_json(dp.ProfileDP.from_pair(dp.GaussianDP(mu=1.0).pair))
    assert symmetric.pair.removed is symmetric.pair.added


def kinds_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from [value["kind"]] if "kind" in value else []
        yield from (kind for one in value.values() for kind in kinds_in(one))
    elif isinstance(value, list):
        yield from (kind for one in value for kind in kinds_in(one))


def test_every_kind_of_guarantee_and_distribution_is_tried_above() -> None:
    tried = {kind for one in GUARANTEES for kind in kinds_in(one.to_dict())}
    assert {name for name in _concrete_kinds() if not name.startswith("_")} <= tried


def test_equal_guarantees_are_written_alike() -> None:
    distributions = [TheoremOne(one_run=PURE, count=dp.Geometric(mean)) for mean in (3, 3.0)]
    for one, other in ((dp.PureDP(epsilon=1), dp.PureDP(epsilon=1.0)), distributions):
        assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())


# --- what is refused ------------------------------------------------------------------------------


def test_a_profile_that_is_a_function_cannot_be_written_down() -> None:
    for one in (
        dp.ProfileDP(profile=dp.GaussianDP(mu=1.0).delta_at),
        dp.compose(dp.ProfileDP(profile=RUN.delta_at), PURE),
    ):
        with pytest.raises(dp.PrivacyError, match="profile is a function.*Build it with"):
            one.to_dict()
        assert PrivacySpent(guarantee=one, delta=1e-6).to_dict()["guarantee"] is None


def test_a_function_beside_its_loss_distributions_is_not_dropped() -> None:
    with pytest.raises(dp.PrivacyError, match="profile is a function"):
        dp.ProfileDP(profile=lambda epsilon: 0.0 * epsilon, given_pair=RUN.pair).to_dict()


def test_a_guarantee_of_ones_own_cannot_be_written_down() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Mine(dp.PureDP):
        pass

    with pytest.raises(dp.PrivacyError, match="Found Mine in a guarantee"):
        dp.compose(Mine(epsilon=1.0), PURE).to_dict()
    with pytest.raises(dp.PrivacyError, match="of kind 'Mine', which this version does not know"):
        dp.from_dict({**PURE.to_dict(), "kind": "Mine"})


def test_what_is_no_guarantee_or_of_another_layout_is_refused() -> None:
    of_layouts = [
        ({**PURE.to_dict(), "version": version}, "version 1 is needed")
        for version in (0, 2, "1", None, True)
    ]
    no_layout = ({}, [], "PureDP", PURE, {"kind": "PureDP", "epsilon": 1.0})
    of_kinds = [
        ({"version": 1, "kind": "Geometric", "mean": 3.0}, "a guarantee is needed"),
        ({"version": 1, "epsilon": 3.0}, "or a kind is needed"),
    ]
    for wrong, match in (*of_layouts, *((one, "with its version") for one in no_layout), *of_kinds):
        with pytest.raises(dp.PrivacyError, match=match):
            dp.from_dict(wrong)


@pytest.mark.parametrize(
    "one", [PURE, RUN, dp.ProfileDP.from_pair(PURE.pair)], ids=lambda one: type(one).__name__
)
def test_missing_and_unknown_fields_are_refused(one: dp.Guarantee) -> None:
    told = one.to_dict()
    with pytest.raises(dp.PrivacyError, match="are needed"):
        dp.from_dict({**told, "colour": 1})
    for name in told.keys() - {"version", "kind"}:
        with pytest.raises(dp.PrivacyError, match="are needed"):
            dp.from_dict({key: value for key, value in told.items() if key != name})


def test_what_a_file_holds_is_checked_like_what_a_program_builds() -> None:
    """Edited dictionaries that were once believed: the first one had a δ of −0.49."""
    search = dp.best_of(PURE, dp.Geometric(7.3).capped(20))
    profile = dp.ProfileDP.from_pair(PURE.pair)
    drawn, both, distribution, heavy = (
        json.loads(json.dumps(one.to_dict()))
        for one in (dp.mixture([RUN, PURE], [0.3, 0.7]), dp.compose(RUN, PURE), search, profile)
    )
    half = {"count": {**distribution["count"], "most": 2.5}}
    much = {"removed": {**heavy["removed"], "masses": {"array": [0.5, np.exp(50)]}}}
    for told, edit, error, match in (
        (drawn, {"weights": [1.0, -0.5]}, ValueError, "weights > 0 with sum 1"),
        (drawn, {"weights": [1.0]}, ValueError, "as many weights as parts"),
        (both, {"neighboring": "replace_one"}, dp.MixedNeighborsError, "one relation is needed"),
        (distribution, half, ValueError, "an integer most"),
        (distribution, {"count": distribution["one_run"]}, TypeError, "a distribution of K"),
        (distribution, {"one_run": distribution["count"]}, TypeError, "Found one_run"),
        (heavy, much, ValueError, "with a total"),
    ):
        with pytest.raises(error, match=match):
            dp.from_dict({**told, **edit})


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything in a dictionary, but the version."""
    yield way
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, child in value.items() if isinstance(value, dict) else ():
        if key != "version":
            yield from leaves(child, (*way, key))


def edited(told: Any, way: tuple[Any, ...], wrong: Any) -> Any:
    """A copy with something else in one place."""
    if not way:
        return wrong
    copy = dict(told) if isinstance(told, dict) else list(told)
    copy[way[0]] = edited(copy[way[0]], way[1:], wrong)
    return copy


#: What an editor, a bug or an attacker may put into a file.
WRONG: list[Any] = [
    -0.5, 2.5, 1e300, 0, "0.5", None, True, [], [1.0, -0.5], {"float": "nan"}, {"float": "inf"},
    "replace_one", "all", dp.PureDP(epsilon=0.5).to_dict(), "Geometric", {"array": [0.1]},
]  # fmt: skip


def believed(told: Any) -> np.ndarray | str:
    """What a dictionary is found to promise, or why it is refused."""
    try:
        return np.asarray(dp.from_dict(told).delta_at([0.0, 0.5, 3.0, 50.0]))
    except (ValueError, TypeError) as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("one", GUARANTEES, ids=lambda one: type(one).__name__)
def test_an_edited_dictionary_is_refused_or_a_guarantee(one: dp.Guarantee) -> None:
    told = json.loads(json.dumps(one.to_dict()))
    rng = np.random.default_rng(len(repr(told)))
    ways = [way for way in leaves(told) if way]
    for _ in range(40):
        wrong = edited(told, ways[rng.integers(len(ways))], WRONG[rng.integers(len(WRONG))])
        found = believed(wrong)
        if isinstance(found, str):
            assert re.search(r"Expected .*, got|Found|Nothing is known", found), wrong
        else:
            assert np.all((found >= 0) & (found <= 1)), wrong
            assert np.all(np.diff(found) <= 1e-12), wrong


def test_the_relation_is_never_guessed() -> None:
    assert all("neighboring" in one.to_dict() for one in GUARANTEES)
    assert {field.name for field in fields(PURE)} == PURE.to_dict().keys() - {"version", "kind"}
