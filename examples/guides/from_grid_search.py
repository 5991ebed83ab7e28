"""From GridSearchCV in three lines
================================

The code that one has, and the same search as one whose results may be published.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPLogisticRegression

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# As usual: nothing of what comes out may be published.
usual = GridSearchCV(LogisticRegression(max_iter=10_000), {"C": [0.1, 1.0, 10.0]}).fit(
    X_train, y_train
)
print(f"accuracy {usual.score(X_test, y_test):.3f}   {usual.best_params_}")

# %%
# Private as a whole. Line one: an estimator that is private itself, told what is public: the
# labels, and the range of every feature: as the description of the data set states them.
ranges = (np.zeros(30), np.array([
    30, 40, 190, 2510, 0.17, 0.35, 0.43, 0.21, 0.31, 0.1, 2.9, 4.9, 22, 543, 0.032, 0.14, 0.4,
    0.053, 0.079, 0.03, 37, 50, 252, 4260, 0.23, 1.06, 1.26, 0.3, 0.67, 0.21,
]))  # fmt: skip
model = DPLogisticRegression(classes=[0, 1], bounds_X=ranges)

# %%
# Line two: the search, with distributions instead of a grid, and the total that it may cost. Line
# three: ``fit``, as ever.
search = DPRandomSearchCV(
    model, {"learning_rate_factor": loguniform(0.25, 4.0)}, epsilon=3.0, delta=1e-5
)
search.fit(X_train, y_train)
print(f"accuracy {search.score(X_test, y_test):.3f}   {search.best_params_}")
print(search.privacy_spent_)
