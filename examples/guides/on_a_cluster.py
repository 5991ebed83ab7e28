"""On a cluster
============

Candidates are joblib's tasks, so whatever runs those runs a search. Here a Dask cluster of two
processes on this machine (``pip install distributed``); a real one differs in its address alone.
See docs/learn/at_scale.md for who sees the records, and for what a lost worker costs.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPMLPClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
net = DPMLPClassifier(classes=range(10), bounds_X=(0, 16))


def search(**more):
    """The seed is here to compare: it voids the guarantee."""
    return DPRandomSearchCV(net, "auto", epsilon=3.0, delta=1e-5, random_state=0, **more)


# %%
# In this process, and on the cluster: the plan is made here, each worker trains its candidates as
# one stack, and what is released is the same. (Dask starts its workers by importing this script,
# which is why the guard is needed.)
if __name__ == "__main__":
    local = search().fit(X_train, y_train)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        parallel_config("dask"),
    ):
        remote = search(n_jobs=-1).fit(X_train, y_train)
    print(f"accuracy {remote.score(X_test, y_test):.3f}   {remote.best_params_}")
    print(
        "the same model:", np.array_equal(local.predict_proba(X_test), remote.predict_proba(X_test))
    )
    print(remote.privacy_spent_)
