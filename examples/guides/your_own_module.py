"""A torch module of your own
==========================

Trained with DP-SGD: layers beyond linear ones, a schedule, a warm start.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from skorch.callbacks import LRScheduler
from torch import nn

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPNeuralNetClassifier


class Convolutions(nn.Module):
    """Two convolutions on 8×8 images; group normalisation, because batch normalisation couples
    records."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.GroupNorm(2, channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )  # fmt: skip
        self.last = nn.Linear(8 * channels, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.last(self.features(images).flatten(1))


class TwoLayers(nn.Module):
    """Linear layers only: trained without per-record gradients, and many candidates at once."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, hidden), nn.Linear(hidden, 10)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(pixels)))


# %%
# Convolutions with a schedule; ``partial_fit`` goes on from where the fit ended, and is paid for.
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X.astype(np.float32) / 16, y, random_state=0)
shared = {"classes": range(10), "sample_rate": 0.1}

images = DPNeuralNetClassifier(
    Convolutions, target_epsilon=3.0, target_delta=1e-5, lr=0.5, max_epochs=4,
    callbacks=[("rate", LRScheduler("CosineAnnealingLR", T_max=4))], **shared,
)  # fmt: skip
images.fit(X_train.reshape(-1, 1, 8, 8), y_train)
print(
    f"convolutions  accuracy {images.score(X_test.reshape(-1, 1, 8, 8), y_test):.3f}  "
    f"{images.privacy_spent_!r}"
)
images.partial_fit(X_train.reshape(-1, 1, 8, 8), y_train)
print(
    f"trained on    accuracy {images.score(X_test.reshape(-1, 1, 8, 8), y_test):.3f}  "
    f"{images.privacy_spent_!r}"
)

# %%
# A search over the arguments of the module, the step size and the clipping.
search = DPRandomSearchCV(
    DPNeuralNetClassifier(TwoLayers, max_epochs=20, **shared),
    {
        "lr": loguniform(0.1, 2.0), "max_grad_norm": loguniform(0.3, 3.0),
        "module__hidden": [32, 128],
    },
    n_iter=10, epsilon=3.0, delta=1e-5,
)  # fmt: skip
search.fit(X_train, y_train)
print(f"search        accuracy {search.score(X_test, y_test):.3f}  {search.privacy_spent_!r}")
print(f"winner        {search.best_params_}")
