"""Fingerprints of parameters and trainings: texts and digests that are equal in every process."""

from __future__ import annotations

import copyreg
import dis
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..privacy import PrivacyError
from ._named_tensors import list_tensors
from ._records import TrainingData
from ._stacked_training import TrainingTask

#: The attribute of a module, and the entry of saved parameters, that hold the notes of its privacy
#: cost. They have random numbers, and change no training.
NOTE = "_sklearn_dpsearch_spent"
#: Attributes of modules with hooks by numbers, which differ from process to process.
HOOK_NAMES = sorted(name for name in vars(nn.Module()) if "_hooks" in name)
#: Packages, beside installed ones, whose functions and classes are known by their names.
LIBRARIES = sys.stdlib_module_names | {"sklearn_dpsearch"}
#: Folders of installed packages.
INSTALLED = {"dist-packages", "site-packages"}


def text_of_value(value: Any, numbers: dict[int, tuple[int, object]] | None = None) -> str:
    """Text of a value for a fingerprint, equal in every process.

    An object that occurs again is a number: shared parameters are not equal ones. Numbers are by
    address, beside the object itself, so that no address is used again.

    Raises
    ------
    PrivacyError
        For an object that could not be told from another.
    """
    numbers = {} if numbers is None else numbers
    if type(value) in (bool, bytes, complex, float, int, str, type(None)):
        return repr(value)
    if type(value) in (set, frozenset):
        return f"set{sorted(map(text_of_value, value))}"
    if type(value) in (dict, list, tuple):
        entries = value.items() if type(value) is dict else value
        texts = ", ".join(text_of_value(entry, numbers) for entry in entries)
        return f"{type(value).__name__}({texts})"
    if id(value) in numbers:
        return f"object {numbers[id(value)][0]}"
    numbers[id(value)] = len(numbers), value
    try:
        parts = _parts(value)
    except Exception:  # of methods for pickles, which may be the user's, and so their texts
        raise PrivacyError(
            f"Found {type(value).__name__} in a training with noise_seed, which needs parts that a "
            "pickle can hold: another training with the same noise could not be told from this "
            "one, and the difference of the two would have no noise. Leave noise_seed=None."
        ) from None
    return f"object of {text_of_value(parts, numbers)}"


def _parts(value: Any) -> Any:
    """Parts that tell an object from others.

    Functions and classes of installed packages have a name, others have code and what it reads;
    all other objects have what a pickle would hold.

    Raises
    ------
    Exception
        For an object without such parts.
    """
    if isinstance(value, Tensor):
        return digest_of_tensors(value), value.requires_grad
    if isinstance(value, nn.Module):
        state = {name: part for name, part in value.__getstate__().items() if name != NOTE}
        return type(value), state | {name: [*state[name].values()] for name in HOOK_NAMES}
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, CodeType):
        return value.co_code, value.co_consts, value.co_names
    if isinstance(value, (classmethod, staticmethod)):
        return type(value), value.__func__
    if isinstance(value, property):
        return value.fget, value.fset
    if not isinstance(value, (FunctionType, type)):
        reduce = copyreg.dispatch_table.get(type(value))
        held = value.__reduce_ex__(4) if reduce is None else reduce(value)
        # lru_cache: a pickle would hold the name alone
        return getattr(value, "__module__", None), getattr(value, "__wrapped__", None), held
    name = f"{value.__module__}.{value.__qualname__}"
    package = name.partition(".")[0]
    path = Path(getattr(sys.modules.get(package), "__file__", None) or "").parts
    if package != "__main__" and "<" not in name and (package in LIBRARIES or INSTALLED & {*path}):
        return name
    if isinstance(value, type):
        members = {
            k: v for k, v in vars(value).items() if k[:2] != "__" or isinstance(v, FunctionType)
        }
        return name, value.__bases__, {k: v for k, v in members.items() if k != "_abc_impl"}
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    names = sorted(_global_names(value.__code__) & value.__globals__.keys())
    read = [cells, {key: value.__globals__[key] for key in names}]
    return name, value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), read


def _global_names(code: CodeType) -> set[str]:
    """Names that code, and the code inside of it, reads from its module."""
    steps = dis.get_instructions(code)
    names = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def digest_of_tensors(*tensors: Tensor) -> str:
    """SHA-256 digest of the contents of tensors, in order."""
    digest = hashlib.sha256()
    for tensor in tensors:
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{values.dtype}{tuple(values.shape)}".removeprefix("torch.").encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def words_of_training(task: TrainingTask, records: TrainingData) -> Sequence[int]:
    """Fingerprint of a training, as words for a seed.

    Trainings that differ share no noise.

    With one noise for two trainings, the difference of their releases would be exact, also for
    those without the seed.

    Parameters
    ----------
    task : TrainingTask
        Without a seed; its module has the initial parameters.
    records : TrainingData

    Raises
    ------
    PrivacyError
        For module or criterion with a part that cannot be told from another.
    """
    forms = [values[:0] for values in (*list_tensors(records.inputs), records.targets)]
    text = text_of_value([task, forms, *records.digests()])
    return [int(word) for word in np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint32)]
