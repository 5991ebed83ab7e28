"""Subset searches over partitions of Dask, told as JSON:
``python -m tests.search.over_partitions``."""

from __future__ import annotations

import json
import tempfile
import time
from datetime import date
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from distributed import Client, LocalCluster

from sklearn_dpsearch import DPRandomSearchCV, DPSubsetSearchCV
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier, DPGradientBoostingRegressor
from sklearn_dpsearch.boosting import _partitions as partitions
from sklearn_dpsearch.preprocessing import Schema

from ..clusters import error

MARK = "a record of nobody else"


def table(n=4000):
    rng = np.random.default_rng(0)
    age, job = rng.integers(18, 90, n), rng.choice(["clerk", "nurse", "smith"], n)
    code = rng.choice([2**60, 2**60 + 1], n)  # equal as doubles
    likely = np.where((age > 50) & (job != "smith"), 0.9, 0.1) * np.where(code == 2**60, 1.0, 0.3)
    pay = np.where(rng.uniform(size=n) < likely, "high", "low")
    price = np.clip(age + 10 * (job == "nurse") + rng.normal(0, 5, n), 0, 120)
    return pd.DataFrame(
        {
            "age": age, "job": job, "code": code, "pay": pay, "grade": 1 * (pay == "high"),
            "price": price,
        },
    )  # fmt: skip


TABLE = table()
FEATURES = {"age": (18, 90), "job": ["clerk", "nurse", "smith"], "code": [2**60, 2**60 + 1]}
TARGETS = {"pay": ["low", "high"], "grade": [0, 1], "price": (0, 120)}
SPACE = {"prior_factor": [0.5, 1.0, 2.0], "max_bins": [8, 16]}


def search(target="pay", since=False, **changed):
    kind = DPGradientBoostingRegressor if target == "price" else DPGradientBoostingClassifier
    dates = {"since": (date(2020, 1, 1), date(2021, 1, 1))} if since else {}
    model = kind(Schema({**FEATURES, **dates, target: TARGETS[target]}), target=target, max_iter=8)
    given = {
        "n_iter": 4, "epsilon": 4.0, "delta": 1e-6, "cv": 0.2, "subset_fraction": 0.2,
        "random_state": 0,
    }  # fmt: skip
    return DPSubsetSearchCV(model, SPACE, **{**given, **changed})


def cut(n, frame=TABLE):
    return dd.from_pandas(frame, npartitions=n, sort=False)


def released(one):
    weights = [step.tobytes() for step in one.best_estimator_.weights_]
    return [
        repr(one.best_params_), one.best_score_, repr(one.final_params_), str(weights),
        one.privacy_spent_.epsilon,
    ]  # fmt: skip


def same(target, frame=TABLE, partitions=None, **changed):
    """Whether a search over partitions releases what it does of records in one place, bit for
    bit."""
    here = search(target, **changed).fit(frame, frame[target])
    there = search(target, **changed).fit(
        cut(4, frame) if partitions is None else partitions, target
    )
    return released(here) == released(there)


def in_all_ways():
    missing = TABLE.assign(age=TABLE["age"].astype(float).where(TABLE.index != 3999))
    days = np.datetime64("2020-01-01", "s") + 86400 * TABLE["age"].to_numpy()
    missing["since"] = days.astype("datetime64[ns]")
    # the last has doubles, as one value is missing
    halves = [missing[:3000].astype({"age": int}), missing[3000:]]
    # in seconds
    halves[1] = halves[1].assign(since=np.append(days[3000:-1], np.datetime64("9999-12-31", "s")))
    meta = halves[1].iloc[:0]
    uneven = dd.from_delayed([delayed(half) for half in halves], meta=meta, verify_meta=False)
    missing = missing.assign(since=np.append(days[:-1], np.datetime64("9999-12-31", "s")))
    test = table(1000)
    jobs = [*TABLE["job"][:-3], "\ud800", {"in another order", "in each process"}, 10**5000]
    odd = TABLE.assign(tags=[["a"]] * len(TABLE), job=pd.Series(jobs, dtype=object))
    # else Dask itself reads them as text
    with dask.config.set({"dataframe.convert-string": False}):
        anything = dd.from_delayed([delayed(odd[:99]), delayed(odd[99:])], meta=odd[:0])
    with_public = search(cv=None).fit(cut(4), "pay", X_public=test, y_public=test["pay"])
    here = search(cv=None).fit(TABLE, TABLE["pay"], X_public=test, y_public=test["pay"])
    gap = dd.concat([cut(2), cut(2)[cut(2)["age"] > 1000]])
    return {
        "entries of any type": same("pay", odd, anything), "labels": same("pay"),
        "whole numbers as labels": same("grade"), "numbers": same("price"),
        "validated in the subset": same("pay", cv=3, validate_on="subset"),
        "all train": same("pay", train_on="all"), "one partition": same("pay", partitions=cut(1)),
        "kept on the cluster": same("pay", partitions=cut(3).persist()),
        "an empty partition": same("pay", partitions=gap),
        "types that differ": same("pay", missing, uneven, since=True),
        "files": same("pay", TABLE, in_files(TABLE)),
        "public validation": released(with_public) == released(here),
    }  # fmt: skip


def in_files(frame):
    """Parquet files, which Dask reads several at a time where few of many columns are wanted."""
    folder = Path(tempfile.mkdtemp())
    wide = frame.assign(**{f"text {number}": "x" * 50 for number in range(12)})
    for place in range(8):
        wide[place * len(wide) // 8 : (place + 1) * len(wide) // 8].to_parquet(
            folder / f"{place}.parquet"
        )
    return dd.read_parquet(folder)


def shuffled():
    """Error of a search whose partitions have another order at each computation."""
    frame = cut(2).map_partitions(lambda part: part.sample(frac=1.0), meta=TABLE.iloc[:0])
    return error(lambda: search().fit(frame, "pay"))


def refused():
    one, frame = search(), cut(2)
    anything = DPRandomSearchCV(one.estimator, SPACE, epsilon=1.0, delta=1e-6)
    given = {"estimator__target": None, "estimator__classes": ["low", "high"]}
    without_target = search().set_params(**given)
    found = {
        "a random search": error(lambda: anything.fit(frame, "pay")),
        "all that is left": error(lambda: one.set_params(cv=None).fit(frame, "pay")),
        "persons": error(lambda: one.set_params(cv=0.2).fit(frame, "pay", groups="job")),
        "labels elsewhere": error(lambda: one.fit(frame, TABLE["pay"])),
        "no column": error(lambda: one.fit(frame, "wages")),
        "files": error(lambda: one.fit([delayed(TABLE)], "pay")),
        "a checkpoint": error(lambda: search(checkpoint="folder").fit(frame, "pay")),
        "a target among features": error(lambda: without_target.fit(frame, "pay")),
        "too few columns": error(lambda: one.fit(frame[["age", "pay"]], "pay")),
    }
    return {**found, "spent": hasattr(one, "privacy_spent_") or hasattr(anything, "privacy_spent_")}


def failing():
    """Errors of a search of a table that cannot be read, before it spends."""

    def unreadable(frame):
        raise ValueError(f"{MARK}: {frame['age'].iloc[0]}")

    one = search()
    broken = cut(2).map_partitions(unreadable, meta=TABLE.iloc[:0])
    return error(lambda: one.fit(broken, "pay")), hasattr(one, "privacy_spent_")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        spent = search(random_state=None).fit(cut(2), "pay").privacy_spent_
        told = {
            "same": in_all_ways(), "refused": refused(), "failing": failing(),
            "shuffled": shuffled(),
            "stated": [text for text in spent.assumptions if "partitions" in text],
            "left": time.sleep(1) or sum(client.run(lambda: len(partitions.PARTITIONS)).values()),
            "results left": len(
                client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)),
            ),
        }  # fmt: skip
    told["without a cluster"] = error(lambda: search().fit(cut(2), "pay"))
    print(json.dumps(told))
