"""Entries of the registry of deployments: valid against its own schema, and complete but for
questions to a person."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sklearn_dpsearch.privacy as dp
from sklearn_dpsearch.privacy._spent import Component, PrivacySpent
from sklearn_dpsearch.privacy._statement.content import Release

yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
ABOUT = {
    "Name": "Income: a model", "Curator": "The office",
    "Data set, and who is in it": 'Adults of "1994" # not a comment',
    "Intended use of the release": "Teaching: \\examples\\", "Who gets the release": "The public",
    "Why this ε and δ": "Asked for", "Region": "United States", "Sector": "Government",
    "Sources": "https://example.org", "Author of this entry": "The office",
}  # fmt: skip
#: Fields of the registry that only a person can fill in.
REQUIRED = {"name", "data_curators", "intended_use", "data_product_region", "registry_authors"}
OPTIONAL = {
    "data_product_sector", "data_domain", "data_source_type", "post_processing", "justification",
    "sources",
}  # fmt: skip
RELEASE = Release(
    made_by="DPRandomSearchCV", model="Model", attributes=("best_params_",), tuned=True,
    seeded=False, n_samples=1000, columns=("age", "job"), target="income",
)  # fmt: skip
SEARCH = dp.best_of(dp.GaussianDP(mu=0.2), dp.Geometric(5))
STATEMENTS = {
    "a search": PrivacySpent(
        guarantee=SEARCH, delta=1e-6, components=(Component(name="search", guarantee=SEARCH),),
        release=RELEASE, assumptions=("The schema is public.",),
    ),
    "pure": PrivacySpent(guarantee=dp.PureDP(epsilon=1.0), delta=0.0),
    "persons": PrivacySpent(guarantee=dp.GaussianDP(mu=1.0), delta=1e-5, unit="person"),
    "a ledger": PrivacySpent(
        guarantee=dp.compose(dp.PureDP(epsilon=0.5), dp.ApproxDP(epsilon=0.5, delta=1e-7)),
        delta=1e-6, budget=3.0,
    ),
    "nothing": PrivacySpent(guarantee=dp.NonPrivate(), delta=1e-6),
}  # fmt: skip


@pytest.fixture(scope="module")
def schema():
    return yaml.safe_load(
        Path(__file__).with_name("deployments_schema.yaml").read_text(encoding="utf-8")
    )


def entry(name, tmp_path, **about):
    path = (
        STATEMENTS[name].report(about=about, date="2026-01-31").save(tmp_path / "deployment.yaml")
    )
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_entry_with_all_answers_is_valid(name, schema, tmp_path):
    found = yaml.safe_load(entry(name, tmp_path, **ABOUT))
    jsonschema.validate(found, schema, jsonschema.Draft202012Validator)
    said = found["deployment"]
    assert said["basic"]["intended_use"] == ABOUT["Intended use of the release"]
    assert said["dp_variant"]["data_domain"] == ABOUT["Data set, and who is in it"]
    assert found["url_slug"] == "income-a-model"


def test_only_answers_of_persons_are_missing(schema, tmp_path):
    """Each as a question in a comment; with any answer in its place the entry is valid."""
    text = entry("a search", tmp_path)
    errors = jsonschema.Draft202012Validator(schema).iter_errors(yaml.safe_load(text))
    missing = {re.match("'(.*)' is a required property", error.message)[1] for error in errors}
    assert missing == REQUIRED
    asked = re.findall(r"^ *# (\w+): .*\?", text, re.MULTILINE)
    assert set(asked) == REQUIRED | OPTIONAL
    assert text.count("(required)") == len(REQUIRED)
    answers = {
        "data_curators": '["A"]', "registry_authors": '["A"]', "data_product_sector": "Finance",
        "data_source_type": "Static",
    }  # fmt: skip
    filled = re.sub(
        r"# (\w+): .*\?.*", lambda one: f"{one[1]}: {answers.get(one[1], 'An answer')}", text
    )
    jsonschema.validate(yaml.safe_load(filled), schema)


def test_numbers_are_those_of_the_statement(tmp_path):
    spent = STATEMENTS["a search"]
    loss = yaml.safe_load(entry("a search", tmp_path))["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "record"
    assert spent.epsilon <= loss["privacy_parameters"]["epsilon"] <= spent.epsilon + 0.02
    assert loss["privacy_parameters"]["delta"] == 1e-6
    assert (
        yaml.safe_load(entry("persons", tmp_path))["deployment"]["privacy_loss"]["privacy_unit"]
        == "person"
    )
    variants = {
        name: yaml.safe_load(entry(name, tmp_path))["deployment"]["dp_variant"]
        for name in STATEMENTS
    }
    expected = ["Pure DP", "Approximate DP"]
    assert [variants[name]["variant_name"] for name in ("pure", "a search")] == expected
    nothing = yaml.safe_load(entry("nothing", tmp_path))["deployment"]["privacy_loss"]
    assert nothing["privacy_parameters"] == {"delta": 1e-6}
    ledger = yaml.safe_load(entry("a ledger", tmp_path))["deployment"]["deployment_model"]
    assert ledger["release_type"] == "Many releases"
    assert "budget" in ledger["release_type_details"]


def test_tuning_is_written_in_full(tmp_path):
    """What was tuned, how it was paid, and its share of ε."""
    field = "preprocessing_and_hyperparameter_tuning"
    said = yaml.safe_load(entry("a search", tmp_path))["deployment"]["implementation"]
    alone = dp.GaussianDP(mu=0.2).epsilon_at(1e-6)
    share = 1 - alone / STATEMENTS["a search"].epsilon
    assert said[field].startswith(
        "Yes. Every choice made by looking at the records, the hyperparameters included"
    )
    assert "How: search." in said[field]
    message = r"One run alone, with its score, would take ε = ([\d.]+): the choice takes ([\d.]+) %"
    found = re.search(message, said[field])
    assert alone <= float(found[1]) <= alone + 0.01
    assert 100 * share <= float(found[2]) <= 100 * share + 1
    assert "best of K runs, with K drawn from" in said["mechanisms"]
    assert yaml.safe_load(entry("pure", tmp_path))["deployment"]["implementation"][
        field
    ].startswith("No. ")


@pytest.mark.parametrize(("tuning", "train_on"), [(0.5, "all"), (0.01, "rest")])
def test_a_subset_search_states_a_share_where_the_training_alone_takes_less(tuning, train_on):
    """Where only a secret part of the records trains, the whole may take less than a training on
    all of them."""
    tune = dp.best_of(dp.PureDP(epsilon=tuning), dp.Geometric(5))
    total = dp.subset_then_train(tune, dp.PureDP(epsilon=1.0), 0.1, train_on)
    options = {"components": (Component(name="search", guarantee=total),), "release": RELEASE}
    spent = PrivacySpent(guarantee=total, delta=1e-6, **options)
    said = str(spent.report("markdown")).replace("\\", "")
    assert "without a choice, would take ε = 1.0" in said
    assert ("the choice takes" in said) == (spent.epsilon > 1.0) == (train_on == "all")


def test_a_run_alone_is_stated_under_the_relation_of_the_statement():
    """Half of the ε of a changed record would leave the other half to the choice."""
    run = dp.GaussianDP(mu=0.5)
    total = dp.as_replace_one(dp.best_of(run, dp.Geometric(5)))
    options = {"components": (Component(name="search", guarantee=total),), "release": RELEASE}
    spent = PrivacySpent(guarantee=total, delta=1e-6, **options)
    alone = dp.as_replace_one(run).epsilon_at(1e-6)
    message = r"One run alone, with its score, would take ε = ([\d.]+)"
    said = re.search(message, str(spent.report("markdown")).replace("\\", ""))
    assert alone <= float(said.group(1)) <= alone + 1e-3
    assert alone > 1.9 * run.epsilon_at(1e-6)
