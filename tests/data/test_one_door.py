"""Containers of records are looked into in one folder, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import sklearn_dpsearch

PACKAGE = Path(sklearn_dpsearch.__file__).parent
#: Ways to look into a container, or to choose a type by its values.
LOOKS = re.compile(r"\b(column_or_1d|type_of_target|_num_features|iloc|__array__|__arrow_array__|to_list|to_pylist)\b")
CHECKS = re.compile(r"\b(check_array|check_X_y|to_numpy)\(")
#: Parts that see containers: the door, what is public anyhow (audits' records, tables that are displayed).
MAY = ("data", "audit", "report", "privacy")
#: Of arrays and frames that the door has made.
OF_THE_DOOR = {"nets/estimators/table_records.py", "search/_checkpoint.py"}


def files_with(pattern: re.Pattern[str]) -> set[str]:
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    return {
        path.as_posix() for path in paths if path.parts[0] not in MAY and pattern.search((PACKAGE / path).read_text())
    }


def test_no_other_part_looks_into_a_container():
    assert files_with(LOOKS) == set()


def test_checks_of_scikit_learn_see_what_the_door_has_made():
    assert files_with(CHECKS) == OF_THE_DOOR
