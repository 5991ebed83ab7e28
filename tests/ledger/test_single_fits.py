"""Inside of a block every private fit of this library enters itself, once, before it uses a
record."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.audit import audit, audit_one_run, replay
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.ledger import PrivacyLedger
from sklearn_dpsearch.report import schema_report

pd = pytest.importorskip("pandas")

N = 60
X = pd.DataFrame(
    {"age": np.linspace(18, 90, N), "job": ["a", "b"] * (N // 2), "ward": 1, "pay": 2.0}
)
y = np.arange(N) % 2
SCHEMA = {"age": (18, 90), "job": ["a", "b"], "ward": (0, 9), "pay": (0.0, 9.0)}


def boosting(**changed):
    return DPGradientBoostingClassifier(
        SCHEMA, **{"classes": [0, 1], "target_mu": 0.2, "max_iter": 2, **changed}
    )


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.ledger", epsilon=3.0, delta=1e-5)


def entered(ledger):
    return [(entry.name, entry.guarantee) for entry in ledger.entries()]


ONE = dp.GaussianDP(mu=0.2, neighboring="zero_out")


def test_three_fits_in_a_block_are_three_entries_that_name_their_columns(ledger):
    with ledger:
        for _ in range(3):
            boosting().fit(X, y)
    assert entered(ledger) == [("DPGradientBoostingClassifier", ONE)] * 3
    expected = "DPGradientBoostingClassifier: age, job, ward, … (4 columns)"
    assert ledger.entries()[0].title == expected
    with ledger.label("baseline"):
        boosting().fit(X, y)
    assert ledger.entries()[3].label == "baseline (age, job, ward, … (4 columns))"
    boosting().fit(X, y)
    assert len(ledger.entries()) == 4


def test_a_fit_that_the_budget_does_not_allow_uses_no_record(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "small.ledger", epsilon=0.1, delta=1e-5)
    model = boosting(target_mu=1.0)
    monkeypatch.setattr(type(model), "_train", lambda *given: pytest.fail("a record was used"))
    with ledger, pytest.raises(dp.BudgetExceededError, match="No record was used"):
        model.fit(X, y)
    assert not hasattr(model, "privacy_spent_")
    assert ledger.entries() == ()


def test_what_fails_afterwards_is_spent(ledger, monkeypatch):
    monkeypatch.setattr(DPGradientBoostingClassifier, "_train", lambda *given: 1 / 0)
    with ledger, pytest.raises(Exception, match="."):
        boosting().fit(X, y)
    assert len(ledger.entries()) == 1


def test_a_search_is_one_entry_and_so_is_a_pipeline(ledger):
    with ledger:
        DPRandomSearchCV(boosting(), {}, n_iter=2, epsilon=1.0, delta=1e-5).fit(X, y)
        make_pipeline(FunctionTransformer(), boosting()).fit(X, y)
        schema_report(X, SCHEMA, epsilon=0.1)
    names = [entry.name for entry in ledger.entries()]
    assert names == ["DPRandomSearchCV", "DPGradientBoostingClassifier", "schema_report"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["boosting", "net"])
@pytest.mark.parametrize("ensemble", [False, True])
def test_worker_processes_enter_what_they_fit(ledger, kind, ensemble):
    model = boosting()
    if kind == "net":
        pytest.importorskip("torch")
        from sklearn_dpsearch.nets import DPTabularClassifier

        options = {"noise_multiplier": 9.0, "sample_rate": 0.1, "max_steps": 3}
        model = DPTabularClassifier(SCHEMA, classes=[0, 1], **options)
    with ledger:
        if ensemble:  # clones its estimator in the workers, and fits there
            bag = BaggingClassifier(model, n_estimators=3, bootstrap=False, n_jobs=2).fit(X, y)
            assert not any("_ledger_" in vars(fitted) for fitted in bag.estimators_)
        else:
            steps = make_pipeline(FunctionTransformer(), model)
            cross_val_score(steps, X, y, cv=KFold(3), n_jobs=2)
    assert [entry.name for entry in ledger.entries()] == [type(model).__name__] * 3
    assert "_ledger_" not in vars(pickle.loads(pickle.dumps(model)))


@pytest.mark.parametrize("fitted", [False, True])
def test_a_model_that_is_fitted_again_in_a_worker_is_entered_again(ledger, fitted):
    model = boosting()
    if fitted:  # before the block, say on public records
        model.fit(X, y)
    with ledger:
        content = pickle.dumps(model)
    model = pickle.loads(content)
    assert [len(ledger.entries()) for _ in range(2) if model.fit(X, y)] == [1, 2]
    assert [len(ledger.entries()) for _ in range(2) if clone(model).fit(X, y)] == [3, 4]
    assert "_ledger_" not in vars(pickle.loads(pickle.dumps(model)))


def test_nets_enter_each_training_alone(ledger):
    pytest.importorskip("torch")
    from sklearn_dpsearch.nets import DPLogisticRegression, DPTabularClassifier

    options = {"noise_multiplier": 4.0, "sample_rate": 0.1, "max_steps": 3}
    net = DPTabularClassifier(SCHEMA, classes=[0, 1], **options)
    with ledger:
        net.fit(X, y)
        net.partial_fit(X, y)
        nets = [
            DPLogisticRegression(classes=[0, 1], noise_multiplier=4.0, sample_rate=0.1, max_steps=3)
            for _ in "ab"
        ]
        DPLogisticRegression.fit_together(nets, X[["age"]].to_numpy(), y)
    guarantees = {guarantee for _, guarantee in entered(ledger)}
    expected = ["DPTabularClassifier"] * 2 + ["DPLogisticRegression"] * 2
    assert [name for name, _ in entered(ledger)] == expected
    assert guarantees == {net.privacy_guarantee(N)}
    assert ledger.entries()[0].label == "age, job, ward, … (4 columns)"


class Private(ClassifierMixin, BaseEstimator):
    """A private model of another library."""

    def privacy_guarantee(self, n_samples=None):
        return dp.PureDP(epsilon=0.5, neighboring="zero_out")

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self


def test_a_model_of_another_library_is_entered_by_the_ledger(ledger):
    with ledger:
        Private().fit(X, y)  # cannot be seen
    assert ledger.entries() == ()
    model = ledger.fit(given := Private(), X, y)
    assert not hasattr(given, "classes_")  # a clone is trained
    assert entered(ledger) == [("Private", dp.PureDP(epsilon=0.5, neighboring="zero_out"))]
    ledger.fit(boosting(), X, y)
    ledger.fit(make_pipeline(FunctionTransformer(), boosting()), X, y)
    expected = ["Private", "DPGradientBoostingClassifier", "Pipeline"]
    assert [entry.name for entry in ledger.entries()] == expected
    assert list(model.classes_) == [0, 1]


def test_a_model_that_promises_nothing_is_refused(ledger):
    from sklearn.svm import SVC

    with pytest.raises(dp.UnknownGuaranteeError, match="SVC"):
        ledger.fit(SVC(), X[["age"]], y)
    assert ledger.entries() == ()


@pytest.mark.parametrize("work", [
    lambda: audit(boosting(), X, y, n_runs=10), lambda: audit_one_run(boosting(), X, y, X, y),
    lambda: replay(boosting(), X, y, neighbour=(X, y)),
], ids=["audit", "audit_one_run", "replay"])  # fmt: skip
def test_work_without_privacy_is_refused_in_a_block(ledger, work):
    with ledger, pytest.raises(dp.PrivacyError, match="its result is not private"):
        work()


def test_entries_of_searches_name_model_and_columns(ledger):
    options = {"n_iter": 2, "epsilon": 0.5, "delta": 1e-6}
    search = DPRandomSearchCV(boosting(target_mu=None), {"max_iter": [2]}, **options)
    with ledger:
        search.fit(X, y)
    (entry,) = ledger.entries()
    assert entry.label == "DPGradientBoostingClassifier: age, job, ward, … (4 columns)"
