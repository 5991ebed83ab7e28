"""Settings of the process: as training needs them while it lasts, as the user wants them
afterwards."""

from __future__ import annotations

import threading

import pytest
import torch

from sklearn_dpsearch.nets import _torch_settings as torch_settings

from .toys import CPU


@pytest.mark.parametrize("name", ["matmul", "conv", "rnn"])
def test_pytorchs_newer_switches_are_put_back_too(name):
    part = getattr(torch.backends.mkldnn, name, None)
    if not hasattr(part, "fp32_precision"):
        pytest.skip("PyTorch before 2.9")
    before, part.fp32_precision = part.fp32_precision, "bf16"
    try:
        with torch_settings.exact_arithmetic(CPU):
            assert part.fp32_precision == "ieee"
        assert part.fp32_precision == "bf16"
    finally:
        part.fp32_precision = before
        torch.set_float32_matmul_precision("highest")


def test_convolutions_are_deterministic_while_training_lasts():
    cudnn = torch.backends.cudnn
    before = (cudnn.benchmark, cudnn.deterministic)
    cudnn.benchmark = True
    try:
        with torch_settings.exact_arithmetic(CPU):
            assert (cudnn.benchmark, cudnn.deterministic) == (False, True)
        assert cudnn.benchmark
    finally:
        cudnn.benchmark, cudnn.deterministic = before


def in_turns(change):
    """Two threads: the second enters before the first leaves, and leaves after it."""
    inside, entered, left, found = threading.Event(), threading.Event(), threading.Event(), []

    def first():
        with change():
            inside.set()
            entered.wait(10)
        left.set()

    def second():
        inside.wait(10)
        with change():
            entered.set()
            left.wait(10)
            found.append(torch.get_float32_matmul_precision())

    threads = [threading.Thread(target=one) for one in (first, second)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    return found


def test_the_last_thread_to_leave_puts_the_precision_back():
    torch.set_float32_matmul_precision("medium")
    try:
        assert in_turns(lambda: torch_settings.exact_arithmetic(CPU)) == ["highest"]
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_training_that_fails_puts_everything_back():
    torch.set_num_threads(2)
    try:
        with (
            pytest.raises(RuntimeError, match="no"),
            torch_settings.torch_threads(1),
            torch_settings.exact_arithmetic(CPU),
        ):
            raise RuntimeError("no")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
