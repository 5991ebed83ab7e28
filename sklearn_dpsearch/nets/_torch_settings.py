"""Process-wide settings that training changes, restored by the last thread that trains."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch


class SharedSetting:
    """Setting of the process that training threads change together.

    The first thread inside makes the change, the last one undoes it.

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


def _to_exact_arithmetic() -> Callable[[], None]:
    """Switch PyTorch to full single precision and deterministic algorithms.

    On a GPU they follow from shapes alone. PyTorch's anomaly detection, which raises for NaN
    gradients, is off: a single record could trigger it.
    """
    cuda, cudnn, mkldnn = (getattr(torch.backends, name) for name in ("cuda", "cudnn", "mkldnn"))
    names = itertools.product((cudnn, mkldnn), ("conv", "rnn"))
    parts = [getattr(library, name, None) for library, name in names]
    newer = [part for part in parts if hasattr(part, "fp32_precision")]  # since PyTorch 2.9
    changes: list[tuple[Any, str, Any]] = [(part, "fp32_precision", "ieee") for part in newer]
    if not newer:
        changes.append((cudnn, "allow_tf32", False))
    changes += [(cudnn, "benchmark", False), (cudnn, "deterministic", True)]
    with contextlib.ExitStack() as undo:
        for owner, name, value in changes:
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        for product in [owner.matmul for owner in (cuda, mkldnn) if hasattr(owner, "matmul")]:
            if hasattr(product, "fp32_precision"):
                undo.callback(setattr, product, "fp32_precision", product.fp32_precision)
        try:
            undo.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        except RuntimeError:  # PyTorch refuses to say after its newer switches were used
            undo.callback(torch.set_float32_matmul_precision, "highest")
        torch.set_float32_matmul_precision("highest")
        undo.enter_context(torch.autograd.set_detect_anomaly(False))
        return undo.pop_all().close


_same_threads = SharedSetting(lambda: partial(torch.set_num_threads, torch.get_num_threads()))
#: With fewer bits sums would move by more than the noise covers.
_exact_arithmetic = SharedSetting(_to_exact_arithmetic)


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Set the number of PyTorch's own threads while open.

    It is a setting of the process and, in part, of each thread.
    """
    with _same_threads():
        before = torch.get_num_threads()
        torch.set_num_threads(number)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def checked_device(name: Any) -> torch.device:
    """Torch device that this machine has and training can use.

    Raises
    ------
    ValueError
        If this machine does not have the device.
    """
    if str(name).startswith("mps"):
        remedy = "in which clipped sums and noise are added. Use device='cpu', or a CUDA device."
        raise ValueError(f"Found device={name!r}, where PyTorch has no double precision, {remedy}")
    try:
        # "cuda" is the current one of several
        return torch.empty(1, device=torch.device(name)).device
    except Exception as error:
        raise ValueError(
            f"Found device={name!r}, which is not available here ({type(error).__name__}). Use "
            "device='cpu', or a CUDA device that torch.cuda.is_available() confirms."
        ) from None


@contextlib.contextmanager
def exact_arithmetic(device: torch.device) -> Iterator[None]:
    """Train with gradients, full single precision and deterministic convolutions.

    Settings of the user are restored afterwards.
    """
    with _exact_arithmetic(), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield
