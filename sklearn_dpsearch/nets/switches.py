"""Settings of the whole process that training needs otherwise, put back by the last thread that trains."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .._process import WhileAnyone


def _to_same_threads() -> Callable[[], None]:
    before = torch.get_num_threads()
    return lambda: torch.set_num_threads(before)


def _to_full_precision() -> Callable[[], None]:
    backends: list[Any] = [torch.backends.cuda, torch.backends.mkldnn]
    products = [backend.matmul for backend in backends if hasattr(backend, "matmul")]
    products = [product for product in products if hasattr(product, "fp32_precision")]  # since PyTorch 2.9
    before = [product.fp32_precision for product in products]
    try:
        legacy = torch.get_float32_matmul_precision()
    except RuntimeError:  # PyTorch refuses to say after its newer switches were used
        legacy = "highest"
    torch.set_float32_matmul_precision("highest")

    def undo() -> None:
        torch.set_float32_matmul_precision(legacy)
        for product, precision in zip(products, before):
            product.fp32_precision = precision

    return undo


def _to_numbers_as_they_come() -> Callable[[], None]:
    """PyTorch's search for anomalies raises where a gradient is not a number, which one record decides."""
    before, checks = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(False)

    def undo() -> None:
        torch.autograd.set_detect_anomaly(before, checks)

    return undo


_no_anomalies = WhileAnyone(_to_numbers_as_they_come)
_same_threads = WhileAnyone(_to_same_threads)
#: Matrix products in single precision are not rounded to fewer bits, which would move sums by more than is covered.
full_precision = WhileAnyone(_to_full_precision)


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads for PyTorch's own work: a number of the process and, in part, of each thread."""
    with _same_threads():
        before = torch.get_num_threads()
        torch.set_num_threads(number)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def one_thread() -> contextlib.AbstractContextManager[None]:
    """Steps of linear nets are too short to share: a second thread gains nothing, and costs much on a busy machine."""
    return threads(1)


@contextlib.contextmanager
def exactly(device: torch.device) -> Iterator[None]:
    """Gradients, in single precision, whatever the user has set."""
    with full_precision(), _no_anomalies(), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield
