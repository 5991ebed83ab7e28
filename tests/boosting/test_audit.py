"""ε of boosting, estimated from below: what is stated holds, and less noise or unclipped persons
are exposed."""

from __future__ import annotations

import os

import numpy as np
import pytest

from sklearn_dpsearch.audit import audit
from sklearn_dpsearch.boosting import DPGradientBoostingClassifier
from sklearn_dpsearch.boosting import _base as base
from sklearn_dpsearch.boosting import _rounds as rounds
from sklearn_dpsearch.boosting._noise import noise_scale

pytestmark = pytest.mark.slow

RUNS = 5000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 500
RECORDS, LABELS = np.full((40, 1), 0.2), np.repeat([0, 1], 20)
MORE = np.vstack([RECORDS, [[0.9]]]), np.append(LABELS, 1)


#: The last person has twelve records in a cell of his own.
OF_PERSONS = {
    "X": np.vstack([RECORDS, np.full((12, 1), 0.9)]),
    "y": np.append(LABELS, np.ones(12, int)),
    "groups": np.append(np.arange(40), np.full(12, 40)),
}


def found(X=MORE[0], y=MORE[1], **more):
    """What the last record or person changes: it is alone in its cell, and misjudged in no round
    less than others."""
    settings = {"target_mu": 0.5, "max_iter": 3, "max_bins": 2, "neighboring": "add_remove"}
    model = DPGradientBoostingClassifier({"a": (0.0, 1.0)}, classes=[0, 1], **settings)
    others = (RECORDS, LABELS, *([np.arange(40)] if more else []))
    options = {"other": others, "n_runs": RUNS, "delta": 1e-5, "random_state": 0, **more}
    return audit(model, X, y, statistic=difference_of_decisions, **options)


def difference_of_decisions(model):
    high, low = model.decision_function([[0.9], [0.2]])
    return float(high - low)


def test_what_is_stated_is_not_refuted():
    assert found().consistent


def test_a_sixteenth_of_the_noise_is_exposed(monkeypatch):
    monkeypatch.setattr(base, "noise_scale", lambda *given: noise_scale(*given) // 16)
    assert not found().consistent


def test_what_is_stated_of_a_person_with_twelve_records_is_not_refuted():
    assert found(**OF_PERSONS).consistent


def test_a_person_whose_records_are_clipped_one_by_one_is_exposed(monkeypatch):
    monkeypatch.setattr(rounds, "clip_persons", lambda values, *given: values)
    assert not found(**OF_PERSONS).consistent
