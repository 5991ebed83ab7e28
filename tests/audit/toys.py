"""Two neighbouring data sets on which ``RandomizedResponse`` answers as differently as its ε
allows."""

from __future__ import annotations

import numpy as np

from sklearn_dpsearch.audit import audit

QUIET = np.full((8, 1), -1.0)  # no record with a positive first feature
LOUD = np.vstack([QUIET[1:], [[1.0]]])  # one record replaced
LABELS = np.zeros(8, dtype=int)
PAIR = {"X": QUIET, "y": LABELS, "other": (LOUD, LABELS)}
PUBLIC = {"X_public": QUIET.copy(), "y_public": LABELS.copy()}


def answer_low(estimator, X, y):
    """A public score that prefers the answer 0."""
    return -estimator.answer_


def audited(
    estimator,
    statistic,
    runs,
    *,
    data=(QUIET, LABELS),
    other=(LOUD, LABELS),
    confidence=0.999,
    **more,
):
    """Audit of two data sets, seeded: the same result in every run of the tests."""
    given = {"n_runs": runs, "statistic": statistic, "confidence": confidence, "random_state": 0}
    return audit(estimator, *data, other=other, **given, **more)
