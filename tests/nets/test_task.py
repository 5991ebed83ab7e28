"""Records as training holds them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch

from .toys import records


def test_places_without_a_record_have_a_row():
    """It adds exactly nothing, whatever lies there (``test_places_without_a_record_add_nothing``)."""
    kept = records(4)
    assert len(kept) == 4
    inputs, targets = kept.take(torch.tensor([[0, 4], [4, 4]]))
    assert (inputs.shape, targets.shape) == ((2, 2, 5), (2, 2))


@pytest.mark.parametrize("features", [5, 256, 257, 784])
def test_norms_of_records_are_those_of_the_rows_however_many_are_taken(features):
    kept = records(3000, features)
    expected = kept.inputs.double().norm(dim=1)
    torch.testing.assert_close(kept.norms, expected, rtol=2e-6, atol=1e-15)
