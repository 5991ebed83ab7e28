"""A ledger keeps the rules of the policy that it was begun with, and refusals name the rule."""

from __future__ import annotations

import pytest

from sklearn_dpsearch import BudgetExceededError, DPRandomSearchCV, PrivacyError, PrivacyLedger
from sklearn_dpsearch.privacy import GaussianDP, PureDP
from sklearn_dpsearch.privacy._spent import PrivacySpent

from ..search.toys import NoisyCentroids, two_blobs

RULES = """
epsilon = 3
delta = 1e-5
neighboring = "zero_out"
"""


def policy(tmp_path, rules=RULES):
    path = tmp_path / "policy.toml"
    path.write_text(rules, encoding="utf-8")
    return path


def spent(mu=0.3, unit="record"):
    return PrivacySpent(guarantee=GaussianDP(mu=mu, neighboring="zero_out"), delta=1e-6, unit=unit)


def test_a_new_ledger_has_the_budget_of_its_policy_and_keeps_the_rules(tmp_path):
    rules = policy(tmp_path)
    ledger = PrivacyLedger(tmp_path / "data.ledger", policy=rules)
    assert (ledger.epsilon, ledger.delta, ledger.neighboring) == (3.0, 1e-5, "zero_out")
    rules.unlink()
    again = PrivacyLedger(tmp_path / "data.ledger")
    assert again.policy == ledger.policy == {"epsilon": 3, "delta": 1e-5, "neighboring": "zero_out"}
    with pytest.raises(PrivacyError, match="replace_one for a ledger under zero_out"):
        again.spend(PureDP(epsilon=1.0, neighboring="replace_one"))


def test_a_smaller_budget_is_allowed_and_a_larger_one_is_not(tmp_path):
    rules = policy(tmp_path)
    assert PrivacyLedger(tmp_path / "small.ledger", epsilon=1, policy=rules).epsilon == 1.0
    for given, rule in (
        ({"epsilon": 4}, "epsilon = 3"),
        ({"epsilon": 1, "delta": 1e-4}, "delta = 1e-05"),
        ({"neighboring": "add_remove"}, "neighboring = 'zero_out'"),
    ):
        with pytest.raises(PrivacyError, match=f"Found .*; the ledger's policy has {rule}"):
            PrivacyLedger(tmp_path / "large.ledger", **given, policy=rules)
    assert not (tmp_path / "large.ledger").exists()


def test_an_existing_ledger_takes_no_other_policy(tmp_path):
    rules = policy(tmp_path)
    PrivacyLedger(tmp_path / "data.ledger", policy=rules)
    assert PrivacyLedger(tmp_path / "data.ledger", policy=rules).policy is not None
    with pytest.raises(PrivacyError, match="policy="):
        PrivacyLedger(tmp_path / "data.ledger", policy=policy(tmp_path, "epsilon = 2"))
    PrivacyLedger(tmp_path / "free.ledger", epsilon=1, delta=0)
    with pytest.raises(PrivacyError, match="policy="):
        PrivacyLedger(tmp_path / "free.ledger", policy=rules)


def test_what_is_entered_by_hand_may_have_been_tuned(tmp_path):
    options = {"delta": 0, "policy": policy(tmp_path, 'tuning = "included"')}
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=100, **options)
    with pytest.raises(PrivacyError, match="by hand; the ledger's policy has tuning = 'included'"):
        ledger.spend(spent())
    assert ledger.entries() == ()
    X, y = two_blobs(60)
    DPRandomSearchCV(NoisyCentroids(), {"shrink": [0.0, 0.3]}, n_iter=2, ledger=ledger).fit(X, y)
    assert [entry.name for entry in ledger.entries()] == ["DPRandomSearchCV"]


def test_a_policy_for_persons_refuses_records(tmp_path):
    ledger = PrivacyLedger(
        tmp_path / "data.ledger", policy=policy(tmp_path, RULES + 'unit = "person"')
    )
    with pytest.raises(PrivacyError, match="for a record; the ledger's policy has unit = 'person'"):
        ledger.spend(spent())
    ledger.spend(spent(unit="person"))
    with pytest.raises(PrivacyError, match="has unit = 'person'"):
        ledger.spend(spent())
    assert len(ledger.entries()) == 1


def test_the_risk_of_the_total_is_bounded(tmp_path):
    ledger = PrivacyLedger(
        tmp_path / "data.ledger", policy=policy(tmp_path, RULES + "advantage = 0.2")
    )
    ledger.spend(spent(mu=0.4))
    match = r"an advantage of 0\.2\d* in total .*; .* has advantage = 0\.2"
    with pytest.raises(BudgetExceededError, match=match):
        ledger.spend(spent(mu=0.4))
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(("rules", "said"), [
    ("epsilom = 3", "Found the rule epsilom"),
    ("epsilon = 0", "Found epsilon = 0 .*a number above 0"),
    ("epsilon = true", "Found epsilon = True"),
    ("delta = nan", "Found delta = nan"),
    ('unit = "client"', "Found unit = 'client'"),
    ("tuning = false", "Found tuning = False"),
])  # fmt: skip
def test_a_rule_that_is_not_understood_is_an_error(tmp_path, rules, said):
    with pytest.raises(PrivacyError, match=said):
        PrivacyLedger(tmp_path / "data.ledger", epsilon=1, delta=0, policy=policy(tmp_path, rules))
    assert not (tmp_path / "data.ledger").exists()
