"""skorch nets that Opacus makes private, as people write them; some of them wrongly."""

from __future__ import annotations

import numpy as np
import skorch
import torch
from opacus import PrivacyEngine
from torch import nn

from sklearn_dpsearch.nets import OpacusNet


class MLP(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first, self.last = nn.Linear(2, width), nn.Linear(width, 2)

    def forward(self, X):
        return self.last(torch.relu(self.first(X)))


class Mixed(OpacusNet, skorch.NeuralNetClassifier):
    """The mixin, and nothing else."""


class Own(skorch.NeuralNetClassifier):
    """A net with an engine of its own, written before it was searched."""

    def __init__(self, *args, noise_multiplier=1.0, max_grad_norm=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.noise_multiplier, self.max_grad_norm = noise_multiplier, max_grad_norm

    def get_iterator(self, dataset, training=False):
        loader = super().get_iterator(dataset, training)
        return self.private(loader) if training else loader

    def private(self, loader, **changed):
        self.privacy_engine_ = PrivacyEngine(accountant="rdp")
        options = {
            "noise_multiplier": self.noise_multiplier,
            "max_grad_norm": self.max_grad_norm,
            **changed,
        }
        self.module_, self.optimizer_, loader = self.privacy_engine_.make_private(
            module=self.module_, optimizer=self.optimizer_, data_loader=loader, **options
        )
        return loader


class ByEpsilon(skorch.NeuralNetClassifier):
    """A net whose engine calibrates its noise."""

    def __init__(self, *args, target_epsilon=3.0, target_delta=1e-4, accountant="rdp", **kwargs):
        super().__init__(*args, **kwargs)
        self.target_epsilon, self.target_delta = target_epsilon, target_delta
        self.accountant = accountant

    def get_iterator(self, dataset, training=False):
        loader = super().get_iterator(dataset, training)
        if not training:
            return loader
        options = {"target_epsilon": self.target_epsilon, "target_delta": self.target_delta}
        engine = PrivacyEngine(accountant=self.accountant)
        self.module_, self.optimizer_, loader = engine.make_private_with_epsilon(
            module=self.module_, optimizer=self.optimizer_, data_loader=loader,
            epochs=self.max_epochs, max_grad_norm=1.0, **options,
        )  # fmt: skip
        return loader


class LessNoise(Own):
    def private(self, loader):
        return super().private(loader, noise_multiplier=self.noise_multiplier / 2)


class Longer(Own):
    def fit_loop(self, X, y=None, epochs=None, **params):
        return super().fit_loop(X, y, epochs=self.max_epochs + 1, **params)


class InTwoParts(Own):
    """Two engines, each of which knows half of the training."""

    def fit_loop(self, X, y=None, epochs=None, **params):
        super().fit_loop(X, y, epochs=self.max_epochs - 1, **params)
        return super().fit_loop(X, y, epochs=1, **params)


class Shuffled(Own):
    def private(self, loader):
        return super().private(loader, poisson_sampling=False)


class SmallerBatches(Own):
    """Batches of its own loader: another rate, and more steps."""

    def private(self, loader):
        return super().private(torch.utils.data.DataLoader(loader.dataset, batch_size=10))


class Adaptive(Own):
    def private(self, loader):
        more = {
            "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 10.0,
        }  # fmt: skip
        more |= {"min_clipbound": 0.1, "unclipped_num_std": 1.0}
        return super().private(loader, clipping="adaptive", **more)


class Seeded(Own):
    def private(self, loader):
        return super().private(loader, noise_generator=torch.Generator().manual_seed(0))


class SeededModule(MLP):
    def __init__(self, width=8):
        torch.manual_seed(0)
        super().__init__(width)


class NotPrivate(Own):
    def private(self, loader):
        return torch.utils.data.DataLoader(loader.dataset, batch_size=100)


class Counting(MLP):
    """A module with a running mean."""

    def __init__(self, width=8):
        super().__init__(width)
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, X):
        if self.training and len(X):
            self.mean += 0.1 * (X.detach().mean(0) - self.mean)
        return super().forward(X - self.mean)


class KeepsLoader(Own):
    def private(self, loader):
        self.loader_ = super().private(loader)
        return self.loader_


class KeepsRecords(Own):
    def fit(self, X, y, **params):
        self.seen_ = {"first": X[:1]}
        return super().fit(X, y, **params)


class KeepsNumber(Own):
    def fit(self, X, y, **params):
        self.__seen = len(X)  # an attribute _KeepsNumber__seen
        return super().fit(X, y, **params)


class KeepsLosses(Own):
    def fit(self, X, y, **params):
        super().fit(X, y, **params)
        self.losses = self.history_[:, "train_loss"]
        return self


def blobs(n=400):
    rng = np.random.default_rng(0)
    y = np.resize(np.array([0, 1]), n)
    return (rng.normal(size=(n, 2)) + 3 * y[:, None]).astype(np.float32), y.astype(np.int64)


def net(kind=Mixed, module=MLP, **changed):
    options = {
        "criterion": nn.CrossEntropyLoss, "classes": [0, 1], "train_split": None, "verbose": 0,
    }  # fmt: skip
    return kind(module, **{**options, "batch_size": 100, "max_epochs": 3, "lr": 0.5, **changed})
