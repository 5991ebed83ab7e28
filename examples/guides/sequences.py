"""Text and sequences: an LSTM and a transformer layer
===================================================

Which of two kinds of sessions is it? 3,000 made-up sessions of twelve clicks; a session is of the
second kind if five or more of its clicks are on pages about money. Both nets are plain PyTorch,
trained with DP-SGD at ε = 3.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import nn

from sklearn_dpsearch.nets import DPNeuralNetClassifier

PAGES, LENGTH = 30, 12  # public: how many pages there are, and how many clicks count


class Recurrent(nn.Module):
    """An embedding, an LSTM, and a linear layer on the mean of its states."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embedding, self.lstm = (
            nn.Embedding(PAGES, width),
            nn.LSTM(width, width, batch_first=True),
        )
        self.last = nn.Linear(width, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(self.embedding(tokens))[0].mean(1))


class Transformer(nn.Module):
    """An embedding with places, one transformer layer, and a linear layer on the mean."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embedding, self.places = (
            nn.Embedding(PAGES, width),
            nn.Parameter(torch.zeros(LENGTH, width)),
        )
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.last = nn.Linear(width, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(self.embedding(tokens) + self.places).mean(1))


# %%
# Sessions are arrays of whole numbers, one row for each record.
draw = np.random.default_rng(0)
sessions = draw.integers(0, PAGES, (4000, LENGTH))
about_money = np.where((sessions % 3 == 0).sum(1) > 4, "money", "other")
train, test, train_labels, test_labels = train_test_split(
    sessions, about_money, test_size=1000, random_state=0
)

# %%
# The loss, the classes and the number of pages are public. Nothing else differs from a net for
# tables.
for module in (Recurrent, Transformer):
    net = DPNeuralNetClassifier(
        module, classes=["money", "other"], target_epsilon=3.0, target_delta=1e-5, max_epochs=8,
        sample_rate=0.1, lr=1.0,
    )  # fmt: skip
    net.fit(train, train_labels)
    print(
        f"{module.__name__:12} accuracy {net.score(test, test_labels):.3f}  {net.privacy_spent_!r}"
    )
print(f"{'always other':12} accuracy {np.mean(test_labels == 'other'):.3f}")
