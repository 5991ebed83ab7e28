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

from sklearn_dpsearch.privacy import (
    DPSGD,
    ZCDP,
    ApproxDP,
    Binomial,
    BoundedRangeDP,
    Fixed,
    FromPMF,
    GaussianDP,
    Geometric,
    Guarantee,
    GumbelNoise,
    LaplaceDP,
    Logarithmic,
    MixedNeighborsError,
    NegativeBinomial,
    NonPrivate,
    Poisson,
    PrivacyError,
    ProfileDP,
    PureDP,
    RenyiDP,
    as_replace_one,
    best_of,
    calibrate,
    compose,
    doubling_search,
    envelope,
    for_group,
    from_dict,
    mixture,
    noisy_max,
    subset_then_train,
    until_above,
)
from sklearn_dpsearch.privacy.calibration import gaussian_target
from sklearn_dpsearch.privacy.selection.best_of import TheoremFive, TheoremOne, TheoremSix
from sklearn_dpsearch.privacy.selection.subset import TheoremFour
from sklearn_dpsearch.privacy.selection.threshold import TheoremThree
from sklearn_dpsearch.privacy.serialization import _concrete_kinds
from sklearn_dpsearch.privacy.spent import PrivacySpent
from sklearn_dpsearch.scoring.noise import DiscreteGaussianNoise, Sensitivity

RUN = DPSGD(noise_multiplier=1.1, sample_rate=0.1, steps=7)
PURE = PureDP(epsilon=0.1 + 0.2)
DISTRIBUTIONS = [
    Geometric(7.3), Logarithmic(5), NegativeBinomial(shape=-0.5, mean=4), Poisson(3.7),
    Poisson(3.7).at_least_one(), Binomial(n=9, p=0.3), Fixed(2), FromPMF([0.1, 0.2, 0.7]),
    Geometric(7.3).capped(20),
]  # fmt: skip
GUARANTEES: list[Guarantee] = [
    PURE, PureDP(epsilon=1 / 3, neighboring="replace_one"), ApproxDP(epsilon=0.7, delta=1e-7),
    ZCDP(rho=0.01), GaussianDP(mu=0.37), BoundedRangeDP(epsilon=0.9), LaplaceDP(epsilon=0.9),
    RenyiDP(orders=[1.5, 2.0, 8.0, np.inf], epsilons=[0.1, 0.2, 0.9, np.inf]), RUN,
    NonPrivate(neighboring="zero_out"),
    ProfileDP.from_pld(from_laplace_mechanism(3.0, value_discretization_interval=1e-2)),
    ProfileDP.from_pair(RUN.pair, "zero_out"), compose(RUN, PURE, ZCDP(rho=0.1)),
    mixture([RUN, PURE], [0.3, 0.7]), envelope([RUN, GaussianDP(mu=0.5)]),
    as_replace_one(ApproxDP(epsilon=0.5, delta=1e-6)),
    for_group(ApproxDP(epsilon=0.5, delta=1e-6), 3), until_above(GaussianDP(mu=0.4), 0.1),
    subset_then_train(PURE, PureDP(epsilon=0.2), 0.1),
    as_replace_one(subset_then_train(PURE, PureDP(epsilon=0.2), 0.1)),
    subset_then_train(PURE, PureDP(epsilon=0.2), 0.1, validate=PureDP(epsilon=0.05)),
    noisy_max(20, Fraction(1, 49), GumbelNoise(scale=Fraction(1, 7))),
    doubling_search(0.1, levels=10), gaussian_target(0.7),
    DiscreteGaussianNoise(Fraction(17, 3)).guarantee(Sensitivity(2, 4), "add_remove"),
    best_of(PureDP(epsilon=calibrate(lambda e: best_of(PureDP(epsilon=e), 5), 1.0, 0.0)), 5),
    *(TheoremOne(one_run=PURE, count=distribution) for distribution in DISTRIBUTIONS),
    TheoremFive(first=TheoremOne(one_run=PURE, count=Geometric(3))),
    TheoremSix(first=TheoremOne(one_run=PURE, count=Poisson(9))),
    best_of(compose(RUN, PureDP(epsilon=0.1)), Geometric(4)),
    TheoremFour(tune=PURE, train=PURE, fraction=0.1, train_on="rest"),
    TheoremThree(one_run=PURE, stop_probability=0.2),
    TheoremFour(tune=PURE, validate=PURE, train=PURE, fraction=0.1, share=0.5, train_on="all"),
]  # fmt: skip


def through_json(guarantee: Guarantee) -> Guarantee:
    return from_dict(json.loads(json.dumps(guarantee.to_dict(), allow_nan=False)))


@pytest.mark.slow
@pytest.mark.parametrize("one", GUARANTEES, ids=lambda one: type(one).__name__)
def test_every_number_is_the_same_to_the_last_bit(one: Guarantee) -> None:
    back = through_json(one)
    assert type(back) is type(one)
    assert back.neighboring == one.neighboring
    expected = [one.epsilon_at(delta) for delta in (0.0, 1e-6)]
    assert [back.epsilon_at(delta) for delta in (0.0, 1e-6)] == expected
    assert back.delta_at(0.5) == one.delta_at(0.5)
    assert back.to_dict() == one.to_dict()


@pytest.mark.parametrize(
    "one",
    [one for one in GUARANTEES if type(one) is not ProfileDP],
    ids=lambda one: type(one).__name__,
)
def test_what_is_made_of_parts_is_made_of_the_same_parts(one: Guarantee) -> None:
    assert through_json(one) == one


@pytest.mark.slow
def test_both_directions_of_a_loss_distribution_come_back() -> None:
    back = through_json(ProfileDP.from_pair(RUN.pair))
    for ours, theirs in ((RUN.pair.removed, back.pair.removed), (RUN.pair.added, back.pair.added)):
        assert np.array_equal(ours.losses, theirs.losses)
        assert np.array_equal(ours.masses, theirs.masses)
        assert (ours.infinity, ours.minus_infinity) == (theirs.infinity, theirs.minus_infinity)
    symmetric = through_json(ProfileDP.from_pair(GaussianDP(mu=1.0).pair))
    assert symmetric.pair.removed is symmetric.pair.added


def kinds_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from [value["kind"]] if "kind" in value else []
        yield from (kind for one in value.values() for kind in kinds_in(one))
    elif isinstance(value, list):
        yield from (kind for one in value for kind in kinds_in(one))


def test_every_kind_of_guarantee_and_distribution_is_tried_above() -> None:
    tried = {kind for one in GUARANTEES for kind in kinds_in(one.to_dict())}
    names = {name for name in _concrete_kinds() if not name.startswith("_")}
    assert names <= tried


def test_equal_guarantees_are_written_alike() -> None:
    distributions = [TheoremOne(one_run=PURE, count=Geometric(mean)) for mean in (3, 3.0)]
    for one, other in ((PureDP(epsilon=1), PureDP(epsilon=1.0)), distributions):
        assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())


# --- what is refused ------------------------------------------------------------------------------


def test_a_profile_that_is_a_function_cannot_be_written_down() -> None:
    for one in (
        ProfileDP(profile=GaussianDP(mu=1.0).delta_at),
        compose(ProfileDP(profile=RUN.delta_at), PURE),
    ):
        with pytest.raises(PrivacyError, match="profile is a function.*Build it with"):
            one.to_dict()
        assert PrivacySpent(guarantee=one, delta=1e-6).to_dict()["guarantee"] is None


def test_a_function_beside_its_loss_distributions_is_not_dropped() -> None:
    with pytest.raises(PrivacyError, match="profile is a function"):
        ProfileDP(profile=lambda epsilon: 0.0 * epsilon, given_pair=RUN.pair).to_dict()


def test_a_guarantee_of_ones_own_cannot_be_written_down() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Mine(PureDP):
        pass

    with pytest.raises(PrivacyError, match="Found Mine in a guarantee"):
        compose(Mine(epsilon=1.0), PURE).to_dict()
    with pytest.raises(PrivacyError, match="of kind 'Mine', which this version does not know"):
        from_dict({**PURE.to_dict(), "kind": "Mine"})


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
        with pytest.raises(PrivacyError, match=match):
            from_dict(wrong)


@pytest.mark.parametrize(
    "one", [PURE, RUN, ProfileDP.from_pair(PURE.pair)], ids=lambda one: type(one).__name__
)
def test_missing_and_unknown_fields_are_refused(one: Guarantee) -> None:
    told = one.to_dict()
    with pytest.raises(PrivacyError, match="are needed"):
        from_dict({**told, "colour": 1})
    for name in told.keys() - {"version", "kind"}:
        with pytest.raises(PrivacyError, match="are needed"):
            from_dict({key: value for key, value in told.items() if key != name})


def test_what_a_file_holds_is_checked_like_what_a_program_builds() -> None:
    """Edited dictionaries that were once believed: the first one had a δ of −0.49."""
    drawn, both, distribution = (
        json.loads(json.dumps(one.to_dict()))
        for one in (
            mixture([RUN, PURE], [0.3, 0.7]),
            compose(RUN, PURE),
            best_of(PURE, Geometric(7.3).capped(20)),
        )
    )
    heavy = json.loads(json.dumps(ProfileDP.from_pair(PURE.pair).to_dict()))
    for told, edit, error, match in (
        (drawn, {"weights": [1.0, -0.5]}, ValueError, "weights > 0 with sum 1"),
        (drawn, {"weights": [1.0]}, ValueError, "as many weights as parts"),
        (both, {"neighboring": "replace_one"}, MixedNeighborsError, "one relation is needed"),
        (
            distribution,
            {"count": {**distribution["count"], "most": 2.5}},
            ValueError,
            "an integer most",
        ),
        (distribution, {"count": distribution["one_run"]}, TypeError, "a distribution of K"),
        (distribution, {"one_run": distribution["count"]}, TypeError, "Found one_run"),
        (
            heavy,
            {"removed": {**heavy["removed"], "masses": {"array": [0.5, np.exp(50)]}}},
            ValueError,
            "with a total",
        ),
    ):
        with pytest.raises(error, match=match):
            from_dict({**told, **edit})


def leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything in a dictionary, but the version."""
    yield way
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, child in children:
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
]  # fmt: skip
WRONG += [
    "replace_one",
    "all",
    PureDP(epsilon=0.5).to_dict(),
    Geometric(3).__class__.__name__,
    {"array": [0.1]},
]


def believed(told: Any) -> np.ndarray | str:
    """What a dictionary is found to promise, or why it is refused."""
    try:
        return np.asarray(from_dict(told).delta_at([0.0, 0.5, 3.0, 50.0]))
    except (ValueError, TypeError) as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("one", GUARANTEES, ids=lambda one: type(one).__name__)
def test_an_edited_dictionary_is_refused_or_a_guarantee(one: Guarantee) -> None:
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
