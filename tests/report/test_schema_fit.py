"""A report on the fit of a schema: what it counts, what one record moves, and what it costs."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from sklearn_dpsearch import BudgetExceededError, PrivacyError, PrivacyLedger
from sklearn_dpsearch.preprocessing import Schema
from sklearn_dpsearch.preprocessing._columns import FITS
from sklearn_dpsearch.privacy import GaussianDP, PureDP
from sklearn_dpsearch.report import _schema_fit as schema_fit
from sklearn_dpsearch.report import schema_report
from sklearn_dpsearch.scoring import DiscreteGaussianNoise, DiscreteLaplaceNoise

SCHEMA = Schema(
    {
        "age": (17, 90),
        "job": ["clerk", "nurse"],
        "since": (date(2000, 1, 1), date(2030, 1, 1)),
        "town": {"buckets": 8},
    },
)  # fmt: skip
PEOPLE = pd.DataFrame(
    {
        "age": [17, 90, 16.5, 91, None, np.inf, -np.inf, 40],
        "job": ["clerk", "Clerk", None, "nurse", 3, float("nan"), "nurse", "clerk"],
        "since": [
            "2001-05-31", "1999-12-31", None, "soon", "2031-01-01", "2029-01-01", "2000-01-01",
            "2030-01-01",
        ],
        "town": ["x", None, "y", "z", "x", "x", float("nan"), "x"],
    },
)  # fmt: skip


def cells(X, schema=SCHEMA):
    """Every column's exact counts."""
    found = {}
    for name, column in schema.columns.items():
        misfits, ways = column.misfits(X[name].to_numpy()), len(column.ways_to_misfit)
        found[name] = np.bincount(misfits, minlength=ways + 1)
    return found


def quiet(monkeypatch):
    """Take the noise away."""
    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", lambda self, rng=None: 0)
    monkeypatch.setattr(DiscreteGaussianNoise, "sample", lambda self, rng=None: 0)


def test_each_value_is_in_one_cell(monkeypatch):
    quiet(monkeypatch)
    shares = schema_report(PEOPLE, SCHEMA, epsilon=1.0).shares
    assert shares == {
        "age": {"missing": 1 / 8, "below": 2 / 8, "above": 2 / 8},
        "job": {"missing": 2 / 8, "unknown": 2 / 8},
        "since": {"missing": 2 / 8, "below": 1 / 8, "above": 1 / 8},
        "town": {"missing": 2 / 8},
    }
    assert {name: list(found) for name, found in cells(PEOPLE).items()}["age"] == [3, 1, 2, 2]


def test_one_record_moves_no_more_than_the_sensitivity_says():
    """Every pair of records, one in the place of the other, and every record present or absent."""
    for i in range(len(PEOPLE)):
        others = PEOPLE.drop(index=i)
        moved = [np.abs(a - b) for a, b in zip(cells(PEOPLE).values(), cells(others).values())]
        assert [move.sum() for move in moved] == [1] * 4
        for j in range(len(PEOPLE)):
            replaced = PEOPLE.copy()
            replaced.loc[i] = PEOPLE.loc[j]
            moved = [
                np.abs(a - b) for a, b in zip(cells(PEOPLE).values(), cells(replaced).values())
            ]
            assert max(move.sum() for move in moved) <= 2
            assert max((move**2).sum() for move in moved) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighboring", "moves"), [("zero_out", 1), ("add_remove", 1), ("replace_one", 2)]
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_keeps_the_price_for_all_columns_together(neighboring, moves, delta):
    noise, guarantee = schema_fit._count_noise(20, 0.5, delta, neighboring)
    assert 0.49 < guarantee.epsilon_at(delta) <= 0.5
    assert guarantee.neighboring == neighboring
    if delta == 0:  # the sum of 20 pure mechanisms with the noise of one count
        assert isinstance(guarantee, PureDP)
        assert guarantee.epsilon == pytest.approx(20 * moves * np.sqrt(2) / noise.std)
    else:  # a Gaussian mechanism whose means differ by sqrt(20 * moves), in steps of one
        mu = np.sqrt(20 * moves) / noise.std
        assert GaussianDP(mu=mu).epsilon_at(delta) == pytest.approx(0.5, rel=0.02)
        assert noise.std < schema_fit._count_noise(20, 0.5, 0.0, neighboring)[0].std


def test_every_count_gets_noise_of_its_own(monkeypatch):
    drawn = []

    def sample(self, rng=None):
        drawn.append(self)
        return len(drawn)

    monkeypatch.setattr(DiscreteLaplaceNoise, "sample", sample)
    report = schema_report(PEOPLE, SCHEMA, epsilon=1.0)
    assert len(drawn) == 4 + 3 + 4 + 2
    assert report.shares["town"] == {"missing": (2 + 13) / (8 + 12 + 13)}


def test_it_is_close_where_records_are_many():
    report = schema_report(pd.concat([PEOPLE] * 2000), SCHEMA, epsilon=1.0)
    assert report.std < 0.001
    assert report.shares["job"]["unknown"] == pytest.approx(0.25, abs=0.01)
    assert list(report.to_frame().loc["age"].dropna().index) == ["missing", "below", "above"]
    assert "job: missing 0.2" in str(report)


# --- what it costs --------------------------------------------------------------------------------


def test_the_cost_is_in_the_ledger_before_a_value_is_used(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "people", epsilon=1.0, delta=1e-6)
    entered = []
    released = schema_fit.release_sum

    def watched(*given):
        entered.append(len(ledger.entries()))
        return released(*given)

    monkeypatch.setattr(schema_fit, "release_sum", watched)
    with ledger:
        report = schema_report(PEOPLE, SCHEMA, epsilon=0.6)
    assert set(entered) == {1}
    assert ledger.spent().epsilon == pytest.approx(0.6, rel=1e-4) == report.privacy_spent_.epsilon
    assert "schema was not taken from the records" in report.privacy_spent_.assumptions[0]
    entered.clear()
    with pytest.raises(BudgetExceededError):
        schema_report(PEOPLE, SCHEMA, epsilon=0.6, ledger=ledger)
    assert entered == []


@pytest.mark.parametrize(("given", "error", "words"), [
    ({"epsilon": 0.0}, ValueError, "epsilon"),
    ({"delta": 0.5}, PrivacyError, "publishing one of them"),
    ({"neighboring": "swap"}, ValueError, "neighboring"),
    ({"ledger": "people"}, TypeError, "PrivacyLedger"),
    ({"X": PEOPLE.drop(columns="age")}, ValueError, "'age'.*missing from"),
    ({"X": PEOPLE.assign(job=1)}, TypeError, "'job'"),
    ({"schema": {"age": [1]}, "X": PEOPLE[["age"]].assign(age="x")}, None, ""),
])  # fmt: skip
def test_what_cannot_be_is_said_before_anything_is_spent(given, error, words, tmp_path):
    ledger = PrivacyLedger(tmp_path / "people", epsilon=9.0, delta=1e-6)
    call = {"X": PEOPLE, "schema": SCHEMA, "epsilon": 1.0, "ledger": ledger, **given}
    if error is None:  # text where numbers are listed: all unknown, and no error
        assert schema_report(**call).shares["age"]["unknown"] >= 0
        return
    with pytest.raises(error, match=words):
        schema_report(**call)
    assert ledger.entries() == ()


def test_cells_have_names_of_their_own():
    for column in SCHEMA.columns.values():
        assert len({FITS, *column.ways_to_misfit}) == len(column.ways_to_misfit) + 1


# --- persons --------------------------------------------------------------------------------------


def test_one_record_of_each_person_is_counted(monkeypatch):
    """A person with ten thousand records moves a count as far as one with one."""
    quiet(monkeypatch)
    people = pd.DataFrame({"age": [40.0] * 10_000 + [None] * 3 + [10.0] * 7})
    groups = ["ann"] * 10_000 + ["bob"] * 3 + [None] * 7
    report = schema_report(people, {"age": (17, 90)}, epsilon=1.0, groups=groups)
    assert report.shares == {"age": {"missing": 1 / 9, "below": 7 / 9, "above": 0.0}}
    assert report.privacy_spent_.unit == "person"


def test_a_record_is_drawn_uniformly_and_anew(monkeypatch):
    quiet(monkeypatch)
    people, groups = pd.DataFrame({"age": [None, 40.0, 40.0, 40.0] * 2000}), np.arange(8000) // 4
    found = [schema_report(people, {"age": (17, 90)}, epsilon=1.0, groups=groups) for _ in range(8)]
    shares = [report.shares["age"]["missing"] for report in found]
    assert shares == pytest.approx([0.25] * 8, abs=0.06)  # six standard deviations
    assert len(set(shares)) > 1  # two draws agree in 3 of 100, eight in 1 of 10**10


def test_without_several_records_a_report_is_that_of_records(monkeypatch):
    quiet(monkeypatch)
    cases = (None, list("abcdefgh"))
    one, other = (schema_report(PEOPLE, SCHEMA, epsilon=1.0, groups=groups) for groups in cases)
    assert one.shares == other.shares
    assert one.privacy_spent_.guarantee == other.privacy_spent_.guarantee
    assert one.privacy_spent_.unit == "record"


def test_delta_is_compared_with_the_number_of_persons():
    groups = [1, 1, 2, 2, 3, 3, 4, 4]
    schema_report(PEOPLE, SCHEMA, epsilon=1.0, delta=0.2, groups=groups)
    with pytest.raises(PrivacyError, match=r"Found delta=0.2 for 8 records: .* 1/n = 0.125"):
        schema_report(PEOPLE, SCHEMA, epsilon=1.0, delta=0.2)
    with pytest.raises(PrivacyError, match=r"Found delta=0.3 for 4 persons: .* 1/n = 0.25"):
        schema_report(PEOPLE, SCHEMA, epsilon=1.0, delta=0.3, groups=groups)
