"""A small table with every kind of column, and its schema."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from sklearn_dpsearch.preprocessing import Schema

pd = pytest.importorskip("pandas")

SCHEMA = Schema(
    {
        "age": (20, 80), "job": ["clerk", "nurse", "pilot"], "wealth": (0, 100_000),
        "since": (date(2020, 1, 1), date(2024, 1, 1)), "shop": {"buckets": 8},
        "pay": ["high", "low"], "grade": ["a", "b", "c"], "price": (0, 100),
    }
)  # fmt: skip


def table(n: int = 600, seed: int = 0):
    """Records, with gaps and values that the schema lacks."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "age": rng.uniform(10, 90, n),
            "job": rng.choice(["clerk", "nurse", "pilot", "?"], n),
            "wealth": rng.lognormal(7, 2, n),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 1400, n), unit="D"),
            "shop": rng.choice([f"shop {number}" for number in range(30)], n),
            "note": "x",
        }
    )
    found["pay"] = np.where((found["age"] > 40) & (found["age"] < 65), "high", "low")
    found["grade"] = np.where(found["age"] > 60, "a", np.where(found["job"] == "nurse", "b", "c"))
    found["price"] = np.where(found["pay"] == "high", 80.0, 20.0) + (found["job"] == "nurse")
    found.loc[::17, "age"] = np.nan
    found.loc[::19, "since"] = pd.NaT
    return found
