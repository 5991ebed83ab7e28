"""Datasets that are read record by record, and inputs by name: trained as arrays are, and nothing
else."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import skorch
import torch
from sklearn.model_selection import GridSearchCV
from skorch.helper import SliceDataset, SliceDict
from torch import nn
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from sklearn_dpsearch import DPRandomSearchCV
from sklearn_dpsearch.data._datasets import RecordSource, arrays_from_dataset
from sklearn_dpsearch.nets._estimators import input_records
from sklearn_dpsearch.nets._estimators.input_records import OneByOne
from sklearn_dpsearch.nets._records import ReadRecords
from sklearn_dpsearch.privacy import PrivacyError

from ...search.toys import refuses_to_fit
from .. import user_nets
from ..toys import Both
from ..user_nets import Small, net, parameters, y

rng = np.random.default_rng(0)

X = user_nets.X.astype(np.float32)
words = rng.integers(0, 6, (120, 3))


class Rows(Dataset):
    """A dataset of a user's own, that notes nothing."""

    def __init__(self, inputs=X, targets=y):
        self.inputs, self.targets = inputs, targets

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, number):
        return self.inputs[number], self.targets[number]


class Named(Rows):
    def __getitem__(self, number):
        return {"values": self.inputs[number], "words": words[number]}, self.targets[number]


EXAMPLE = torch.zeros(4)
NAMED = {"values": torch.zeros(4), "words": torch.zeros(3, dtype=torch.int64)}


def seeded(module=Small, **changed):
    return net(module, **{"noise_seed": 1, "random_state": 1, "example_input": EXAMPLE, **changed})


# --- datasets -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "dataset", [Rows(), TensorDataset(torch.from_numpy(X), torch.from_numpy(y))]
)
@pytest.mark.parametrize("memory", [5, 1000])
def test_a_dataset_trains_and_predicts_as_the_arrays_that_it_holds(dataset, memory):
    one, other = seeded().fit(X, y), seeded(max_physical_batch=memory).fit(dataset, None)
    torch.testing.assert_close(parameters(one), parameters(other), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        one.predict_proba(X), other.predict_proba(dataset), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(dataset))
    assert tuple(one.privacy_spent_)[:2] == tuple(other.privacy_spent_)[:2]
    assert other.partial_fit(dataset).privacy_spent_.epsilon > one.privacy_spent_.epsilon


def test_records_are_read_one_by_one_and_only_those_of_a_batch(one_noise, monkeypatch):
    read = []
    honest = RecordSource.read
    monkeypatch.setattr(
        RecordSource,
        "read",
        lambda source, number: (read.append(number), honest(source, number))[1],
    )
    held = []
    take = ReadRecords.take

    def noted(self, places):
        found = take(self, places)
        held.append(len(found[1].reshape(-1)))
        return found

    monkeypatch.setattr(ReadRecords, "take", noted)
    seeded(max_steps=5, max_physical_batch=4).fit(Rows(), None)
    assert max(held) <= 4  # never more in memory
    assert 20 < len(read) <= sum(held)  # those that are drawn, and no blank ones
    assert all(type(number) is int for number in read)


class Augmented(Rows):
    """Draws from every global generator."""

    def __getitem__(self, number):
        row, label = super().__getitem__(number)
        return row + np.float32(
            0.1 * (torch.randn(()).item() + np.random.normal() + random.gauss(0, 1))
        ), label


class Seeding(Rows):
    """Seeds every global generator, as some do to have the same augmentation each time."""

    def __getitem__(self, number):
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        return super().__getitem__(number)


def ready(dataset):
    facts = OneByOne(
        EXAMPLE,
        lambda row: row,
        lambda targets: torch.tensor(np.stack(targets)),
        lambda: torch.zeros(1, dtype=int),
    )
    return input_records.dataset_records(RecordSource(dataset), facts)


def drawn_for(number, before):
    """What a record is given after others were read before it."""
    with ready(Augmented()).opened(7) as opened:
        return opened.take(torch.tensor([[*before, number]]))[0][0, -1]


def test_what_is_drawn_for_a_record_does_not_depend_on_what_others_draw():
    # of the same place; of other places, other seeds
    assert torch.equal(drawn_for(5, [1]), drawn_for(5, [2]))
    assert not torch.equal(drawn_for(5, [1]), drawn_for(5, [1, 2]))

    class Greedy(Augmented):
        """One record that draws more than others do."""

        def __getitem__(self, number):
            if number == 1:
                np.random.normal(size=1000)
                random.random()
                torch.randn(50)
            return super().__getitem__(number)

    with ready(Greedy()).opened(7) as opened:
        assert torch.equal(opened.take(torch.tensor([[1, 5]]))[0][0, -1], drawn_for(5, [2]))


def test_generators_that_the_user_seeded_decide_nothing_and_are_put_back():
    def fitted():
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        one = net(random_state=0, example_input=EXAMPLE).fit(Augmented(), None)
        drawn = torch.rand(()).item(), np.random.random(), random.random()
        return parameters(one), drawn

    (first, drawn), (second, again) = fitted(), fitted()
    assert not torch.equal(first, second)
    assert drawn == again


def test_a_dataset_that_seeds_generators_does_not_choose_the_masks_of_dropout():
    """Masks come from PyTorch's generator, which is the same before and after records are read."""
    with ready(Seeding()).opened(7) as opened:
        state = torch.get_rng_state()
        opened.take(torch.tensor([[1, 5]]))
        assert torch.equal(state, torch.get_rng_state())


def test_what_is_taken_on_trust_of_a_dataset_is_said_and_only_of_ones_own():
    def said(data, targets=None):
        parts = net(example_input=EXAMPLE).fit(data, targets).privacy_spent_.assumptions
        return [text for text in parts if "record alone" in text]

    (sentence,) = said(Rows())
    assert sentence.startswith("Rows: what it returns for a number depends on that record alone")
    assert not said(X, y)
    assert not said(TensorDataset(torch.from_numpy(X), torch.from_numpy(y)))


def test_no_record_of_a_dataset_is_in_a_pickle():
    planted = X.copy()
    planted[:, 2] = 1.2345678e-3
    one = net(sample_rate=1.0, example_input=EXAMPLE).fit(Rows(planted), None)
    shown = pickle.dumps(one)
    assert np.float32(1.2345678e-3).tobytes() not in shown
    assert b"Rows" not in shown.replace(b"Rows: what it returns", b"")


class Unequal(Rows):
    def __getitem__(self, number):
        row, label = super().__getitem__(number)
        return (row[:3] if number == 7 else row), label


class Failing(Rows):
    def __getitem__(self, number):
        if number == 7:
            raise FileNotFoundError("/home/john.smith/scan.png")
        return super().__getitem__(number)


class Alone(Rows):
    def __getitem__(self, number):
        return self.inputs[number]


class Pair(Rows):
    def __getitem__(self, number):
        return (self.inputs[number], self.inputs[number]), self.targets[number]


class Several(Rows):
    """Of a kind that loaders would ask for many records at once."""

    def __getitems__(self, numbers):
        raise AssertionError("several records at once")


def test_a_dataset_is_never_asked_for_several_records_in_training():
    assert net(example_input=EXAMPLE).fit(Several(), None).n_steps_ == 12


class Endless(IterableDataset):
    def __iter__(self):
        yield from zip(X, y)


@pytest.mark.parametrize(("dataset", "targets", "match"), [
    (Endless(), None, "(?s)Endless.*no number of records.*map-style"),
    (Rows(), y, "(?s)together with y.*fit\\(dataset, None\\)"),
    (SliceDataset(Rows()), None, "(?s)SliceDataset without y"),
    (SliceDataset(Rows()), y[:7], "inconsistent numbers"),
    (Rows(X[:0], y[:0]), None, "0 records"),
    (Rows(), None, "(?s)Rows.*no example_input.*example_input=torch.zeros"),
])  # fmt: skip
def test_bad_datasets_are_refused_without_a_word_of_a_record(dataset, targets, match):
    one = net(sample_rate=1.0)
    with pytest.raises(ValueError, match=match) as caught:
        one.fit(dataset, targets)
    assert not one.initialized_
    assert "john" not in str(caught.value)
    assert caught.value.__cause__ is None


class Labelled(Rows):
    """Record 7 has another target."""

    def __init__(self, target):
        super().__init__()
        self.target = target

    def __getitem__(self, number):
        row, label = super().__getitem__(number)
        return row, (self.target if number == 7 else label)


class Whole(Rows):
    def __getitem__(self, number):
        row, label = super().__getitem__(number)
        return (row.astype(str) if number == 7 else row), label


@pytest.mark.parametrize("dataset", [
    Unequal(), Failing(), Whole(), Labelled("no"), Labelled([0, 1]), Labelled(None),
    Labelled(np.zeros(3)),
], ids=lambda one: f"{type(one).__name__} {getattr(one, 'target', '')}")  # fmt: skip
def test_a_record_that_does_not_fit_the_declared_shape_adds_nothing(dataset, one_noise):
    """The net is that of a data set in which this record has no declared label."""
    blank = seeded(sample_rate=1.0).fit(Labelled(99), None)
    odd = seeded(sample_rate=1.0).fit(dataset, None)
    assert torch.equal(parameters(blank), parameters(odd))


@pytest.mark.parametrize("dataset", [Alone(), Pair(), Rows(X.astype(str))])
def test_a_dataset_without_any_record_that_fits_trains_on_nothing(dataset, one_noise):
    cases = (dataset, Rows(targets=np.full(120, 99)))
    trained = [seeded(sample_rate=1.0).fit(data, None) for data in cases]
    assert torch.equal(*map(parameters, trained))


def test_record_0_is_a_record_like_any_other():
    """A first record of whole numbers makes no whole numbers of the others."""

    class Mixed(Rows):
        def __getitem__(self, number):
            row, label = super().__getitem__(number)
            return (np.ones(4, int) if number == 0 else row), label

    with ready(Mixed()).opened(7) as opened:
        inputs, _ = opened.take(torch.tensor([[0, 1]]))
    assert inputs.dtype == torch.float32
    assert torch.equal(inputs[0, 1], torch.from_numpy(X[1]))


def test_parts_of_datasets_of_arrays_are_arrays():
    whole = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    part = Subset(whole, range(10, 60))
    for inputs, targets in (
        arrays_from_dataset(part, None),
        arrays_from_dataset(Subset(part, range(50)), None),
        arrays_from_dataset(skorch.dataset.Dataset(X[10:60], y[10:60]), None),
        arrays_from_dataset(
            SliceDataset(whole)[np.arange(10, 60)], SliceDataset(whole, idx=1)[np.arange(10, 60)]
        ),
    ):
        np.testing.assert_array_equal(np.asarray(inputs), X[10:60])
        np.testing.assert_array_equal(np.asarray(targets), y[10:60])

    class Mine(TensorDataset):
        def __getitem__(self, number):
            return self.tensors[0].mean(0), self.tensors[1][number]

    mine = Mine(torch.from_numpy(X), torch.from_numpy(y))
    assert arrays_from_dataset(mine, None)[0] is mine


# --- in searches ----------------------------------------------------------------------------------

SPACE = {"lr": [0.1, 0.5]}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "data", "targets", "example"), [
    (Small, SliceDataset(Rows()), y, EXAMPLE),
    (Small, SliceDataset(Rows()), SliceDataset(Rows(), idx=1), EXAMPLE),
    (Both, SliceDict(values=X, words=words), y, None),
    (Both, SliceDataset(Named()), y, NAMED),
])  # fmt: skip
def test_searches_split_what_skorchs_own_helpers_hold(module, data, targets, example):
    if isinstance(targets, np.ndarray):
        plain = net(module, example_input=example)
        assert GridSearchCV(plain, SPACE, cv=2).fit(data, targets).best_params_["lr"] in SPACE["lr"]
    one = net(module, noise_multiplier=None, example_input=example)
    search = DPRandomSearchCV(one, SPACE, n_iter=3, epsilon=8.0, delta=1e-5, random_state=0)
    search.fit(data, np.asarray(targets))
    assert search.privacy_spent_.epsilon <= 8.0
    assert search.predict(data).shape == (120,)


@pytest.mark.parametrize(("data", "helper"), [
    (Rows(), "SliceDataset"), ({"values": X, "words": words}, "SliceDict"),
], ids=["data", "dict"])  # fmt: skip
def test_searches_say_how_to_wrap_what_they_cannot_split(data, helper):
    one = net(Both, noise_multiplier=None)
    search = DPRandomSearchCV(one, SPACE, n_iter=3, epsilon=8.0, delta=1e-5)
    refuses_to_fit(search, TypeError, f"(?s)Found X of type.*skorch.helper.{helper}", data, y)


# --- inputs by name -------------------------------------------------------------------------------


def test_inputs_by_name_train_as_one_table_of_all_does(one_noise):
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)

        def forward(self, left, right):
            return self.last(torch.relu(self.first(torch.cat([left, right], dim=1))))

    one = seeded().fit(X, y)
    other = seeded(Split).fit({"left": X[:, :3], "right": X[:, 3:]}, y)
    torch.testing.assert_close(parameters(one), parameters(other), rtol=1e-4, atol=1e-5)
    expected = ["first.weight", "first.bias", "last.weight", "last.bias"]
    assert list(other.module_.state_dict()) == expected
    assert type(other.module_) is Split


def test_a_dataset_may_return_inputs_by_name():
    found = [
        seeded(Both, example_input=NAMED).fit({"values": X, "words": words}, y),
        seeded(Both, example_input=NAMED).fit(Named(), None),
    ]
    torch.testing.assert_close(*map(parameters, found), rtol=1e-4, atol=1e-5)
    assert found[1].predict(Named()).shape == (120,)


@pytest.mark.parametrize(("data", "match"), [
    ({"values": X}, r"(?s)inputs \['values'\] for Both.forward.*\['values', 'words'\]"),
    ({"values": X, "words": words, "more": X}, r"(?s)inputs .*'more'.*Both.forward"),
    ({"values": X, "words": words[:7]}, "(?s)different lengths.*120.*7"),
    ({"values": X, "words": words.astype(str)}, r"X\['words'\] as numbers"),
])  # fmt: skip
def test_bad_inputs_by_name_are_refused(data, match):
    one = net(Both)
    with pytest.raises(ValueError, match=match):
        one.fit(data, y)
    assert not one.initialized_


def test_private_data_that_are_a_dataset_are_no_public_ones():
    one = net(noise_multiplier=None)
    data = SliceDataset(Rows())
    search = DPRandomSearchCV(one, SPACE, n_iter=3, epsilon=8.0, delta=1e-5)
    with pytest.raises(PrivacyError, match="shares its memory"):
        search.fit(data, y, X_public=data, y_public=y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "last", [float(2**53), np.float64(2**53), torch.tensor(float(2**53), dtype=torch.float64)]
)
def test_no_label_of_a_batch_changes_another(last):
    labels = [2**53 + 1, 2**53] * 60
    nets = [
        seeded(classes=[2**53, 2**53 + 1], sample_rate=1.0).fit(Rows(targets=one), None)
        for one in (labels, [*labels[:-1], last])
    ]
    assert torch.equal(parameters(nets[0]), parameters(nets[1]))
