"""Persons in searches: one coin each, all records of those that train, one of each that validates,
and no trace."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, PrivacyLedger
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.privacy import PrivacyError, PureDP
from sklearn_dpsearch.search._execution.job import FinalTraining, Split
from sklearn_dpsearch.search._execution.randomness import Randomness
from sklearn_dpsearch.search._execution.workers import Threads
from sklearn_dpsearch.search._private_fit import in_records

from .tables_toys import SEARCHES, SPACE, TABLE, classifier
from .toys import Untouchable

#: Persons with 1, 2, 3 … records, and one with a sixth of all.
GROUPS = np.random.default_rng(0).permutation(
    [f"patient {person}" for person in [*range(300), *range(150), *range(50), *[7] * 100]]
)
N_PERSONS = 300


def split_of(search, **given):
    """Roles of records in a planned fit with persons, and those of persons."""
    work, _ = search._prepared(TABLE, TABLE["pay"], None, None, {"groups": GROUPS, **given})
    assert work.n_samples == N_PERSONS
    candidates = work.strategy.candidates(work.plan, Randomness(0))
    return work.job(candidates, Randomness(1), Threads()).split, work


@pytest.mark.parametrize("name", SEARCHES)
def test_a_person_is_on_one_side_and_has_one_vote(name):
    """All records of who trains, one of who validates; in grids also none of a person in two
    parts."""
    split, _ = split_of(SEARCHES[name](classifier()).set_params(rehearse=False))
    parts = []
    for (train, test), n_scored in zip(split.folds, split.n_scored or [None] * len(split.folds)):
        training, validating = set(GROUPS[train]), GROUPS[test].tolist()
        assert not training & set(validating)
        assert len(validating) == len(set(validating))
        assert sorted(train) == sorted(np.flatnonzero(np.isin(GROUPS, list(training))))
        assert n_scored is None or name == "subset" or n_scored == len(test)
        parts.append(training | set(validating))
    if name == "grid":
        assert sum(map(len, parts)) == len(set.union(*parts)) == N_PERSONS
    if name in ("random", "threshold"):
        assert parts == [set(GROUPS)]
    if name == "subset":  # the final training has all records of the rest
        rest = set(GROUPS) - set(GROUPS[split.folds[0][0]])
        assert set(GROUPS[split.final.records]) == rest
        assert len(split.final.records) == np.isin(GROUPS, list(rest)).sum()
        assert split.n_scored[0] <= N_PERSONS


def test_the_record_that_votes_is_drawn_anew():
    persons = np.arange(400) // 4
    fold = (np.arange(50), np.arange(50, 100))
    final = FinalTraining(settings={}, records=np.arange(50, 100), candidates=())
    found = [
        in_records(Split(folds=[fold], final=final), persons, np.random.default_rng(seed).bytes)
        for seed in (0, 1)
    ]
    for split in found:
        (train, test), last = split.folds[0], split.final.records
        assert train.tolist() == list(range(200))
        assert (test // 4).tolist() == list(range(50, 100))
        assert last.tolist() == list(range(200, 400))
    assert found[0].folds[0][1].tolist() != found[1].folds[0][1].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_goes_from_persons_to_labels_and_leaves_no_trace_of_them(name):
    search = SEARCHES[name](classifier()).fit(TABLE, TABLE["pay"], groups=GROUPS)
    assert search.score(TABLE, TABLE["pay"]) > 0.7
    spent = search.privacy_spent_
    assert (spent.unit, search.best_estimator_.privacy_spent_.unit) == ("person", "person")
    assert spent.epsilon <= 8.0
    assert spent.release.n_samples == N_PERSONS
    assert "one person's records are all blanked" in str(spent.report("markdown"))
    assert "Number of persons" in str(spent.report("markdown"))
    assert b"patient" not in pickle.dumps(search)
    assert spent.epsilon == SEARCHES[name](classifier()).privacy_cost(N_PERSONS).epsilon


def test_candidates_of_a_pipeline_get_the_persons_of_their_records(tmp_path):
    search = SEARCHES["random"](
        Pipeline([("same", FunctionTransformer()), ("model", classifier())])
    )
    search.set_params(param_distributions={"model__prior_factor": [0.2, 0.4]}, ledger=None)
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=9.0, delta=1e-4)
    with ledger:
        search.fit(TABLE, TABLE["pay"], groups=GROUPS)
    model = search.best_estimator_[-1]
    assert search.privacy_spent_.unit == "person"
    assert ledger.spent().unit == "person"
    assert isinstance(model, DPGradientBoostingClassifier)


@pytest.mark.parametrize(("estimator", "given"), [
    (LinearSVC(), {"guarantee": PureDP(epsilon=1.0, neighboring="zero_out")}),
    (classifier(), {"guarantee": PureDP(epsilon=1.0, neighboring="zero_out")}),
    (DPRandomSearchCV(classifier(), SPACE, epsilon=1.0, delta=1e-6), {}),
])  # fmt: skip
def test_what_is_private_in_records_alone_is_refused_before_any_is_read(estimator, given):
    search = DPRandomSearchCV(estimator, {}, epsilon=None if given else 1.0, delta=1e-6, **given)
    match = r"single records.*Keep one record of each.*for_group\(k\).*Nothing was"
    with pytest.raises(PrivacyError, match=match):
        search.fit(Untouchable(300), Untouchable(300), groups=GROUPS)


@pytest.mark.parametrize("cv", [KFold(3), GroupKFold(3), [([0, 1], [2])]])
def test_folds_by_record_number_are_refused(cv):
    search = DPRandomSearchCV(classifier(), SPACE, epsilon=1.0, delta=1e-6, cv=cv)
    match = r"Found groups in fit, and cv=.*one coin for all of his records"
    with pytest.raises(PrivacyError, match=match):
        search.fit(Untouchable(300), Untouchable(300), groups=GROUPS)


def test_delta_is_compared_with_the_number_of_persons():
    few = TABLE.head(400)
    search = DPSubsetSearchCV(classifier(), SPACE, epsilon=1.0, delta=0.004, rehearse=False)
    search._prepared(few, few["pay"], None, None, {"groups": np.arange(400) % 200})
    with pytest.raises(PrivacyError, match="delta=0.004 for 400 records"):
        search._prepared(few, few["pay"], None, None, {})
    large = clone(search).set_params(delta=0.01)
    with pytest.raises(PrivacyError, match="delta=0.01 for 200 persons"):
        large._prepared(few, few["pay"], None, None, {"groups": np.arange(400) % 200})
    with pytest.raises(ValueError, match=r"Found groups of shape \(399,\) for 400 records"):
        search._prepared(few, few["pay"], None, None, {"groups": np.arange(399)})
