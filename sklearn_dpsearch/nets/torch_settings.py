"""Process-wide settings that training changes, restored by the last thread that trains."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch


class WhileAnyone:
    """A change of a setting of the process: the first thread inside makes it, the last one undoes it.

    Parameters
    ----------
    change : callable
        Makes the change, and returns what undoes it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._undo: Callable[[], None]
        self._lock, self._inside = threading.Lock(), 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._undo = self._change()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._undo()


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


def _to_exact_cudnn() -> Callable[[], None]:
    """Let cuDNN choose its algorithms by shapes alone, deterministic ones, in full single precision."""
    cudnn: Any = torch.backends.cudnn
    parts = [getattr(cudnn, name, None) for name in ("conv", "rnn")]
    new: list[tuple[Any, str, Any]] = [
        (part, "fp32_precision", "ieee") for part in parts if hasattr(part, "fp32_precision")
    ]
    changes = [(cudnn, "benchmark", False), (cudnn, "deterministic", True), *(new or [(cudnn, "allow_tf32", False)])]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)

    def undo() -> None:
        for owner, name, value in before:
            setattr(owner, name, value)

    return undo


def _to_numbers_as_they_come() -> Callable[[], None]:
    """Turn off PyTorch's anomaly detection, which raises for NaN gradients: a single record could trigger it."""
    before, checks = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(False)

    def undo() -> None:
        torch.autograd.set_detect_anomaly(before, checks)

    return undo


_no_anomalies = WhileAnyone(_to_numbers_as_they_come)
_same_threads = WhileAnyone(_to_same_threads)
#: Full single precision of matrix products: with fewer bits sums would move by more than the noise covers.
full_precision = WhileAnyone(_to_full_precision)
_exact_cudnn = WhileAnyone(_to_exact_cudnn)


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """Set the number of PyTorch's own threads: a setting of the process and, in part, of each thread."""
    with _same_threads():
        before = torch.get_num_threads()
        torch.set_num_threads(number)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def one_thread() -> contextlib.AbstractContextManager[None]:
    """Use one thread: steps of linear nets are too short for two, which costs much on a busy machine."""
    return threads(1)


def device_of(name: Any) -> torch.device:
    """Torch device, checked for presence.

    Raises
    ------
    ValueError
        If this machine does not have the device.
    """
    if str(name).startswith("mps"):
        raise ValueError(
            f"Found device={name!r}, where PyTorch has no double precision, in which clipped sums and noise are added. "
            "Use device='cpu', or a CUDA device."
        )
    try:
        return torch.empty(1, device=torch.device(name)).device  # "cuda" is the current one of several
    except Exception as error:
        raise ValueError(
            f"Found device={name!r}, which is not available here ({type(error).__name__}). Use device='cpu', or a CUDA "
            "device that torch.cuda.is_available() confirms."
        ) from None


@contextlib.contextmanager
def exactly(device: torch.device) -> Iterator[None]:
    """Turn on gradients, full single precision and deterministic convolutions, against any setting of the user."""
    with (
        full_precision(),
        _exact_cudnn(),
        _no_anomalies(),
        torch.enable_grad(),
        torch.autocast(device.type, enabled=False),
    ):
        yield
