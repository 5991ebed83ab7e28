"""Odd arguments: every public function refuses them in words, or answers. Nothing raw, from seeded
random calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import privacy
from sklearn_dpsearch.scoring import Sensitivity, private_scorer
from sklearn_dpsearch.scoring._noise_matching import matched_noise
from sklearn_dpsearch.scoring._r2 import R2Scorer

#: Words of a refusal: what was found, and what is needed.
FORM = re.compile(
    r"Expected .*, got |[Ff]ound .*(needed|one of)|out of reach|Use |Give |Write |No .* is known",
    re.S,
)
NUMBERS: list[Any] = [
    0, 1, 3, 0.5, 1e-6, -1, 10**12, 1e300, float("nan"), float("inf"), Fraction(1, 3), True,
]  # fmt: skip
ODD: list[Any] = [
    "1", None, [], [0.5], (), {}, b"1", object, np.array([0.1, 0.2]), np.array("x"),
    np.datetime64("2026"),
]  # fmt: skip
DISTRIBUTIONS: list[Any] = [dp.Geometric(5), dp.Poisson(3), dp.Fixed(2), 4, -2, "Geometric"]
ONES: list[Any] = [
    dp.PureDP(epsilon=1.0), dp.PureDP(epsilon=1e300), dp.GaussianDP(mu=0.5), dp.GaussianDP(mu=1e6),
    dp.ApproxDP(epsilon=0.5, delta=1e-3), dp.DPSGD(noise_multiplier=2.0, sample_rate=0.1, steps=5),
    dp.DPSGD(noise_multiplier=0.01, sample_rate=0.5, steps=3),
    dp.RenyiDP(orders=[2.0, 8.0], epsilons=[0.1, 0.5]), dp.NonPrivate(),
    dp.PureDP(epsilon=1.0, neighboring="replace_one"),
    dp.ProfileDP(profile=lambda epsilon: np.full(np.shape(epsilon), np.nan)),
    dp.ProfileDP(profile=lambda epsilon: np.exp(-epsilon)), dp.PureDP, "PureDP", 1.0,
]  # fmt: skip


def number(rng: np.random.Generator) -> Any:
    return one_of(rng, NUMBERS if rng.random() < 0.8 else ODD)


def one_of(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def guarantee(rng: np.random.Generator) -> Any:
    return one_of(rng, ONES)


#: A call with random arguments, by the name of what is called.
CALLS: dict[str, Callable[[np.random.Generator], Any]] = {
    "PureDP": lambda r: dp.PureDP(epsilon=number(r)).epsilon_at(number(r)),
    "GaussianDP": lambda r: dp.GaussianDP(mu=number(r)).epsilon_at(number(r)),
    "ZCDP": lambda r: privacy.ZCDP(rho=number(r)).epsilon_at(number(r)),
    "LaplaceDP": lambda r: privacy.LaplaceDP(epsilon=number(r)).delta_at(number(r)),
    "BoundedRangeDP": lambda r: privacy.BoundedRangeDP(epsilon=number(r)).delta_at(number(r)),
    "ApproxDP": lambda r: dp.ApproxDP(epsilon=number(r), delta=number(r)).delta_at(number(r)),
    "RenyiDP": lambda r: dp.RenyiDP(orders=number(r), epsilons=number(r)).epsilon_at(1e-6),
    "DPSGD": lambda r: dp.DPSGD(noise_multiplier=number(r), sample_rate=number(r), steps=number(r)),
    "epsilon_at": lambda r: one_of(r, ONES[:12]).epsilon_at(number(r)),
    "delta_at": lambda r: one_of(r, ONES[:12]).delta_at(number(r)),
    "bayes_risk": lambda r: one_of(r, ONES[:12]).bayes_risk(number(r)),
    "trade_off": lambda r: one_of(r, ONES[:12]).trade_off(number(r)),
    "compose": lambda r: privacy.compose(guarantee(r), guarantee(r)).epsilon_at(1e-6),
    "mixture": lambda r: privacy.mixture([guarantee(r), guarantee(r)], [number(r), number(r)]),
    "envelope": lambda r: privacy.envelope([guarantee(r), guarantee(r)]).delta_at(0.5),
    "best_of": lambda r: privacy.best_of(guarantee(r), one_of(r, DISTRIBUTIONS)),
    "until_above": lambda r: privacy.until_above(guarantee(r), number(r)),
    "subset_then_train": lambda r: privacy.subset_then_train(guarantee(r), guarantee(r), number(r)),
    "as_replace_one": lambda r: privacy.as_replace_one(guarantee(r)).delta_at(0.5),
    "for_group": lambda r: privacy.for_group(guarantee(r), number(r)),
    "doubling_search": lambda r: privacy.doubling_search(
        number(r), levels=one_of(r, [1, 3, 2.5, "3", None, -1])
    ),
    "noisy_max": lambda r: privacy.noisy_max(number(r), number(r), privacy.GumbelNoise(scale=1)),
    "calibrate": lambda r: privacy.calibrate(
        one_of(r, [lambda mu: dp.GaussianDP(mu=mu), lambda mu: mu, 3, "mu"]), number(r), number(r)
    ),
    "witness": lambda r: privacy.witness(
        one_of(r, [*ONES[:5], *ONES[7:9], *ONES[12:]]), one_of(r, DISTRIBUTIONS), number(r)
    ),
    "witness_epsilon": lambda r: privacy.witness_epsilon(
        one_of(r, ONES[12:]), one_of(r, DISTRIBUTIONS), number(r)
    ),
    "verify": lambda r: privacy.verify(
        one_of(r, [*ONES[:3], *ONES[12:]]), one_of(r, DISTRIBUTIONS), number(r), number(r)
    ),
    "pgf": lambda r: dp.Geometric(5).pgf(number(r)),
    "quantile": lambda r: dp.Geometric(5).quantile(number(r)),
    "success_probability": lambda r: dp.Poisson(3).success_probability(number(r)),
    "capped": lambda r: dp.Geometric(5).capped(one_of(r, [3, 2.5, 0, -1, "3", None, float("nan")])),
    "Geometric": lambda r: dp.Geometric(number(r)),
    "NegativeBinomial": lambda r: privacy.NegativeBinomial(number(r), number(r)),
    "Binomial": lambda r: privacy.Binomial(number(r), number(r)),
    "Fixed": lambda r: dp.Fixed(number(r)),
    "FromPMF": lambda r: privacy.FromPMF([number(r), number(r)]),
    "from_dict": lambda r: privacy.from_dict(number(r)),
    "Sensitivity": lambda r: Sensitivity(number(r), number(r)),
    "matched_noise": lambda r: matched_noise(guarantee(r), one_of(r, [Sensitivity(1, 1), *ODD])),
    "private_scorer": lambda r: private_scorer(one_of(r, ["accuracy", "f1", *ODD])),
    "R2Scorer": lambda r: R2Scorer(
        y_range=one_of(r, [(0, 1), (number(r), number(r)), number(r)]),
        clip=number(r),
        resolution=number(r),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_an_odd_call_is_refused_in_words_or_answered(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(25):
        said = refusal(CALLS[name], rng)
        assert said is None or FORM.search(said), said


def refusal(call: Callable[[np.random.Generator], Any], rng: np.random.Generator) -> str | None:
    """Why a call was refused; None if it was answered."""
    try:
        call(rng)
    except (ValueError, TypeError) as error:
        return str(error)
    return None
