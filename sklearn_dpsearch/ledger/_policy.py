"""Rules of an organisation for its ledgers, from a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..privacy import BudgetExceededError, Guarantee, PrivacyError
from ..privacy._checks import NEIGHBORING
from ..privacy._statement.content import up
from ._entry import MANUAL_ENTRY, Entry

#: Rules of a policy, as a ledger keeps them.
Policy = Mapping[str, Any]


def _is_nonnegative(value: Any) -> bool:
    """Return whether a value is a number of at least 0."""
    return type(value) in (int, float) and value >= 0.0


#: Rule ↦ predicate of its values, and their description.
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "epsilon": (lambda value: _is_nonnegative(value) and value > 0, "a number above 0"),
    "delta": (lambda value: _is_nonnegative(value) and value <= 1, "a number from 0 to 1"),
    "neighboring": (lambda value: value in NEIGHBORING, f"one of {', '.join(NEIGHBORING)}"),
    "unit": (lambda value: value in ("record", "person"), '"record" or "person"'),
    "advantage": (lambda value: _is_nonnegative(value) and value <= 1, "a number from 0 to 1"),
    "tuning": (lambda value: value == "included", '"included"'),
}


def read_policy(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the rules of an organisation's policy from a file.

    Raises
    ------
    PrivacyError
        For a rule that does not exist, or a value that it cannot have: a rule that is not
        understood is not kept.
    """
    rules = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    for name, value in rules.items():
        if name not in RULES:
            raise PrivacyError(
                f"Found the rule {name} in {str(path)!r}; the rules are {', '.join(RULES)}. Take "
                "it out."
            )
        is_known, needed = RULES[name]
        if not is_known(value):
            raise PrivacyError(
                f"Found {name} = {value!r} in {str(path)!r}; {needed} is needed. Mend the file."
            )
    return rules


def budget_under(policy: Policy, **budget: Any) -> dict[str, Any]:
    """Budget and relation of a new ledger: as given, within the rules, or those of the rules."""
    for name, value in budget.items():
        rule, is_kind = policy.get(name, value), name == "neighboring"
        if value is not None and (value != rule if is_kind else value > rule):
            description = f"{name} = {value!r} for a new ledger"
            remedy = f"No {'other' if is_kind else 'more'} is allowed."
            raise PrivacyError(_refusal(description, policy, name, remedy))
    return {name: policy.get(name) if value is None else value for name, value in budget.items()}


def check_entry(policy: Policy, entry: Entry) -> None:
    """Raise if a ledger entry breaks a rule of the policy."""
    if policy.get("tuning") == "included" and entry.name == MANUAL_ENTRY:
        description = f"{entry.title}, which was entered by hand"
        remedy = (
            "Nothing says whether its tuning is in its cost. Fit a search with ledger=, whose cost "
            "includes it."
        )
        raise PrivacyError(_refusal(description, policy, "tuning", remedy))
    if policy.get("unit") == "person" and entry.unit != "person":
        description = f"{entry.title}, whose guarantee is for a {entry.unit}"
        remedy = (
            "Fit with groups=, or enter spent.for_group(k) where no person has more than k records."
        )
        raise PrivacyError(_refusal(description, policy, "unit", remedy))


def check_risk(policy: Policy, entry: Entry, total: Guarantee) -> None:
    """Raise if the total exceeds the policy's advantage of attacks.

    The budget checks ε.
    """
    if "advantage" in policy and (advantage := total.advantage()) > policy["advantage"]:
        description = f"an advantage of {up(advantage)} in total with {entry.title}"
        raise BudgetExceededError(_refusal(description, policy, "advantage", "Spend less."))


def _refusal(description: str, policy: Policy, rule: str, remedy: str) -> str:
    """Text of an error that names the broken rule."""
    return (
        f"Found {description}; the ledger's policy has {rule} = {policy[rule]!r}. {remedy} No "
        "record was used."
    )
