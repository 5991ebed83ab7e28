"""What two worker processes save: a random search here, with joblib's own workers, and on a local
Dask cluster.

    python examples/benchmarks/cluster.py            # 32 trainings of about 0.1 s: a smoke test
    # 32 trainings of about 5 s each, three repetitions: ten minutes
    python examples/benchmarks/cluster.py --full
    # the same, on a machine that is not quiet
    python examples/benchmarks/cluster.py --full --wait --repetitions 1

The model is a private logistic regression (clipped gradients with noise, in NumPy) that does the
same work for every candidate, on one thread; with ``--wait`` it takes two steps and then sleeps, as
one does whose work is on a device. K is fixed at 32, so that all searches do the same. Workers are
started, and have run a small search, before the clock starts.

Two workers are twice as fast where each has a processor to itself. "sent" is what went over this
machine's own network meanwhile, in multiples of the records' size.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from dask import config as dask_config
from distributed import Client, LocalCluster
from joblib import parallel_config
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_limits

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import ZCDP, Fixed

K, WORKERS = 32, 2
#: Records of one step, and features made of each: a step stays within a processor's own caches.
LOT, WIDTH = 500, 256


class NoisyDescent(ClassifierMixin, BaseEstimator):
    """Logistic regression on random features, by steps on clipped records with noise: steps/(2
    noise²)-zCDP at most.

    Parameters
    ----------
    learning_rate, noise : float
    steps : int
    wait : float
        Seconds to sleep after that.
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        noise: float = 50.0,
        steps: int = 100,
        wait: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.noise = noise
        self.steps = steps
        self.wait = wait
        self.random_state = random_state

    def privacy_guarantee(self, n_samples: int | None = None) -> ZCDP:
        return ZCDP(rho=self.steps / (2 * self.noise**2), neighboring="add_remove")

    def fit(self, X: np.ndarray, y: np.ndarray) -> NoisyDescent:
        with threadpool_limits(1):
            self._descend(
                X,
                2.0 * y - 1.0,
                np.random.default_rng(self.random_state.randint(2**32, dtype=np.uint64)),
            )
        time.sleep(self.wait)
        return self

    def _descend(self, X: np.ndarray, signs: np.ndarray, rng: np.random.Generator) -> None:
        self.classes_, self.coef_ = np.array([0, 1]), np.zeros(WIDTH)
        for step in range(self.steps):
            start = step * LOT % max(len(X) - LOT, 1)
            features, signs_of_lot = (
                self._features(X[start : start + LOT]),
                signs[start : start + LOT],
            )
            shares = signs_of_lot / (
                1.0 + np.exp(np.clip(signs_of_lot * (features @ self.coef_), -30, 30))
            )
            norms = np.linalg.norm(features, axis=1)
            clipped = shares * np.minimum(1.0, 1.0 / np.maximum(np.abs(shares) * norms, 1e-12))
            noisy = features.T @ clipped + rng.normal(0.0, self.noise, WIDTH)
            self.coef_ = self.coef_ + self.learning_rate * noisy / LOT

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Random ones, the same for all candidates."""
        return np.tanh(X @ np.random.default_rng(1).normal(size=(X.shape[1], WIDTH)))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (self._features(X) @ self.coef_ > 0).astype(int)


def records(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (number, 100))
    return X, (X[:, :10].sum(axis=1) + rng.normal(0, 0.2, number) > 0).astype(int)


def steps_for(seconds: float, X: np.ndarray, y: np.ndarray) -> int:
    """Number of steps for a training of about this duration."""
    source = np.random.RandomState(0)
    begin = time.perf_counter()
    NoisyDescent(steps=30, random_state=source).fit(X, y)
    return max(2, int(30 * seconds / (time.perf_counter() - begin)))


def search(steps: int, wait: float, n_jobs: int, number: int = K) -> DPRandomSearchCV:
    """The seed is here to compare: it voids the guarantee."""
    space = {"learning_rate": loguniform(0.1, 10)}
    options = {"n_jobs": n_jobs, "random_state": 0, "rehearse": False}  # the same trainings for all
    return DPRandomSearchCV(
        NoisyDescent(steps=steps, wait=wait), space, n_iter=Fixed(number), delta=1e-6, **options
    )


def network() -> int:
    """Bytes over this machine's own network so far; 0 where nothing counts them as Linux does."""
    try:
        with open("/proc/net/dev") as lines:
            return next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))
    except OSError:
        return 0


#: Dask tells glibc to return memory at once, and from then on it asks the system for every array
#: above 128 kB anew. With this it keeps what it has, as it does in other processes. And no thread
#: looks every 10 ms at what a task does.
ENVIRON = "distributed.nanny.pre-spawn-environ"
TUNED = {
    f"{ENVIRON}.MALLOC_TRIM_THRESHOLD_": 2**28,
    f"{ENVIRON}.MALLOC_MMAP_THRESHOLD_": 2**28,
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def dask(configuration: Mapping[str, int] = MappingProxyType({})) -> Iterator[None]:
    """A cluster on this machine, configured like this."""
    with (
        dask_config.set(configuration),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        parallel_config("dask"),
    ):
        yield


PLACES: dict[str, tuple[Any, int]] = {
    "here, n_jobs=1": (nullcontext, 1),
    "joblib, n_jobs=2": (nullcontext, WORKERS),
    "Dask, 2 workers": (dask, WORKERS),
    "Dask, tuned": (partial(dask, TUNED), WORKERS),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--seconds", type=float, help="of one training")
    parser.add_argument("--wait", action="store_true", help="sleep instead of computing")
    arguments = parser.parse_args()
    repetitions, seconds = (
        arguments.repetitions or (3 if arguments.full else 1),
        arguments.seconds or (5.0 if arguments.full else 0.1),
    )
    X, y = records(20_000)
    steps, wait = (2, seconds) if arguments.wait else (steps_for(seconds, X, y), 0.0)
    print(
        f"{K} trainings of {steps} steps (about {seconds:g} s) on {X.nbytes / 1e6:.0f} MB of "
        f"records"
    )
    print(f"{'':18}{'seconds':>9}{'speed-up':>10}{'sent':>8}")
    models = set()
    for _ in range(repetitions):
        alone = None
        for name, (place, n_jobs) in PLACES.items():
            with place():
                search(2, 0.0, n_jobs, 8).fit(X, y)
                begin, sent = time.perf_counter(), network()
                model = search(steps, wait, n_jobs).fit(X, y)
                seconds, sent = time.perf_counter() - begin, network() - sent
            alone = alone or seconds
            models.add(model.best_estimator_.coef_.tobytes())
            print(
                f"{name:18}{seconds:9.2f}{alone / seconds:10.2f}{sent / X.nbytes:8.1f}", flush=True
            )
    print("the same model everywhere:", len(models) == 1)


if __name__ == "__main__":
    main()
