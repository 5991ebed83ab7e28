"""Persons in nets: each is drawn as a record is, and is there by one of his records in every
step."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.nets import (
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralNetClassifier,
)
from sklearn_dpsearch.nets._estimators import base
from sklearn_dpsearch.nets._estimators.settings import settings_of
from sklearn_dpsearch.nets._sampling import PersonBatches, PoissonBatches, RecordsOfPersons
from sklearn_dpsearch.privacy import PrivacyError
from sklearn_dpsearch.search._execution.models import unfitted_model
from sklearn_dpsearch.search._execution.randomness import Randomness
from sklearn_dpsearch.search._execution.workers import Threads

from .toys import flat

rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _draws():
    """Each test draws the same, whichever run before it."""
    global rng
    rng = np.random.default_rng(3)


SIZES = (1, 2, 10, 10_000)
CODES = np.random.default_rng(0).permutation(np.repeat(np.arange(4), SIZES))
SOME = {"noise_multiplier": 1.0, "sample_rate": 0.2, "max_steps": 8, "random_state": 0}


def batches(codes, rate=0.5, seed=0, places=None):
    coins, rows, turns = (np.random.default_rng([seed, i]) for i in range(3))
    persons = RecordsOfPersons(codes)
    return PersonBatches(PoissonBatches(coins, rows, rate, places or len(persons)), persons, turns)


def test_of_each_person_any_of_his_records_is_drawn_and_no_other():
    persons, turns = RecordsOfPersons(CODES), np.array([0.0, 0.5, np.nextafter(1.0, 0.0)])
    for person, size in enumerate(SIZES):
        drawn = persons.records(np.full(3, person), turns)
        assert set(CODES[drawn]) == {person}
        every = persons.records(np.full(size, person), (np.arange(size) + 0.5) / size)
        assert sorted(every) == sorted(np.flatnonzero(person == CODES))
    assert set(persons.records(np.array([4, 5, 10**9]), turns)) == {len(CODES)}
    assert len(persons) == 4


@pytest.mark.parametrize("places", [None, 7])
def test_a_person_is_in_a_batch_at_most_once_and_as_often_as_any_other(places):
    drawn = batches(CODES, places=places).draw(4000)
    there = drawn < len(CODES)
    persons = np.where(there, CODES[np.where(there, drawn, 0)], -1)
    counts = np.stack([(persons == person).sum(axis=1) for person in range(4)])
    assert counts.max() == 1
    bound = 5 * np.sqrt(0.25 / 4000) + 0.05 * (places is None)
    assert np.abs(counts.mean(axis=1) - 0.5).max() < bound


def test_batches_do_not_depend_on_how_many_are_drawn_at_once():
    one, other = batches(CODES), batches(CODES)
    np.testing.assert_array_equal(one.draw(9), np.concatenate([other.draw(4), other.draw(5)]))


def test_a_record_is_drawn_anew_in_each_step():
    drawn = batches(np.zeros(1000, np.int64), rate=1.0).draw(50)
    assert len(np.unique(drawn)) > 40


def table(n_persons=60):
    X = rng.normal(size=(3 * n_persons, 4))
    return X, (X[:, 0] > 0).astype(int), np.arange(3 * n_persons) % n_persons


NETS = {
    "logistic": lambda **more: DPLogisticRegression(classes=[0, 1], **{**SOME, **more}),
    "hidden": lambda **more: DPMLPClassifier((5,), classes=[0, 1], **{**SOME, **more}),
    "numbers": lambda **more: DPMLPRegressor((5,), bounds_y=(0, 1), **{**SOME, **more}),
}


@pytest.mark.parametrize("name", NETS)
def test_with_one_record_each_a_fit_is_the_one_without_groups_to_the_last_bit(name):
    X, y, _ = table()
    cases = (None, [f"p{i * 7 % 180}" for i in range(180)])
    one, other = (NETS[name](noise_seed=1).fit(X, y, groups=groups) for groups in cases)
    assert torch.equal(flat(one.module_), flat(other.module_))
    assert (one.privacy_spent_.unit, other.privacy_spent_.unit) == ("record", "person")
    assert one.privacy_spent_.epsilon == other.privacy_spent_.epsilon


def step(X, y, groups, monkeypatch, n_persons):
    """Sum of clipped gradients of one step, nearly without noise."""
    with monkeypatch.context() as patch:
        patch.setattr(base, "seed_sequence", lambda: np.random.SeedSequence(5, pool_size=8))
        exact = {"noise_multiplier": 1e-9, "sample_rate": 1.0, "max_steps": 1, "max_grad_norm": 1.0}
        one = DPLogisticRegression(
            classes=[0, 1], learning_rate_init=1.0, learning_rate="constant", **{**SOME, **exact}
        ).fit(X, y, groups)
    return flat(one.module_).double() * n_persons


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("other_size", [1, 5_000])
@pytest.mark.parametrize("groups_given", [True, False])
def test_replacing_a_person_moves_a_step_by_two_norms(size, other_size, groups_given, monkeypatch):
    """And without groups by far more, if there are many records."""
    X, y, groups = table()
    sums = []
    for n, sign in ((size, 1.0), (other_size, -1.0)):
        mine = np.full((n, 4), 100.0 * sign)
        persons = np.append(groups, np.full(n, 60)) if groups_given else None
        n_persons = 61 if groups_given else len(X) + n
        sums.append(
            step(
                np.vstack([X, mine]), np.append(y, np.ones(n, int)), persons, monkeypatch, n_persons
            )
        )
    moved = float((sums[0] - sums[1]).norm())
    if groups_given:
        assert 0.9 < moved <= 2.0001
    elif size > 100:
        assert moved > 100


@pytest.mark.slow
def test_the_number_of_persons_stands_for_that_of_records_everywhere():
    X, y, groups = table()
    one = DPLogisticRegression(classes=[0, 1], **{**SOME, "sample_rate": None, "batch_size": 30})
    prepared = one._prepare_fit(X, y, True, None, groups)
    assert prepared.settings.sample_rate == 0.5
    assert prepared.task.expected_batch_size == pytest.approx(30.0)
    assert prepared.records.units == 60
    assert prepared.settings.guarantee == settings_of(one, 60).guarantee
    parts = one.fit(X, y, groups).privacy_spent_.assumptions
    assert [text for text in parts if "the number of persons is public" in text]
    stated = {**SOME, "noise_multiplier": None, "target_epsilon": 1.0}
    for delta, given, fine in ((0.01, groups, True), (0.01, None, False), (0.02, groups, False)):
        other = DPLogisticRegression(classes=[0, 1], target_delta=delta, **stated)
        if fine:
            other.fit(X, y, given)
        else:
            unit = "records" if given is None else "persons"
            with pytest.raises(ValueError, match=f"target_delta={delta} for [0-9]+ {unit}:"):
                other.fit(X, y, given)


def test_fits_for_records_and_for_persons_do_not_add_up():
    X, y, groups = table()
    one = NETS["logistic"](warm_start=True).fit(X, y, groups)
    assert one.fit(X, y, groups).privacy_spent_.unit == "person"
    before = flat(one.module_)
    with pytest.raises(PrivacyError, match=r"(?s)for one person.*for one record.*do not add up"):
        one.fit(X, y)
    with pytest.raises(PrivacyError, match="do not add up"):
        one.partial_fit(X, y)
    assert torch.equal(flat(one.module_), before)
    assert one.privacy_spent_.unit == "person"


def test_nothing_of_the_persons_stays():
    X, y, groups = table()
    names = [f"marked-{one}" for one in groups]
    one = NETS["logistic"]().fit(X, y, groups=names)
    assert b"marked" not in pickle.dumps(one)
    assert set(vars(one)) == set(vars(NETS["logistic"]().fit(X, y)))
    with pytest.raises(ValueError, match=r"groups of shape \(7,\) for 180 records"):
        one.fit(X, y, groups=names[:7])


SEARCHES = {
    "random": (DPRandomSearchCV, {}),
    "refit": (DPRandomSearchCV, {"refit": True}),
    "subset": (DPSubsetSearchCV, {"subset_fraction": 0.5}),
}
SPACE = {"learning_rate_factor": [0.8, 1.2]}


def search_of(name, net):
    kind, more = SEARCHES[name]
    return kind(net, SPACE, n_iter=2, epsilon=8.0, delta=1e-4, random_state=0, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_over_nets_state_everything_for_persons(name):
    X, y, groups = table(300)
    net = DPLogisticRegression(classes=[0, 1], bounds_X=(-3, 3), sample_rate=0.1, max_epochs=2)
    search = search_of(name, net).fit(X, y, groups=groups)
    spent = search.privacy_spent_
    assert (spent.unit, search.best_estimator_.privacy_spent_.unit) == ("person", "person")
    assert spent.epsilon <= 8.0
    assert spent.epsilon == search_of(name, net).privacy_cost(300).epsilon
    assert search.score(X, y) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("cv", [None, 3])
def test_the_rate_of_a_candidate_follows_from_the_persons_who_train(cv):
    """Not from the number of their records, which is nobody's business."""
    X, y, groups = table(300)
    net = DPLogisticRegression(classes=[0, 1], batch_size=20, max_steps=3)
    search = search_of("random", net).set_params(rehearse=False, cv=cv)
    work, _ = search._prepared(X, y, None, None, {"groups": groups})
    candidates = work.strategy.candidates(work.plan, Randomness(0))
    job = work.job(candidates, Randomness(1), Threads())
    training = set(groups[job.split.folds[0][0]])
    assert len(job.split.folds[0][0]) == 3 * len(training)
    assert unfitted_model(job, candidates[0], None).sample_rate in (20 / 300, 20 / len(training))


class Wary(DPLogisticRegression):
    """A subclass, whose fit may do anything."""


@pytest.mark.parametrize("kind", [Wary, DPNeuralNetClassifier])
def test_searches_refuse_persons_for_other_nets(kind):
    X, y, groups = table()
    given = {"module": torch.nn.Linear} if kind is DPNeuralNetClassifier else {}
    with pytest.raises(PrivacyError, match=r"single records.*Keep one record of each"):
        DPRandomSearchCV(kind(classes=[0, 1], **given), {}, epsilon=1.0, delta=1e-6).fit(
            X, y, groups=groups
        )
