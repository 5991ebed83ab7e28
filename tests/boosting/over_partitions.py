"""Boosting on a Dask cluster of three processes, told as JSON:
``python -m tests.boosting.over_partitions``."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from distributed import Client, LocalCluster

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.boosting import _partitions as partitions

from ..clusters import error
from .models import MODELS, STARTS, TABLE


def make(kind, **changed):
    return MODELS[kind](**{"random_state": 0, "noise_seed": 0, "max_iter": 8, **changed})


def same(one, other):
    """Whether two models are the same, bit for bit."""
    return facts(one) == facts(other)


def facts(model):
    """Everything that a model has learned."""
    start = getattr(model, "init_weights_", [0])[-1]
    weights = [step.tobytes() for step in model.weights_]
    return model.n_iter_, model.feature_importances_.tobytes(), weights, start


def cut(n, table=TABLE):
    return dd.from_pandas(table, npartitions=n, sort=False)


def in_all_ways(kind):
    """Whether each way to hand over partitions leads to the model of one process."""
    target = make(kind).target
    here = make(kind).fit(TABLE, TABLE[target])
    started = make(kind, init=STARTS[kind]).fit(TABLE, TABLE[target])
    frames = cut(4)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("1.csv", "2.parquet", "3.csv")]
        for file, part in zip(files, np.array_split(np.arange(len(TABLE)), 3)):
            rows = TABLE.iloc[part]
            rows.to_csv(file, index=False) if file.endswith("csv") else rows.to_parquet(file)
        from_files = make(kind).fit(files, target)
    return {
        "a column": same(make(kind).fit(frames, target), here),
        "files": same(from_files, here),
        "a public start": same(make(kind, init=STARTS[kind]).fit(frames, target), started),
    }


def in_other_ways(kind):
    target, frames = make(kind).target, cut(4)
    here = make(kind).fit(TABLE, TABLE[target])
    few = TABLE[TABLE["age"] < 30]
    odd = pd.concat([TABLE, TABLE[:1].assign(pay="a label of nobody else")])

    def fitted(X, y=target, **changed):
        return make(kind, **changed).fit(X, y)

    rising, halves = {"monotonic_cst": {"age": 1}}, [delayed(TABLE[:250]), delayed(TABLE[250:])]
    return {
        "one partition": same(fitted(cut(1)), here),
        "an undeclared label": same(fitted(cut(4, odd)), fitted(odd, odd[target])),
        "a series": same(fitted(frames, frames[target]), here),
        "delayed frames": same(fitted(halves), here),
        "empty partitions": same(fitted(frames[frames["age"] < 30]), fitted(few, few[target])),
        "directions": same(fitted(frames, **rising), fitted(TABLE, TABLE[target], **rising)),
        "other noise for other records": not same(fitted(frames[frames["age"] > 11]), here),
    }


def after_losses(client):
    """Whether a model is the same although workers are killed before some of its rounds, and how
    often one was."""
    found, answers = {}, partitions.PartitionedRecords._collect_answers
    for kind, start, when in (("two classes", None, (5,)), ("numbers", STARTS["numbers"], (3,))):
        target, asked, killed = make(kind).target, [], []

        def lossy(self, shares, asked=asked, killed=killed, when=when):
            asked.append(shares)
            if len(asked) in when:
                worker, pid = next(iter(client.run(os.getpid).items()))
                os.kill(pid, signal.SIGKILL)
                killed.append(worker)
            return answers(self, shares)

        partitions.PartitionedRecords._collect_answers = lossy
        model = make(kind, init=start).fit(cut(4), target)
        partitions.PartitionedRecords._collect_answers = answers
        here = make(kind, init=start).fit(TABLE, TABLE[target])
        found[kind] = same(model, here) and len(killed) == len(when)
    return found


def lazy():
    """Whether predictions for a frame of Dask are computed later, and are those of one process."""
    found, frame = {}, cut(3)
    for kind in MODELS:
        model = make(kind).fit(TABLE, TABLE[make(kind).target])
        later = model.predict(frame)
        found[kind] = (
            isinstance(later, dd.Series)
            and later.compute().tolist() == model.predict(TABLE).tolist()
        )
        if kind != "numbers":
            chances = model.predict_proba(frame)
            found[kind] &= chances.columns.tolist() == model.classes_.tolist()
            found[kind] &= np.array_equal(chances.compute().to_numpy(), model.predict_proba(TABLE))
    return found


def persons():
    """Whether a fit is that of one process, in which persons are blank after their first part."""
    table = TABLE.assign(who=np.arange(len(TABLE)) // 40)
    # one partition has doubles, the other texts
    halves = [
        delayed(table[:300].astype({"who": float})),
        delayed(table[300:].astype({"who": str})),
    ]

    def as_in_one_place(frames, n_partitions=1):
        # a seed of noise takes a person's records in one partition together
        places = table.index // (len(table) // n_partitions)
        names = table["who"] + 100 * places
        first = pd.Series(places).groupby(table["who"]).transform("min")
        prices = TABLE["price"].mask(places > first)
        here = make("numbers").fit(TABLE, prices, groups=names)
        spent = (model := make("numbers").fit(frames, "price", groups="who")).privacy_spent_
        return same(model, here) and (spent.unit, spent.release.n_samples) == ("person", 15)

    return {
        "together": as_in_one_place(cut(4, table).shuffle(on="who")),
        "apart": as_in_one_place(cut(4, table), 4),
        "apart as other types": as_in_one_place(halves, 2),
    }


def unreadable():
    """A file that pandas cannot read, and quotes in its error: a subclass of ValueError."""
    path = Path(tempfile.gettempdir()) / f"unreadable {os.getpid()}.csv"
    path.write_bytes(b"age,pay\n\xffsecret bytes,high\n")
    return path


def refused():
    frame, model = cut(2), make("two classes")
    bounded = make("numbers", target=None, bounds_y=(0, 1))
    loose = make("two classes", target_mu=None, target_epsilon=1.0, target_delta=0.1)
    unset = MODELS["two classes"](target_mu=None)
    search = DPRandomSearchCV(unset, "auto", epsilon=1.0, delta=1e-6)
    return {
        "no column": error(lambda: model.fit(frame, "wages")),
        "labels elsewhere": error(lambda: model.fit(frame, TABLE["pay"])),
        "an array": error(lambda: model.fit(frame[["age"]].to_dask_array(), "pay")),
        "persons elsewhere": error(lambda: model.fit(frame, "pay", groups=TABLE["pay"])),
        "fewer partitions of y": error(lambda: model.fit(frame, cut(3)["pay"])),
        "no records": error(lambda: model.fit(frame[frame["age"] > 1000], "pay")),
        "a search": error(lambda: search.fit(frame, "pay")),
        "a search of files": error(lambda: search.fit(["a.csv", "b.csv"], "pay")),
        "nothing spent": str(not hasattr(search, "privacy_spent_")),
        "no text": error(lambda: model.fit([str(unreadable())], "pay")),
        "no file": error(lambda: model.fit(["a secret.csv"], "pay")),
        "a target among features": error(lambda: bounded.fit(frame, "price")),
        "large delta": error(lambda: loose.fit(frame, "pay")),
    }


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        told = {
            "same": {
                **{kind: in_all_ways(kind) for kind in MODELS},
                "other ways": in_other_ways("two classes"),
            },
            "lazy": lazy(),
            "persons": persons(),
            "refused": refused(),
            "after losses": after_losses(client),  # last: each leaves a worker less, for a while
            "left": sum(client.run(lambda: len(partitions.PARTITIONS)).values()),
        }
    print(json.dumps(told))
