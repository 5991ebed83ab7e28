"""Names for types that the whole package uses."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
ArrayLike = npt.ArrayLike
Neighboring = Literal["add_remove", "zero_out", "replace_one"]
NEIGHBORING: tuple[Neighboring, ...] = ("add_remove", "zero_out", "replace_one")
