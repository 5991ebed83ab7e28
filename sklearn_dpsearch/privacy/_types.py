"""Names for types that the whole package uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
ArrayLike = npt.ArrayLike
#: Several numbers at once.
Numbers: TypeAlias = Array | Sequence[float]
Neighboring = Literal["add_remove", "zero_out", "replace_one"]
NEIGHBORING: tuple[Neighboring, ...] = ("add_remove", "zero_out", "replace_one")
