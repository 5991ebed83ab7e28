"""A search over a module that is defined in a script: run by ``test_private_process.py``."""

import sys

import numpy as np
import torch
from torch import nn

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.nets import DPNeuralNetClassifier


class Mine(nn.Module):
    """One hidden layer."""

    def __init__(self, width=4):
        super().__init__()
        self.hidden, self.output = nn.Linear(2, width), nn.Linear(width, 2)

    def forward(self, X):
        return self.output(torch.relu(self.hidden(X)))


if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    net = DPNeuralNetClassifier(
        Mine, classes=[0, 1], sample_rate=0.1, neighboring="zero_out", max_epochs=3
    )
    space = {"module__width": [4, 8]}
    search = DPRandomSearchCV(
        net, space, n_iter=4, epsilon=3.0, delta=1e-5, n_jobs=int(sys.argv[1])
    ).fit(X, y)
    print(type(search.best_estimator_.module_) is Mine, search.predict(X).shape)
