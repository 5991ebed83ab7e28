"""What processes that a service starts do, importable in each of them."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from sklearn_dpsearch import DPGridSearchCV, DPRandomSearchCV, DPSubsetSearchCV, DPThresholdSearchCV

from .toys import NoisyCentroids, two_blobs

X, y = two_blobs(60)
SPACE = {"shrink": [0.0, 0.3]}


def net_search():
    """A search over nets, which train as a stack."""
    from sklearn_dpsearch.nets import DPLogisticRegression
    from sklearn_dpsearch.privacy import Fixed

    net = DPLogisticRegression(classes=[0, 1], noise_multiplier=2.0, sample_rate=0.2, max_steps=5)
    return DPRandomSearchCV(net, {"learning_rate_init": [0.1, 0.3]}, n_iter=Fixed(5), delta=1e-5)


SEARCHES = {
    "random": lambda: DPRandomSearchCV(NoisyCentroids(), SPACE, n_iter=3),
    "subset": lambda: DPSubsetSearchCV(NoisyCentroids(), SPACE, n_iter=3, subset_fraction=0.5),
    "threshold": lambda: DPThresholdSearchCV(NoisyCentroids(), SPACE, threshold=-1e9, n_iter=3),
    "grid": lambda: DPGridSearchCV(NoisyCentroids(), SPACE, n_parts=4, selection_epsilon=1.0),
    **({"nets": net_search} if find_spec("torch") else {}),
}


def numbers(name):
    """The noisy numbers that a fit of a search releases."""
    search = SEARCHES[name]().fit(X, y)
    while not getattr(search, "found_", True):  # its coin may end it before the first candidate
        search.fit(X, y)
    model = search.best_estimator_
    if name == "nets":
        return [float(one) for value in model.module_.parameters() for one in value.detach().reshape(-1)]
    return model.centroids_.ravel().tolist()


def report(name, queue):
    """Fit in this process, and tell what came out and what is left of it."""
    queue.put((numbers(name), sys.stdout is sys.__stdout__, len(os.listdir("/proc/self/fd"))))
