"""Modules of other precision, and modules that are not finished before they see records."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_dpsearch.privacy import LeakingEstimatorError

from ..toys import flat
from ..user_nets import X, net, y


def stated():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


LONG = {
    "noise_multiplier": 0.5, "sample_rate": 0.3, "max_steps": 150, "noise_seed": 0,
    "random_state": 0,
}  # fmt: skip


# --- precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16])
def test_modules_of_every_precision_are_trained_and_kept_in_single(kind, one_noise):
    given = stated().to(kind)
    before = copy.deepcopy(given)
    one = net(given, noise_seed=1).fit(X, y)
    other = net(copy.deepcopy(given).float(), noise_seed=1).fit(X, y)
    assert {p.dtype for p in one.module_.parameters()} == {torch.float32}
    torch.testing.assert_close(flat(one.module_), flat(other.module_))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert [p.dtype for p in given.parameters()] == [kind] * 4  # what was given is left as it was
    assert all(
        torch.equal(mine, theirs) for mine, theirs in zip(given.parameters(), before.parameters())
    )
    assert one.partial_fit(X, y).n_steps_ == 12


def test_buffers_and_weights_of_criteria_follow():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2).double()
            self.register_buffer("scale", torch.full((4,), 0.5, dtype=torch.float64))

        def forward(self, inputs):
            return self.last(inputs * self.scale)

    criterion__weight = torch.tensor([1.0, 2.0], dtype=torch.float64)
    one = net(Scaled, criterion__weight=criterion__weight, **{**LONG, "max_steps": 60})
    assert one.fit(X, y).score(X, y) > 0.8


def test_parameters_that_are_no_real_numbers_are_refused():
    class Complex(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn = nn.Parameter(torch.ones(4, 2, dtype=torch.complex64))

        def forward(self, inputs):
            return (inputs.to(torch.complex64) @ self.turn).real

    with pytest.raises(ValueError, match="(?s)'turn' of dtype torch.complex64.*real numbers"):
        net(Complex).fit(X, y)


# --- modules that are refused before they see records ---------------------------------------------


@pytest.mark.parametrize(("module", "match"), [
    (
        nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.Linear(6, 2)),
        "State the shapes, e.g. nn.Linear",
    ),
    (
        nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)),
        "statistics over the records of a batch",
    ),
], ids=["lazy", "batch norm"])  # fmt: skip
def test_a_module_that_can_never_be_private_is_refused_before_a_record_is_read(module, match):
    with pytest.raises(LeakingEstimatorError, match=match):
        net(module).initialize()
