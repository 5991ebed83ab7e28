"""Records as training holds them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch

from sklearn_dpsearch.nets.records import Records

from .toys import CPU, records


def test_the_row_that_stands_for_no_record_is_one_of_zeros():
    kept = records(4)
    assert len(kept) == 4
    inputs, targets = kept.take(torch.tensor([[0, 4], [4, 4]]))
    assert inputs.shape == (2, 2, 5)
    assert not inputs[1].any()
    assert not targets[1].any()


def test_records_are_copied_not_kept():
    inputs, targets = torch.ones(3, 5), torch.zeros(3, dtype=torch.long)
    kept = Records.of(inputs, targets, CPU)
    inputs.zero_()
    assert kept.inputs[:3].all()


@pytest.mark.parametrize("features", [5, 256, 257, 784])
def test_norms_of_records_are_those_of_the_rows_however_many_are_taken(features):
    kept = records(3000, features)
    expected = kept.inputs.double().norm(dim=1)
    torch.testing.assert_close(kept.norms, expected, rtol=2e-6, atol=1e-15)
