"""What entries cost together, what still fits, and what is refused."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dpsearch import BudgetExceededError, PrivacyError, PrivacyLedger
from sklearn_dpsearch.ledger._entry import Entry, as_written, read_entry, total_epsilon
from sklearn_dpsearch.privacy import (
    DPSGD,
    GaussianDP,
    MixedNeighborsError,
    NonPrivate,
    ProfileDP,
    PureDP,
    as_replace_one,
    best_of,
    calibrate,
    compose,
)
from sklearn_dpsearch.privacy._spent import PrivacySpent
from sklearn_dpsearch.privacy._statement.content import up


def sgd(noise, steps=1000):
    return DPSGD(noise_multiplier=noise, sample_rate=0.01, steps=steps)


# --- totals ---------------------------------------------------------------------------------------


def test_the_total_is_that_of_the_accountant(begin):
    ledger = begin()
    parts = [PureDP(epsilon=0.1), GaussianDP(mu=0.3), best_of(PureDP(epsilon=0.1), 5)]
    for guarantee in parts:
        ledger.spend(guarantee)
    assert ledger.spent().epsilon == compose(*parts).epsilon_at(1e-5)


def test_a_guarantee_that_cannot_be_written_down_is_refused_with_what_to_do(begin):
    ledger = begin()
    with pytest.raises(PrivacyError, match=r"no plain values.*Build it with ProfileDP\.from_pld"):
        ledger.spend(ProfileDP(profile=lambda epsilon: np.exp(-epsilon)))
    assert ledger.entries() == ()


def test_the_statement_has_the_entries_and_what_they_rest_on_once(begin):
    ledger = begin()
    assumptions = ("The schema is public.",)
    stated = PrivacySpent(guarantee=PureDP(epsilon=1.0), delta=0.0, assumptions=assumptions)
    ledger.spend(stated, label="first")
    ledger.spend(stated)
    spent = ledger.spent()
    assert [one.name for one in spent.components] == ["by hand: first", "by hand"]
    assert spent.assumptions.count("The schema is public.") == 1
    assert [text for text in spent.assumptions if "settled without a look" in text]
    assert [text for text in spent.assumptions if "never stratified" in text]
    assert spent.delta == 1e-5
    assert ledger.entries()[0].delta == 0.0


def test_labels_may_hold_anything_and_are_shown_as_text(begin):
    ledger = begin()
    label = '<script>\n"}\n\N{GREEK SMALL LETTER EPSILON}, "digest": "0"}'
    ledger.label(label).spend(PureDP(epsilon=1.0))
    ledger.spend(PureDP(epsilon=1.0), label="after it")
    assert [entry.label for entry in ledger.entries()] == [label, "after it"]
    assert "<script>" not in ledger._repr_html_()
    with pytest.raises(TypeError, match="text, e.g. label="):
        ledger.spend(PureDP(epsilon=1.0), label=3)


# --- the budget -----------------------------------------------------------------------------------


def test_what_goes_beyond_the_budget_is_refused_with_the_numbers_and_not_entered(begin):
    ledger = begin(epsilon=3.0)
    one = GaussianDP(mu=calibrate(lambda mu: GaussianDP(mu=mu), 2.0, 1e-5))
    ledger.spend(one)
    ledger.spend(one)  # 2.95 ≤ 3
    match = r"ε = 2\.000 alone and ε = 3\.722 together.*\(ε = 2\.9"
    with pytest.raises(BudgetExceededError, match=match) as raised:
        ledger.spend(one)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert len(ledger.entries()) == 2
    assert up(compose(one, one, one).epsilon_at(1e-5)) == "3.722"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "number", "budget"), [(0.1, 10, 1.0), (0.1, 3, 0.3), (1e-2, 70, 0.7), (0.7, 3, 2.1)]
)
def test_what_is_declared_by_hand_counts_as_it_was_written(begin, epsilon, number, budget):
    """0.1 is one tenth, though the double that is next to it is a trace more."""
    ledger = begin(epsilon=budget, delta=0)
    for _ in range(number - 1):
        ledger.spend(PureDP(epsilon=epsilon))
    ledger.spend(PureDP(epsilon=epsilon))
    assert total_epsilon(ledger.entries(), None, 0.0) == budget
    with pytest.raises(BudgetExceededError):
        ledger.spend(PureDP(epsilon=1e-15))


def test_what_was_computed_counts_as_the_double_that_it_is(begin):
    """A search may lose all of that double."""
    tenth = PrivacySpent(guarantee=PureDP(epsilon=0.1), delta=0.0, assumptions=("computed",))
    ledger = begin(epsilon=1.0, delta=0)
    for _ in range(9):
        ledger.spend(tenth)
    with pytest.raises(BudgetExceededError):
        ledger.spend(tenth)


@pytest.mark.parametrize("number", [0.1, 1e-7, 123456.789, 5e22, 0.123456789012345])
def test_a_number_of_few_digits_is_read_as_it_was_written(number):
    assert as_written(number) == Fraction(repr(number))
    assert as_written(np.nextafter(number, 1)) == Fraction(float(np.nextafter(number, 1)))


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_what_remains_can_be_spent_and_little_more(begin, delta):
    ledger = begin(epsilon=3.0, delta=delta)
    made = (lambda mu: GaussianDP(mu=mu)) if delta else (lambda epsilon: PureDP(epsilon=epsilon))
    ledger.spend(made(0.5))
    parameter = calibrate(made, ledger.remaining(), delta)
    with pytest.raises(BudgetExceededError):
        ledger.spend(made(1.01 * parameter))
    ledger.spend(made(parameter))


def test_a_ledger_that_only_counts_takes_all(begin):
    ledger = begin()
    ledger.spend(NonPrivate())
    assert ledger.spent().epsilon == math.inf
    assert "infinity" in str(ledger)


# --- opening --------------------------------------------------------------------------------------


def test_an_existing_ledger_keeps_its_budget(begin, tmp_path):
    begin(epsilon=3, neighboring="zero_out")
    again = PrivacyLedger(tmp_path / "x")
    assert (again.epsilon, again.delta, again.neighboring) == (3.0, 1e-5, "zero_out")
    assert begin(epsilon=3.0) == again
    with pytest.raises(AttributeError):
        again.epsilon = 100.0
    cases = ({"epsilon": 4}, {"delta": 1e-6}, {"neighboring": "replace_one"}, {"epsilon": math.inf})
    for other in cases:
        (name,) = other
        match = rf"Found {name}=.* was begun with {name}=.*Leave it out"
        with pytest.raises(PrivacyError, match=match):
            begin(**{"epsilon": 3, **other})


@pytest.mark.parametrize("given", [{}, {"epsilon": 1}, {"delta": 0}, {"neighboring": "add_remove"}])
def test_no_ledger_is_begun_without_a_budget(tmp_path, given):
    with pytest.raises(PrivacyError, match="the budget is needed to begin one"):
        PrivacyLedger(tmp_path / "x", **given)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["x.lock"])


@pytest.mark.parametrize(("wrong", "error", "match"), [
    *(({"epsilon": number}, ValueError, "Expected") for number in (0, -1, math.nan)),
    *(({"delta": number}, ValueError, "Expected") for number in (1, -1e-9, math.nan)),
    ({"neighboring": "replace"}, ValueError, "Expected"),
    *(
        (given, TypeError, "a number is needed")
        for given in ({"epsilon": "3"}, {"delta": "0"}, {"epsilon": True})
    ),
])  # fmt: skip
def test_budgets_that_are_none_are_refused(begin, wrong, error, match):
    with pytest.raises(error, match=match):
        begin(**wrong)


def test_copies_and_pickles_are_the_same_ledger(begin):
    ledger = begin()
    cases = (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)), ledger.label("baseline"))
    for twin in cases:
        twin.spend(PureDP(epsilon=1.0))
        assert twin == ledger
        assert hash(twin) == hash(ledger)
    assert [entry.label for entry in ledger.entries()] == ["", "", "baseline"]
    assert ledger != begin("y")
    assert ledger != ledger.path


# --- relations and units --------------------------------------------------------------------------


def test_the_first_entry_sets_the_relation_and_others_are_refused(begin):
    ledger = begin()
    ledger.spend(PureDP(epsilon=1.0, neighboring="zero_out"))
    with pytest.raises(MixedNeighborsError, match="under replace_one for a ledger under zero_out"):
        ledger.spend(PureDP(epsilon=1.0, neighboring="replace_one"))
    assert len(ledger.entries()) == 1


def test_under_replace_one_every_relation_is_carried_over_and_that_is_said(begin):
    ledger = begin(neighboring="replace_one")
    cases = ("add_remove", "zero_out", "replace_one")
    parts = [GaussianDP(mu=0.1, neighboring=relation) for relation in cases]
    for part in parts:
        ledger.spend(part)
    spent = ledger.spent()
    assert spent.neighboring == "replace_one"
    assert spent.epsilon == compose(*map(as_replace_one, parts)).epsilon_at(1e-5)
    assert [entry.guarantee for entry in ledger.entries()] == parts
    sentence = "add_remove and zero_out neighbours are stated under replace_one"
    assert sentence in spent.assumptions[-1]


@pytest.mark.parametrize("order", [1, -1])
def test_missing_and_blank_records_are_one_relation(begin, order):
    """What is declared without a relation is under add_remove, and searches are under zero_out."""
    ledger = begin()
    for one in (GaussianDP(mu=0.3), GaussianDP(mu=0.4, neighboring="zero_out"))[::order]:
        ledger.spend(one)
    assert ledger.spent().guarantee == GaussianDP(mu=0.5, neighboring="zero_out")


def test_statements_about_persons_are_refused_and_the_total_can_be_read_for_them(begin):
    ledger = begin()
    spent = PrivacySpent(guarantee=GaussianDP(mu=0.1), delta=1e-5)
    with pytest.raises(PrivacyError, match=r"unit is '3 records of one person'.*for_group"):
        ledger.spend(spent.for_group(3))
    ledger.spend(spent)
    assert ledger.spent().for_group(3).epsilon == pytest.approx(GaussianDP(mu=0.3).epsilon_at(1e-5))


def for_persons(mu=0.1, neighboring="zero_out"):
    guarantee = GaussianDP(mu=mu, neighboring=neighboring)
    return PrivacySpent(guarantee=guarantee, delta=1e-5, unit="person")


def test_entries_for_persons_make_a_ledger_of_persons(begin):
    ledger = begin()
    ledger.spend(for_persons(0.3))
    ledger.spend(for_persons(0.4))
    spent = PrivacyLedger(ledger.path).spent()
    assert (spent.unit, spent.guarantee) == ("person", GaussianDP(mu=0.5, neighboring="zero_out"))
    assert [entry.unit for entry in ledger.entries()] == ["person", "person"]


def test_a_ledger_of_persons_refuses_what_is_said_of_a_record(begin):
    ledger = begin()
    ledger.spend(for_persons())
    of_a_record = PrivacySpent(guarantee=GaussianDP(mu=0.1, neighboring="zero_out"), delta=1e-5)
    for one in (of_a_record, of_a_record.guarantee):
        match = r"says nothing about all records of a person.*groups=.*for_group"
        with pytest.raises(PrivacyError, match=match):
            ledger.spend(one)
    ledger.spend(of_a_record.for_group(3))
    spent = ledger.spent()
    assert spent.guarantee.mu == pytest.approx(np.hypot(0.1, 0.3))
    assert "No person has more than 3 of the records." in spent.assumptions


def test_in_a_ledger_of_records_a_person_counts_as_a_replaced_record(begin):
    """Blanking all of a person's records is no bound for blanking one of them; replacing them by
    others is."""
    ledger = begin(neighboring="replace_one")
    ledger.spend(GaussianDP(mu=0.3, neighboring="replace_one"))
    ledger.spend(for_persons(0.2))
    spent = ledger.spent()
    assert (spent.unit, spent.neighboring) == ("record", "replace_one")
    assert spent.epsilon == pytest.approx(GaussianDP(mu=0.5).epsilon_at(1e-5))
    assert [
        text for text in spent.assumptions if "a person's records are replaced by others" in text
    ]
    blank = begin("blank")
    blank.spend(GaussianDP(mu=0.3, neighboring="zero_out"))
    with pytest.raises(MixedNeighborsError, match="under replace_one for a ledger under zero_out"):
        blank.spend(for_persons())


def test_files_of_earlier_versions_are_of_records(begin):
    """Their entries have no unit, and their first line says ``record``."""
    entry = json.loads(Entry(name="a", label="", guarantee=PureDP(epsilon=1.0)).written())
    del entry["unit"]
    assert read_entry(json.dumps(entry)).unit == "record"


class Net:
    def privacy_guarantee(self, n_samples=None):
        return PureDP(epsilon=1.0)


@pytest.mark.parametrize("wrong", [1.0, PureDP, None, Net()])
def test_what_is_no_guarantee_is_refused(begin, wrong):
    with pytest.raises(TypeError, match="needed"):
        begin().spend(wrong)


def test_the_statement_of_a_ledger_has_its_budget_and_what_is_left(begin):
    ledger = begin(epsilon=3.0)
    ledger.spend(GaussianDP(mu=0.25))
    spent = ledger.spent()
    taken = f"All entries so far take ε = {as_shown(spent.epsilon)}."
    told = f"The budget for these records is ε = 3.000 at δ = 1e-05. {taken}"
    assert told in str(spent)
    assert told in str(spent.report("markdown", date="2026-01-31")).replace("\\", "")
    assert spent.to_dict()["budget"] == 3.0
    left = float(str(spent).split("A further release with ε = ")[1].split()[0])
    assert spent.epsilon + left <= 3.0 < spent.epsilon + left + 0.01
    ledger.spend(PureDP(epsilon=left))  # certainly fits
    assert "The budget for" not in str(begin("y").spent())


def as_shown(epsilon):
    return f"{math.ceil(epsilon * 1000) / 1000:.3f}"
