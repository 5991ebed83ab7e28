"""Partitions are known again by their rows: no entry changes unseen."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from sklearn_dpsearch.data._partitions import chosen_rows, partition_facts

#: Pairs of an entry and another one.
CHANGES = [
    ("a", "b"), (1, "1"), (10**5000, 10**5001), (np.int64(5), np.int64(6)), ((1, "a"), (1, "b")),
    ([1, {"a": {2}}], [1, {"a": {3}}]), (frozenset("abc"), frozenset("abd")),
    (pd.Timestamp(0), pd.Timestamp(1)), (date(2020, 1, 1), date(2020, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_a_partition_with_another_entry_is_another(change):
    frame, changed = (pd.DataFrame({"a": pd.Series([one, None])}) for one in CHANGES[change])
    n, digest = partition_facts(frame)
    assert n == 2
    assert len(chosen_rows(frame.copy(), digest, np.arange(1))) == 1
    assert chosen_rows(changed, digest, np.arange(1)) is None
