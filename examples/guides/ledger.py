"""Several fits under one budget
=============================

Three searches with ε = 2 each on the same patients, a private count, a fit that fails, and one that
is refused: what they cost together, by a ledger.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from diffprivlib import tools
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch import BudgetExceededError, DPRandomSearchCV, NoModelError, PrivacyLedger
from sklearn_dpsearch.nets import DPLogisticRegression
from sklearn_dpsearch.privacy import PureDP

EPSILON, DELTA = 5.0, 1e-5
#: Public: the largest value that each of the ten worst measurements can have.
LARGEST = np.array([50, 60, 300, 5000, 0.3, 1.2, 1.5, 0.4, 0.8, 0.3])


def search(epsilon: float = 2.0, step: Callable[[Any], Any] | None = None) -> DPRandomSearchCV:
    model = make_pipeline(FunctionTransformer(step), DPLogisticRegression(classes=[0, 1]))
    return DPRandomSearchCV(model, "auto", n_iter=5, epsilon=epsilon, delta=DELTA)


def fails(X: Any) -> Any:
    raise ValueError("what it says is not told")


# %%
# A file for each data set. Inside of the block every search is entered before it uses a record.
folder = tempfile.TemporaryDirectory()  # here only: keep a real ledger
ledger = PrivacyLedger(os.path.join(folder.name, "patients.ledger"), epsilon=EPSILON, delta=DELTA)
X, y = load_breast_cancer(return_X_y=True)
X = np.clip(X[:, 20:] / LARGEST, 0, 1).astype(np.float32)
with ledger.label("three searches"):
    for _ in range(3):
        search().fit(X, y)
print(f"three searches with epsilon = 2 cost {ledger.spent().epsilon:.2f} together")

# %%
# What is no search is entered by hand, before it is computed. What fails stays spent.
ledger.spend(PureDP(epsilon=0.1, neighboring="zero_out"), label="count")
print(f"patients who are ill, about: {tools.count_nonzero(y == 0, epsilon=0.1):.0f}")
try:
    search(0.5, fails).set_params(ledger=ledger.label("failed")).fit(X, y)
except NoModelError as error:
    print(error)

# %%
# What is left, and what is too much.
print(f"one more Gaussian release may cost {ledger.remaining():.2f}")
try:
    search().set_params(ledger=ledger).fit(X, y)
except BudgetExceededError as error:
    print(error)

# %%
# All of it, and each entry alone.
print(ledger)
folder.cleanup()
