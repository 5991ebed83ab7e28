"""A search over a net around Opacus that is defined in a script: run by ``tests/adapters/test_opacus.py``."""

import sys
import warnings

import numpy as np
import skorch
import torch
from opacus import PrivacyEngine
from torch import nn

from sklearn_dpsearch import DPRandomSearchCV


class Mine(nn.Module):
    """One hidden layer."""

    def __init__(self, width=4):
        super().__init__()
        self.hidden, self.output = nn.Linear(2, width), nn.Linear(width, 2)

    def forward(self, X):
        return self.output(torch.relu(self.hidden(X)))


class Net(skorch.NeuralNetClassifier):
    """A net with an engine of its own."""

    def __init__(self, *args, noise_multiplier=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.noise_multiplier = noise_multiplier

    def get_iterator(self, dataset, training=False):
        loader = super().get_iterator(dataset, training)
        if training:
            self.module_, self.optimizer_, loader = PrivacyEngine().make_private(
                module=self.module_,
                optimizer=self.optimizer_,
                data_loader=loader,
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=1.0,
            )
        return loader


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    net = Net(
        Mine, criterion=nn.CrossEntropyLoss, classes=[0, 1], train_split=None, batch_size=50, max_epochs=3, verbose=0
    )
    space = {"module__width": [4, 8]}
    search = DPRandomSearchCV(net, space, n_iter=4, epsilon=3.0, delta=1e-4, n_jobs=int(sys.argv[1])).fit(X, y)
    model = search.best_estimator_
    print(type(model) is Net, type(model.module_) is Mine, list(model.history_), search.predict(X).shape)
