"""Plan, dry run and output say how the columns of a table are understood, before anything is
spent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.preprocessing import TableEncoder

from .toys import NoisyCentroids

SCHEMA = {"age": (18, 90), "job": [f"job {number}" for number in range(9)], "paid": ["no", "yes"]}
RNG = np.random.default_rng(0)
AGES, JOB, PAID = RNG.integers(18, 90, 200), *(RNG.choice(SCHEMA[n], 200) for n in ("job", "paid"))
TABLE = pd.DataFrame({"age": AGES, "job": JOB, "paid": PAID})
JOBS = "job: one of 9 values: 'job 0', 'job 1', 'job 2', 'job 3', 'job 4', 'job 5' and 3 more"


def boosting():
    return DPGradientBoostingClassifier(SCHEMA, target="paid", max_iter=5, max_bins=16)


def test_a_model_says_how_it_reads_each_column():
    assert boosting().columns_read() == [
        "age: number from 18 to 90, 16 bins",
        JOBS,
        "paid: one of 2 values: 'no', 'yes' (the target)",
    ]
    expected = ["age: number from 18 to 90, 17 bins"]
    assert TableEncoder({"age": (18, 90)}, bins=17).columns_read() == expected
    assert TableEncoder({"age": (18, 90)}).columns_read() == ["age: number from 18 to 90"]


@pytest.mark.slow
def test_output_has_a_line_for_each_column_and_the_cost_in_words(capsys):
    search = DPRandomSearchCV(boosting(), {}, n_iter=2, epsilon=1.0, delta=1e-5, verbose=1)
    search.fit(TABLE, TABLE["paid"])
    first, *lines = capsys.readouterr().out.splitlines()
    assert "the whole fit costs epsilon = " in first
    assert "at delta = 1e-05 for any one record" in first
    assert "PrivacySpent" not in first
    assert [line.strip() for line in lines[:3]] == boosting().columns_read()


def test_the_encoder_of_a_pipeline_is_asked_and_no_schema_means_no_line():
    model = make_pipeline(TableEncoder({"age": (18, 90)}), NoisyCentroids())
    assert DPRandomSearchCV(model, {}, n_iter=2).dry_run().columns == ("age: number from 18 to 90",)
    assert DPRandomSearchCV(NoisyCentroids(), {}, n_iter=2).dry_run().columns == ()


def test_the_target_need_not_be_among_the_columns():
    features = TABLE.drop(columns="paid")
    search = DPRandomSearchCV(boosting(), {}, n_iter=1, epsilon=1.0, delta=1e-5).fit(
        features, TABLE["paid"]
    )
    assert set(search.predict(features)) <= {"no", "yes"}


def test_a_schema_of_another_library_is_none_of_ours():
    class Versioned(NoisyCentroids):
        def __init__(self, epsilon=1.0, shrink=0.0, schema="v1"):
            super().__init__(epsilon=epsilon, shrink=shrink)
            self.schema = schema

    table = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["a", "b"])
    search = DPRandomSearchCV(Versioned(), {}, n_iter=1, random_state=0).fit(
        table, np.arange(200) % 2
    )
    assert len(search.predict(table)) == 200


def test_only_a_model_that_a_record_may_stop_rests_on_valid_records():
    for stated, model in (
        (False, boosting()),
        # whose classes are those that occur
        (True, boosting().set_params(schema={"age": (18, 90)}, target=None)),
        (True, NoisyCentroids()),
        (True, make_pipeline(TableEncoder({"age": (18, 90)}), NoisyCentroids())),
    ):
        search = DPRandomSearchCV(model, {}, n_iter=2, epsilon=1.0, delta=1e-5)
        assert ("valid input" in " ".join(search.privacy_cost(200).assumptions)) == stated
