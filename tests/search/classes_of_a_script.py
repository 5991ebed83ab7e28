"""A script whose estimator is a class of its own, with a checkpoint:
``python classes_of_a_script.py FOLDER``."""

from __future__ import annotations

import os
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import Fixed, PureDP
from sklearn_dpsearch.search._checkpoint import Checkpoint

MEMO = {}


def remembered(X):
    MEMO[len(MEMO)] = X[0].copy()
    return len(MEMO)


class Counting(LogisticRegression):
    """Counts on its class, keeps a function with a memo, and fails where the environment says
    so."""

    made = 0

    def fit(self, X, y):
        if "FAILS" in os.environ:
            raise ValueError
        type(self).made += 1
        self.counted_, self.function_ = (type(self).made, remembered(X)), remembered
        return super().fit(X, y)


def main():
    """Fit, and tell whether all that came back is the script's own."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    if "DIES" in os.environ:
        Checkpoint.keep = lambda *given: os._exit(3)
    settings = {
        "n_iter": Fixed(4), "guarantee": PureDP(epsilon=1.0), "random_state": 0, "rehearse": False,
    }  # fmt: skip
    search = DPRandomSearchCV(
        Counting(), {"C": [0.1, 0.2, 0.3]}, checkpoint=sys.argv[1], **settings
    )
    model = search.fit(X, y).best_estimator_
    own = (
        type(model) is Counting
        and model.function_ is remembered
        and Counting.fit.__globals__ is globals()
    )
    print(own, model.counted_, Counting.made, len(MEMO))


if __name__ == "__main__":
    main()
