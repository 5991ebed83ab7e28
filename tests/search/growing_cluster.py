"""Searches on Dask clusters whose workers come and go, told as JSON: ``python -m tests.search.growing_cluster``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time

from distributed import Client, LocalCluster
from joblib import parallel_config

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression
from sklearn_dpsearch.search import _base

from .on_a_cluster import Slow, released, searches
from .toys import NoisyCentroids, two_blobs

NET = DPLogisticRegression(classes=[0, 1], bounds_X=(-1, 1), noise_multiplier=2.0, max_epochs=2)


class Slower(NoisyCentroids):
    """Takes so long that a worker can be started meanwhile."""

    def fit(self, X, y):
        time.sleep(1.0)
        return super().fit(X, y)


def nets(n_jobs):
    space = {"learning_rate_init": [0.1, 1.0, 3.0]}
    return DPRandomSearchCV(NET, space, n_iter=12, delta=1e-6, random_state=3, n_jobs=n_jobs, refit=True)


def answers(search, X):
    return search.best_params_, search.best_score_, search.predict_proba(X).tolist()


def count_plans():
    """From now on, how often this process makes a plan."""
    made, make_plan = [], _base.make_plan

    def counting(facts):
        made.append(1)
        return make_plan(facts)

    _base.make_plan = counting
    _base.plans_made = made


def plans():
    return len(_base.plans_made)


def refused_without_workers(X, y):
    """Whether a search is refused, and nothing spent, where there is no worker."""
    search = searches(Slow(), n_jobs=-1)["random"]
    with parallel_config("dask", wait_for_workers_timeout=0.2), contextlib.suppress(TimeoutError):
        search.fit(X, y)
    return not hasattr(search, "privacy_spent_")


def while_it_grows(X, y, client, expected):
    """Whether searches release what they should, until there are two workers or two minutes are over; and how many."""
    deadline, same = time.monotonic() + 120, True
    while len(client.ncores()) < 2 and time.monotonic() < deadline:
        same = same and released(searches(Slower(), n_jobs=2)["random"].fit(X, y)) == expected
    return same, len(client.ncores())


def main():
    X, y = two_blobs(400)
    expected = released(searches(NoisyCentroids())["random"].fit(X, y))
    alone = answers(nets(None).fit(X, y), X)
    told = {}
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        parallel_config("dask", wait_for_workers_timeout=60),
    ):
        told["refused without workers"] = refused_without_workers(X, y)
        cluster.adapt(minimum=1, maximum=2, interval="100ms", target_duration="300ms", wait_count=10_000)
        told["adaptive"], told["grown to"] = while_it_grows(X, y, client, expected)
        count_plans()
        client.run(count_plans)
        told["nets"] = answers(nets(2).fit(X, y), X) == alone
        told["plans"] = [plans(), sum(client.run(plans).values())]
        for pid in client.run(os.getpid).values():
            client.loop.call_later(0.5, os.kill, pid, signal.SIGKILL)
        told["after the loss of all"] = released(searches(Slow(), n_jobs=2)["random"].fit(X, y)) == expected
    print(json.dumps(told))


if __name__ == "__main__":
    main()
