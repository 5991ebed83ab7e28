"""Runs of a random search: as many as the distribution drew, each with noise of its own, each
scored once."""

from __future__ import annotations

import itertools

import pytest
from scipy.stats import uniform

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed, GaussianDP, Geometric, PureDP, best_of
from sklearn_dpsearch.scoring import DiscreteLaplaceNoise

from .toys import NoisyCentroids, RandomizedResponse, refuses_to_fit, two_blobs

#: Trainings are counted here, and candidates fail on purpose.
pytestmark = pytest.mark.usefixtures("unrehearsed", "in_place")

X, y = two_blobs()
DRAWN: list[float] = []


class Recording(NoisyCentroids):
    """Writes down what its generator gives."""

    def fit(self, X, y):
        DRAWN.append(self.random_state.uniform())
        return super().fit(X, y)


class Numbered:
    """A distribution that gives 0, 1, 2, … and has no largest value: all copies count together."""

    given = itertools.count()

    def rvs(self, random_state=None):
        return float(next(self.given))


class Remembering:
    """A distribution with a state: it gives 1, 2, 3, … itself, and a copy goes on from there."""

    def __init__(self):
        self.given = 0

    def rvs(self, random_state=None):
        self.given += 1
        return float(self.given)


class Locked(Remembering):
    """Cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("cannot pickle a lock")


def equal_scores(estimator, X, y):
    return 0.5


@pytest.fixture(autouse=True)
def nothing_drawn():
    DRAWN.clear()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 37, 150])
def test_as_many_candidates_run_as_the_distribution_drew(number, monkeypatch):
    monkeypatch.setattr(Geometric, "sample", lambda self, rng=None: number)
    DPRandomSearchCV(Recording(), {"shrink": [0.0]}, n_iter=5).fit(X, y)
    assert len(DRAWN) == number


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("of_estimator", [None, 7])
def test_every_run_has_noise_of_its_own(seed, of_estimator):
    one = DPRandomSearchCV(
        Recording(random_state=of_estimator), {"shrink": [0.0]}, n_iter=Fixed(12), random_state=seed
    )
    one.fit(X, y)
    assert len(set(DRAWN)) == 12
    assert one.best_estimator_.random_state is None


def test_every_score_has_noise_and_none_is_drawn_twice(monkeypatch):
    """The released score is one of those that were compared, with the noise that it had then."""
    noises = []

    def sample(self, rng=None):
        noises.append(10**6 * len(noises))
        return noises[-1]

    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", sample)
    one = DPRandomSearchCV(Recording(), {"shrink": [0.0]}, n_iter=Fixed(9), cv=0.5).fit(X, y)
    assert len(noises) == len(DRAWN) == 9
    # the last one's, in units of 1/1000 of a record
    assert one.best_score_ > 8 * 10**6 / 1000 / len(X)


def test_a_distribution_with_a_state_does_not_tell_how_many_candidates_there_were(monkeypatch):
    """Each candidate comes from an untouched copy, and so independently of the others."""
    monkeypatch.setattr(Geometric, "sample", lambda self, rng=None: 9)
    space = {"shrink": Remembering()}
    one = DPRandomSearchCV(NoisyCentroids(), space, n_iter=5).fit(X, y)
    assert space["shrink"].given == 0
    assert one.best_params_ == {"shrink": 1.0}


def test_a_distribution_that_cannot_be_copied_is_refused_before_a_record_is_used():
    one = DPRandomSearchCV(NoisyCentroids(), {"shrink": Locked()})
    message = "Locked for 'shrink' in param_distributions that cannot be copied.*random_st"
    refuses_to_fit(one, TypeError, message, X, y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_of_equal_scores_the_first_drawn_wins(n_jobs, monkeypatch):
    monkeypatch.setattr(Numbered, "given", itertools.count())
    options = {"scoring": equal_scores, "n_jobs": n_jobs}
    one = DPRandomSearchCV(NoisyCentroids(), {"shrink": Numbered()}, n_iter=Fixed(30), **options)
    # a trial took 30
    assert one.fit(X, y, X_public=X.copy(), y_public=y.copy()).best_params_ == {"shrink": 30.0}


def test_without_a_seed_candidates_are_drawn_anew_each_time():
    one = DPRandomSearchCV(NoisyCentroids(), {"shrink": uniform(0, 1)}, n_iter=Fixed(1))
    assert one.fit(X, y).best_params_ != one.fit(X, y).best_params_


class Stating(RandomizedResponse):
    privacy_parameters = ("epsilon",)


def test_the_upper_end_of_a_distribution_of_epsilon_is_charged():
    one = DPRandomSearchCV(Stating(), {"epsilon": uniform(0.5, 1.0)}, n_iter=5)
    expected = best_of(PureDP(epsilon=1.5, neighboring="replace_one"), 5)
    assert one.privacy_cost(8, public=True).guarantee == expected


def test_all_runs_released_cost_their_composition():
    """At δ > 0 that is more than the best of as many."""
    one_run = GaussianDP(mu=0.3, neighboring="replace_one")
    options = {"release": "all", "guarantee": one_run, "delta": 1e-6}
    one = DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0]}, n_iter=4, **options)
    expected = GaussianDP(mu=0.6, neighboring="replace_one")
    assert one.privacy_cost(8, public=True).guarantee == expected
