"""What private processes cost: a run, a fit and a search, each beside what it would cost without
them.

    python examples/benchmarks/process.py [--rounds 20]

Milliseconds of wall time, medians of rounds in which both sides of a pair follow each other, on one
processor: a busy machine slows both. Linux, where processes are forked.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd  # noqa: F401  # which most programs have imported: the server imports it too
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed, PureDP
from sklearn_dpsearch.search._private_process import PrivateProcess, in_own_process

X = np.random.default_rng(0).normal(size=(2000, 20))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
SPACE = {"C": [0.01, 0.1, 1.0]}
#: Seconds that a candidate takes, and number of candidates.
SLOW, CANDIDATES = 0.008, 20


class Timed(LogisticRegression):
    """Takes the same time on every machine."""

    def fit(self, X: Any, y: Any) -> Timed:
        end = time.perf_counter() + SLOW
        super().fit(X, y)
        while time.perf_counter() < end:
            pass
        return self


def do_nothing() -> None:
    """Do nothing."""


def fork() -> None:
    """Fork this process, and wait for the copy, which does nothing."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def milliseconds(work: Callable[[], Any]) -> float:
    """Wall time of work."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def pairs(
    first: Callable[[], Any], second: Callable[[], Any], rounds: int
) -> list[tuple[float, float]]:
    """Times of two works that follow each other."""
    return [(milliseconds(first), milliseconds(second)) for _ in range(rounds)]


def search(runs: int, estimator: Any) -> Any:
    """Search with a fixed number of runs, whose trainings are declared private."""
    settings = {
        "n_iter": Fixed(runs),
        "guarantee": PureDP(epsilon=1.0),
        "scoring": "accuracy",
        "rehearse": False,
    }
    return DPRandomSearchCV(estimator, SPACE, **settings).fit(X, y)


def shown(name: str, times: list[tuple[float, float]], beside: str) -> None:
    """Print medians of both sides, and of their ratios."""
    first, second = (median(side) for side in zip(*times))
    ratio = median(seconds / other for seconds, other in times)
    print(f"{name:44} {first:8.1f}   {beside:40} {second:8.1f}   {ratio:5.2f} times", flush=True)


def main(rounds: int) -> None:
    """Measure, and print."""
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    search(1, LogisticRegression())  # starts the server
    with PrivateProcess(
        partial(pairs, partial(in_own_process, do_nothing), fork, 2 * rounds)
    ) as process:
        shown("a run that does nothing", process(), "a bare fork of the process that waits")
    peer = RandomizedSearchCV(
        Timed(), SPACE, n_iter=CANDIDATES, cv=[(np.arange(1000), np.arange(1000, 2000))]
    )
    peer.set_params(param_distributions={"C": np.geomspace(0.01, 1, 100)}, refit=False)
    times = pairs(partial(search, CANDIDATES, Timed()), partial(peer.fit, X, y), rounds)
    shown(f"{CANDIDATES} candidates of {1000 * SLOW:.0f} ms", times, "RandomizedSearchCV")
    single = pairs(
        partial(search, 1, Timed()), partial(peer.set_params(n_iter=1).fit, X, y), rounds
    )
    shown("one candidate, and all else of a fit", single, "RandomizedSearchCV")
    more = (median(first for first, _ in times) - median(first for first, _ in single)) / (
        CANDIDATES - 1
    )
    print(
        f"a run costs {more - 1000 * SLOW:.1f} ms more than its candidate; a fit "
        f"{median(a for a, _ in single) - more:.1f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    main(parser.parse_args().rounds)
