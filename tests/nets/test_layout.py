"""Where parameters lie in flat storage."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch

from sklearn_dpsearch.nets.engines.base import Layout

from .toys import CPU, Residual


def test_layouts_hold_every_parameter_once_and_give_it_back():
    net = Residual()
    net.middle.weight.requires_grad_(False)
    layout = Layout(net)
    assert layout.trained + layout.frozen == sum(p.numel() for p in net.parameters())
    row, frozen = (layout.read([net], CPU, flag)[0] for flag in (True, False))
    for key, parameter in net.named_parameters():
        torch.testing.assert_close(layout.view(key, row, frozen), parameter.detach(), rtol=0, atol=0)
    other = Residual()
    other.middle.weight.requires_grad_(False)
    kept = other.middle.weight.detach().clone()
    layout.write(row, other)
    torch.testing.assert_close(other.last.weight, net.last.weight, rtol=0, atol=0)
    torch.testing.assert_close(other.middle.weight.detach(), kept, rtol=0, atol=0)
