"""Images with public features
===========================

A net that was trained on public images turns private ones into features, and a private linear model learns from these.
Here the digits 0 to 4 are public, and 5 to 9 are private; with photographs the public net would be one that was trained
on a published collection.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dpsearch.nets import DPLogisticRegression

X, y = load_digits(return_X_y=True)
X = X / 16
public, private = y < 5, y >= 5
X_train, X_test, y_train, y_test = train_test_split(X[private], y[private], random_state=0)

# %%
# Features from public records
# ----------------------------
# The first layer of a net that tells 0 to 4 apart. No private record took part, so it costs nothing.
reader = MLPClassifier((128,), max_iter=300, random_state=0).fit(X[public], y[public])


def features(pixels: np.ndarray) -> np.ndarray:
    """Outputs of the first layer, scaled to length 1: each image on its own."""
    outputs = np.maximum(pixels @ reader.coefs_[0] + reader.intercepts_[0], 0)
    return outputs / np.linalg.norm(outputs, axis=1, keepdims=True).clip(1e-9)


def lengths(pixels: np.ndarray) -> np.ndarray:
    """The pixels themselves, scaled to length 1."""
    return pixels / np.linalg.norm(pixels, axis=1, keepdims=True).clip(1e-9)


# %%
# A private linear model on them
# ------------------------------
# 673 private images. Means of five fits.
for epsilon in (0.5, 1.0, 3.0):
    for name, step in (("pixels", lengths), ("public features", features)):
        scores = []
        for _ in range(5):
            net = DPLogisticRegression(classes=range(5, 10), target_epsilon=epsilon, target_delta=1e-5)
            scores.append(make_pipeline(FunctionTransformer(step), net).fit(X_train, y_train).score(X_test, y_test))
        print(f"ε = {epsilon}  {name:16} accuracy {np.mean(scores):.3f}")
