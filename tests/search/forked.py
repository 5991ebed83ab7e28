"""What processes that a service starts do, importable in each of them."""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib.util import find_spec

from sklearn_dpsearch import DPRandomSearchCV

from .toys import NoisyCentroids, search_of, two_blobs

X, y = two_blobs(60)


def net_search():
    """A search over nets, which train as a stack."""
    from sklearn_dpsearch.nets import DPLogisticRegression
    from sklearn_dpsearch.privacy import Fixed

    net = DPLogisticRegression(classes=[0, 1], noise_multiplier=2.0, sample_rate=0.2, max_steps=5)
    return DPRandomSearchCV(net, {"learning_rate_init": [0.1, 0.3]}, n_iter=Fixed(5), delta=1e-5)


KINDS = ("random", "subset", "threshold", "grid")
SEARCHES = {
    **{kind: partial(search_of, kind, NoisyCentroids(), {"shrink": [0.0, 0.3]}) for kind in KINDS},
    **({"nets": net_search} if find_spec("torch") else {}),
}


def numbers(name):
    """The noisy numbers that a fit of a search releases."""
    search = SEARCHES[name]().fit(X, y)
    while not getattr(search, "found_", True):  # its coin may end it before the first candidate
        search.fit(X, y)
    model = search.best_estimator_
    if name == "nets":
        return [
            float(one) for value in model.module_.parameters() for one in value.detach().reshape(-1)
        ]
    return model.centroids_.ravel().tolist()


def report(name, queue):
    """Fit in this process, and tell what came out and what is left of it."""
    queue.put((numbers(name), sys.stdout is sys.__stdout__, len(os.listdir("/proc/self/fd"))))
