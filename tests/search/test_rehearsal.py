"""Before a fit spends, candidates go the whole way on records made up from what is public: typos
cost nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.data._columns import frame_of
from sklearn_dpsearch.ledger import PrivacyLedger
from sklearn_dpsearch.preprocessing import TableEncoder
from sklearn_dpsearch.privacy import LeakingEstimatorError
from sklearn_dpsearch.scoring import get_private_scorer
from sklearn_dpsearch.search._planning.checks import first_look
from sklearn_dpsearch.search._synthetic_records import made_up

from .toys import NoisyCentroids, Remembering, two_blobs

X, y = two_blobs(120)
SCHEMA = {
    "age": (18, 90),
    "job": ["clerk", "unknown"],
    "since": (pd.Timestamp("2000-01-01"), pd.Timestamp("2030-01-01")),
}
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "id": np.arange(120),
        "age": rng.integers(18, 90, 120),
        "job": rng.choice(["clerk", "unknown", "other"], 120),
        "since": pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 1000, 120), "D"),
    }
)
ACCURACY = get_private_scorer("accuracy", NoisyCentroids())


@pytest.fixture
def refused(tmp_path):
    """The fit raises with a note, and neither the search nor a ledger knows of it."""
    ledger = PrivacyLedger(tmp_path / "a.ledger", epsilon=1000.0, delta=0.1)

    def check(search, X, y, error, match):
        search = clone(search).set_params(ledger=ledger)
        with pytest.raises(error, match=match) as caught:
            search.fit(X, y)
        assert not hasattr(search, "privacy_spent_")
        assert ledger.entries() == ()
        return caught.value

    return check


def table_search(model=None, **given):
    return DPRandomSearchCV(
        make_pipeline(TableEncoder(SCHEMA), model or NoisyCentroids()), {}, n_iter=2, **given
    )


def test_a_column_that_the_table_does_not_have_costs_nothing(refused):
    table = FRAME.rename(columns={"age": "Age"})
    error = refused(table_search(), table, y, ValueError, "Did you mean 'Age'")
    notes = getattr(error, "__notes__", ["nothing was spent"])
    assert any("nothing was spent" in note for note in notes)


@pytest.mark.parametrize("column", ["age", "job", "since"])
def test_a_column_of_another_type_costs_nothing(column, refused):
    other = {"age": FRAME["since"], "job": FRAME["age"], "since": FRAME["age"]}[column]
    table = FRAME.assign(**{column: other})
    refused(table_search(), table, y, TypeError, f"in column '{column}'")


@pytest.mark.parametrize(("target", "match"), [
    (y + 0.5, "continuous target has no classes"),
    (pd.Series(np.where(y, "yes", "no")), "text"),
    (pd.Series(np.where(y, "yes", "no"), dtype=object), "objects hold text|text"),
    (np.where(y, "yes", "no").astype(object), "objects hold text"),
    (y + 1j, "Complex data not supported: y"),
    (np.zeros(120, dtype=[("a", int), ("b", int)]), "structured array as y"),
    (
        [[0, 1] if label else [0] for label in y],
        "list of lists, which may differ in length|rectangular",
    ),
])  # fmt: skip
def test_targets_that_are_no_declared_class_cost_nothing(target, match, refused):
    refused(DPRandomSearchCV(Remembering(classes=[0, 1]), {}), X, target, ValueError, match)


def test_categories_are_not_told():
    """Those of ``astype("category")`` are values of records."""
    model = DPRandomSearchCV(Remembering(classes=[0, 1]), {}, n_iter=2)
    for label in ("0", "a secret"):
        found = pd.Series(np.where(y, label, "no"), dtype="category")
        assert first_look(model, model._strategy().kinds, ACCURACY, np.zeros((120, 2)), found, {})


@pytest.mark.parametrize(
    "records", [np.zeros((120, 2, 3)), np.zeros(120, dtype=[("a", float), ("b", float)])]
)
def test_records_of_another_shape_cost_nothing(records, refused):
    refused(DPRandomSearchCV(NoisyCentroids(), {}), records, y, ValueError, "3|structured")


def test_an_estimator_that_would_leak_is_found_before_it_does(refused):
    class PrivacyLeakWarning(RuntimeWarning):
        pass

    class Leaking(NoisyCentroids):
        def fit(self, X, y):
            raise PrivacyLeakWarning("bounds")

    search = DPRandomSearchCV(Leaking(), {})
    error = refused(search, X, y, LeakingEstimatorError, "PrivacyLeakWarning")
    assert error.__context__ is None


def test_every_family_is_rehearsed(refused):
    class Broken(NoisyCentroids):
        def fit(self, X, y):
            raise KeyError("a bug of mine")

    model = make_pipeline(NoisyCentroids())
    space = {"noisycentroids": [NoisyCentroids(), Broken()]}
    refused(DPRandomSearchCV(model, space, random_state=0), X, y, KeyError, "a bug of mine")


def test_an_error_that_passes_refuses_nothing():
    class Moody(NoisyCentroids):
        fits = 0

        def fit(self, X, y):
            Moody.fits += 1
            if Moody.fits == 1:
                raise ValueError("the noise was large")
            return super().fit(X, y)

    assert hasattr(DPRandomSearchCV(Moody(), {}, n_iter=2).fit(X, y), "best_score_")


def test_rehearse_false_trains_on_private_records_alone():
    Remembering.seen.clear()
    DPRandomSearchCV(Remembering(), {}, n_iter=2, rehearse=False).fit(X, y)
    assert {steps for _, _, steps in Remembering.seen} == {1000}
    Remembering.seen.clear()
    DPRandomSearchCV(Remembering(), {}, n_iter=2).fit(X, y)
    rehearsed, *others = Remembering.seen
    assert rehearsed[2] < 10
    assert {steps for _, _, steps in others} == {1000}
    assert not np.isin(rehearsed[0], X).any()


def test_a_search_inside_a_search_is_not_rehearsed_again():
    Remembering.seen.clear()
    inner = DPRandomSearchCV(Remembering(), {}, n_iter=2, cv=0.2)
    assert hasattr(DPRandomSearchCV(inner, {}, n_iter=2, random_state=0).fit(X, y), "best_score_")
    own = [records for records, _, steps in Remembering.seen if steps == 1000]
    # a rehearsal of the inner fit would have trained in full
    assert all(np.isin(records, X).all() for records in own)


@pytest.mark.slow
@pytest.mark.processes
def test_nothing_is_said_but_why_nothing_was_rehearsed(capsys):
    class Chatty(NoisyCentroids):
        def fit(self, X, y):
            print("I am here")
            return super().fit(X, y)

    DPRandomSearchCV(Chatty(), {}, n_iter=2).fit(X, y)
    model = make_pipeline(FunctionTransformer(np.abs), NoisyCentroids())
    DPRandomSearchCV(model, {}, n_iter=2).fit(X, y)
    assert capsys.readouterr() == ("", "")
    DPRandomSearchCV(model, {}, n_iter=2, verbose=1).fit(X, y)
    assert "not rehearsed on made-up records: Found FunctionTransformer" in capsys.readouterr().out


# --- what is read of private records --------------------------------------------------------------

KINDS = {
    "array": lambda values: values, "integers": lambda values: values.astype(np.int16),
    "objects": lambda values: values.astype(object),
    "images": lambda values: np.stack([values] * 3, axis=1),
    "frame": lambda values: pd.DataFrame(values, columns=["a", "b"]), "sparse": csr_array,
}  # fmt: skip


def emptied(X, y=y):
    """What a rehearsal is given of the records."""
    seen = first_look(DPRandomSearchCV(MultinomialNB(), {}), [], ACCURACY, X, y, {})
    assert [header.shape[0] for header in seen.headers] == [0, 0]
    return seen.headers


@pytest.mark.parametrize("kind", KINDS)
def test_only_names_shapes_and_types_are_read(kind):
    cases = (X, np.zeros_like(X))
    made = [made_up(NoisyCentroids(), ACCURACY, emptied(KINDS[kind](values))) for values in cases]
    first, second = (
        records.toarray() if kind == "sparse" else np.asarray(records) for records, _ in made
    )  # fmt: skip
    np.testing.assert_array_equal(first, second)
    assert type(made[0][0]) is type(KINDS[kind](X))
    assert first.shape[1:] == np.asarray(KINDS["array" if kind == "sparse" else kind](X)).shape[1:]
    assert first.dtype == np.asarray(KINDS[kind](X)).dtype if kind != "sparse" else True


def test_a_table_is_made_up_with_its_own_columns_and_types():
    encoder = make_pipeline(TableEncoder(SCHEMA), NoisyCentroids())
    kind, ages = pd.Categorical(FRAME["job"]), FRAME["age"]
    more = frame_of(FRAME.assign(kind=kind, flag=ages > 30, size=ages.astype("Int64")))
    made, targets = made_up(encoder, ACCURACY, emptied(more))
    assert list(made.columns) == list(more.columns)
    assert list(made.dtypes) == list(more.dtypes)
    assert made["age"].between(18, 90).all()
    assert set(made["job"]) == {"clerk", "unknown"}
    assert set(targets) == {0, 1}
    others = more.iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(made, made_up(encoder, ACCURACY, emptied(others))[0])


# --- nets -----------------------------------------------------------------------------------------


def net(module, **given):
    nets = pytest.importorskip("sklearn_dpsearch.nets")
    pytest.importorskip("skorch")
    options = {"noise_multiplier": 1.0, "max_epochs": 50, "lr": 0.1}
    return nets.DPNeuralNetClassifier(module, classes=[0, 1], sample_rate=0.1, **options, **given)


def faulty(name):
    nn = pytest.importorskip("torch.nn")
    layers = {
        "batch norm": [nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)],
        "in_features": [nn.Linear(3, 2)],
        "classes": [nn.Linear(2, 1)],
    }
    return nn.Sequential(*layers[name])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "match"), [
    ("batch norm", "BatchNorm1d"), ("in_features", "Expected size|shape"),
    ("classes", "class|outputs"),
])  # fmt: skip
def test_a_module_that_does_not_fit_the_records_costs_nothing(name, match, refused):
    search = DPRandomSearchCV(net(faulty(name)), {"lr": [0.1]}, delta=1e-5)
    refused(search, X.astype(np.float32), y, (ValueError, RuntimeError), match)


def test_a_net_is_rehearsed_for_a_few_steps():
    torch = pytest.importorskip("torch")
    from sklearn_dpsearch.nets._sampling import PoissonBatches

    seen, honest = [], PoissonBatches.draw

    def counting(self, steps):
        seen.append(steps)
        return honest(self, steps)

    search = DPRandomSearchCV(net(torch.nn.Linear(2, 2)), {}, n_iter=2, delta=1e-5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PoissonBatches, "draw", counting)
        patch.setattr(type(search), "_spend", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            search.fit(X.astype(np.float32), y)
    assert 0 < sum(seen) <= 10
