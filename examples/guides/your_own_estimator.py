"""A private estimator of your own
===============================

Search over it, scored on public data or on private records.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.privacy import ZCDP
from sklearn_dpsearch.scoring import private_scorer


class NoisyRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on noisy sums (sufficient statistics perturbation), ρ-zero-concentrated DP
    under replace-one.

    Rows are cut to norm 1 and y to [-1, 1]. One record changed moves (XᵀX, Xᵀy) by at most √8 in
    Euclidean norm, so that Gaussian noise of standard deviation √(8/2ρ) on every entry is ρ-zCDP
    (Bun & Steinke 2016, Proposition 1.6).
    """

    def __init__(self, rho=0.1, alpha=1.0):
        self.rho = rho
        self.alpha = alpha

    def privacy_guarantee(self, n_samples=None):
        return ZCDP(rho=self.rho, neighboring="replace_one")

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        noise = np.random.default_rng()
        deviation = np.sqrt(4.0 / self.rho)
        gram = X.T @ X + deviation * noise.standard_normal((X.shape[1], X.shape[1]))
        moments = X.T @ np.clip(y, -1, 1) + deviation * noise.standard_normal(X.shape[1])
        self.coef_ = np.linalg.lstsq(
            (gram + gram.T) / 2 + self.alpha * np.eye(X.shape[1]), moments, rcond=None
        )[0]
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return np.clip(
            X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)) @ self.coef_, -1, 1
        )


# %%
# Scored on public records, which costs nothing.
X, y = load_diabetes(return_X_y=True)
X, y = 5 * X, (y - 180.0) / 180.0  # public units: the target is a score between 0 and 360
X_private, X_public, y_private, y_public = train_test_split(X, y, test_size=0.2, random_state=0)
space = {"alpha": np.geomspace(0.1, 1000, 20)}

public = DPRandomSearchCV(
    NoisyRidge(rho=0.5), space, n_iter=30, delta=1e-6, scoring="neg_mean_squared_error"
)
public.fit(X_private, y_private, X_public=X_public, y_public=y_public)
print(f"scored on public data      {public.best_params_}  {public.privacy_spent_!r}")

# %%
# Scored on private records: the score is clipped and gets noise of its own.
squared = private_scorer("neg_mean_squared_error", clip=1.0)
private = DPRandomSearchCV(NoisyRidge(rho=0.5), space, n_iter=30, delta=1e-6, scoring=squared)
private.fit(X_private, y_private)
print(f"scored on private records  {private.best_params_}  {private.privacy_spent_!r}")
