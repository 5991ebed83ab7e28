"""What the arguments of a net say about its guarantee."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from sklearn_dpsearch.nets import DPMLPClassifier


@pytest.mark.parametrize(("public_n", "relation"), [(None, "zero_out"), (150, "add_remove")])
def test_the_number_of_records_is_private_only_if_one_was_stated(public_n, relation):
    """Gradients are divided by the number of records that is expected: taken from the data, it is told."""
    one = DPMLPClassifier(noise_multiplier=1.0, sample_rate=0.1, max_steps=3, public_n=public_n)
    assert one.privacy_guarantee().neighboring == relation
