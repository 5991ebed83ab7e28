"""Tables with names, text and gaps in a search: a schema makes numbers of them, and costs
nothing."""

from __future__ import annotations

import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV, PrivacyError
from sklearn_dpsearch.nets import DPLogisticRegression
from sklearn_dpsearch.preprocessing import TableEncoder

from .tables_toys import SCHEMA, TABLE

FEATURES = SCHEMA.without("pay", "price")


def model(encoder=None):
    encoder = TableEncoder(FEATURES) if encoder is None else encoder
    return make_pipeline(
        encoder, DPLogisticRegression(classes=SCHEMA.classes("pay"), sample_rate=0.1, max_epochs=5)
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "kind", [DPRandomSearchCV, pytest.param(DPSubsetSearchCV, marks=pytest.mark.slow)]
)
def test_a_search_goes_from_a_table_to_labels(kind, library):
    frame = pytest.importorskip(library).DataFrame({name: TABLE[name].to_list() for name in TABLE})
    options = {"n_iter": 3, "epsilon": 8.0, "delta": 1e-4}
    search = kind(model(), {"dplogisticregression__learning_rate_factor": [0.5, 1.0]}, **options)
    search.fit(frame, frame["pay"])
    assert search.score(frame, frame["pay"]) > 0.8
    assert set(search.predict(frame)) <= {"low", "high"}
    assert (
        "The schema of step 'tableencoder' was not taken from the records, and the types of its "
        "columns are public." in search.privacy_spent_.assumptions
    )
    assert search.best_estimator_[0].get_feature_names_out()[0] == "age"


class Learning(TableEncoder):
    """Takes its range from the records."""

    def fit(self, X, y=None):
        self.schema = {"age": (X["age"].min(), X["age"].max())}
        return super().fit(X, y)


@pytest.mark.parametrize(
    "step", [Learning({"age": (0, 1)}), MinMaxScaler()], ids=["subclass", "MinMaxScaler"]
)
def test_a_step_that_may_learn_is_refused_and_pointed_to_the_schema(step):
    with pytest.raises(PrivacyError, match="(learns|to learn nothing) from the data.*TableEncoder"):
        DPRandomSearchCV(
            model(step), {"dplogisticregression__alpha": [0.0]}, delta=1e-5
        ).privacy_cost()


@pytest.mark.slow
def test_a_dry_run_needs_no_records_where_there_is_a_schema():
    space = {"dplogisticregression__alpha": [0.0]}
    assert DPRandomSearchCV(model(), space, epsilon=8.0, delta=1e-4).dry_run().score >= 0
    columns = make_column_transformer(
        (TableEncoder(FEATURES.without("age")), ["job"]), remainder="drop"
    )
    with pytest.raises(Exception, match=r"Found ColumnTransformer.*Give X_example and y_example"):
        DPRandomSearchCV(model(columns), space, epsilon=8.0, delta=1e-4).dry_run()


def of_diffprivlib():
    models = pytest.importorskip("diffprivlib.models")
    plain, short = TableEncoder(FEATURES), TableEncoder(FEATURES, row_norm=1.0)
    yield plain, models.LogisticRegression(data_norm=plain.max_norm, fit_intercept=False)
    yield short, models.LogisticRegression(data_norm=1.0, fit_intercept=False)
    yield plain, models.GaussianNB(bounds=plain.bounds)
    yield plain, models.DecisionTreeClassifier(bounds=plain.bounds, classes=["high", "low"])


@pytest.mark.slow
@pytest.mark.parametrize("case", range(4))
def test_models_of_diffprivlib_take_bounds_and_norms_from_the_schema(case):
    encoder, estimator = list(of_diffprivlib())[case]
    search = DPRandomSearchCV(make_pipeline(encoder, estimator), {}, n_iter=2, epsilon=20.0).fit(
        TABLE, TABLE["pay"]
    )
    assert search.privacy_spent_.epsilon <= 20.0
    assert set(search.predict(TABLE)) <= {"high", "low"}
