"""Whatever a record holds, a fit goes on, prints nothing, and trains as if the record were
blank."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sklearn_dpsearch.data._rows import ChosenRows
from sklearn_dpsearch.nets import DPNeuralNetClassifier, DPNeuralNetRegressor
from sklearn_dpsearch.nets._records import MappedRecords, TrainingData

N, BLANK = 40, 99
WORDS = np.random.default_rng(0).integers(0, 6, (N, 3))
LABELS = np.arange(N) % 2


class Words(nn.Module):
    """Two tables of different sizes, each for places of its own."""

    def __init__(self, **options):
        super().__init__()
        self.first, self.second = nn.Embedding(6, 4, **options), nn.Embedding(50, 4)
        self.last = nn.Linear(12, 2)

    def forward(self, words):
        parts = torch.cat([self.first(words[:, :2]), self.second(words[:, 2:])], 1)
        return self.last(parts.flatten(1))


class Lookup(nn.Module):
    """Code of a user's own that fails for an unknown word."""

    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Parameter(torch.randn(6, 4)), nn.Linear(12, 2)

    def forward(self, words):
        return self.last(F.embedding(words, self.table).flatten(1))


class Rounded(nn.Module):
    """Divides whole numbers by each other, which fails for 0."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(2, 2)

    def forward(self, words):
        return self.last((words[:, :2] // words[:, 2:]).float())


def net(module, **changed):
    arguments = {
        "classes": [0, 1], "noise_multiplier": 1.0, "sample_rate": 0.9, "max_steps": 4,
        "noise_seed": 0,
    }  # fmt: skip
    return DPNeuralNetClassifier(module, random_state=0, **{**arguments, **changed})


def trained(module, X, y, **changed):
    return torch.cat(
        [one.detach().reshape(-1) for one in net(module, **changed).fit(X, y).module_.parameters()]
    )


def with_row(row, place):
    X = WORDS + 1 if row == "zero" else WORDS.copy()
    X[place] = [1, 1, 0] if row == "zero" else row
    return X


@pytest.mark.parametrize(("module", "row", "options"), [
    *(
        (Words, row, {})
        for row in ([6, 0, 0], [-1, 0, 0], [0, 0, 50], [0, 2**62, 0], [-(2**63), 0, 0])
    ),
    *((Lookup, row, {}) for row in ([6, 0, 0], [-1, 0, 0])), (Rounded, "zero", {}),
    *((Words, row, {"engine": "opacus"}) for row in ([6, 0, 0], [0, 0, -5])),
    (Lookup, [6, 0, 0], {"max_physical_batch": 7}),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("place", [0, 17, N - 1])
@pytest.mark.filterwarnings("ignore:.*backward hook")
def test_a_record_that_cannot_be_computed_is_blank(module, row, options, place, one_noise, capfd):
    X, blank = with_row(row, place), LABELS.copy()
    blank[place] = BLANK
    odd = trained(module, X, LABELS, **options)
    X[place] = [1, 1, 1]
    torch.testing.assert_close(odd, trained(module, X, blank, **options), rtol=0, atol=0)
    assert capfd.readouterr() == ("", "")


def test_a_token_of_one_table_is_no_bound_for_another(one_noise):
    """A larger table keeps its tokens: the smallest is no bound for all."""
    X, blank = WORDS.copy(), LABELS.copy()
    X[17, 2], blank[17] = 49, BLANK
    assert not torch.equal(trained(Words, X, LABELS), trained(Words, X, blank))


@pytest.mark.parametrize("place", [0, N - 1])
def test_an_impossible_record_that_is_never_drawn_stops_nothing(place):
    X = WORDS.copy()
    X[place] = 10**6
    assert net(Lookup, sample_rate=1e-9, max_steps=3, noise_seed=None).fit(X, LABELS).n_steps_ == 3


class Drawing(nn.Module):
    """Dropout, and code that fails for a large number."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(2, 4), nn.Linear(4, 1)

    def forward(self, inputs):
        chances = torch.where(
            inputs.abs().amax(1, keepdim=True) > 9, torch.tensor(2.0), torch.tensor(0.5)
        )
        return self.last(
            F.dropout(self.first(inputs), 0.5, self.training) * torch.bernoulli(chances)
        )


def test_the_others_draw_what_they_would_draw_without_the_failure(one_noise):
    X = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
    y = X[:, :1].copy()

    def fitted(X, y):
        options = {"max_steps": 3, "noise_seed": 0, "random_state": 0}
        regressor = DPNeuralNetRegressor(Drawing, noise_multiplier=1.0, sample_rate=0.9, **options)
        return torch.cat(
            [one.detach().reshape(-1) for one in regressor.fit(X, y).module_.parameters()]
        )

    odd, blank = X.copy(), y.copy()
    odd[5], blank[5] = 100.0, np.nan
    torch.testing.assert_close(fitted(odd, y), fitted(X, blank), rtol=0, atol=0)


def test_a_row_without_a_record_holds_zeros(tmp_path):
    """Whatever the last record holds."""
    X, y = np.full((3, 2), 7.0, np.float32), torch.tensor([1, 1, 1])
    np.save(tmp_path / "X.npy", X)
    rows = ChosenRows(np.load(tmp_path / "X.npy", mmap_mode="r"))
    options = {"how": None, "inputs": torch.zeros(1, 2), "targets": y}
    mapped = MappedRecords(rows=rows, convert=torch.from_numpy, **options)
    for records in (TrainingData.of(torch.from_numpy(X), y), mapped):
        inputs, targets = records.take(torch.tensor([[0, 3, 2, 3]]))
        assert inputs.tolist() == [[[7.0, 7.0], [0.0, 0.0], [7.0, 7.0], [0.0, 0.0]]]
        assert targets.tolist() == [[1, 0, 1, 0]]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_that_opacus_gets_wrong_is_refused(mode):
    module = nn.Sequential(
        nn.Conv1d(1, 2, 3, padding=1, padding_mode=mode), nn.Flatten(), nn.Linear(12, 2)
    )
    X = np.random.default_rng(0).normal(size=(N, 1, 6)).astype(np.float32)
    with pytest.raises(ValueError, match=f"padding_mode='{mode}'.*Pad before"):
        net(module, engine="opacus").fit(X, LABELS)
    assert net(module).fit(X, LABELS).n_steps_ == 4


@pytest.mark.filterwarnings("ignore:.*backward hook")
def test_the_padding_of_an_embedding_is_not_trained_by_opacus_either(one_noise):
    options = {"module__padding_idx": 2}
    ours = trained(Words, WORDS, LABELS, **options)
    theirs = trained(Words, WORDS, LABELS, engine="opacus", **options)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", [1e39, 1e20, float("inf"), 0.0])
def test_a_clipping_norm_beyond_single_precision_is_refused(norm):
    with pytest.raises(ValueError, match="max_grad_norm"):
        net(nn.Linear(3, 2), max_grad_norm=norm).fit(WORDS.astype(np.float32), LABELS)
