"""Containers of records are looked into in one folder, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sklearn_dpsearch

from .raw_flow import Flow, Function, flow_of

PACKAGE = Path(sklearn_dpsearch.__file__).parent
#: Ways to look into a container, or to choose a type by its values.
LOOKS = re.compile(
    r"\b(column_or_1d|type_of_target|_num_features|iloc|__array__|__arrow_array__|to_list|to_pylist)\b"
)
CHECKS = re.compile(r"\b(check_array|check_X_y|to_numpy)\(")
#: Parts that see containers: the door, what is public anyhow (audits' records, tables that are
#: displayed).
MAY = ("data", "audit", "report", "privacy")
#: Of arrays and frames that the door has made.
OF_THE_DOOR = {"nets/_estimators/table_records.py", "search/_checkpoint.py"}
#: Functions that users hand containers to: file, class, name, parameters.
ENTRIES = [
    ("boosting/_base.py", "GradientBoosting", "fit", ("X", "y", "groups")),
    ("boosting/_base.py", "GradientBoosting", "_outputs", ("X",)),
    ("boosting/_partitions.py", "PartitionReader", "records", ("part", "y")),
    ("nets/_estimators/base.py", "DPSGDEstimator", "_train", ("X", "y", "groups")),
    ("nets/_estimators/skorch_base.py", "SkorchNet", "fit", ("X", "y")),
    ("nets/_estimators/skorch_base.py", "SkorchNet", "partial_fit", ("X", "y")),
    ("nets/_estimators/table_base.py", "TableClassifier", "partial_fit", ("X", "y")),
    ("nets/_estimators/table_base.py", "TableNet", "_prepare", ("X", "y", "groups")),
    ("preprocessing/_table_encoder.py", "TableEncoder", "fit", ("X",)),
    ("preprocessing/_table_encoder.py", "TableEncoder", "blocks", ("X",)),
    ("report/_schema_fit.py", None, "schema_report", ("X", "groups")),
    ("search/_base.py", "BasePrivateSearch", "fit", ("X", "y", "X_public", "y_public")),
    ("search/_base.py", "BasePrivateSearch", "dry_run", ("X_example", "y_example")),
    ("search/_delegation.py", "ReleasedModel", "score", ("X",)),
    ("search/_partitions.py", None, "look_at_partitions", ("X", "y")),
    ("audit/_auditing.py", None, "audit", ("X", "y", "groups")),
    ("audit/_replay.py", None, "replay", ("X", "y", "groups", "neighbour_groups")),
]


def files_with(pattern: re.Pattern[str]) -> set[str]:
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    return {
        path.as_posix()
        for path in paths
        if path.parts[0] not in MAY and pattern.search((PACKAGE / path).read_text())
    }


def test_no_other_part_looks_into_a_container():
    assert files_with(LOOKS) == set()


def test_checks_of_scikit_learn_see_what_the_door_has_made():
    assert files_with(CHECKS) == OF_THE_DOOR


def test_what_a_user_gives_is_handed_on_to_the_door_alone():
    flow = flow_of(ENTRIES)
    assert not flow.violations, "\n".join(flow.violations)
    assert len(flow.seen) > len(ENTRIES)


@pytest.mark.parametrize("body", [
    "np.asarray(X)", "return len(X)", "for row in X: pass", "return X[0]", "y = X\n    y.columns",
    "if hasattr(X, 'shape'): pass", "return [one for one in X]", "print(X)",
    "X, y = X, 1\n    X.shape", "return f'{X}'", "return X == 1", "with open(X): pass",
])  # fmt: skip
def test_a_look_into_a_container_is_found(body):
    node = ast.parse(f"def fit(X):\n    {body}").body[0]
    flow = Flow()
    flow.follow(Function("search/_base.py", None, node), frozenset({"X"}))
    assert flow.violations


@pytest.mark.parametrize("body", [
    "return X", "X = number_of_records(X)\n    X.shape", "return X is None",
    "y = X\n    return (y,)",
])  # fmt: skip
def test_what_is_handed_on_or_read_is_no_look(body):
    node = ast.parse(f"def fit(X):\n    {body}").body[0]
    flow = Flow()
    flow.follow(Function("audit/_replay.py", None, node), frozenset({"X"}))
    assert not flow.violations
